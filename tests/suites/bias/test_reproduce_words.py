"""What a table of M_bias made again says in words."""

import numpy as np
import pandas as pd
import pytest

from forsooth.suites.bias import reproduce_words as words
from forsooth.suites.bias.reproduce_tables import settings_of

BESIDE = {"scored": 0.1, "failed": 0.0, "split": 0.1, "end": "top", "fraction": 0.1}
PIXELS = settings_of(3)
PATCHES = settings_of(10)


def a_table(names: list[str], ours: list[float], published: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"method": names, "ours": ours, "published": published}).assign(**BESIDE)


FOUR = a_table(["gradient", "grad_cam", "lrp", "deep_shap"], [0.14, 0.3, 0.2, 0.4], [0.01, 0.9, 0.02, 0.04])


def test_orders_of_methods_are_compared_row_by_row() -> None:
    table = pd.DataFrame(
        {
            "end": ["top"] * 4 + ["bottom"] * 4,
            "fraction": 0.1,
            "method": list("abcd") * 2,
            "ours": [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 9.0],
            "published": [10.0, 20.0, 30.0, 40.0, 4.0, 3.0, 2.0, np.nan],
        }
    )
    rho = words.orders(table).set_index("end")["rho"]
    assert rho["top"] == pytest.approx(1)
    assert rho["bottom"] == pytest.approx(-1)  # a method they did not test is left out


def test_numbers_are_compared_for_the_same_players_only() -> None:
    pixels = "\n".join(words.verdict(FOUR, "Table 3", PIXELS, 4, 0.1))
    assert "within a factor of 2" in pixels and "gradient 14.00" in pixels
    patches = "\n".join(words.verdict(FOUR, "Table 10", PATCHES, 4, 0.1))
    assert "factor of 2" not in patches and "Ours over published" not in patches
    assert "50,176 pixels, ours 256 patches" in patches
    assert "ρ by row: top-10% 1.00" in patches  # Grad-CAM, of other players, is no part of the order


def test_methods_that_were_not_published_have_no_verdict() -> None:
    table = pd.DataFrame({"end": ["top"], "fraction": 0.1, "method": "own", "ours": 1.0, "published": np.nan})
    assert words.orders(table).empty
    said = words.verdict(table, "Table 3", PIXELS, 1, 0.1)
    assert said == ["Table 3, lenet: none of these methods is in the published table."]


@pytest.mark.parametrize(
    ("published", "holds"),
    [
        ([1.0, 2.0, 3.0, 4.0], "holds. Spearman's ρ between the two orders has median 1.00"),
        ([2.0, 1.0, 4.0, 3.0], "holds in part. Spearman's ρ between the two orders has median 0.60"),
        ([4.0, 3.0, 2.0, 1.0], "does not hold. Spearman's ρ between the two orders has median -1.00"),
    ],
)
def test_the_median_of_the_orders_decides(published: list[float], holds: str) -> None:
    table = a_table(list("abcd"), [1.0, 2.0, 3.0, 4.0], published)
    (first, by_row) = words.on_order(table, "Table 3", PIXELS)
    assert f"the published order of methods in a row {holds}" in first
    assert by_row.startswith("ρ by row: top-10%")


def test_two_methods_have_no_order() -> None:
    (first, _) = words.on_order(a_table(["a", "b"], [1.0, 2.0], [1.0, 2.0]), "Table 3", PIXELS)
    assert "in a row is inconclusive" in first


def test_methods_of_which_too_much_is_open_are_left_out_once() -> None:
    (sentence,) = words.on_unsaid(FOUR, PIXELS)
    assert sentence.startswith("Without grad_cam and lime_superpixels") and "median ρ 1.00" in sentence
    assert words.on_unsaid(FOUR[FOUR["method"].ne("grad_cam")], PIXELS) == []
    assert words.on_unsaid(FOUR[FOUR["method"].eq("grad_cam")], PIXELS) == []


def test_maps_without_a_score_are_named() -> None:
    assert words.on_failures(FOUR) == []
    silent = FOUR.assign(failed=[0.0, 0.25, 0.0, 0.0], scored=[0.1, 0.9, 0.2, 0.4])
    (sentence,) = words.on_failures(silent)
    assert "grad_cam 25%. Left out: median ρ 1.00" in sentence and "gradient" not in sentence


def test_sizes_are_told_by_method() -> None:
    table = a_table(["a", "a", "b"], [2.0, 4.0, 1.0], [1.0, 1.0, 2.0])
    assert words.on_sizes(table, PIXELS) == "Ours over published, median by method: a 3.00, b 0.50."
    near = words.on_all_numbers(table, PIXELS)
    assert "67% of the numbers lie within a factor of 2" in near and "half of them within 100%" in near
    assert words.on_all_numbers(table, PATCHES) == ""


def test_the_setting_and_the_noise_are_told() -> None:
    table = a_table(["a"], [0.1], [0.1]).assign(split=0.11)
    said = words.on_setting(table, PIXELS, 7, 0.034)
    assert said.startswith("7 inputs, 1000 permutations, baseline mean, logits, colours of gradients by signed_max")
    assert "noise is 3.4%" in said and "moves by 10.0%" in said


def test_the_ends_of_the_scale_are_told() -> None:
    table = a_table(["shapley", "random", "random", "a"], [0.01, 0.2, 0.4, 9.0], [1.0] * 4)
    assert words.on_ends(table) == "Ends of the scale, mean over the ten rows: random 0.3000, shapley 0.0100."
    assert words.on_ends(table[table["method"].eq("a")]).endswith("not asked.")
