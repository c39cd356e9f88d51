"""The page on one's own model, followed to the letter by a new user."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forsooth import cli

PAGE = (Path(__file__).parents[3] / "docs" / "your-own-model.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
PLAIN = re.findall(r"```\n\n```\n(.*?)```|\n\n```\n(.*?)```", PAGE, flags=re.S)
SHOWN = [first or second for first, second in PLAIN]


def numbers(text: str) -> dict[str, list[float]]:
    """method -> m_bias, low, high of a printed table."""
    lines = [line.split() for line in text.splitlines()]
    return {
        line[0]: [float(word) for word in line[1:4]] for line in lines if re.match(r"[\d.e-]+$", "".join(line[1:4]))
    }


def alike(printed: str, shown: str) -> None:
    found, said = numbers(printed), numbers(shown)
    assert found.keys() == said.keys() and len(said) > 5
    for method, values in said.items():  # other processors round otherwise, and a training amplifies it
        assert found[method] == pytest.approx(values, rel=0.3, abs=0.01), method


def test_the_forest(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("page.py").write_text(PYTHON[0])
    runpy.run_path("page.py")
    alike(capsys.readouterr().out, SHOWN[0])


def test_the_network(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("tiny_net.py").write_text(PYTHON[1])
    runpy.run_path("tiny_net.py", run_name="__main__")
    command = shlex.split(SHOWN[1].splitlines()[1])
    done = CliRunner().invoke(cli.app, command[1:], catch_exceptions=False)
    assert done.exit_code == 0
    alike(done.stdout, SHOWN[2])
    assert "| lime |" in Path("answer/bias.md").read_text()


def test_the_table_with_text_and_gaps(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("shop.py").write_text(PYTHON[2])
    runpy.run_path("shop.py", run_name="__main__")
    done = CliRunner().invoke(cli.app, shlex.split(SHOWN[3].splitlines()[1])[1:], catch_exceptions=False)
    assert done.exit_code == 0
    alike(done.stdout, SHOWN[4])
    words = SHOWN[4].splitlines()[-1].partition(";")[2]  # whichever values the threads of the forest gave
    assert words in " ".join(done.stdout.split())
