"""Sentences on a table that was made up, so that every case is seen."""

from types import SimpleNamespace

import pandas as pd
import pytest

from forsooth.user.bias import words
from forsooth.user.bias.subject import Seats

NOISE = [0.0] * 25


def subject(exact=True, permutations=100):
    return SimpleNamespace(
        exact=exact,
        seats=Seats(None, 6, "features"),
        x=NOISE,
        kind="a function",
        told={"left_out": ["id"], "hidden": "mean", "used": 9, "data": 10, "own_data": True, "probabilities": True},
        request=SimpleNamespace(permutations=permutations, anchor="permutations"),
        forwards=lambda: 64,
    )


def table(*lines):
    """method, m_bias, group, beats constant, beats random; nulls and the anchor beside."""
    others = [
        ("constant", 0.4, "C", False, False),
        ("random", 0.5, "C", False, False),
        ("shapley", 0.0, "", True, True),
    ]
    rows = []
    for method, value, group, constant, random in (*lines, *others):
        row = {"method": method, "m_bias": value, "low": value / 2, "high": 2 * value, "group": group}
        row |= {"beats_constant": constant, "beats_random": random, "m_bias_split": value, "gap": 0.0, "broken": 0.0}
        rows.append({**row, "kind": {"shapley": "anchor", "constant": "null", "random": "null"}.get(method, "method")})
    return pd.DataFrame(rows).sort_values("m_bias", kind="stable")


GOOD = ("lime", 0.01, "A", True, True)
QUICK = ("deep_lift", 0.05, "B", True, True)
TIED = ("lrp", 0.06, "B", True, True)
POOR = ("gradient", 0.45, "C", False, True)


def test_the_quick_are_named_beside_the_best_where_those_cost_much():
    text = words.summary(subject(), table(GOOD, QUICK, TIED, POOR), NOISE, {"lime"})
    assert text.splitlines()[0].startswith("25 inputs of a function, 6 features; Shapley values from all 64 coalitions")
    assert "64 forward passes for an input. Columns that the model was not fitted on play no part: id." in text
    assert "Hidden features are replaced by the mean of 9 of the data, drawn evenly over the predicted classes." in text
    assert "Shapley values explain the predicted probabilities." in text
    assert "Least biased: lime (m_bias 0.01, 95 % interval 0.005 to 0.02); it is clearly below all others." in text
    assert "lime, deep_lift and lrp beat both the constant and the random map; gradient does not." in text
    assert text.endswith(
        "Use lime, or deep_lift or lrp where many forward passes are too expensive; do not rank single features by "
        "gradient here: it is not clearly better than a constant map."
    )
    assert "expensive" not in words.summary(subject(), table(GOOD, QUICK), NOISE, set())
    assert "expensive" not in words.summary(subject(), table(GOOD), NOISE, {"lime"})


def test_ties_are_named():
    text = words.summary(subject(), table(QUICK, TIED), NOISE, set())
    assert (
        "Least biased: deep_lift (m_bias 0.05, 95 % interval 0.025 to 0.1); lrp is indistinguishable from it." in text
    )
    assert text.endswith("Use deep_lift or lrp.")


def test_sampled_values_say_what_they_score_themselves():
    text = words.summary(subject(exact=False), table(GOOD), NOISE, set())
    assert "Shapley values from 100 random orders" in text
    assert "once more score 0: a method that scores no higher is indistinguishable from the Shapley values." in text


def test_noise_is_a_warning_and_turns_the_advice():
    text = words.summary(subject(exact=False), table(POOR), [0.5] * 25, set())
    assert (
        "Warning: at 25 of 25 inputs" in text and "Without the noise in the norm gradient has 0.45, not 0.45." in text
    )
    assert text.endswith("before you choose: nothing here can be distinguished from a constant map.")


@pytest.mark.parametrize(
    "inputs, expected",
    [
        (0, "Choose another baseline"),
        (3, "Ask again with at least 7 inputs before you choose"),
        (25, "Use Shapley values themselves, at 64 forward passes for an input"),
    ],
)
def test_where_nobody_wins(inputs, expected):
    noise = [0.0] * inputs + [float("nan")] * (25 - inputs)
    text = words.summary(subject(), table(POOR), noise, set())
    assert text.split("\n\n")[-1].startswith(expected)
    assert (f"{25 - inputs} of 25 inputs are left out" in text) == (inputs < 25)


def test_a_broken_promise_stands_beside_the_name():
    broken = table(QUICK).assign(broken=lambda lines: lines["method"].eq("deep_lift") * 0.85, gap=0.3)
    text = words.summary(subject(), broken, NOISE, set())
    assert "deep_lift does not keep its promised sum on 85 % of samples" in text
    assert text.endswith("Use deep_lift (whose promised sum is not kept).")


def test_no_map_at_all():
    empty = table().assign(m_bias=float("nan"))
    said = words.summary(subject(), empty, NOISE, set())
    assert "No method gave a usable map." in said
    assert said.endswith("Ask other methods: the table says why each of these failed.")


@pytest.mark.parametrize(
    "constant, random, expected",
    [(False, True, "a constant"), (True, False, "a random"), (False, False, "a constant")],
)
def test_the_null_that_is_not_beaten(constant, random, expected):
    assert words.unbeaten(table(("m", 0.4, "C", constant, random)).query("method == 'm'")) == expected
    both = table(("m", 0.4, "C", True, False), ("o", 0.4, "C", False, True)).query("kind == 'method'")
    assert words.unbeaten(both) == "a constant or a random"


def test_who_plays_all_coalitions_too_had_to_come_first():
    exact = ("kernel_shap", 2e-16, "A", True, True)
    text = words.summary(subject(), table(exact, GOOD), NOISE, set())
    assert "With so few features kernel_shap plays all coalitions, too: it is the Shapley values" in text
    assert "had to come first" not in words.summary(subject(exact=False), table(exact, GOOD), NOISE, set())
    assert "had to come first" not in words.summary(subject(), table(GOOD), NOISE, set())
