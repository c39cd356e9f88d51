"""`forsooth independence`: patches without function on the user's own network, in Python and at the terminal."""

from typing import get_args

import numpy as np
import own_models
import pandas as pd
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

import forsooth
from forsooth import cli
from forsooth.adapters.places import placed
from forsooth.records import Status, UsageError
from forsooth.scores.functionless import DEFAULT
from forsooth.user.independence import IndependenceRequest, patches, result, words

IMAGES = torch.rand(6, 1, 6, 6, generator=torch.Generator().manual_seed(0))
FEW = ("gradient", "gradient_x_input")


class Left(nn.Module):
    """Reads the left half of an image (n, 1, 6, 6) only: all that is on the right has no function."""

    def forward(self, x):
        flat = x[:, 0, :, :3].flatten(1)
        return torch.stack([flat.sum(1), flat.square().sum(1), 1 + 0 * flat.sum(1)], dim=1)


class Deaf(nn.Module):
    def forward(self, x):
        return x.detach().flatten(1)[:, :3]


class Steep(nn.Module):
    """Every pixel is an output: nothing can change unseen."""

    def forward(self, x):
        return x.flatten(1)


def says_x(model, x, target):
    return x


def wrong_shape(model, x, target):
    return x[:, 0]


def leaves(model, x, target):
    raise SystemExit(3)


def raises(model, x, target):
    raise RuntimeError("not today")


def right_half():
    mask = torch.zeros(6, 6, dtype=torch.bool)
    mask[2:4, 4:] = True
    return mask


def test_what_the_model_never_reads_draws_the_attention_of_maps_that_read_the_input():
    found = forsooth.independence(Left(), IMAGES, methods=[says_x, "gradient"], patch=right_half(), bounds=(0, 1))
    table = found.table.set_index("method")
    assert table.loc["says_x", "attention"] == 1 and table.loc["constant", "attention"] == 0
    assert table.loc["gradient", "failed"] == 1  # zero there before and after: nothing is drawn, nothing to divide by
    assert table.loc["says_x", ["low", "high"]].tolist() == pytest.approx([0.6097, 1.0], abs=1e-3)  # Wilson's, 6 of 6
    assert set(table["kind"]) == {"method", "null"} and table.loc["random", "kind"] == "null"
    assert (found.rows["ratio"] == 0).all() and found.rows["visible"].ge(0.1).all()
    assert "A patch that is seen and changes no output was found for 6 of 6" in found.words
    assert "says_x in 100 % of inputs (95 % interval 61 % to 100 %)" in found.words
    assert "Warning: with 6 patches" in found.words and "random maps in" in found.words


def test_the_numbers_are_those_of_a_literal_loop():
    mask, asked = right_half(), {"methods": [says_x], "bounds": (0, 1), "seed": 3}
    found = forsooth.independence(Left(), IMAGES, patch=mask, **asked)
    case = patches.prepare(Left(), IndependenceRequest(model=None, inputs=IMAGES, patch=mask, bounds=(0, 1), seed=3))
    patched = patches.joined(
        [patches.search(case, DEFAULT, start=0, stop=4), patches.search(case, DEFAULT, start=4, stop=6)]
    ).x
    for row in found.rows[found.rows["method"].eq("says_x")].itertuples():
        means = []
        for image in (IMAGES[row.sample, 0].numpy(), patched[row.sample, 0].numpy()):
            scaled = np.minimum(image / np.percentile(image, 99), 1)
            means.append(scaled[mask.numpy()].mean())
        assert row.change == pytest.approx(abs(means[1] - means[0]) / means[0], rel=1e-4)
        assert np.sign(row.rise) == np.sign(means[1] - means[0])
    again = forsooth.independence(Left(), IMAGES, patch=mask, **asked)
    pd.testing.assert_frame_equal(found.rows, again.rows)


@pytest.mark.parametrize("patch, pixels", [("grid:3", 4), ("size:3", 9), (np.eye(6), 6)])
def test_patches_of_every_kind(patch, pixels):
    mask, noun = placed(patch, IMAGES, seed=0)
    assert mask.shape == (6, 6, 6) and (mask.flatten(1).sum(1) == pixels).all() and noun


def test_a_network_with_layers_is_asked_with_common_methods(tmp_path):
    net = own_models.net().train()
    found = forsooth.independence(net, IMAGES, patch="size:2", out=tmp_path / "answer")
    assert net.training and net.drop.training
    assert {"grad_cam", "gradient", "smooth_grad", "random", "constant"} <= set(found.table["method"])
    assert found.table.loc[found.table["method"].eq("constant"), "attention"].item() == 0
    order = found.table["attention"].dropna()
    assert order.is_monotonic_increasing
    page = (tmp_path / "answer" / "independence.md").read_text()
    assert "| smooth_grad |" in page and "no proof" in page
    assert len(pd.read_csv(tmp_path / "answer" / "independence.csv")) == len(found.rows)
    assert str(found).startswith(" ") and "attention" in str(found)


def test_tables_have_patches_too():
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(1))
    found = forsooth.independence(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 2)), x, patch="grid:2")
    assert "grad_cam" not in set(found.table["method"]) and len(found.rows) == 8 * len(found.table)


def test_where_no_patch_is_found_the_words_say_so():
    found = forsooth.independence(Steep(), IMAGES, methods=FEW, patch="grid:2")
    assert {"no patch"} <= set(get_args(Status))
    assert set(found.rows["status"]) == {"no patch"} and found.table["attention"].isna().all()
    assert "found for 0 of 6" in found.words and "smaller patches" in found.words


def test_bad_methods_are_rows_and_the_others_go_on():
    found = forsooth.independence(Left(), IMAGES, methods=[raises, leaves, wrong_shape, says_x], patch=right_half())
    table = found.table.set_index("method")
    assert table.loc["leaves", "status"] == "error" and "SystemExit: 3" in table.loc["leaves", "message"]
    assert table.loc["raises", "status"] == "error" and "not today" in table.loc["raises", "message"]
    assert table.loc["wrong_shape", "status"] == "wrong shape"
    assert table.loc["says_x", "status"] == "ok"


@pytest.mark.parametrize(
    "model, words, message",
    [
        (
            own_models.FOREST,
            {},
            "`model` must be a torch module, or a function of tensors .*, got an estimator .*: ask `for",
        ),
        (lambda x: x.flatten(1).numpy(), {}, "`model` must give a tensor of shape .*, got ndarray"),
        ("own_models:SEVEN", {}, "must be a torch module.*got int"),
        (Deaf(), {}, "`model` must let gradients through to its input"),
        (Left(), {"patch": "grid:9"}, r"`grid` must lie in \[1, 6\]"),
        (Left(), {"patch": "size:7"}, "`patch` size must be at most 6 for inputs of shape"),
        (Left(), {"patch": "circle"}, "`patch` must be grid:N, size:S or a file with a mask, got 'circle'"),
        (Left(), {"patch": np.zeros((6, 6))}, "`patch` must hold at least one place"),
        (Left(), {"patch": np.ones((5, 5))}, r"`patch` must have the shape \(6, 6\) or \(6, 6, 6\), got \(5, 5\)"),
        (Left(), {"bounds": (0.2, 0.8)}, "`bounds` must be two numbers in order that hold all inputs, got 0.2 and 0.8"),
        (Left(), {"bounds": (-np.inf, np.inf)}, "`bounds` must be two numbers in order that hold all inputs, got -inf"),
        (Left(), {"threshold": 0}, "`threshold` must be a number above 0, got 0"),
        (Left(), {"target": 3}, r"`target` must lie in \[0, 2\]"),
        (Left(), {"layer": "conv7"}, "`layer` must be a part of the model, got 'conv7'"),
        (Left(), {"methods": ["gradiant"]}, "did you mean gradient"),
        (Left(), {"methods": ["oracle"]}, "must need no ground truth"),
        (Left(), {"methods": ["gradient", "gradient"]}, "names of their own"),
    ],
)
def test_bad_words(model, words, message):
    with pytest.raises(UsageError, match=message):
        forsooth.independence(model, IMAGES, **{"methods": FEW, **words})


def test_bad_inputs(tmp_path):
    with pytest.raises(UsageError, match="nan or infinity in 1 of 6"):
        forsooth.independence(Left(), IMAGES.clone().index_fill_(0, torch.tensor(2), torch.nan), methods=FEW)
    with pytest.raises(UsageError, match="`bounds` must be two numbers"):
        forsooth.independence(Left(), torch.zeros(2, 1, 6, 6), methods=FEW)
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="holds other files"):
        forsooth.independence(Left(), IMAGES, methods=FEW, out=tmp_path)


def test_at_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", IMAGES.numpy())
    words = ["--model", "own_models:net", "--inputs", "x.npy", "--methods", "gradient", "--patch", "size:2"]
    words += ["--bounds", "0,1", "--out", "answer", "--quiet"]
    done = CliRunner().invoke(cli.app, ["independence", *words], catch_exceptions=False)
    assert done.exit_code == 0 and "gradient" in done.stdout and "independence.csv" in done.stdout
    with pytest.raises(UsageError, match="`--bounds` must be two numbers"):
        CliRunner().invoke(cli.app, ["independence", *words, "--bounds", "low"], catch_exceptions=False)


def test_inputs_without_a_map_count_as_drawn_and_rivals_are_corrected_for():
    shared = {"target": 0, "rise": 0.0, "message": ""}
    told = {"steady": [0.0, 0.0, 0.0, 0.0], "half": [0.0, 0.0, np.nan, np.nan]}
    rows = pd.DataFrame(
        [
            {**shared, "method": name, "sample": k, "change": value, "status": "ok" if value == value else "undefined"}
            for name, values in told.items()
            for k, value in enumerate(values)
        ]
    )
    half = result.line_of(rows[rows["method"].eq("half")], 0.1)
    assert (half["attention"], half["defined"], half["failed"]) == (0.5, 0.0, 0.5)
    many = pd.concat([rows.assign(sample=rows["sample"] + 4 * k) for k in range(3)], ignore_index=True)
    assert result.more_often(many, "steady", "half", 0.1) == 2 * 0.5**6  # six of six pairs: sure alone …
    methods = pd.DataFrame({"method": ["steady", "half", "a", "b"], "low": 0.0})
    spare = [many[many["method"].eq("steady")].assign(method=name) for name in ("a", "b")]
    advice = words.advice(methods, pd.concat([many, *spare], ignore_index=True), 0.1)
    assert "half does so clearly more often" not in advice  # … but not as one of three
    assert "half does so clearly more often" in words.advice(methods[:2], many, 0.1)


def test_who_misleads_is_not_called_least_drawn():
    """Nobody of three is clearly worse than the first, and one of them misleads all the same."""
    changes = {"a": 0, "b": 3, "c": 4}  # of 4 inputs
    rows = pd.DataFrame(
        [
            {"method": name, "sample": k, "change": 0.9 * (k < drawn), "status": "ok", "value": 1.0}
            for name, drawn in changes.items()
            for k in range(4)
        ]
    )
    methods = pd.DataFrame({"method": list(changes), "low": [0.0, 0.2, 0.6], "attention": [0.0, 0.75, 1.0]})
    assert words.advice(methods, rows, 0.1) == (
        "a is least drawn to what has no function, and none of the others clearly more. In clearly more than half of "
        "the inputs c would mislead. Steadiness alone is no proof: ask `forsooth bias`, too."
    )


def test_where_all_mislead_none_is_recommended():
    rows = pd.DataFrame({"method": "a", "sample": range(20), "change": 0.9, "status": "ok", "value": 1.0})
    methods = pd.DataFrame({"method": ["a"], "low": [0.8], "attention": [0.95]})
    assert words.advice(methods, rows, 0.1).startswith("Believe none of them about such a place: a is least drawn.")
    assert words.advice(methods.assign(low=0.1), rows, 0.1).startswith("Least drawn to what has no function: a.")
