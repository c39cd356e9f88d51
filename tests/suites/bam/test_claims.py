"""The words on MCS, IDR and IIR, and the numbers in them, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from suites.bam.small import MCS, rows_of, with_tcav

from forsooth.stats.bootstrap import drawn
from forsooth.suites.bam import claims
from forsooth.suites.bam.settings import NULLS
from forsooth.suites.bam.tables import contrast_table
from forsooth.suites.verdicts import family


def judged(own: pd.DataFrame, metric: str = "mcs") -> list[str]:
    return claims.CLAIMS[metric](contrast_table(own, metric).set_index("method"), own)


def line_of(lines: list[str], beginning: str) -> str:
    (line,) = [line for line in lines if line.startswith(beginning)]
    return line


def test_a_lead_is_image_by_image():
    assert claims.lead(rows_of(MCS), "grad_cam", "gradient").interval == pytest.approx((0.4, 0.4, 0.4, 3))
    assert claims.lead(rows_of(MCS), "grad_cam", "lrp").n == 0


def test_a_lead_of_two_trainings_counts_an_image_once():
    again = {name: [value + 0.2 for value in own] for name, own in MCS.items()}
    own = pd.concat([rows_of(MCS), rows_of(again, model_seed=1)], ignore_index=True)
    assert claims.lead(own, "grad_cam", "gradient").interval == pytest.approx((0.4, 0.4, 0.4, 3))


def test_the_best_map_leads_the_next():
    lines = judged(rows_of(MCS))
    rival = line_of(lines, "GC has the highest MCS of all maps (its lead over")
    assert ": holds. Ours 0.40 [0." in rival
    assert "SG outperforms the rest (its lead over gradient): inconclusive." in " ".join(lines)
    assert line_of(lines, "Smoothing improves the gradient (SG less VG): inconclusive. Ours 0.00 [")


def test_a_map_that_was_not_asked_has_no_claim():
    lines = judged(rows_of({"gradient": [0.1, 0.2], "smooth_grad": [0.3, 0.5]}))
    assert not [line for line in lines if line.startswith("GC")]
    assert line_of(lines, "SG outperforms the rest (its lead over gradient)")
    assert claims.leads("x", "gradient", contrast_table(rows_of({"gradient": [0.1]}), "mcs"), rows_of(MCS)) == []


def test_tcav_has_an_interval_and_a_lead():
    lines = judged(with_tcav([0.9, 0.9], [0.9, 0.9]))
    assert line_of(lines, "TCAV by layer") == "TCAV by layer, of which it is the mean. f_o: 1 of 1 layers."
    lead = line_of(lines, "TCAV has the highest")
    assert lead.startswith("TCAV has the highest MCS (its lead over grad_cam): holds. Ours 0.30 [0.2")
    assert lead.endswith("; tcav 0.90, grad_cam 0.60.")
    assert "does not hold" in line_of(judged(with_tcav([0.1, 0.1], [0.1, 0.1])), "TCAV has the highest")


def test_tcav_without_a_layer_is_inconclusive():
    line = line_of(judged(rows_of(MCS)), "TCAV")
    assert line == "TCAV has the highest MCS: inconclusive, no layer of one network passed the test."
    assert np.isnan(claims.tcav_lead(rows_of(MCS), "grad_cam", 0.1).low)


@pytest.mark.parametrize(
    "rho, result",
    [
        ((0.9, 0.6, 1.0), "holds"),
        ((0.9, 0.4, 1.0), "inconclusive"),
        ((0.6, 0.5, 0.7), "inconclusive"),
        ((0.1, -0.2, 0.4), "does not hold"),
        ((0.1, -0.2, 0.8), "inconclusive"),
        ((0.9, np.nan, np.nan), "inconclusive"),
    ],
)
def test_an_order_needs_its_draws(rho, result):
    point, low, high = rho
    (line,) = claims.orders([claims.Order("Alike", drawn(point, np.linspace(low, high, 200), 9), "; more")])
    assert line.startswith(f"Alike: {result}. Ours rho {point:.2f} [") and line.endswith("n = 9; more.")


def test_placings_are_one_family():
    """Two in 100 draws of ρ say otherwise: alone that is sure, of five placings it is not."""
    rho = drawn(0.9, [0.9] * 1960 + [0.3] * 40, 9)
    (alone,) = claims.orders([claims.Order("Robust", rho, "")])
    assert alone.startswith("Robust: holds. Ours rho 0.90 [")
    many = claims.orders([claims.Order(f"Robust with {k}", rho, "") for k in range(5)])
    assert all("(one of 5 claims, corrected by Holm): inconclusive. Ours rho 0.90 [" in line for line in many)


def moved(sign: float, still: dict[str, list[float]]) -> list[str]:
    values = {f"m{k}": [k + 0.1 * i for i in range(5)] for k in range(4)}
    other = {name: [sign * value for value in own] for name, own in values.items()}
    parts = [rows_of(values | still), rows_of(other | still, part="robustness", placing="centre")]
    own = pd.concat(parts, ignore_index=True)
    return claims.robust(contrast_table(own, "mcs").set_index("method"), own)


@pytest.mark.parametrize(
    "sign, result", [(1, "holds. Ours rho 1.00 [1.00, 1.00], n = 5"), (-1, "does not hold. Ours rho -1.00 [-1.00")]
)
def test_robustness_has_an_interval(sign, result):
    """The order is the same on every image, so that no draw changes it; and then it is reversed."""
    (line,) = moved(sign, {})
    assert f"Robust with objects centre (order of methods): {result}" in line and "the score moves by" in line


def test_nulls_have_no_part_in_robustness():
    (line,) = moved(-1, {name: [0.0] * 5 for name in NULLS})
    assert "Ours rho -1.00" in line


def idr(values: dict[str, list[float]], chance: float) -> list[str]:
    random = {name: [chance] * 4 for name in values}
    parts = [rows_of(values, metric="idr"), rows_of(random, metric="idr", part="random", mask="random")]
    return judged(pd.concat(parts, ignore_index=True), "idr")


def test_claims_on_idr_by_hand():
    values = {"grad_cam": [1.0] * 4, "gradient": [1.0, 1.0, 1.0, 0.0], "lrp": [1.0] * 4, "smooth_grad": [0.0] * 4}
    lines = idr(values, 0.55)
    gc = line_of(lines, "grad_cam has a higher IDR than all others (its lead over smooth_grad)")
    assert "(one of 2 claims, corrected by Holm): holds. Ours 1.00" in gc
    assert "Ours 0.75" in line_of(lines, "gradient has a higher IDR")  # lrp is no map of the paper
    assert "holds. Ours 0.55 [0.55, 0.55], n = 3" in line_of(lines, "The baseline with random masks is around 50 %")
    assert line_of(lines, "smooth_grad: false positives") == "smooth_grad: false positives (1 - IDR) 100% [51%, 100%]."
    assert "does not hold" in line_of(idr(values, 0.9), "The baseline")


def iir(values: dict[str, list[float]]) -> list[str]:
    return judged(rows_of(values, metric="iir"), "iir")


def test_claims_on_iir_by_hand():
    values = {"gradient": [1.0] * 30, "smooth_grad": [0.0] * 30, "gradient_x_input": [0.0] * 30, "constant": [1.0] * 30}
    lines = iir(values)
    of = "(one of {} claims, corrected by Holm)"
    less = line_of(lines, "gradient draws attention to the patch in less than 80 %")
    assert f"{of.format(3)}: holds. Ours 0.00 [0.00, 0.11]" in less
    over = line_of(lines, "smooth_grad draws attention to the patch in over 80 %")
    assert f"{of.format(3)}: holds. Ours 1.00 [0.89, 1.00]" in over
    assert "holds. Ours 1.00" in line_of(lines, "gradient_x_input is more affected than the gradient")
    assert "inconclusive. Ours nan" in line_of(lines, "integrated_gradients is more affected")
    assert lines[-1] == "Maps that never look at the model: constant 1.00."


def test_eight_maps_that_are_drawn_to_the_patch_are_one_family():
    """88 of 100 images are surely more than 80 % alone (p = 0.02), and not for one of eight maps."""
    claim = "m0 draws attention to the patch in over 80 %"
    eight = rows_of({f"m{k}": [0.0] * 88 + [1.0] * 12 for k in range(8)}, metric="iir")
    claimed = [claims.drawn_to_patch(f"m{k}", eight) for k in range(8)]
    (alone,) = family(claimed[:1])
    assert alone.startswith(f"{claim}: holds. Ours 0.88 [0.80, 0.93], n = 100")
    assert all("(one of 8 claims, corrected by Holm): inconclusive. Ours 0.88" in line for line in family(claimed))


def test_a_map_that_is_not_drawn_to_the_patch_denies_the_claim():
    lines = iir({"gradient": [0.0] * 30, "smooth_grad": [1.0] * 30})
    assert "does not hold" in line_of(lines, "gradient draws attention to the patch in less than 80 %")
    assert "does not hold" in line_of(lines, "smooth_grad draws attention to the patch in over 80 %")


def test_appendix_c_has_an_interval():
    methods = ("grad_cam", "gradient", "smooth_grad")
    rows = rows_of({name: [float(i < 4 * k) for i in range(9)] for k, name in enumerate(methods)}, metric="iir")
    rows = rows.assign(second=1.0, first=[1 + 0.5 * (2 - k) for k in range(3) for _ in range(9)])
    rows.loc[0, "second"] = 0.0  # nothing there before: its change is undefined
    table = contrast_table(rows, "iir").set_index("method")
    assert table["change"].tolist() == pytest.approx([1.0, 0.5, 0.0])
    line = line_of(claims.claims_iir(table, rows), "Appendix C")
    assert "holds. Ours rho 1.00 [" in line and line.endswith("n = 9, between the two over 3 methods.")
    assert not [line for line in iir({"gradient": [1.0, 0.0]}) if line.startswith("Appendix C")]
