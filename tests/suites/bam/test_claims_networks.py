"""The words on what networks need, and the numbers in them."""

import numpy as np
import pandas as pd
import pytest

from forsooth.stats import Interval
from forsooth.suites.bam import claims_networks as claims

TEN = {"f_o": 10, "f_s": 10}


def judged(classes: dict[str, int] = TEN, **shares: tuple[float, float, float]) -> list[str]:
    """Verdicts of figure 2 where all shares are as published but the named."""
    known = {
        ("f_o", "s", "accuracy"): shares.get("blind", (0.10, 0.09, 0.11)),
        **{(net, shown, "accuracy"): (0.9, 0.89, 0.91) for net in ("f_o", "f_s") for shown in ("os", "og")},
        ("f_s", "s", "accuracy"): shares.get("alone", (0.9, 0.89, 0.91)),
        ("f_s", "og", "accuracy"): shares.get("no_scene", (0.10, 0.09, 0.11)),
        ("f_s", "s", "confidence_rises"): shares.get("risen", (0.8, 0.78, 0.82)),
    }
    table = pd.DataFrame.from_dict(known, orient="index", columns=["value", "low", "high"]).assign(n=500)
    return claims.claims_networks(table.set_index(pd.MultiIndex.from_tuples(known)), classes)


def line_of(lines: list[str], beginning: str) -> str:
    (line,) = [line for line in lines if line.startswith(beginning)]
    return line


def test_as_published_all_holds():
    lines = judged()
    assert lines[0] == "f_o is at chance without objects: holds. Ours 0.10 [0.09, 0.11], n = 500; chance 0.10."
    assert lines[1].startswith("f_s is at chance without scenes: holds.")
    assert line_of(lines, "f_s is unharmed without objects: holds.").endswith("90.0% with both, 90.0% without.")
    assert line_of(lines, "f_o is unharmed without scenes: holds.") and len(lines) == 5


@pytest.mark.parametrize(
    "accuracy, result",
    [
        ((0.10, 0.08, 0.12), "holds"),
        ((0.15, 0.09, 0.19), "holds"),
        ((0.15, 0.09, 0.21), "inconclusive"),  # it may be twice chance
        ((0.15, 0.00, 0.90), "inconclusive"),
        ((0.19, 0.17, 0.21), "does not hold"),
        ((0.13, 0.11, 0.15), "does not hold"),  # above chance, though by little
        ((0.05, 0.02, 0.08), "does not hold"),
    ],
)
def test_chance_is_judged_by_the_interval(accuracy, result):
    assert f"without objects: {result}." in judged(blind=accuracy)[0]


def test_chance_follows_the_number_of_classes():
    lines = judged({"f_o": 2, "f_s": 5}, blind=(0.5, 0.4, 0.6), no_scene=(0.2, 0.1, 0.3))
    assert "holds." in lines[0] and lines[0].endswith("chance 0.50.")
    assert "holds." in lines[1] and lines[1].endswith("chance 0.20.")
    assert "does not hold" in judged({"f_o": 2, "f_s": 5})[0]


def test_a_network_that_is_harmed_denies_the_claim():
    harmed = line_of(judged(alone=(0.6, 0.58, 0.62)), "f_s is unharmed")
    assert "does not hold" in harmed and harmed.endswith("90.0% with both, 60.0% without.")
    assert "inconclusive" in line_of(judged(alone=(0.87, 0.84, 0.9)), "f_s is unharmed")


@pytest.mark.parametrize(
    "risen, words",
    [
        ((0.54, 0.51, 0.57), "differs. Ours 0.54 [0.51, 0.57], n = 500, more than half; published 0.80."),
        ((0.45, 0.42, 0.48), "differs. Ours 0.45 [0.42, 0.48], n = 500, not more than half; published 0.80."),
        ((0.80, 0.75, 0.85), "agrees. Ours 0.80 [0.75, 0.85], n = 500, more than half; published 0.80."),
        ((0.52, 0.45, 0.60), "differs. Ours 0.52 [0.45, 0.60], n = 500; published 0.80."),
        ((0.70, 0.10, 0.99), "inconclusive. Ours 0.70 [0.10, 0.99], n = 500; published 0.80."),
        ((0.70, np.nan, np.nan), "inconclusive. Ours 0.70 [nan, nan], n = 500; published 0.80."),
    ],
)
def test_a_share_is_worded_as_what_it_is(risen, words):
    claim = "Share of images of f_s that gain confidence without objects"
    assert claims.confidence(claim, Interval(*risen, 500), 0.8) == f"{claim}: {words}"


def test_the_published_share_stands_beside_ours():
    line = line_of(judged(risen=(0.54, 0.51, 0.57)), "Share of images of f_s")
    assert "differs. Ours 0.54 [0.51, 0.57], n = 500, more than half; published 0." in line
    assert not [line for line in judged() if "holds" in line and "confidence" in line]


def test_the_premise_by_hand():
    drops = pd.DataFrame({"k": [0.4, 0.2, 0.3, 0.1], "value": [0.0, 0.5, 0.6, 0.9]})
    (line,) = claims.claims_drop(drops)
    assert ": holds. Ours -0.80" in line and line.endswith("by k: 0.1: 90, 0.2: 50, 0.3: 60, 0.4: 0.")
    line, why = claims.claims_drop(drops.assign(value=[0.0, 0.5, 0.6, 0.1]))
    assert ": does not hold. Ours -0.20" in line and "cannot follow" in why


def test_two_k_have_no_order():
    drops = pd.DataFrame({"k": [0.1, 1.0], "value": [0.9, 0.0]})
    assert claims.claims_drop(drops) == ["Too few k to say whether the drop falls with k."]
