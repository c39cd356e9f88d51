"""A page that shows what it would show again is not drawn again."""

import json
import shutil
from pathlib import Path

import pytest
from report.test_page import light

from forsooth.report.unchanged import MARK
from forsooth.runs import write_page


@pytest.fixture(scope="module")
def drawn(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = light(folder, tmp_path_factory.mktemp("drawn") / "run")
    write_page(target)
    return target


@pytest.fixture
def copied(drawn: Path, tmp_path: Path) -> Path:
    target = tmp_path / "run"
    shutil.copytree(drawn, target)
    return target


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was drawn since."""
    from forsooth import report

    found: list[str] = []

    def draw(folder: Path, out: None, figures: object) -> None:
        found.append(str(folder))
        (folder / "report.html").write_text("drawn")

    monkeypatch.setattr(report, "write_page", draw)
    return found


def with_run(folder: Path, **changed: object) -> None:
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**run, **changed}))


def test_a_page_of_the_same_rows_stays(copied: Path, draws: list[str]) -> None:
    with_run(copied, started="later", seconds=0.1)  # a run that was resumed and had nothing to do
    before = (copied / "report.html").read_bytes()
    assert write_page(copied) == copied / "report.html"
    assert not draws and (copied / "report.html").read_bytes() == before
    assert before.count(MARK) == 1


def reworded(folder: Path) -> None:
    with_run(folder, question="Another one?")


def redrawn_by_hand(folder: Path) -> None:
    next((folder / "figures").glob("*.png")).write_bytes(b"mine")


def edited(folder: Path) -> None:
    page = folder / "report.html"
    page.write_text(page.read_text().replace("<body", "<body class='mine'"))


def rescored(folder: Path) -> None:
    with (folder / "scores.parquet").open("ab") as file:
        file.write(b" ")


@pytest.mark.parametrize(
    "change",
    [reworded, redrawn_by_hand, edited, rescored, lambda folder: (folder / "report.html").unlink()],
    ids=["run.json", "figure", "page", "rows", "gone"],
)
def test_whatever_changed_the_page_is_drawn_again(copied: Path, draws: list[str], change) -> None:
    change(copied)
    write_page(copied)
    assert len(draws) == 1
