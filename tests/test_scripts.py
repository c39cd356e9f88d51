"""The scripts of `studies/` and `benchmarks/` find what they import: nobody runs them all before a name is moved."""

import ast
import importlib
import importlib.util

import pytest
from sentences import ROOT

SCRIPTS = sorted(path for folder in ("studies", "benchmarks") for path in (ROOT / folder).glob("*.py"))


def imported(text):
    """(module, name) of everything taken from forsooth."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "forsooth":
            yield from ((node.module, alias.name) for alias in node.names)


def is_there(module, name):
    place = importlib.import_module(module)
    if hasattr(place, name):
        return True
    return hasattr(place, "__path__") and importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_a_script_imports_is_there(script):
    assert [pair for pair in imported(script.read_text(encoding="utf-8")) if not is_there(*pair)] == []


def test_a_name_that_moved_is_noticed():
    text = "from forsooth.stats import differences\nfrom forsooth.report.leaderboard import wins\nimport numpy"
    assert [is_there(*pair) for pair in imported(text)] == [True, False]
