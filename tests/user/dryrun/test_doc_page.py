"""The page on the dry run, followed to the letter by a new user."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forsooth import cli
from forsooth.user.dryrun import DryRunRequest
from forsooth.user.dryrun.request import PLANNED

PAGE = (Path(__file__).parents[3] / "docs" / "dry-run.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
COMMANDS = re.findall(r"^forsooth dryrun .*$", PAGE, flags=re.M)
LINE = re.compile(r"^ (striped_\w+) +(\w+) +(\d+) % \[\d+, \d+\] +(\d+) % \[\d+, \d+\]", flags=re.M)


def shares(text: str) -> dict[tuple[str, str], list[float]]:
    """artefact and method -> shares with the artefact and without, in per cent."""
    return {(artefact, method): [float(a), float(b)] for artefact, method, a, b in LINE.findall(text)}


def test_the_page_from_pictures_to_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for code in PYTHON:
        Path(code.splitlines()[0].removeprefix("# ")).write_text(code)
    runpy.run_path("blots.py")
    done = CliRunner().invoke(cli.app, shlex.split(COMMANDS[1])[1:], catch_exceptions=False)
    assert done.exit_code == 0
    found, said = shares(done.stdout), shares(PAGE)
    assert found.keys() == said.keys() and len(said) == 18
    for line, values in said.items():  # other processors round otherwise, and a training amplifies it
        assert found[line] == pytest.approx(values, abs=15), line
    assert Path("answer/report.html").is_file() and "| guided_backprop |" in Path("answer/dryrun.md").read_text()


def test_every_option_and_default_is_on_the_page():
    options = {parameter.name for parameter in cli.typer.main.get_command(cli.app).commands["dryrun"].params}
    named = {"folder": "out"}
    for option in options - {"help"}:
        assert f"--{named.get(option, option).replace('_', '-')}" in PAGE, option
    asked = DryRunRequest(data="photos")
    for words in (
        f"default {asked.size}:",
        f"default {asked.images},",
        f"default {asked.visibility}.",
        f"default {asked.samples}",
    ):
        assert words in PAGE
    assert COMMANDS[0] == "forsooth dryrun --data photos" and f"{'eight'} common methods" in PAGE
    assert len(PLANNED) == 8
