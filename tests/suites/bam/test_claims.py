"""The words of the BAM figures, and the numbers in them, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from forsooth.suites.bam import claims as bam_claims
from forsooth.suites.bam import figures as drawn
from forsooth.suites.bam import reproduce as bam_figures
from forsooth.suites.verdicts import Interval


def test_the_premise_by_hand():
    drops = pd.DataFrame({"k": [0.1, 0.2, 0.3, 0.4], "value": [0.9, 0.5, 0.6, 0.0]})
    (said,) = bam_claims.premise(drops)
    assert ": holds. Ours -0.80" in said
    said, why = bam_claims.premise(drops.assign(value=[0.1, 0.5, 0.6, 0.0]))
    assert ": does not hold. Ours -0.20" in said and "cannot follow" in why


def test_rho_by_hand():
    accuracy = np.array([[[1.0, 1.0, 1.0], [0.1, 0.5, 0.9]]])
    values = np.array([[[0.9, 0.5, 0.1], [0.7, 0.3, -0.1], [0.9, np.nan, 0.1]]])
    found = bam_figures.rho_interval(values, accuracy, n=1000)
    assert found.mean == pytest.approx(1.0, abs=0.02) and 0.9 < found.low <= found.high <= 1
    few = bam_figures.rho_interval(values, accuracy, n=3)
    assert few.mean == found.mean and few.low < found.low  # a drop over three images is mostly chance
    assert np.isnan(bam_figures.spread(pd.Series([0.5])))
    assert bam_figures.spread(pd.Series([0.5] * 8)) == 0


def test_the_interval_of_a_rate_is_wilsons():
    values = np.array([1.0] * 7 + [0.0] * 3)
    known = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert drawn._interval(values, rate=True) == pytest.approx((known.low, known.high), abs=1e-3)
    assert drawn._interval(values, rate=False) == pytest.approx((0.7 - 0.2994, 0.7 + 0.2994), abs=1e-3)
    series = pd.Series([0.9, 0.4, 0.1], index=[0.1, 0.5, 1.0])
    assert drawn.correlation(series, 2 * series) == pytest.approx(1) and np.isnan(drawn.correlation(series, 0 * series))


def rows_of(values: dict[str, list[float]], *, metric: str = "mcs", **more: object) -> pd.DataFrame:
    """One row per method and image of one training."""
    shared = {"metric": metric, "part": "samples", "mask": "object", "placing": "as_built", "model_seed": 0, **more}
    lines = [{**shared, "method": m, "sample": i, "value": v} for m, own in values.items() for i, v in enumerate(own)]
    sides = {"first": 0.5, "second": 0.5, "right_first": 1, "right_second": 1}
    return pd.DataFrame(lines).assign(status="ok", message="f_o: 1 of 1 layers", k=np.nan, failed=False, **sides)


MCS = {"grad_cam": [0.5, 0.7, 0.6], "gradient": [0.1, 0.3, 0.2], "smooth_grad": [0.2, 0.3, 0.1]}


def with_tcav(inputs: list[float], sets: list[float]) -> pd.DataFrame:
    parts = {"concepts": [sum(inputs) / len(inputs)], "concept_inputs": inputs, "concept_sets": sets}
    said = [rows_of({"tcav": own}, part=part) for part, own in parts.items()]
    return pd.concat([rows_of(MCS), *said], ignore_index=True)


def test_tcav_has_an_interval_and_a_lead():
    own = with_tcav([0.9, 0.9], [0.9, 0.9])
    table = bam_figures.bars(own, "mcs", own).set_index("method")
    assert table.loc["tcav", ["value", "low", "high", "images"]].tolist() == pytest.approx([0.9, 0.9, 0.9, 2])
    said, layers = [line for line in bam_claims.claims_mcs(table, own) if line.startswith("TCAV")]
    assert layers == "TCAV by layer, of which it is the mean. f_o: 1 of 1 layers."
    assert said.startswith("TCAV has the highest MCS (its lead over grad_cam): holds. Ours 0.30 [0.2")
    assert said.endswith("; tcav 0.90, grad_cam 0.60.")
    own = with_tcav([0.1, 0.1], [0.1, 0.1])
    table = bam_figures.bars(own, "mcs", own).set_index("method")
    assert any("TCAV has the highest" in line and "does not hold" in line for line in bam_claims.claims_mcs(table, own))
    alone = table.drop("tcav")
    assert any("no layer of one network passed" in line for line in bam_claims.claims_mcs(alone, rows_of(MCS)))


def test_an_image_of_two_trainings_counts_once():
    again = {name: [value + 0.2 for value in own] for name, own in MCS.items()}
    own = pd.concat([rows_of(MCS), rows_of(again, model_seed=1)], ignore_index=True)
    one, two = (bam_figures.bars(part, "mcs", part).set_index("method") for part in (rows_of(MCS), own))
    assert two["value"].tolist() == pytest.approx([value + 0.1 for value in one["value"]])
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.1**2 / 3 + 0.02 / 2)  # variances of three images and of two trainings
    assert two["images"].tolist() == [3] * 3
    assert (two["high"] - two["value"]).tolist() == pytest.approx([min(half, 1 - v) for v in two["value"]])
    lead = bam_claims.lead(own, "grad_cam", "gradient")
    assert lead == pytest.approx(Interval(0.4, 0.4, 0.4, 3))


def test_accuracies_are_counted_over_trainings():
    told = pd.DataFrame({"net": "f_o", "shown": ["s", "s", "os"], "k": [np.nan] * 3, "metric": "accuracy"})
    found = bam_figures.pooled(told.assign(value=[0.1, 0.3, 0.7], n=10.0))
    assert found["value"].tolist() == [0.2, 0.7] and found["n"].tolist() == [20, 10]


def premises(**shares: tuple[float, float, float]) -> list[str]:
    """Verdicts of figure 2 where all shares are as published but the named."""
    known = {
        ("f_o", "s", "accuracy"): shares.get("blind", (0.10, 0.09, 0.11)),
        **{(net, shown, "accuracy"): (0.9, 0.89, 0.91) for net in ("f_o", "f_s") for shown in ("os", "og")},
        ("f_s", "s", "accuracy"): (0.9, 0.89, 0.91),
        ("f_s", "og", "accuracy"): (0.10, 0.09, 0.11),
        ("f_s", "s", "confidence_rises"): shares.get("risen", (0.8, 0.78, 0.82)),
    }
    table = pd.DataFrame.from_dict(known, orient="index", columns=["value", "low", "high"]).assign(n=500)
    return bam_claims.premises(table.set_index(pd.MultiIndex.from_tuples(known)))


def test_chance_and_published_shares_must_lie_in_the_interval():
    assert "f_o is at chance without objects: holds. Ours 0.10 [0.09, 0.11], n = 500; chance 0.10." in premises()
    (twice,) = [line for line in premises(blind=(0.19, 0.17, 0.21)) if line.startswith("f_o is at chance")]
    assert "does not hold" in twice
    (vague,) = [line for line in premises(blind=(0.15, 0.0, 0.9)) if line.startswith("f_o is at chance")]
    assert "cannot be told" in vague
    (less,) = [line for line in premises(risen=(0.54, 0.51, 0.57)) if line.startswith("Share of images of f_s")]
    assert "differs. Ours 0.54 [0.51, 0.57], n = 500; published 0.80" in less or "published 0.79" in less


def test_maps_that_say_nothing_count_as_the_worst_and_are_told():
    own = rows_of({"grad_cam": [0.5, 0.7, np.nan], "gradient": [0.1, 0.3, 0.2]})
    own.loc[2, "status"] = "zero map"
    table = bam_figures.bars(bam_figures.taking_part(own, "mcs"), "mcs", own).set_index("method")
    assert table.loc["grad_cam", ["value", "value_defined", "failed"]].tolist() == pytest.approx([0.2 / 3, 0.6, 1 / 3])
    assert table.loc["gradient", ["value", "value_defined", "failed"]].tolist() == pytest.approx([0.2, 0.2, 0])


def test_nulls_have_no_part_in_robustness():
    values = {f"m{k}": [k + 0.1 * i for i in range(5)] for k in range(4)}
    still = {name: [0.0] * 5 for name in ("random", "constant", "sobel", "laplace", "absolute_input")}
    moved = {name: [-value for value in own] for name, own in values.items()}
    both = [rows_of(values | still), rows_of(moved | still, part="robustness", placing="centre")]
    own = pd.concat(both, ignore_index=True)
    (line,) = bam_claims.robust(bam_figures.bars(own, "mcs", own).set_index("method"), own)
    assert "Ours rho -1.00" in line


@pytest.mark.parametrize(
    "rho, said",
    [
        ((0.9, 0.6, 1.0), "holds"),
        ((0.9, 0.4, 1.0), "cannot be told"),
        ((0.6, 0.5, 0.7), "cannot be told"),
        ((0.1, -0.2, 0.4), "does not hold"),
        ((0.1, -0.2, 0.8), "cannot be told"),
        ((0.9, np.nan, np.nan), "cannot be told"),
    ],
)
def test_an_order_needs_its_interval(rho, said):
    line = bam_claims.order("Alike", Interval(*rho, 9), "; more")
    assert line.startswith(f"Alike: {said}. Ours rho {rho[0]:.2f} [") and line.endswith("n = 9; more.")


def test_robustness_has_an_interval():
    """The order is the same on every image, so that no draw changes it; and then it is reversed."""
    values = {f"m{k}": [k + 0.1 * i for i in range(5)] for k in range(4)}
    for sign, said in ((1, "holds. Ours rho 1.00 [1.00, 1.00], n = 5"), (-1, "does not hold. Ours rho -1.00 [-1.00")):
        moved = {name: [sign * value for value in own] for name, own in values.items()}
        own = pd.concat([rows_of(values), rows_of(moved, part="robustness", placing="centre")], ignore_index=True)
        (line,) = bam_claims.robust(bam_figures.bars(own, "mcs", own).set_index("method"), own)
        assert f"Robust with objects centre (order of methods): {said}" in line


def test_appendix_c_has_an_interval():
    methods = ("grad_cam", "gradient", "smooth_grad")
    rows = rows_of({name: [float(i < 4 * k) for i in range(9)] for k, name in enumerate(methods)}, metric="iir")
    rows = rows.assign(second=1.0, first=[1 + 0.5 * (2 - k) for k in range(3) for _ in range(9)])
    rows.loc[0, "second"] = 0.0  # nothing there before: its change is undefined
    table = bam_figures.bars(rows, "iir", rows).set_index("method")
    assert table["change"].tolist() == pytest.approx([1.0, 0.5, 0.0])
    (said,) = [line for line in bam_claims.claims_iir(table, rows) if line.startswith("Appendix C")]
    assert "holds. Ours rho 1.00 [" in said and said.endswith("n = 9, between the two over 3 methods.")


def fine(**rhos: float) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Methods by ρ, which is the same in all draws; the range is a tenth of it, but 1 for GC."""
    wide = {name: 1.0 if name == "grad_cam" else 0.1 * rho for name, rho in rhos.items()}
    table = pd.DataFrame({"method": list(rhos), "rho": rhos.values(), "range": wide.values()})
    table = table.assign(images=7, published=0.9, rho_low=table["rho"], rho_high=table["rho"])
    return table, pd.DataFrame({name: [rho] * 4 for name, rho in rhos.items()}), pd.DataFrame([wide] * 4)


def test_claims_on_series_by_hand():
    lines = bam_claims.claims_fine(*fine(tcav=0.95, grad_cam=0.9, gradient=0.7, guided_backprop=0.5))
    assert lines[-4:] == [
        "GC follows the drop best of all maps (its rho less that of gradient): holds. Ours 0.20 [0.20, 0.20], n = 7; "
        "GC 0.90, gradient 0.70.",
        "TCAV follows the drop best of all (its rho less that of grad_cam): holds. Ours 0.05 [0.05, 0.05], n = 7; "
        "TCAV 0.95, grad_cam 0.90.",
        "All maps but GC change at a much smaller scale (the widest range of theirs by that of GC: half or less): "
        "holds. Ours 0.07 [0.07, 0.07], n = 7; GC 1.00, the next gradient 0.07.",
        "GB evolves minimally (its range less the least of the others): holds. Ours -0.02 [-0.02, -0.02], n = 7; "
        "least of them gradient.",
    ]
    table, rhos, wide = fine(grad_cam=0.6, gradient=0.7, guided_backprop=0.8)
    gc, tcav, scale, gb = bam_claims.claims_fine(table, rhos, wide.assign(gradient=[0.05, 0.05, 0.9, 0.9]))[-4:]
    assert "(its rho less that of guided_backprop): does not hold. Ours -0.20" in gc and "no series over k" in tcav
    assert "cannot be told. Ours 0.08 [0.08, 0.90]" in scale and "cannot be told" not in gc
    assert "GB evolves minimally" in gb and "cannot be told" in gb  # below the gradient in half of the draws


@pytest.mark.parametrize("low, said, share", [(0.0, "holds", "100%"), (0.9, "does not hold", "0%")])
def test_ranks_have_intervals(low, said, share):
    """The gradient is the best in IDR and IIR on every image, and the last or the first in MCS."""
    rates = {"gradient": [1.0] * 6, "grad_cam": [0.0] * 6, "smooth_grad": [0.0] * 6}
    mcs = {"gradient": [low] * 6, "grad_cam": [0.5] * 6, "smooth_grad": [0.4] * 6}
    rows = pd.concat([rows_of(mcs), rows_of(rates, metric="idr"), rows_of(rates, metric="iir")], ignore_index=True)
    table = rows.groupby(["method", "metric"], as_index=False)["value"].mean()
    _, line = bam_claims.claims_summary(table, rows)
    rank = 3 if said == "holds" else 1
    assert f": {said}. Ours, ranks: mcs {rank} of 3 [{rank}, {rank}], idr 1 of 3 [1, 1], iir 1 of 3 [1, 1]" in line
    assert line.endswith(f"so in {share} of 2000 draws.")


def test_one_image_says_nothing_of_the_spread():
    mcs = {"gradient": [0.1], "grad_cam": [0.5], "smooth_grad": [0.4]}
    rows = pd.concat([rows_of(mcs, metric=name) for name in ("mcs", "idr", "iir")], ignore_index=True)
    table = rows.groupby(["method", "metric"], as_index=False)["value"].mean()
    _, line = bam_claims.claims_summary(table, rows)
    assert "cannot be told, too few images. Ours, ranks: mcs 3, idr 3, iir 3 of 3." in line
    table, rhos, wide = fine(tcav=0.95, grad_cam=0.9, gradient=0.7, guided_backprop=0.5)
    lines = bam_claims.claims_fine(table.assign(images=[10, 1, 1, 1]), rhos, wide)[-4:]
    assert all("cannot be told" in line and "[nan, nan], n = 1" in line for line in lines)


def test_the_first_line_says_over_what_intervals_are():
    shared = {"part": "training", "metric": "accuracy", "model": "resnet50"}
    rows = pd.DataFrame(
        [{**shared, "net": n, "value": v, "model_seed": s} for n, v, s in [("f_o", 0.4, 0), ("f_s", 0.6, 0)]]
    )
    assert "2 networks (resnet50), test accuracy: f_o 40%, f_s 60%. Intervals are over images of one" in (
        bam_figures.on_what(rows)
    )
    both = pd.concat([rows, rows.assign(model_seed=1, value=[0.6, 0.6])])
    said = bam_figures.on_what(both)
    assert "4 networks (resnet50), 2 trainings of each, mean test accuracy: f_o 50%, f_s 60%." in said
    assert "draws of images and trainings" in said
