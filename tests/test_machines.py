"""What is shipped for programs that read: every command can be understood, every page exists, the Python runs."""

import re
import shlex
import tomllib
from importlib import resources
from pathlib import Path

import pytest
import typer

import forsooth
from forsooth import cli
from forsooth.attributions import METHODS

ROOT = Path(__file__).parent.parent
SKILL = (resources.files("forsooth") / "SKILL.md").read_text(encoding="utf-8")
INDEX = (resources.files("forsooth") / "llms.txt").read_text(encoding="utf-8")
COMMANDS = typer.main.get_command(cli.app).commands
LINES = re.findall(r"^forsooth .*$", SKILL, flags=re.M)


@pytest.mark.parametrize("line", LINES)
def test_every_command_can_be_understood(line):
    _, name, *words = shlex.split(line)
    context = COMMANDS[name].make_context(name, words)  # an option that is not there ends this
    named = [method for method in (context.params.get("methods") or "").split(",") if method and ":" not in method]
    assert set(named) <= {method.name for method in METHODS}


def test_most_commands_are_shown():
    assert {shlex.split(line)[1] for line in LINES} >= set(COMMANDS) - {"demo", "settings"}


def test_the_python_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", SKILL, flags=re.S)
    exec(code, {})
    assert capsys.readouterr().out.rstrip().split("\n\n")[-1].startswith("Use ")


def test_names_of_runs_are_there():
    for name in re.findall(r"`run\.(\w+)\(", SKILL):
        assert callable(getattr(forsooth.Run, name))


def test_the_skill_says_what_it_is_for():
    head = SKILL.split("---\n")[1]
    assert re.search(r"^name: forsooth$", head, flags=re.M)
    assert 50 < len(re.search(r"^description: (.*)$", head, flags=re.M).group(1)) < 1024


def test_the_index_leads_to_every_page_and_no_other():
    linked = set(re.findall(r"\]\((docs/[\w-]+\.md)\)", INDEX))
    assert linked == {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert INDEX.startswith("# forsooth\n\n> ")


def test_both_are_in_the_package():
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]["forsooth"]
    assert {"llms.txt", "SKILL.md"} <= set(patterns)
