"""The user's door against a literal second computation, on every kind of model."""

import copy
import dataclasses
import functools
import itertools
import math
import re

import numpy as np
import own_models
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import forsooth
from forsooth.attributions import METHODS
from forsooth.records import Method, UsageError
from forsooth.user.bias import BiasRequest, answer, prepare

X = own_models.X[:4]


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


def test_exact_numbers_of_a_numpy_function_are_those_of_a_literal_loop():
    base, x = own_models.X.mean(0), own_models.X[:3, :6]
    found = forsooth.bias(
        own_models.with_interactions,
        x,
        methods=[own_models.says_x],
        data=own_models.X,
        players="features",
        permutations="exact",
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


@pytest.mark.parametrize("permutations", ["exact", 12])
def test_one_input_has_no_interval_and_nothing_is_clear(permutations):
    asked = {"methods": [own_models.says_x, "pfi"], "data": own_models.X}
    found = forsooth.bias(own_models.with_interactions, own_models.X[:1], permutations=permutations, **asked)
    table = found.table
    assert table["m_bias"].notna().all() and table[["low", "high"]].isna().all().all()
    assert set(table["group"]) == {"A", ""} and not table[["beats_constant", "beats_random"]].any().any()
    assert "95 %" not in found.words and "it is clearly below" not in found.words and "Use " not in found.words
    few = "with one input there is no interval, and no two maps can be distinguished; to compare 4 maps give at least 8"
    assert few in found.words


def test_where_all_inputs_agree_the_interval_is_the_sampling_error_alone():
    """Student's with as many degrees of freedom as groups of permutations less one."""
    from scipy import stats

    from forsooth.stats.boards import compared_means

    parts = np.array([[0.01, -0.02, 0.01]])
    half, _ = compared_means(np.full((1, 8), 0.3), parts, scale=3.0)
    assert half[0] == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt((parts**2).sum()))


def test_the_sampling_error_in_the_interval_is_the_houses_jackknife():
    from forsooth.games.shapley import permutation
    from forsooth.games.values import game
    from forsooth.scores.bias import jackknife, replicates
    from forsooth.seeds import generator
    from forsooth.stats.failures import filled

    table = torch.randn(1, 6, dtype=torch.float64, generator=generator(0, "x"))
    played = game(lambda x: (x[:, :3] * x[:, 3:]).cumsum(1), table, torch.tensor([2]))
    anchor = permutation(played, permutations=53, generator=generator(0, "p"))  # groups of unequal size
    by_pair, left = replicates([table], anchor, pairs=[("top", 0.5)])
    scores = filled(by_pair.mean(2).numpy(), left.numpy(), nulls=[0])
    parts = scores.sampling_parts(anchor.sizes.numpy())
    error = jackknife(by_pair[0, :, 0], left[0], anchor.sizes).item()
    assert error > 0
    assert np.sqrt((parts**2).sum()) == pytest.approx(error)


@pytest.mark.parametrize("inputs, most", [(1, 0.0), (2, 0.0), (3, 0.0), (5, 0.0), (10, 0.06), (30, 0.06)])
def test_two_methods_of_one_law_are_not_told_apart(inputs, most):
    """With draws of the inputs they were told apart in 1.00, 0.52, 0.24, 0.147, 0.097 and 0.067 of runs."""
    from forsooth.stats.boards import compared_means

    rng = np.random.default_rng(inputs)
    told = 0
    for _ in range(300):
        values = rng.exponential(0.05, (4, inputs))
        told += compared_means(values, scale=4.0)[1].any()
    assert told / 300 <= most


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
    assert (
        "RandomForestClassifier" in named.words and "Shapley values explain the predicted probabilities." in named.words
    )


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
    images = own_models.IMAGES.double().numpy()
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
        forsooth.bias(module, own_models.IMAGES, target=3)
    assert module.training and module.drop.training


def test_the_default_methods_suit_a_module():
    found = forsooth.bias(own_models.net(), own_models.IMAGES, players="grid:2", permutations=20)
    assert set(found.table["method"]) >= {"gradient", "integrated_gradients", "lrp", "deep_shap", "kernel_shap", "pfi"}
    assert found.table["status"].eq("ok").all()
    # 16 coalitions are cheaper than 20 orders; kernel SHAP takes the same players and the same baseline
    assert "all 16 coalitions" in found.words
    assert found.table.set_index("method").loc["kernel_shap", "m_bias"] < 1e-5


def test_units_of_a_layer():
    found = forsooth.bias(
        own_models.net(),
        own_models.IMAGES,
        players="units:conv",
        permutations=10,
        methods=["grad_cam", "gradient", "lime"],
    )
    assert found.table["status"].eq("ok").all()
    assert "36 units" in found.words
    probable = forsooth.bias(
        own_models.net(),
        own_models.IMAGES,
        players="units:conv",
        permutations=10,
        methods=["grad_cam"],
        output="probabilities",
    )
    assert (
        "Shapley values explain the predicted probabilities." in probable.words
        and probable.table["status"].eq("ok").all()
    )


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

    asked = {"permutations": "exact", "methods": [own_models.says_x]}
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
    found = forsooth.bias(own_models.net(), own_models.IMAGES, players=labels, methods=["gradient"])
    assert found.rows["players"].eq(3).all() and "3 players" in found.words
    same = forsooth.bias(own_models.net(), own_models.IMAGES, players=labels.numpy(), methods=["gradient"])
    pd.testing.assert_frame_equal(found.rows, same.rows)


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


def test_blur_gives_every_input_a_baseline_of_its_own():
    """In slices of the inputs, too: the answer for two inputs does not depend on a third."""
    asked = {"baseline": "blur", "players": "grid:2", "methods": ["integrated_gradients", "deep_lift", "kernel_shap"]}
    two, three = (
        forsooth.bias(own_models.net().double(), own_models.IMAGES[:k].double(), **asked).rows for k in (2, 3)
    )
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

    found = forsooth.bias(tangled, own_models.X[:6], permutations=2, methods=[own_models.says_x])
    assert found.words.endswith("before you choose: nothing here can be distinguished from a constant map.")


def test_the_advice_names_the_good_and_the_bad():
    found = forsooth.bias(own_models.with_interactions, own_models.X[:20], methods=["kernel_shap", backwards])
    assert found.words.endswith(
        "Use kernel_shap; do not rank single features by backwards here: it is not clearly better than a constant map."
    )
    nothing = forsooth.bias(own_models.with_interactions, own_models.X[:20], methods=[backwards])
    assert nothing.words.endswith(
        "Use Shapley values themselves, at 64 forward passes for an input: no method here is clearly better than a map "
        "that says nothing."
    )


def backwards(model, x, target):
    """The Shapley values of the linear part, with the wrong sign."""
    return -x * torch.from_numpy(own_models.WEIGHT).T[target]


def test_words_of_a_door_without_progress_or_files():
    found = answer(BiasRequest(model=own_models.with_interactions, inputs=X, methods=("pfi",)))
    assert found.words.split("\n\n")[-1].endswith(".")
    assert str(found).startswith(" ") and found.markdown().startswith("# Bias of explanations")


STEPS = np.array([0.1, 0.3, 0.7, 0.2, 0.6, 0.1])


def by_number(x):
    """A probability that depends on how many of five inputs are there: with all of them it is that with none."""
    p = STEPS[(x > 0.5).sum(1)]
    return np.stack([p, 1 - p], axis=1)


def test_rounding_is_no_anchor_and_does_not_turn_the_advice():
    """By symmetry all Shapley values of the input of ones are 0; sums in floating point give 1e-17 instead."""
    x = (np.random.default_rng(0).random((25, 5)) > 0.5).astype(float)
    x[:8] = 1
    asked = {"baseline": np.zeros(5), "target": 0, "permutations": "exact"}
    found = forsooth.bias(by_number, x, methods=["kernel_shap", "lime"], **asked)
    assert found.table.set_index("method").loc["kernel_shap", "m_bias"] < 1e-9  # it was 0.14, above the constant map
    assert "8 of 25 inputs are left out" in found.words and "Use kernel_shap" in found.words
    rows = found.rows[found.rows["sample"].lt(8) & found.rows["fraction"].gt(0.1)]
    assert set(rows["status"]) == {"no anchor"}


def test_columns_in_another_order_mean_the_same():
    frame = pd.DataFrame(own_models.X[:6], columns=list("abcdef"))
    data = pd.DataFrame(own_models.X, columns=list("abcdef"))
    asked = {"methods": [own_models.says_x], "permutations": "exact"}
    straight = forsooth.bias(own_models.with_interactions, frame, data=data, **asked)
    turned = forsooth.bias(own_models.with_interactions, frame, data=data[list("fedcba")], **asked)
    pd.testing.assert_frame_equal(straight.table, turned.table)
    row = data.mean()
    own = forsooth.bias(own_models.with_interactions, frame, baseline=row[list("fedcba")], **asked)
    assert own.table["m_bias"].tolist() == pytest.approx(straight.table["m_bias"].tolist(), rel=1e-9)
    with pytest.raises(
        UsageError, match="`data` must have the columns of `inputs`, in any order; f is missing in a, b"
    ):
        forsooth.bias(own_models.with_interactions, frame, data=data.rename(columns={"f": "g"}), **asked)


def test_columns_in_another_order_than_the_model_was_fitted_on_are_refused():
    frame = pd.DataFrame(own_models.X, columns=list("abcdef"))
    model = RandomForestClassifier(2, random_state=0).fit(frame, own_models.Y)
    with pytest.raises(UsageError, match="in that order: a, b, c, d, e, f; got f, e, d, c, b, a"):
        forsooth.bias(model, frame[list("fedcba")][:4], methods=["lime"], permutations="exact")


def test_all_predicted_classes_are_among_the_references(monkeypatch):
    """Users' data come sorted, too: the mean over the first rows would be that of one class."""
    monkeypatch.setattr(prepare, "REFERENCES", 10)
    x = np.concatenate([np.zeros((50, 6)), np.ones((20, 6))]) + 0.01 * own_models.X[:1]

    def sign(part):
        return np.stack([0.5 - part.mean(1), part.mean(1) - 0.5], axis=1)

    about = prepare.prepare(sign, BiasRequest(model=sign, inputs=x[:2], data=x))
    assert about.references[:, 0].gt(0.5).sum() == 5 and about.references[:4, 0].gt(0.5).sum() == 2
    assert about.baseline.mean().item() == pytest.approx(0.5, abs=0.02)
    assert about.told["used"] == 10 and about.told["data"] == len(x) and about.told["own_data"]


def test_who_promises_a_sum_has_its_gap_beside():
    """The sum is that of the game, from its mean baseline; a record that says half of DeepLIFT misses half of it."""
    lift = next(method for method in METHODS if method.name == "deep_lift")
    halved = functools.wraps(lift.function)(lambda *given, **more: lift.function(*given, **more) / 2)
    half = dataclasses.replace(lift, name="half", function=halved)
    asked = {"methods": ["integrated_gradients", "gradient", lift, half], "players": "grid:3", "permutations": 4}
    found = forsooth.bias(own_models.net(), own_models.IMAGES, **asked)
    gaps = found.rows[found.rows["metric"].eq("gap")].groupby("method")["value"]
    assert (gaps.size() == len(own_models.IMAGES)).all() and gaps.max()["deep_lift"] < 1e-3
    assert gaps.max()["integrated_gradients"] < 0.2 and "gradient" not in gaps.groups
    assert gaps.get_group("half").tolist() == pytest.approx([0.5] * len(own_models.IMAGES), abs=1e-3)
