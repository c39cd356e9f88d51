"""The words on series over k, and the numbers in them."""

import numpy as np
import pandas as pd
import pytest

from forsooth.suites.bam.claims_series import claims_series, published_rhos


def fine(**rhos: float) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Methods by ρ, which is the same in all draws; the range is a tenth of it, but 1 for GC."""
    wide = {name: 1.0 if name == "grad_cam" else 0.1 * rho for name, rho in rhos.items()}
    table = pd.DataFrame({"method": list(rhos), "rho": rhos.values(), "range": wide.values()})
    table = table.assign(images=7, published=0.9, rho_low=table["rho"], rho_high=table["rho"])
    return table, pd.DataFrame({name: [rho] * 4 for name, rho in rhos.items()}), pd.DataFrame([wide] * 4)


def test_claims_on_series_by_hand():
    lines = claims_series(*fine(tcav=0.95, grad_cam=0.9, gradient=0.7, guided_backprop=0.5))
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


def test_claims_that_do_not_hold_or_are_open():
    table, rhos, wide = fine(grad_cam=0.6, gradient=0.7, guided_backprop=0.8)
    gc, tcav, scale, gb = claims_series(table, rhos, wide.assign(gradient=[0.05, 0.05, 0.9, 0.9]))[-4:]
    assert "(its rho less that of guided_backprop): does not hold. Ours -0.20" in gc
    assert tcav == "TCAV follows the drop best of all: inconclusive, it has no series over k."
    assert "inconclusive. Ours 0.08 [0.08, 0.90]" in scale
    assert "GB evolves minimally" in gb and "inconclusive" in gb  # below the gradient in half of the draws


@pytest.mark.parametrize(
    "low, high, result", [(0.8, 1.0, "agrees"), (0.1, 0.3, "differs"), (np.nan, np.nan, "inconclusive")]
)
def test_a_published_rho_lies_in_the_interval_or_not(low, high, result):
    table = pd.DataFrame({"rho": [0.5], "rho_low": [low], "rho_high": [high], "published": [0.9]}, index=["lrp"])
    draws = pd.DataFrame({"lrp": np.linspace(low, high, 200)})
    (line,) = published_rhos(table.assign(images=9), draws)
    assert line == f"rho of lrp: {result}. Ours 0.50 [{low:.2f}, {high:.2f}]; published 0.90."


def test_of_several_rhos_one_lies_outside_by_chance():
    """Two in 100 draws reach the published ρ: alone it differs, of four it is open."""
    draws = pd.Series([0.5] * 1960 + [0.95] * 40)
    line = {"rho": 0.5, "rho_low": 0.5, "rho_high": 0.5, "published": 0.9, "images": 9}
    alone = pd.DataFrame([line], index=["lrp"])
    assert "rho of lrp: differs." in next(published_rhos(alone, pd.DataFrame({"lrp": draws})))
    names = [f"m{k}" for k in range(4)]
    lines = published_rhos(pd.DataFrame([line] * 4, index=names), pd.DataFrame({name: draws for name in names}))
    assert all("(one of 4 claims, corrected by Holm): inconclusive." in line for line in lines)


def test_one_image_says_nothing_of_the_spread():
    table, rhos, wide = fine(tcav=0.95, grad_cam=0.9, gradient=0.7, guided_backprop=0.5)
    lines = claims_series(table.assign(images=[10, 1, 1, 1]), rhos, wide)[-4:]
    assert all("inconclusive" in line and "[nan, nan], n = 1" in line for line in lines)


def test_without_gc_there_is_no_scale_to_compare_with():
    lines = claims_series(*fine(gradient=0.7, guided_backprop=0.5))
    assert not [line for line in lines if "GB evolves" in line or "smaller scale" in line]
    assert "GC follows the drop best of all maps: inconclusive, it has no series over k." in lines


def test_flat_series_leave_all_open():
    table, rhos, wide = fine(grad_cam=np.nan, gradient=np.nan)
    lines = claims_series(table.assign(range=0.0), rhos, wide * 0)
    assert "inconclusive" in lines[-2] or "inconclusive" in lines[-1]
