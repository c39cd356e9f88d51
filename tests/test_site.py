"""The site builds without a warning, its pages are all in its contents, and what the tutorials say works."""

import html
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

import forsooth
from forsooth import cli
from forsooth.records import Row, Status

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FIELDS = set(Row.__dataclass_fields__) - {"columns"}


def blocks(page: str, kind: str) -> list[str]:
    """The fenced blocks of a page: `python`, or "" for commands."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(), flags=re.S | re.M)
    return [text for language, text in fenced if language == kind]


def commands(page: str) -> list[list[str]]:
    lines = [line for block in blocks(page, "") for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("forsooth ")]


def written(page: str, folder: Path) -> list[Path]:
    """The Python files that a page asks for, by the names in their first lines."""
    files = []
    for block in blocks(page, "python"):
        file = folder / block.splitlines()[0].removeprefix("# ")
        file.write_text(block)
        files.append(file)
    return files


def typed_in(command: list[str]) -> str:
    done = CliRunner().invoke(cli.app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)  # of another document
    return tmp_path


def test_the_site_builds_without_a_warning(tmp_path):
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in DOCS.glob("*.md"):
        assert (tmp_path / "site" / f"{page.stem}.html").exists()
    for notebook in DOCS.glob("notebooks/*.ipynb"):
        shown = html.unescape(re.sub(r"<[^>]+>", "", (tmp_path / f"site/notebooks/{notebook.stem}.html").read_text()))
        for cell in json.loads(notebook.read_text())["cells"]:
            assert cell["cell_type"] == "markdown" or "".join(cell["source"]) in shown
        assert (tmp_path / "site/notebooks" / notebook.name).exists()
    assert "M_bias of every method" in (tmp_path / "site" / "api.html").read_text()
    for page in (tmp_path / "site").rglob("*.html"):
        assert not re.search(r"(src=|<link[^>]*stylesheet[^>]*href=)\"https?:", page.read_text()), page


def test_every_page_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    notebooks = [page.with_suffix(".md") for page in DOCS.glob("notebooks/*.ipynb")]
    for page in [*DOCS.glob("*.md"), *notebooks]:
        assert f": {page.relative_to(DOCS).as_posix()}\n" in contents, page


def test_pages_fetch_nothing_when_they_are_read():
    assert "font: false" in (ROOT / "mkdocs.yml").read_text()


def test_links_of_the_documents_lead_somewhere():
    for page in [*DOCS.glob("*.md"), *(ROOT / "studies").glob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_status_and_column_is_explained():
    text = (DOCS / "rows.md").read_text()
    explained = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.M))
    assert explained == set(get_args(Status)) | FIELDS | {"cell"}


def test_every_public_name_is_in_the_reference():
    documented = re.findall(r"^::: forsooth\.[\w.]*?(\w+)$", (DOCS / "api.md").read_text(), flags=re.M)
    assert set(documented) >= set(forsooth.__all__)


def test_every_command_is_on_the_page_on_the_terminal():
    shown = {command[0] for command in commands("terminal.md")}
    assert shown == set(cli.COMMANDS)


def test_one_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, flags=re.M).group(1) == forsooth.__version__
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dynamic"]


def test_start_in_five_minutes(folder):
    for command in commands("start.md"):
        if "demo" not in command[:1]:
            assert "integrated_gradients" in typed_in(command)
    assert Path("first/report.html").exists()


def test_the_tutorial_for_authors_of_methods(folder, capsys):
    _, rows = written("tutorial-method.md", folder)
    check, run = commands("tutorial-method.md")
    assert "keeps the contract" in typed_in(check)
    assert "mine:squared_gradient" in typed_in(run)
    runpy.run_path(str(rows))
    printed = capsys.readouterr().out
    assert re.search(r"\bmine:squared_gradient\s+0\.\d", printed)
    assert re.search(r"^ok\s+\d+$", printed, flags=re.M)


def test_the_tutorial_for_people_with_a_model(folder, capsys):
    for file in written("tutorial-model.md", folder):
        runpy.run_path(str(file))
    printed = capsys.readouterr().out
    assert "Use kernel_shap" in printed
    assert all(method in printed for method in ("lime", "pfi", "random", "constant"))


def test_the_tutorial_for_readers_of_the_papers(folder, capsys):
    assert "bias/suppressor" in typed_in(commands("tutorial-papers.md")[0])
    for file in written("tutorial-papers.md", folder):
        runpy.run_path(str(file))
    printed = capsys.readouterr().out
    assert "pattern_net" in printed
    assert all(Path("again/bias-suppressor", name).exists() for name in ("report.html", "table.csv", "verdict.md"))


def test_a_table_of_your_own(folder):
    for file in written("own-data.md", folder):
        runpy.run_path(str(file))
    said = typed_in([*commands("own-data.md")[0], "--workers", "1", "--quiet"])
    assert all(method in said for method in ("gradient", "kernel_shap", "random", "constant"))


def test_maps_made_elsewhere(folder, capsys):
    export, score = commands("score.md")
    typed_in(export)
    for file in written("score.md", folder):
        runpy.run_path(str(file))
    printed = capsys.readouterr().out
    assert all(method in printed for method in ("brightness", "noise", "sobel", "oracle"))
    assert all(method in printed for method in ("mine", "other"))
    assert "emd" in typed_in([*score, "--workers", "1"])
    assert Path("own/report.html").exists()
    assert Path("scored/report.html").exists()


def test_a_run_is_found_by_a_string():
    assert forsooth.Run("board").folder == Path("board")
