"""Whatever a method does to what it is handed, the doors ask the next one about the same model and inputs."""

from pathlib import Path
from unittest import mock

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


def rows_of_a_dry_run(photographs: Path, out: Path, *methods: object) -> pd.DataFrame:
    """Rows of gradient, of the nulls and of the oracle, for a model that the user's function trained."""
    asked = {"methods": [*methods, "gradient"], "artefacts": ["brightness"], "size": 16, "samples": 4}
    with mock.patch.object(forsooth.DryRun, "report"):
        made = forsooth.dryrun(photographs, train=own_trainings.learns, out=out, progress=Silent(), **asked)
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
