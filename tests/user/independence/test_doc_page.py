"""The page on patches without function, followed to the letter by a new user."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from forsooth import cli

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "independence.md").read_text()
LINE = re.compile(r"^ (\w+) +(\d+) % +(\d+) % +(\d+) %", flags=re.M)


def shares(text: str) -> dict[str, list[float]]:
    """method -> attention, low and high in per cent."""
    return {method: [float(value) for value in values] for method, *values in LINE.findall(text)}


def test_the_network_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("tiny_net.py").write_text(
        re.findall(r"```python\n(.*?)```", (DOCS / "your-own-model.md").read_text(), re.S)[1]
    )
    runpy.run_path("tiny_net.py", run_name="__main__")
    (command,) = re.findall(r"^forsooth independence .*$", PAGE, flags=re.M)
    done = CliRunner().invoke(cli.app, [*shlex.split(command)[1:], "--workers", "1"], catch_exceptions=False)
    found, said = shares(done.stdout), shares(PAGE)
    assert found.keys() == said.keys() and len(said) == 6
    for method, values in said.items():  # other processors round otherwise, and a training amplifies it
        assert found[method] == pytest.approx(values, abs=15), method


def test_the_python_of_the_page(capsys):
    exec(re.search(r"```python\n(.*?)```", PAGE, flags=re.S).group(1), {})
    assert "8 inputs; the patch is" in capsys.readouterr().out
