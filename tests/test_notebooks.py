"""The notebooks run from the first cell to the last, and show what they speak of."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


def cells(name: str) -> list[str]:
    """The code cells of a notebook."""
    book = json.loads((FOLDER / name).read_text())
    assert book["nbformat"] == 4
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


def executed(name: str) -> list[Any]:
    """What each cell shows: the value of its last expression, None where there is none."""
    space: dict[str, Any] = {"__name__": "__main__"}
    shown = []
    for source in cells(name):
        tree = ast.parse(source)
        last = None
        if isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(tree, name, "exec"), space)
        shown.append(eval(compile(last, name, "eval"), space) if last else None)
    return shown


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_all_notebooks_are_tried_here():
    assert {path.name for path in FOLDER.glob("*.ipynb")} == {"boards.ipynb", "own-model.ipynb"}


@pytest.mark.parametrize("name", ["boards.ipynb", "own-model.ipynb"])
def test_no_outputs_are_kept(name):
    book = json.loads((FOLDER / name).read_text())
    assert not any(cell.get("outputs") for cell in book["cells"])


def test_boards(capsys):
    run, board, scores, change, _ = executed("boards.ipynb")
    assert "integrated_gradients" in run._repr_html_()
    assert {"oracle", "random", "sobel"} <= set(board["method"])
    assert {("mlp", "random"), ("llr", "oracle")} <= {(model.lower(), method) for model, method in scores.index}
    assert not change.paired and "seed" in set(change.settings["setting"])
    assert r"\begin{tabular}" in capsys.readouterr().out


def test_own_model(capsys):
    _, answer, table, picture = executed("own-model.ipynb")
    printed = capsys.readouterr().out
    assert float(printed.split()[1]) > 0.8 and "keeps the contract" in printed
    assert answer.words.split("\n\n")[-1].startswith("Use ") and "<table" in answer._repr_html_()
    assert "squared_gradient" in " ".join(table["method"])
    assert picture._repr_png_().startswith(b"\x89PNG")
