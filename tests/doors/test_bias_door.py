"""The user's door against a literal second computation, on every kind of model."""

import copy
import itertools
import math
import re

import numpy as np
import own_models
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

import forsooth
from forsooth.doors import Asked
from forsooth.doors.bias import bias
from forsooth.records import Method, UsageError

X = own_models.X[:4]
IMAGES = torch.randn(6, 1, 6, 6, generator=torch.Generator().manual_seed(0))


def literal_shapley(function, x, base, target):
    """The mean gain over all orders of joining, one forward at a time."""
    players, total = len(x), np.zeros(len(x))
    orders = list(itertools.permutations(range(players)))
    for order in orders:
        now = base.copy()
        before = function(now[None])[0, target]
        for player in order:
            now[player] = x[player]
            after = function(now[None])[0, target]
            total[player] += after - before
            before = after
    return total / len(orders)


def literal_m_bias(a, shapley):
    """The mean of |mean of a / ‖a‖ over S - mean of A / ‖A‖ over S| over the rows that have enough players."""
    a, shapley = a / math.sqrt((a**2).sum()), shapley / math.sqrt((shapley**2).sum())
    rows = []
    for fraction in (0.1, 0.3, 0.5, 0.7, 0.9):
        size = round(fraction * len(a)) if fraction * len(a) >= 1 else 0
        for order in (np.argsort(-a), np.argsort(a)):
            if size:
                rows.append(abs(a[order[:size]].mean() - shapley[order[:size]].mean()))
    return np.mean(rows)


def says_x(model, x, target):
    return x


def test_exact_numbers_of_a_numpy_function_are_those_of_a_literal_loop():
    base, x = own_models.X.mean(0), own_models.X[:3, :6]
    found = forsooth.bias(
        own_models.with_interactions, x, methods=[says_x], data=own_models.X, players="features", permutations="exact"
    )
    target = own_models.with_interactions(x).argmax(1)
    expected = []
    for row, wanted in zip(x, target, strict=True):
        expected.append(literal_m_bias(row, literal_shapley(own_models.with_interactions, row, base, wanted)))
    own = found.table.set_index("method").loc["says_x"]
    assert own["m_bias"] == pytest.approx(np.mean(expected), rel=1e-10)
    assert own["relative"] == pytest.approx(np.mean(expected) * math.sqrt(6), rel=1e-10)
    rows = found.rows[found.rows["method"].eq("says_x") & found.rows["metric"].eq("m_bias")]
    assert rows[rows["status"].eq("ok")].groupby("sample")["value"].mean().tolist() == pytest.approx(
        expected, rel=1e-10
    )
    assert set(rows["status"][rows["fraction"].eq(0.1)]) == {"too few players"}  # 10 % of six players
    assert own["failed"] == 0 and len(rows) == 3 * 10
    assert found.table.set_index("method").loc["shapley", "m_bias"] < 1e-15


def test_the_interval_of_one_input_holds_the_exact_number():
    """With one input the interval is the sampling error alone. 12 orders of 6 players: dearer than 64 coalitions."""
    asked = {"methods": [says_x], "data": own_models.X}
    x = own_models.X[:1]
    exact = forsooth.bias(own_models.with_interactions, x, permutations="exact", **asked).table.set_index("method")
    assert exact.loc["says_x", "low"] == exact.loc["says_x", "high"] == pytest.approx(exact.loc["says_x", "m_bias"])
    held, widths = 0, []
    for seed in range(30):
        found = forsooth.bias(own_models.with_interactions, x, permutations=12, seed=seed, **asked)
        own = found.table.set_index("method").loc["says_x"]
        assert "from 12 random orders" in found.words
        held += own["low"] <= exact.loc["says_x", "m_bias"] <= own["high"]
        widths.append(own["high"] - own["low"])
    assert held >= 24 and min(widths) > 0


def test_the_sampling_error_in_the_interval_is_the_houses_jackknife():
    """With one input nothing is drawn, so that the spread of the draws is the jackknife's error alone."""
    from forsooth.doors import answer
    from forsooth.games.shapley import permutation
    from forsooth.games.values import game
    from forsooth.scores.bias import jackknife
    from forsooth.seeds import generator

    table = torch.randn(1, 6, dtype=torch.float64, generator=generator(0, "x"))
    played = game(lambda x: (x[:, :3] * x[:, 3:]).cumsum(1), table, torch.tensor([2]))
    anchor = permutation(played, permutations=53, generator=generator(0, "p"))  # groups of unequal size
    held = answer.hold([table], anchor, [("top", 0.5)])
    drawn = answer.draws(held.by_row.mean(2), held.left, anchor)
    error = jackknife(torch.from_numpy(held.by_row[0, :, 0]), torch.from_numpy(held.left[0]), anchor.sizes).item()
    assert error > 0
    assert drawn.std() == pytest.approx(error, rel=0.1)
    assert drawn.mean() == pytest.approx(held.by_row.mean(), abs=error / 5)


def test_an_estimator_and_its_table():
    frame = pd.DataFrame(own_models.X, columns=list("abcdef"))
    forest = own_models.RandomForestClassifier(5, random_state=0).fit(frame, own_models.Y)
    named = forsooth.bias(forest, frame[:8], data=frame, players="features", permutations="exact")
    plain = forsooth.bias(own_models.FOREST, own_models.X[:8], data=own_models.X, permutations="exact")
    scored = named.table[named.table["m_bias"].notna()]
    assert set(scored["method"]) == {"kernel_shap", "lime", "shapley_sampling", "pfi", "random", "constant", "shapley"}
    pd.testing.assert_frame_equal(named.table, plain.table)
    # with six players Kernel SHAP takes every coalition: it is the anchor, up to rounding
    assert scored.set_index("method").loc["kernel_shap", "m_bias"] < 1e-8
    assert "RandomForestClassifier" in named.words and "played on probabilities" in named.words


def test_gradients_of_a_black_box_are_skipped_and_say_why():
    found = forsooth.bias(
        own_models.with_interactions, X, methods=["gradient", "lrp", "oracle", "grad_cam", "sobel", "pfi"]
    )
    status = found.table.set_index("method")["status"]
    assert status[["gradient", "lrp", "oracle", "grad_cam", "sobel"]].tolist() == ["skipped"] * 5
    assert status["pfi"] == "ok"
    message = found.table.set_index("method")["message"]
    assert message["gradient"] == "gradient needs a torch module, and the model is a function"
    assert "sobel reads an image" in message["sobel"] and "no ground truth" not in message["sobel"]
    assert set(found.rows["status"][found.rows["method"].eq("lrp")]) == {"skipped"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_is_left_as_it_was(dtype):
    module = own_models.net().to(dtype).train()
    module.norm.eval()
    before, modes = copy.deepcopy(module.state_dict()), [part.training for part in module.modules()]
    needs = [p.requires_grad for p in module.parameters()]
    images = IMAGES.double().numpy()
    kept = images.copy()
    found = forsooth.bias(
        module, images, players="grid:3", permutations=20, methods=["gradient", "lrp", "deep_shap", "lime"]
    )
    assert [part.training for part in module.modules()] == modes
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert [p.requires_grad for p in module.parameters()] == needs
    assert all(p.grad is None for p in module.parameters())
    assert np.array_equal(images, kept)
    assert found.table["status"].eq("ok").all()
    # dropout was off: the same call gives the same numbers
    again = forsooth.bias(
        module, images, players="grid:3", permutations=20, methods=["gradient", "lrp", "deep_shap", "lime"]
    )
    pd.testing.assert_frame_equal(found.rows, again.rows)


def test_the_mode_comes_back_after_an_error_too():
    module = own_models.net().train()
    with pytest.raises(UsageError, match="`target` must lie in"):
        forsooth.bias(module, IMAGES, target=3)
    assert module.training and module.drop.training


def test_the_default_methods_suit_a_module():
    found = forsooth.bias(own_models.net(), IMAGES, players="grid:2", permutations=20)
    assert set(found.table["method"]) >= {"gradient", "integrated_gradients", "lrp", "deep_shap", "kernel_shap", "pfi"}
    assert found.table["status"].eq("ok").all()
    # 16 coalitions are cheaper than 20 orders; kernel SHAP takes the same players and the same baseline
    assert "all 16 coalitions" in found.words
    assert found.table.set_index("method").loc["kernel_shap", "m_bias"] < 1e-5


def test_units_of_a_layer():
    found = forsooth.bias(
        own_models.net(), IMAGES, players="units:conv", permutations=10, methods=["grad_cam", "gradient", "lime"]
    )
    assert found.table["status"].eq("ok").all()
    assert "36 units" in found.words
    probable = forsooth.bias(
        own_models.net(), IMAGES, players="units:conv", permutations=10, methods=["grad_cam"], output="probabilities"
    )
    assert "played on probabilities" in probable.words and probable.table["status"].eq("ok").all()


class Whole(nn.Module):
    """Reads its input again behind the layer, so that it cannot be cut there."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.first(x).relu() + x)


def test_units_of_a_network_that_cannot_be_cut():
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    found = forsooth.bias(
        Whole(), x, players="units:first", permutations="exact", methods=["gradient", "kernel_shap", "random"]
    )
    line = found.table.set_index("method")
    assert line.loc["gradient", "status"] == "skipped" and "cannot be cut" in line.loc["gradient", "message"]
    assert line.loc["kernel_shap", "m_bias"] < 1e-5


def test_functions_on_tensors_and_on_arrays_agree():
    on_arrays = forsooth.bias(lambda x: x @ own_models.WEIGHT, X, permutations="exact")
    for x in (X, torch.from_numpy(X)):
        on_tensors = forsooth.bias(own_models.on_tensors, x, permutations="exact")
        np.testing.assert_allclose(on_arrays.table["m_bias"], on_tensors.table["m_bias"], atol=1e-12)


def test_softmax_of_a_function():
    def softmax(x):
        return torch.from_numpy(own_models.with_interactions(x)).softmax(1)

    asked = {"permutations": "exact", "methods": [says_x]}
    own = forsooth.bias(softmax, X, **asked)
    ours = forsooth.bias(own_models.with_interactions, X, output="probabilities", **asked)
    still = forsooth.bias(softmax, X, output="probabilities", **asked)  # probabilities already
    plain = forsooth.bias(own_models.with_interactions, X, **asked)
    column = "m_bias"
    np.testing.assert_allclose(own.table[column], ours.table[column], atol=1e-12)
    np.testing.assert_allclose(own.table[column], still.table[column], atol=1e-12)
    assert not np.allclose(own.table[column], plain.table[column])


def test_labels_of_ones_own_are_players():
    labels = torch.arange(36).reshape(6, 6) // 12  # three bands
    found = forsooth.bias(own_models.net(), IMAGES, players=labels, methods=["gradient"])
    assert found.rows["players"].eq(3).all() and "3 players" in found.words
    same = forsooth.bias(own_models.net(), IMAGES, players=labels.numpy(), methods=["gradient"])
    pd.testing.assert_frame_equal(found.rows, same.rows)


def raises(model, x, target):
    raise ValueError("no map today")


def too_wide(model, x, target):
    return torch.zeros(len(x), 99)


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
    methods = [raises, too_wide, zero, zero_at_first, writes, says_x]
    found = forsooth.bias(own_models.with_interactions, X, methods=methods)
    line = found.table.set_index("method")
    assert line.loc["raises", "status"] == "error"
    assert line.loc["raises", "message"].startswith("ValueError: no map today (test_bias_door.py, line 242: raise")
    assert line.loc["too_wide", "status"] == "wrong shape"
    assert "must have the shape of x (4, 6), got (4, 99)" in line.loc["too_wide", "message"]
    assert line.loc["zero", ["status", "message", "failed"]].tolist() == ["undefined", "every map is zero", 1.0]
    assert line.loc["zero_at_first", ["status", "failed"]].tolist() == ["ok", 0.25]
    alone = forsooth.bias(own_models.with_interactions, X, methods=[says_x]).table.set_index("method")
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
    found = forsooth.bias(own_models.with_interactions, x, baseline="zero", methods=[says_x])
    alone = forsooth.bias(own_models.with_interactions, X, baseline="zero", methods=[says_x])
    assert "1 of 5 inputs are left out" in found.words
    value = found.table.set_index("method")["m_bias"]
    assert value["says_x"] == pytest.approx(alone.table.set_index("method")["m_bias"]["says_x"])


def test_a_model_that_does_not_listen():
    found = forsooth.bias(lambda x: np.ones((len(x), 2)), X, methods=[says_x])
    assert found.table["m_bias"].isna().all()
    assert found.words.endswith("there is nothing to explain.")


def test_ones_own_record_gets_what_it_needs():
    seen = []

    def function(model, x, target, *, background, generator):
        seen.append((background.shape, type(generator)))
        return x

    record = Method("mine", function, ("background", "generator"), random=False, signed=True, cite="me", version=1)
    forsooth.bias(own_models.with_interactions, X, methods=[record], data=own_models.X)
    assert seen == [((40, 6), torch.Generator)]


def test_a_captum_class_asks_a_black_box():
    found = forsooth.bias(
        own_models.with_interactions, X, methods=["captum.attr:FeatureAblation", "captum.attr:Saliency"]
    )
    line = found.table.set_index("method")
    assert line.loc["captum.attr:FeatureAblation", "status"] == "ok"
    assert line.loc["captum.attr:Saliency", "status"] == "error"  # there is no gradient, and the others go on


@pytest.mark.parametrize(
    "change, message",
    [
        ({"inputs": X[:0]}, r"`inputs` must have shape \(n, \*shape\) and not be empty, got \(0, 6\)"),
        ({"inputs": np.where(X > 1, np.nan, X)}, r"`inputs` must be finite numbers, got nan or infinity in \d of 4"),
        ({"inputs": np.array([["a", "b"]])}, r"`inputs` must hold numbers, got entries of type"),
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
        ({"players": "pixel"}, r"`players` must be pixels, features or grid:N"),
        ({"players": "grid:1"}, r"`players` must be at least 2, got 1"),
        ({"players": "units:conv"}, r"`players` units:conv must be asked of a torch module, got a function"),
        ({"data": np.zeros((3, 5))}, r"`data` must have shape \('k', 6\), got \(3, 5\)"),
        ({"inputs": X[:1]}, r"`data` must hold more than one input for the baseline mean, got one"),
        ({"permutations": 1}, r"`permutations` must be a whole number of at least 2, or exact, got 1"),
        ({"permutations": "exactly"}, r"`permutations` must be a whole number of at least 2, or exact, got 'exactly'"),
        ({"output": "logit"}, r"`output` must be a known name, got 'logit'; did you mean logits"),
        ({"channels": "max"}, r"`channels` must be a known name, got 'max'; did you mean max_abs"),
        ({"methods": ["salency"]}, r"`methods` must be a known name, got 'salency'; did you mean saliency"),
        ({"methods": ["no.such:thing"]}, r"`methods` names the module 'no.such', which cannot be imported"),
        (
            {"methods": [says_x, says_x]},
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
        ({"model": LinearRegression()}, r"`model` must have predict_proba, got LinearRegression without it; .*lambda"),
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
        forsooth.bias(own_models.net(), IMAGES, permutations="exact")


def test_a_module_that_writes_into_its_input():
    module = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(36, 2))
    with pytest.raises(UsageError, match="`model` must leave its input as it is"):
        forsooth.bias(module, IMAGES)


def test_blur_gives_every_input_a_baseline_of_its_own():
    """In slices of the inputs, too: the answer for two inputs does not depend on a third."""
    asked = {"baseline": "blur", "players": "grid:2", "methods": ["integrated_gradients", "deep_lift", "kernel_shap"]}
    two, three = (forsooth.bias(own_models.net().double(), IMAGES[:k].double(), **asked).rows for k in (2, 3))
    three = three[three["sample"].lt(2) & three["method"].ne("random")].reset_index(drop=True)
    two = two[two["method"].ne("random")].reset_index(drop=True)
    pd.testing.assert_frame_equal(two, three)


def test_the_warning_and_the_number_of_permutations():
    def tangled(x):
        return np.stack([np.sin(5 * x.sum(1)), np.cos(5 * x.sum(1))], axis=1)

    found = forsooth.bias(tangled, own_models.X[:6], permutations=12, methods=["pfi"])
    assert re.search(r"Warning: at \d of 6 inputs Shapley values not converged", found.words, flags=re.I)
    assert re.search(r"about \d+ permutations needed instead of 12", found.words)
    assert "Without the noise in the norm pfi has" in found.words


def test_the_advice_where_nothing_is_known_is_to_ask_for_more():
    def tangled(x):
        return np.stack([np.sin(9 * x.sum(1)), np.cos(9 * x.sum(1))], axis=1)

    found = forsooth.bias(tangled, own_models.X[:6], permutations=2, methods=[says_x])
    assert found.words.endswith("before you choose: nothing here can be told from a constant map.")


def test_the_advice_names_the_good_and_the_bad():
    found = forsooth.bias(own_models.with_interactions, own_models.X[:20], methods=["kernel_shap", backwards])
    assert found.words.endswith(
        "Use kernel_shap; do not rank single features by backwards here: it is not clearly better than a constant map."
    )
    nothing = forsooth.bias(own_models.with_interactions, own_models.X[:20], methods=[backwards])
    assert nothing.words.endswith(
        "Use Shapley values themselves, at 64 forwards for an input: no method here is clearly better than a map that "
        "says nothing."
    )


def backwards(model, x, target):
    """The Shapley values of the linear part, with the wrong sign."""
    return -x * torch.from_numpy(own_models.WEIGHT).T[target]


def test_words_of_a_door_without_progress_or_files():
    found = bias(Asked(own_models.with_interactions, X), ["pfi"])
    assert found.words.split("\n\n")[-1].endswith(".")
    assert str(found).startswith(" ") and found.markdown().startswith("# Bias of explanations")
