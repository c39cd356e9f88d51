"""What `forsooth bias` makes of bad methods, bad input and models that do not listen."""

from pathlib import Path

import numpy as np
import own_models
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import forsooth
from forsooth.records import UsageError

X = own_models.X[:4]


def raises(model, x, target):
    raise ValueError("no map today")


def too_wide(model, x, target):
    return torch.zeros(len(x), 99)


def leaves(model, x, target):
    raise SystemExit(3)


def zero(model, x, target):
    return torch.zeros_like(x)


def zero_at_first(model, x, target):
    maps = np.ones(x.shape)
    maps[0] = 0
    maps[:, 0] = 2 * maps[:, 0]
    return maps  # numpy is as good as torch


def writes(model, x, target):
    x.zero_()
    return torch.arange(float(x.numel())).reshape(x.shape)


def test_a_bad_method_is_a_line_and_the_others_go_on():
    methods = [raises, leaves, too_wide, zero, zero_at_first, writes, own_models.says_x]
    found = forsooth.bias(own_models.with_interactions, X, methods=methods)
    line = found.table.set_index("method")
    assert line.loc["raises", "status"] == "error"
    place = f"{Path(__file__).name}, line {raises.__code__.co_firstlineno + 1}"
    assert line.loc["raises", "message"].startswith(f"ValueError: no map today ({place}: raise")
    assert line.loc["leaves", "status"] == "error" and line.loc["leaves", "message"].startswith("SystemExit: 3 (")
    assert line.loc["too_wide", "status"] == "wrong shape"
    assert "must have the shape of x (4, 6), got (4, 99)" in line.loc["too_wide", "message"]
    assert line.loc["zero", ["status", "message", "failed"]].tolist() == ["undefined", "every map is zero", 1.0]
    assert line.loc["zero_at_first", ["status", "failed"]].tolist() == ["ok", 0.25]
    alone = forsooth.bias(own_models.with_interactions, X, methods=[own_models.says_x]).table.set_index("method")
    assert line.loc["says_x", "m_bias"] == alone.loc["says_x", "m_bias"]
    rows = found.rows[found.rows["method"].eq("zero_at_first") & found.rows["sample"].eq(0)]
    assert set(rows["status"]) == {"zero map", "too few players"}
    # the failed input counts as the worse of the nulls
    means = (
        found.rows[found.rows["metric"].eq("m_bias") & found.rows["fraction"].gt(0.1)]
        .groupby(["method", "sample"])["value"]
        .mean()
    )
    expected = [max(means["constant", 0], means["random", 0]), *means["zero_at_first"][1:]]
    assert line.loc["zero_at_first", "m_bias"] == pytest.approx(np.mean(expected), rel=1e-12)


def test_an_input_that_is_the_baseline_is_left_out_and_said():
    x = np.concatenate([np.zeros((1, 6)), X])
    found = forsooth.bias(own_models.with_interactions, x, baseline="zero", methods=[own_models.says_x])
    alone = forsooth.bias(own_models.with_interactions, X, baseline="zero", methods=[own_models.says_x])
    assert "1 of 5 inputs are left out" in found.words
    value = found.table.set_index("method")["m_bias"]
    assert value["says_x"] == pytest.approx(alone.table.set_index("method")["m_bias"]["says_x"])


def test_a_model_that_does_not_listen():
    found = forsooth.bias(lambda x: np.ones((len(x), 2)), X, methods=[own_models.says_x])
    assert found.table["m_bias"].isna().all()
    assert found.words.endswith("there is nothing to explain.")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"inputs": X[:0]}, r"`inputs` must have shape \(n, \*shape\) and not be empty, got \(0, 6\)"),
        ({"inputs": np.where(X > 1, np.nan, X)}, r"got nan or infinity for \d of 4 inputs; the table has gaps in "),
        ({"inputs": X[:, :, None] * np.nan}, r"`inputs` must be finite numbers, got nan or infinity in 4 of 4 inputs"),
        ({"inputs": np.array([[["a", "b"]]])}, r"`inputs` must hold numbers, got entries of type"),
        ({"inputs": np.array([["a", "b"]])}, r"`model` must take rows of the table, but with a numpy array it raised"),
        ({"inputs": X, "baseline": "rows:0"}, r"`baseline` must be rows or rows:N for a table with text"),
        ({"inputs": own_models.IMAGES, "baseline": "rows"}, r"`baseline` rows must be asked of a table .n, columns."),
        (
            {"baseline": np.zeros(5)},
            r"`baseline` must have the shape of one input \(6,\) or of all \(4, 6\), got \(5,\)",
        ),
        ({"baseline": "men"}, r"`baseline` must be a known name, got 'men'; did you mean mean"),
        ({"baseline": np.full(6, np.nan)}, r"`baseline` must be finite numbers"),
        ({"target": 3}, r"`target` must lie in \[0, 2\], as the model has 3 outputs, got 3"),
        ({"target": -1}, r"`target` must lie in \[0, 2\], as the model has 3 outputs, got -1"),
        ({"target": [0, 1]}, r"`target` must be one class or one for each of 4 inputs, got shape \(2,\)"),
        ({"target": [0.5] * 4}, r"`target` must be whole numbers"),
        ({"players": "grid:9"}, r"`grid` must lie in \[1, 6\]"),
        ({"players": "pixel"}, r"`players` must be pixels, features, words or grid:N"),
        ({"players": "grid:1"}, r"`players` must be at least 2, got 1"),
        ({"players": "units:conv"}, r"`players` units:conv must be asked of a torch module, got a function"),
        ({"data": np.zeros((3, 5))}, r"`data` must have shape \('k', 6\), got \(3, 5\)"),
        ({"inputs": X[:1]}, r"`data` must hold more than one input for the baseline mean, got one"),
        ({"permutations": 1}, r"`permutations` must be a whole number of at least 2, exact or auto, got 1"),
        (
            {"permutations": "exactly"},
            r"`permutations` must be a whole number of at least 2, exact or auto, got 'exactly'",
        ),
        ({"output": "logit"}, r"`output` must be a known name, got 'logit'; did you mean logits"),
        ({"channels": "max"}, r"`channels` must be a known name, got 'max'; did you mean max_abs"),
        ({"methods": ["salency"]}, r"`methods` must be a known name, got 'salency'; did you mean saliency"),
        ({"methods": ["no.such:thing"]}, r"`methods` names the module 'no.such', which cannot be imported"),
        (
            {"methods": [own_models.says_x, own_models.says_x]},
            r"`methods` must have names of their own, other than shapley, got says_x, says_x",
        ),
        ({"model": own_models.nan}, r"`model` must give finite numbers, got nan or infinity for 4 of 4 inputs"),
        (
            {"model": own_models.nan_where_hidden, "baseline": "zero"},
            r"`model` must give finite numbers, got nan or inf",
        ),
        (
            {"model": own_models.no_classes},
            r"`model` must give outputs of shape \(n, classes\), got \(4,\) for n = 4; .*lambda",
        ),
        ({"model": own_models.a_dictionary}, r"`model` must give an array or tensor of shape \(n, classes\), got dict"),
        ({"model": nn.Linear(5, 2)}, r"`model` must take inputs of shape .*, but it raised RuntimeError"),
        ({"model": LinearRegression()}, r"`model` must take inputs of shape \(4, 6\), but it raised NotFittedError"),
        ({"model": 7}, r"`model` must be a torch module, an estimator with predict_proba or a function .*, got int"),
        (
            {"model": lambda x: x.nonsense},
            r"with a numpy array it raised AttributeError.*, and with a tensor it raised",
        ),
        ({"model": "own_models"}, r"`model` must be package.module:name, got 'own_models'"),
        ({"model": "no.such:model"}, r"`model` names the module 'no.such', which cannot be imported"),
        ({"model": "own_models:nett"}, r"`model` must be a known name, got 'nett'; did you mean net"),
        ({"model": "own_models:raises"}, r"but own_models:raises raised RuntimeError: no weights at home"),
        ({"model": "own_models:Unready"}, r"got the class own_models:Unready, which needs width"),
        ({"model": "own_models:SEVEN"}, r"`model` must be a torch module.*, got int"),
    ],
)
def test_bad_input_names_the_argument_the_expectation_and_what_came(change, message):
    asked = {"model": own_models.with_interactions, "inputs": X, **change}
    with pytest.raises(UsageError, match=message):
        forsooth.bias(asked.pop("model"), asked.pop("inputs"), **asked)


def test_more_than_twenty_players_exactly():
    with pytest.raises(UsageError, match=r"`permutations` exact must have at most 20 players to be exact, got 36"):
        forsooth.bias(own_models.net(), own_models.IMAGES, permutations="exact")


def test_a_module_that_writes_into_its_input():
    module = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(36, 2))
    with pytest.raises(UsageError, match="`model` must leave its input as it is"):
        forsooth.bias(module, own_models.IMAGES)


def of_ids(ids):
    """A classifier of texts that nobody can look into."""
    table = np.random.default_rng(0).normal(size=(9, 3))
    return table[np.asarray(ids).astype(int)].mean(1)


@pytest.mark.parametrize("baseline", ["auto", "mean", "blur"])
def test_a_function_of_whole_numbers_must_be_told_what_stands_for_what_is_hidden(baseline):
    ids = np.random.default_rng(1).integers(9, size=(5, 4))
    with pytest.raises(UsageError, match=r"`baseline` must be named .* write baseline=PAD, .* inputs\.astype"):
        forsooth.bias(of_ids, ids, methods=["kernel_shap"], permutations=5, baseline=baseline)


@pytest.mark.parametrize("baseline", ["rows", "zero", np.full(4, 8)])
def test_a_function_of_whole_numbers_is_asked_once_it_is_told(baseline):
    ids = np.random.default_rng(1).integers(9, size=(5, 4))
    found = forsooth.bias(of_ids, ids, methods=["kernel_shap"], permutations=5, baseline=baseline)
    assert set(found.table["status"]) == {"ok"}
