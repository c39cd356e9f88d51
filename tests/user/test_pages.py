"""Every door leaves a page: it holds the words and the numbers of the answer, needs no network, and trusts no name."""

import html
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import own_models
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import forsooth
from forsooth import cli, cli_user
from forsooth.user import pages, requests

HOSTILE = "<script>alert(1)</script>"


def hostile(model, x, target):
    """A method with a name that a browser would run."""
    return torch.ones_like(x)


hostile.__name__ = HOSTILE


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", own_models.X[:10])
    np.save("images.npy", own_models.IMAGES.numpy())
    return tmp_path


def read_by_a_person(page: Path) -> str:
    """The words of a page, what is code between backticks."""
    text = re.sub(r"<(style|script)>.*?</\1>", "", page.read_text(), flags=re.S)
    text = re.sub("</?code>", "`", text)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def holds(page: Path, answer: forsooth.BiasResult) -> None:
    """The page has all words and every cell of the table, and fetches nothing."""
    shown = read_by_a_person(page)
    for paragraph in answer.words.split("\n\n"):
        assert " ".join(paragraph.split()) in shown
    for line in answer.shown().to_numpy().tolist():
        assert " ".join(" ".join(map(str, line)).split()) in shown
    assert not re.search(r"<link|@import|src=\"(?!data:)", page.read_text())


def test_bias_in_python_leaves_a_page(folder):
    answer = forsooth.bias(
        own_models.FOREST, own_models.X[:10], methods=["lime", hostile], permutations=5, out="answer"
    )
    holds(Path("answer/report.html"), answer)
    assert HOSTILE not in Path("answer/report.html").read_text()
    about = json.loads(Path("answer/run.json").read_text())
    assert about["command"] == "" and "in Python" in about["settings"]["model"]
    board = forsooth.Run("answer").leaderboard("m_bias")
    assert {"lime", "shapley", "random", HOSTILE} <= set(board["method"])


def test_the_board_of_a_page_is_made_of_the_rows_of_the_answer(folder):
    answer = forsooth.bias(own_models.FOREST, own_models.X[:10], methods=["lime"], permutations=5)
    assert not list(folder.glob("*/"))  # nobody asked for files
    assert answer.report("late") == Path("late/report.html")
    rows = answer.rows.query("method == 'lime' and metric == 'm_bias' and status == 'ok'")
    by_hand = rows.groupby(["end", "fraction"])["value"].median().mean()
    board = forsooth.Run("late").leaderboard("m_bias").set_index("method")
    assert board.loc["lime", "score"] == pytest.approx(by_hand, rel=1e-9)


def test_a_board_without_nulls_says_so(folder, capsys):
    forsooth.bias(own_models.FOREST, own_models.X[:3], methods=["pfi"], permutations=3, out="answer")
    run = forsooth.Run("answer")
    cli_user.show_board(run)
    assert cli_user.NO_NULL not in " ".join(capsys.readouterr().out.split())
    board = run.leaderboard().query("not null")
    cli_user.show_board(SimpleNamespace(folder=run.folder, metrics=("m_bias",), leaderboard=lambda metric: board))
    assert cli_user.NO_NULL in " ".join(capsys.readouterr().out.split())


def test_a_method_without_a_map_loses_on_every_panel_and_one_not_asked_on_none(folder):
    answer = forsooth.bias(own_models.FOREST, own_models.X[:4], methods=["pfi", "gradient", broken], permutations=5)
    answer.report("page")
    board = forsooth.Run("page").leaderboard("m_bias").set_index("method")
    assert board.loc["broken", "failed"] == 1 and board.loc["broken", "panels"] == board.loc["pfi", "panels"]
    assert "gradient" not in board.index
    assert "gradient needs a torch module" in read_by_a_person(Path("page/report.html"))


def broken(model, x, target):
    raise RuntimeError("no map today")


def test_bias_at_the_terminal_leaves_a_page_with_maps(folder):
    words = ["bias", "--model", "own_models:net", "--inputs", "images.npy", "--players", "grid:3"]
    words += ["--permutations", "20", "--methods", "gradient", "--workers", "1", "--quiet"]
    done = CliRunner().invoke(cli.app, words, catch_exceptions=False)
    page = Path("forsooth-runs/bias/report.html").resolve()
    assert f"Open the page: {page}" in done.stdout
    shown = read_by_a_person(page)
    assert "What the methods point at" in shown and "Bias of the top and of the bottom" in shown
    command = json.loads((page.parent / "run.json").read_text())["command"]
    assert command.startswith("forsooth bias --model own_models:net --inputs images.npy --methods gradient")
    assert "--players grid:3 --permutations 20" in command


@pytest.mark.parametrize("shape", [(5, 4), (3, 4, 4), (2, 3, 4, 4)])
def test_inputs_of_any_shape_have_a_page(folder, shape):
    x = np.random.default_rng(0).normal(size=(3, *shape))
    weight = np.random.default_rng(1).normal(size=(np.prod(shape), 2))
    answer = forsooth.bias(lambda rows: rows.reshape(len(rows), -1) @ weight, x, methods=["pfi"], permutations=3)
    shown = json.loads((answer.report("page").parent / "run.json").read_text())["pictures"]
    assert {entry["kind"] for entry in shown} == ({"input", "truth", "example"} if len(shape) < 4 else set())


def test_independence_leaves_a_page(folder):
    net = own_models.net()
    answer = forsooth.independence(net, own_models.IMAGES, methods=["gradient", hostile], patch="grid:2", out="patches")
    holds(Path("patches/report.html"), answer)
    assert HOSTILE not in Path("patches/report.html").read_text()
    assert len(forsooth.Run("patches").rows) == len(answer.rows)


def test_check_leaves_a_page_where_one_asks_for_it(folder):
    answer = forsooth.check("gradient", out="checked")
    holds(Path("checked/report.html"), answer)
    done = CliRunner().invoke(cli.app, ["check", "gradient", "--out", "again", "--quiet"], catch_exceptions=False)
    assert str(Path("again/report.html").resolve()) in done.stdout
    assert not Path("forsooth-runs").exists()


def test_a_page_of_an_answer_is_made_again_from_its_folder(folder):
    forsooth.bias(own_models.FOREST, own_models.X[:4], methods=["pfi"], permutations=5, out="answer")
    page = Path("answer/report.html")
    before = page.read_bytes()
    page.unlink()
    CliRunner().invoke(cli.app, ["report", "answer"], catch_exceptions=False)
    assert page.read_bytes() == before


def test_what_lives_in_memory_is_told_by_its_kind():
    assert pages.told(own_models.X) == "ndarray (40, 6), given in Python"
    assert pages.told(["a text"] * 500) == "500 values, given in Python"
    assert pages.told((0, Path("x.npy"), float("inf"))) == [0, "x.npy", None]


def test_the_command_on_a_page_is_the_one_that_was_given(folder):
    request = forsooth.user.bias.BiasRequest(model="a:b", inputs="my x.npy", methods=("lime", "pfi"), target=1, seed=3)
    assert requests.command("bias", request) == (
        "forsooth bias --model a:b --inputs 'my x.npy' --methods lime,pfi --target 1 --seed 3"
    )
    assert requests.command("bias", forsooth.user.bias.BiasRequest(model=own_models.FOREST, inputs="x.npy")) == ""


def test_the_page_of_independence_shows_maps_without_and_with_the_patch(folder):
    inputs = own_models.IMAGES[:6]
    forsooth.independence(own_models.net(), inputs, methods=["gradient"], patch="grid:3", out="answer")
    about = json.loads(Path("answer/run.json").read_text())
    tensors = load_file("answer/pictures.safetensors")
    own = [line for line in about["pictures"] if line["kind"] == "input" and line["place"] == 0]
    before, after = (tensors[line["tensor"]] for line in own)
    (place, _) = (
        tensors[line["tensor"]].bool()
        for line in about["pictures"]
        if line["tensor"].startswith("truth") and line["place"] == 0
    )
    assert [line["label"] for line in own] == ["as it is", "with its patch"]
    assert (before != after).sum() > 0 and torch.equal(before[~place], after[~place])
    assert {line["method"] for line in about["pictures"] if line["kind"] == "example"} == {
        "gradient",
        "random",
        "constant",
    }
    page = read_by_a_person(Path("answer/report.html"))
    assert "How often a patch without function draws attention" in page and "with its patch" in page
