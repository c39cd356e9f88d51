import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from forsooth import report
from forsooth.records import UsageError
from forsooth.report.anchors import safe_name
from forsooth.report.drawing import Drawing, sheet
from forsooth.runs import write_page


@pytest.fixture(scope="module")
def written(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the whole run, with the figures that are quick to draw; test_figures.py draws them all."""
    target = tmp_path_factory.mktemp("page") / "run"
    shutil.copytree(folder, target)
    run = json.loads((target / "run.json").read_text())
    run["exhibits"] = ["accuracies", "strategies"]
    (target / "run.json").write_text(json.dumps(run))
    assert write_page(target) == target / "report.html"
    return target


@pytest.fixture(scope="module")
def page(written: Path) -> str:
    return (written / "report.html").read_text(encoding="utf-8")


def light(folder: Path, target: Path, **changed: object) -> Path:
    """A copy of the run with few methods and no exhibits, so that its page is quick to write."""
    target.mkdir(parents=True)
    run = json.loads((folder / "run.json").read_text())
    keep = ("lime", "pfi", "sobel", "saliency")
    run["methods"] = {name: record for name, record in run["methods"].items() if name in keep}
    run |= {"exhibits": [], "metrics": {"emd": run["metrics"]["emd"]}, **changed}
    rows = pd.read_parquet(folder / "scores.parquet")
    rows[rows["method"].isin([*keep, ""])].to_parquet(target / "scores.parquet")
    (target / "run.json").write_text(json.dumps(run))
    return target


def test_the_page_needs_nothing_else(page: str) -> None:
    assert not re.findall(r'src="(?!data:)[^"]*"', page)
    assert not re.findall(r'(?<!<a )href="(?!data:|#)[^"]*"', page)  # papers are linked, nothing is fetched
    assert not re.findall(r"url\((?!data:|#)", page)
    assert "http://" not in page and "@import" not in page and "<link" not in page
    assert len(page) < 1_500_000


def test_figures_are_inside_as_text_and_have_words(page: str) -> None:
    figures = re.findall(r'<svg class="plot".*?</svg>', page, flags=re.S)
    assert len(figures) == 3
    for figure in figures:
        assert re.search(r'aria-label="[^"]{20,}"', figure)
    assert ">pattern_attribution</text>" in figures[0]


def test_figures_too_large_for_text_are_pictures_with_words(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("forsooth.report.page.VECTOR", 1000)
    (image,) = re.findall(r"<img [^>]*>", write_page(light(folder, tmp_path / "run")).read_text())
    assert re.search(r'src="data:image/png;base64,[A-Za-z0-9+/=]{500,}"', image)
    assert re.search(r'alt="[^"]{20,}"', image)


def test_messages_are_escaped(page: str) -> None:
    assert "<b>boom" not in page
    assert "&lt;b&gt;boom&lt;/b&gt; &amp; ValueError: bad shape" in page


def test_it_says_everything_in_order(page: str) -> None:
    wanted = (
        *("XAI-TRIS: do explanations find", "No method can be named to trust"),
        "By emd, pattern_attribution comes first among the 19 of 20 methods that took part in every panel and 5 nulls",
        *("dead leaves, not photographs", "Leaderboards <a", "LLR alone", "Panel by panel <a"),
        *("Figures <a", "Trained accuracy <a", "Failures and skips <a", "needs a convolutional layer"),
        *(
            "What was run <a",
            "Repeat it <a",
            "forsooth run xaitris --preset quick --seed 0",
            "2.13.0",
            "8 GiB",
            f"{0:040x}",
        ),
    )
    places = [page.index(words) for words in wanted]
    assert places == sorted(places)


def test_ids_are_unique_and_links_land(page: str) -> None:
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', page)) <= set(ids)


def test_figures_lie_beside_the_page(written: Path) -> None:
    names = {path.name for path in (written / "figures").iterdir()}
    assert {"leaderboard.png", "leaderboard.svg", "accuracies.png", "strategies.png"} <= names
    assert not [name for name in names if name.endswith(".part")]


def test_several_runs_stand_side_by_side(folder: Path, tmp_path: Path) -> None:
    first = light(folder, tmp_path / "one")
    second = light(folder, tmp_path / "two", title="<script>alert(1)</script>")
    path = write_page([first, second], tmp_path / "both.html")
    text = path.read_text()
    assert path.name == "both.html" and "2 runs side by side" in text
    assert "<script>alert" not in text
    assert re.search(r">lime</a></th><td>0\.\d+ \[0\.\d+–0\.\d+\] #\d</td><td>0\.", text)
    assert (tmp_path / "figures" / "two" / "leaderboard.svg").is_file()
    with pytest.raises(UsageError, match="`run_dirs` must be one run, or several with `out`; got 2 and out=None"):
        write_page([first, second])


def test_a_run_in_which_no_model_passed(folder: Path, tmp_path: Path) -> None:
    target = light(folder, tmp_path / "none")
    rows = pd.read_parquet(target / "scores.parquet")
    rows[rows["part"].eq("training")].assign(status="below gate", message="chance").to_parquet(
        target / "scores.parquet"
    )
    text = write_page(target).read_text()
    assert "No map was scored, so there is nothing to rank." in text
    assert "chance" in text


def test_a_place_one_cannot_write_to(folder: Path, tmp_path: Path) -> None:
    target = light(folder, tmp_path / "run")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UsageError, match=r"`out` must be a place one can write to, got .*file/deep"):
        write_page(target, tmp_path / "file" / "deep")


@pytest.mark.parametrize("name", ["x/../../../../../escaped", "/escaped", "..", "a" * 400, "nul\0", "e:\\m\ud800"])
def test_names_of_a_strangers_run_never_leave_its_folder(folder: Path, tmp_path: Path, name: str) -> None:
    target = light(folder, tmp_path / "deep" / "er" / "run")
    about = json.loads((target / "run.json").read_text())
    drawing = Drawing(name, "title", "caption", "alt", sheet(1, 1))
    about["exhibits"] = ["hostile"]
    (target / "run.json").write_text(json.dumps(about))
    before = set(tmp_path.rglob("*"))
    report.write_page(target, figures={"hostile": lambda results, tables: (drawing, drawing)})
    figures = target / "figures"
    written = {file for file in set(tmp_path.rglob("*")) - before if file.parent != figures}
    assert written == {target / "report.html", figures}
    assert len(list(figures.glob("*.svg"))) == 2


@pytest.mark.parametrize("column, name", [("model", "MLP"), ("metric", "emd"), ("method", "lime"), ("scenario", "LIN")])
def test_a_strangers_run_with_such_names_writes_nothing_elsewhere(
    folder: Path, tmp_path: Path, column: str, name: str
) -> None:
    """The name stands in all tables, as a stranger would have it, and our own figures are drawn of them."""
    hostile = "x/../../../../escaped"
    target = tmp_path / "deep" / "er" / "run"
    light(folder, target, exhibits=["accuracies", "boxes", "strategies"])
    text = (target / "run.json").read_text().replace(f'"{name}"', f'"{hostile}"')
    (target / "run.json").write_text(text)
    rows = pd.read_parquet(target / "scores.parquet")
    assert rows[column].eq(name).any()
    rows.assign(**{column: rows[column].replace(name, hostile)}).to_parquet(target / "scores.parquet")
    before = set(tmp_path.rglob("*"))
    write_page(target)
    figures = target / "figures"
    written = {file for file in set(tmp_path.rglob("*")) - before if file.parent != figures}
    assert written == {target / "report.html", figures} and any(figures.glob("*.svg"))


def test_names_that_become_alike_keep_their_own_files(tmp_path: Path) -> None:
    assert len({safe_name(name) for name in ("a/b", "a:b", "a_b")}) == 3
    assert safe_name("boxes_emd-size_8 (1)") == "boxes_emd-size_8 (1)"


def test_figures_that_lead_elsewhere_are_not_followed(folder: Path, tmp_path: Path) -> None:
    target = light(folder, tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (target / "figures").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=r"figures.*is a link"):
        write_page(target)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_other_suites_have_other_columns(folder: Path, tmp_path: Path) -> None:
    target = light(
        folder, tmp_path / "bam", factors=["scenario", "model"], suite="bam", metrics={"emd": {"better": "lower"}}
    )
    text = write_page(target).read_text()
    assert "−∞ to ∞" in text and "By emd, " in text


def test_tables_do_not_pay_for_drawing() -> None:
    code = "import sys, forsooth.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_page_can_be_written_again(folder: Path, tmp_path: Path) -> None:
    target = light(folder, tmp_path / "again")
    first = write_page(target).read_bytes()
    shutil.rmtree(target / "figures")
    assert write_page(target).read_bytes() == first


def test_runs_without_a_common_score_are_told_in_short(folder: Path, tmp_path: Path) -> None:
    first, second = light(folder, tmp_path / "one"), light(folder, tmp_path / "two")
    about = json.loads((second / "run.json").read_text())
    name = next(iter(about["metrics"]))
    about["metrics"] = {"other": about["metrics"][name]}
    (second / "run.json").write_text(json.dumps(about))
    rows = pd.read_parquet(second / "scores.parquet")
    rows["metric"] = rows["metric"].replace({name: "other"})
    rows.to_parquet(second / "scores.parquet")
    text = write_page([first, second], tmp_path / "both.html").read_text()
    assert "2 runs on whether attributions tell the truth" in text and "In short" in text and "Side by side" not in text
    assert "By other, " in text
