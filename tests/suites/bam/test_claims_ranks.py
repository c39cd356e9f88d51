"""Whether three metrics rank one method differently: ranks, draws of them, and words."""

import numpy as np
import pandas as pd
import pytest
from suites.bam.small import rows_of

from forsooth.stats.bootstrap import DRAWS
from forsooth.suites.bam.claims_ranks import claims_summary, complementary, rank_draws

RATES = {"gradient": [1.0] * 6, "grad_cam": [0.0] * 6, "smooth_grad": [0.0] * 6}


def rows_with(mcs: dict[str, list[float]]) -> pd.DataFrame:
    parts = [rows_of(mcs), rows_of(RATES, metric="idr"), rows_of(RATES, metric="iir")]
    return pd.concat(parts, ignore_index=True)


def means(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby(["method", "metric"], as_index=False)["value"].mean()


@pytest.mark.parametrize("low, result, share", [(0.0, "holds", "100%"), (0.9, "does not hold", "0%")])
def test_ranks_have_intervals(low, result, share):
    """The gradient is the best in IDR and IIR on every image, and the last or the first in MCS."""
    rows = rows_with({"gradient": [low] * 6, "grad_cam": [0.5] * 6, "smooth_grad": [0.4] * 6})
    _, line = claims_summary(means(rows), rows)
    rank = 3 if result == "holds" else 1
    assert f": {result}. Ours, ranks: mcs {rank} of 3 [{rank}, {rank}], idr 1 of 3 [1, 1], iir 1 of 3 [1, 1]" in line
    assert line.endswith(f"so in {share} of 2000 draws.")


def test_one_image_says_nothing_of_the_spread():
    mcs = {"gradient": [0.1], "grad_cam": [0.5], "smooth_grad": [0.4]}
    rows = pd.concat([rows_of(mcs, metric=name) for name in ("mcs", "idr", "iir")], ignore_index=True)
    _, line = claims_summary(means(rows), rows)
    assert "inconclusive, too few images. Ours, ranks: mcs 3, idr 3, iir 3 of 3." in line


def test_draws_between_are_open():
    draws = pd.DataFrame({"mcs": [3, 1] * 10, "idr": [1] * 20, "iir": [1] * 20})
    line = complementary({"mcs": 3, "idr": 1, "iir": 1}, draws, 4)
    assert ": inconclusive. Ours, ranks: mcs 3 of 4 [1, 3], idr 1 of 4 [1, 1]" in line and "so in 50% of" in line


def test_fewer_than_three_maps_have_no_summary():
    rows = rows_with({"gradient": [0.1] * 6, "grad_cam": [0.5] * 6})
    assert claims_summary(means(rows), rows) == ["Section 5, summary."]
    some = means(rows_with({"gradient": [0.1] * 6}))
    assert claims_summary(some[some["metric"].ne("iir")], rows) == ["Section 5, summary."]


def test_ranks_vary_with_the_images_that_are_drawn():
    mcs = {"gradient": [0.0] * 3 + [0.9] * 3, "grad_cam": [0.4] * 6, "smooth_grad": [0.1] * 6}
    ranks = rank_draws(rows_with(mcs), "gradient", list(mcs))
    assert set(ranks) == {"mcs", "idr", "iir"} and all(len(own) == DRAWS for own in ranks.values())
    assert set(np.unique(ranks["mcs"])) == {1.0, 2.0, 3.0} and (ranks["idr"] == 1).all()
