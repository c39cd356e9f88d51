"""Whatever a method does to what it is handed, the doors ask the next one about the same model and inputs."""

from pathlib import Path
from unittest import mock

import leaky_methods
import numpy as np
import own_trainings
import pandas as pd
import pytest
import torch
from leaky_methods import inputs, weights
from PIL import Image
from torch import nn

import forsooth
from forsooth.progress import Silent
from forsooth.records import Method


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))


DOORS = {
    "bias": (forsooth.bias, {"permutations": 20, "players": "grid:2"}),
    "independence": (forsooth.independence, {"patch": "grid:2"}),
}
METHODS = [weights, inputs, "leaky_methods:weights", "leaky_methods:autocast"]
X = np.random.default_rng(0).normal(size=(4, 1, 4, 4)).astype(np.float32)


def rows_of_gradient(door: str, *methods: object) -> pd.DataFrame:
    ask, words = DOORS[door]
    rows = ask(network(), X.copy(), methods=[*methods, "gradient"], progress=Silent(), **words).rows
    assert not rows["status"].eq("error").any()  # who gives no answer proves nothing
    return rows[rows["method"].eq("gradient")].reset_index(drop=True)


def name_of(method: object) -> str:
    return getattr(method, "name", getattr(method, "__name__", str(method)))


def writes_everywhere() -> Method:
    """A method that lives in this process alone, so that nothing but copies keeps it from the others."""

    def wipe(model, x, target, *, background):
        for weight in model.parameters():
            weight.data.zero_()
        model.train().double()
        for given in (x, target, background):
            given.zero_()
        return torch.ones(x.shape)

    about = {"needs": ("module", "background"), "random": False, "signed": True, "cite": "", "version": 1}
    return Method(name="wipe", function=wipe, **about)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("method", [*METHODS, writes_everywhere()], ids=name_of)
def test_who_was_asked_before_changes_no_row(door, method):
    expected = rows_of_gradient(door)
    assert len(expected) and rows_of_gradient(door, method).equals(expected)


@pytest.fixture(scope="module")
def photographs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("photographs")
    dice = np.random.default_rng(0)
    for k in range(120):
        blots = dice.integers(90, 256, (5, 5, 3), dtype=np.uint8)
        Image.fromarray(blots).resize((20, 20), Image.Resampling.BICUBIC).save(folder / f"{k:03}.png")
    return folder


def rows_of_a_dry_run(photographs: Path, out: Path, *methods: object, train=own_trainings.learns) -> pd.DataFrame:
    """Rows of gradient, of the nulls and of the oracle, for a model that the user's function trained."""
    asked = {"methods": [*methods, "gradient"], "artefacts": ["brightness"], "size": 16, "samples": 4}
    with mock.patch.object(forsooth.DryRun, "report"):
        made = forsooth.dryrun(photographs, train=train, out=out, progress=Silent(), **asked)
    names = {"gradient", "random", "constant", "sobel", "laplace", "rectified_input", "oracle"}
    assert not made.rows["status"].eq("error").any()
    rows = made.rows[made.rows["method"].isin(names)]
    assert set(rows["method"]) == names and set(rows.loc[rows["method"].eq("gradient"), "status"]) == {"ok"}
    return rows.reset_index(drop=True)


@pytest.mark.parametrize("method", [*METHODS, writes_everywhere()], ids=name_of)
def test_who_was_asked_before_changes_no_row_of_a_dry_run(photographs, tmp_path, monkeypatch, method):
    monkeypatch.chdir(tmp_path)
    expected = rows_of_a_dry_run(photographs, tmp_path / "alone")
    pd.testing.assert_frame_equal(rows_of_a_dry_run(photographs, tmp_path / "beside", method), expected)


def test_a_training_that_leaves_something_open_changes_no_row(photographs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = rows_of_a_dry_run(photographs, tmp_path / "alone")
    leaky = rows_of_a_dry_run(photographs, tmp_path / "leaky", train=own_trainings.leaves_autocast)
    after = rows_of_a_dry_run(photographs, tmp_path / "after")
    pd.testing.assert_frame_equal(after, expected)
    pd.testing.assert_frame_equal(leaky.drop(columns="model"), expected.drop(columns="model"))
    words = (tmp_path / "leaky" / "dryrun.md").read_text()
    assert "own_trainings:leaves_autocast left autocast changed. It was put back before anything else ran." in words


def test_a_training_that_draws_from_numpy_comes_out_the_same_again(photographs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = [rows_of_a_dry_run(photographs, tmp_path / out, train=own_trainings.draws_from_numpy) for out in "ab"]
    pd.testing.assert_frame_equal(*both)


def test_what_builds_another_model_changes_no_row():
    expected = rows_of_gradient("bias")
    x = np.zeros((4, 4), dtype=np.float32) + np.arange(4, dtype=np.float32)[:, None]
    forsooth.bias("leaky_methods:builds", x, methods=["gradient"], permutations=5, progress=Silent())
    assert rows_of_gradient("bias").equals(expected)


class LeavesAutocast(nn.Module):
    """A model that leaves autocast open whenever it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, x):
        torch.autocast("cpu", torch.bfloat16).__enter__()
        return self.inner(x).float()


@pytest.mark.parametrize("door", DOORS)
def test_a_model_that_leaves_something_open_changes_no_row_of_the_next(door):
    expected = rows_of_gradient(door)
    ask, words = DOORS[door]
    ask(LeavesAutocast(), X.copy(), methods=["gradient"], progress=Silent(), **words)
    assert not torch.is_autocast_enabled("cpu") and rows_of_gradient(door).equals(expected)


@pytest.mark.parametrize("method", ["leaky_methods:UNITS", leaky_methods.UNITS], ids=["by path", "live"])
def test_a_method_whose_units_raise_changes_no_row_of_another(method):
    def rows(*methods):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3))
        asked = {"methods": [*methods, "grad_cam"], "players": "units:1", "permutations": 20}
        return forsooth.bias(model, X.copy(), progress=Silent(), **asked).rows

    beside = rows(method)
    spoilt = beside[beside["status"].eq("error")]
    assert spoilt["message"].str.startswith("ValueError: no units today").all() and len(spoilt)
    kept, expected = [one[one["method"].eq("grad_cam")].reset_index(drop=True) for one in (beside, rows())]
    pd.testing.assert_frame_equal(kept, expected, check_dtype=False)  # who gave no maps has no number of players
    assert len(kept)
