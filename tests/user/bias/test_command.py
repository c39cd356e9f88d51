"""`forsooth bias` at the terminal: files in, a table and words out, and work that goes on after a kill."""

import shutil
import sys
from pathlib import Path

import numpy as np
import own_models
import pandas as pd
import pytest
import safetensors.numpy
from typer.testing import CliRunner

import forsooth
from forsooth import cli
from forsooth.records import UsageError
from forsooth.user.bias import BiasRequest

TABLE = ["--model", "own_models:FOREST", "--inputs", "x.npy", "--data", "data.npy", "--methods", "pfi,own_models:asked"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", own_models.X[:10])
    np.save("data.npy", own_models.X)
    np.save("images.npy", np.random.default_rng(0).normal(size=(3, 1, 6, 6)))
    return tmp_path


def asked(*words):
    """What the command prints, after it ended well."""
    done = CliRunner().invoke(cli.app, ["bias", *words, "--quiet"], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_forest_from_files(folder):
    said = asked(*TABLE, "--permutations", "5")
    assert "own_models:asked" in said and "constant" in said and "shapley" in said
    assert "10 inputs of an estimator (RandomForestClassifier), 6 features" in said
    assert (folder / "forsooth-runs/bias/report.html").is_file()


def test_the_same_command_goes_on_and_ends_with_the_same_bytes(folder):
    words = [*TABLE, "--permutations", "5", "--seed", "3", "--workers", "1", "--out", "answer"]
    asked(*words)
    first = Path("answer/bias.csv").read_bytes()
    page = Path("answer/bias.md").read_text()
    cells = sorted(Path("answer/store/cells").glob("*/*"))
    assert len(cells) == 2 * 2 + 4  # two pieces of inputs for the anchor and its double; four methods
    times = {cell: cell.stat().st_mtime_ns for cell in cells}
    shutil.rmtree(cells[2])
    Path("answer/bias.csv").unlink()
    asked(*words)
    assert Path("answer/bias.csv").read_bytes() == first
    assert Path("answer/bias.md").read_text() == page
    made_again = [cell for cell in cells if cell.stat().st_mtime_ns != times[cell]]
    assert made_again == [cells[2]]


def test_other_processes_build_the_same_model_and_give_the_same_bytes(folder):
    words = ["--model", "own_models:net", "--inputs", "images.npy", "--players", "grid:3", "--permutations", "20"]
    for workers, out in (("1", "one"), ("2", "two")):
        asked(*words, "--methods", "lrp", "--workers", workers, "--out", out)
    assert Path("one/bias.csv").read_bytes() == Path("two/bias.csv").read_bytes()


def test_kept_work_and_work_in_memory_agree(folder):
    asked(*TABLE, "--permutations", "5", "--out", "answer", "--workers", "1")
    kept = pd.read_csv("answer/bias.csv")
    here = forsooth.bias(
        own_models.FOREST, own_models.X[:10], data=own_models.X, methods=["pfi", "own_models:asked"], permutations=5
    )
    pd.testing.assert_frame_equal(kept.fillna({"message": ""}), here.rows, rtol=1e-12, check_dtype=False)


def test_other_inputs_and_another_model_are_other_work(folder):
    words = [*TABLE, "--permutations", "5", "--out", "answer", "--workers", "1"]
    asked(*words)
    first = Path("answer/bias.csv").read_bytes()
    np.save("x.npy", own_models.X[10:20])
    asked(*words)
    assert Path("answer/bias.csv").read_bytes() != first
    assert len(list(Path("answer/store/cells").glob("*/*"))) == 16


def test_a_network_on_patches_with_classes_and_a_baseline_from_files(folder):
    np.save("y.npy", np.array([0, 1, 2]))
    safetensors.numpy.save_file({"anything": np.zeros((1, 6, 6))}, "base.safetensors")
    np.savez("images.npz", np.load("images.npy"))
    words = ["--model", "own_models:net", "--inputs", "images.npz", "--target", "y.npy", "--players", "grid:3"]
    asked(
        *words,
        "--baseline",
        "base.safetensors",
        "--methods",
        "gradient,lrp",
        "--permutations",
        "20",
        "--workers",
        "1",
        "--out",
        "a",
    )
    rows = pd.read_csv("a/bias.csv")
    assert rows.groupby("sample")["target"].first().tolist() == [0, 1, 2]
    assert rows["players"].dropna().eq(9).all()
    asked(*words[:4], "--target", "2", "--players", "grid:2", "--methods", "gradient", "--workers", "1", "--out", "b")
    assert pd.read_csv("b/bias.csv")["target"].eq(2).all()
    assert "| gradient |" in Path("b/bias.md").read_text()


def test_a_model_that_is_built_differently_each_time_is_refused(folder):
    with pytest.raises(UsageError, match="`model` must be the same whenever it is built, but own_models:another_each"):
        asked("--model", "own_models:another_each_time", "--inputs", "x.npy", "--out", "answer", "--workers", "1")


def test_the_users_own_files_are_not_written_over(folder):
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("all of it")
    with pytest.raises(UsageError, match="`out` must be new, empty or an earlier answer, got mine"):
        asked(*TABLE, "--out", "mine")


@pytest.mark.parametrize(
    "change, message",
    [
        (
            ["--model", "own_models:raises"],
            "`model` must be built without an error, but own_models:raises raised Runtime",
        ),
        (["--inputs", "nowhere.npy"], "`inputs` must be a file that is there, got nowhere.npy"),
        (
            ["--inputs", "objects.npy"],
            "`inputs` must be a file of plain numbers, got objects.npy: it holds objects, whose reading",
        ),
        (["--inputs", "two.npz"], "`inputs` must be a file with one array, got two.npz with 2: ['a', 'b']"),
        (["--inputs", "x.pt"], "`inputs` must be a .npy, .npz or .safetensors file, got x.pt"),
        (["--inputs", "x.csv"], "`inputs` must be a file that is there, got x.csv"),
        (["--inputs", "broken.safetensors"], "`inputs` must be a file of plain numbers, got broken.safetensors"),
        (["--target", "2"], "`target` must lie in [0, 1], as the model has 2 outputs, got 2"),
        (["--target", "last"], "`target` must be a .npy, .npz or .safetensors file, got last"),
        (["--permutations", "many"], "`permutations` must be a whole number of at least 2, exact or auto, got 'many'"),
        (["--methods", "lmie"], "`methods` must be a known name, got 'lmie'; did you mean lime"),
        (["--workers", "-1", "--out", "answer"], "`workers` must be at least 1, got -1"),
        (["--device", "tpu"], "`device` must be a known name, got 'tpu'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(folder, monkeypatch, capsys, change, message):
    np.save("objects.npy", np.array([{"no": "numbers"}], dtype=object), allow_pickle=True)
    np.savez("two.npz", a=own_models.X, b=own_models.X)
    Path("broken.safetensors").write_bytes(b"nothing of the kind")
    words = [*TABLE, "--quiet"]
    for option, value in zip(change[::2], change[1::2], strict=True):
        words = [*words, option, value] if option not in words else replaced(words, option, value)
    monkeypatch.setattr(sys, "argv", ["forsooth", "bias", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    error = capsys.readouterr().err
    assert stopped.value.code == 2
    assert error.startswith(f"forsooth: {message}") and error.count("\n") == 1


def replaced(words, option, value):
    place = words.index(option)
    return [*words[: place + 1], value, *words[place + 2 :]]


def test_words_are_what_a_task_can_carry():
    assert BiasRequest(model="a:b", inputs=Path("x.npy")).words()["inputs"] == str(Path("x.npy").resolve())
    assert BiasRequest(model="a:b", inputs=own_models.X).words() is None
    assert BiasRequest(model=own_models.net(), inputs="x.npy").words() is None
