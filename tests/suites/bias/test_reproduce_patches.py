"""Patches against pixels: the rule of the root is kept, dropped or left open by its interval."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import forsooth
from forsooth.records import Choice, UsageError
from forsooth.stats.intervals import mean_estimate
from forsooth.suites.bias import reproduce_patches as patches
from forsooth.suites.bias.reproduce_tables import settings_of
from forsooth.suites.bias.settings import Settings


def scores_of(value: dict[str, list[float]], players: int) -> pd.DataFrame:
    shared = {"model": "lenet", "model_seed": 0, "player": "input", "end": "top", "fraction": 0.1, "status": "ok"}
    rows = [
        {**shared, "players": players, "metric": metric, "method": name, "sample": k, "value": v}
        for name, column in value.items()
        for metric in ("m_bias", "m_bias_split")
        for k, v in enumerate(column)
    ]
    return pd.DataFrame(rows)


PIXELS = scores_of({"gradient": [0.01, 0.02, 0.03, 0.04], "random": [0.01] * 4}, 1024)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([4.0, 4.1, 3.9, 4.0], "is kept"),
        ([2.0, 2.1, 1.9, 2.0], "is dropped"),
        ([2.0, 8.0, 4.0, 4.0], "is inconclusive"),
    ],
)
def test_the_rule_of_the_root_is_kept_or_dropped_by_its_interval(times: list[float], words: str) -> None:
    """1,024 pixels against 64 patches: a factor of 4 is expected."""
    larger = {"gradient": [t * v for t, v in zip(times, [0.01, 0.02, 0.03, 0.04], strict=True)], "random": [0.1] * 4}
    table = patches.ratios(scores_of(larger, 64), PIXELS)
    own = table.set_index("method").loc["gradient"]
    assert own["expected"] == 4 and own["ratio"] == pytest.approx(np.exp(np.log(times).mean()))
    assert own["images"] == 4 and own["ratio_split"] == pytest.approx(own["ratio"])
    verdict = "\n".join(patches.verdict(table, "CIFAR-10", settings_of(3)))
    assert f"the rule that M_bias has the size 1 / √N {words}" in verdict and "random (lenet) 2.50" in verdict


def test_one_method_that_fails_drops_the_rule() -> None:
    table = pd.DataFrame({"rule": ["holds", "fails"]})
    assert patches.decision(table).startswith("is dropped")
    assert patches.decision(table[:1]) == "is kept"


LUCKY = np.array([-0.1, 0.0, 0.1, 0.2, -0.2])
LUCKY = LUCKY - stats.t.isf(0.02, 4) * LUCKY.std(ddof=1) / 5**0.5 - np.log(patches.NEAR)  # below by a p of 0.02


def test_one_map_among_many_does_not_drop_the_rule_by_luck() -> None:
    """Alone a ratio whose p is 0.02 is outside of the factor; of eleven maps one is by chance."""
    alone = patches.rules_of([mean_estimate(LUCKY + np.log(4))], 4.0)
    assert alone == ["fails"]
    near = [mean_estimate(np.log(4) + 0.01 * np.arange(-2, 3)) for _ in range(10)]
    assert patches.rules_of([*near, mean_estimate(LUCKY + np.log(4))], 4.0) == [*["holds"] * 10, "is inconclusive"]


def test_maps_that_say_nothing_have_a_share_and_a_ratio_without_them() -> None:
    larger = scores_of({"gradient": [0.04, 0.08, np.nan, 0.16], "random": [0.04] * 4}, 64)
    larger["status"] = larger["status"].mask(larger["value"].isna(), "zero map")
    table = patches.ratios(larger, PIXELS)
    line = table.set_index("method").loc["gradient"]
    assert line["failed"] == 0.25 and line["ratio_defined"] == pytest.approx(4)
    worst = 0.16 / 0.03  # the worst that anyone has among the patches
    assert line["ratio"] == pytest.approx((4 * 4 * worst * 4) ** 0.25) and line["images"] == 4
    words = patches.verdict(table, "CIFAR-10", settings_of(3))
    assert words[-1] == (
        "Maps without a score count as the worst of their row: gradient (lenet) 25%, without them 1.00."
    )
    whole = patches.ratios(scores_of({"gradient": [0.04] * 4}, 64), PIXELS)
    assert whole["failed"].eq(0).all() and len(patches.verdict(whole, "x", settings_of(3))) == 3


def test_without_published_methods_there_is_no_rule() -> None:
    table = patches.ratios(scores_of({"random": [0.1] * 4}, 64), PIXELS)
    assert patches.verdict(table, "leaves", Settings()) == [
        "None of these methods is in the published tables, so there is no rule to judge."
    ]


def test_pixels_cannot_be_held_against_themselves() -> None:
    with pytest.raises(UsageError, match="`grid` must be a number of patches to hold against pixels, got None"):
        patches.plan_patches(Settings(grid=None), Choice())


@pytest.mark.usefixtures("one_epoch")
def test_patches_and_pixels_are_of_the_same_images(shelf: Path) -> None:
    few = {"samples": 2, "permutations": 1, "methods": ("gradient", "constant")}
    table, words = forsooth.reproduce("bias/patches-against-pixels", out=shelf, settings=few)
    assert set(table["method"]) == {"gradient", "constant"} and table["images"].eq(2).all()
    assert table["expected"].eq(4).all() and "64 patches against 1,024 pixels" in words
