"""The tables that page and reproduction share, worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from suites.bam.small import MCS, drop_rows, rows_of, series_rows, verification_rows, with_tcav

from forsooth.stats.bootstrap import spread_over_trials
from forsooth.suites.bam import tables

KS = (0.1, 0.5, 1.0)


def contrast(rows: pd.DataFrame, metric: str = "mcs") -> pd.DataFrame:
    return tables.contrast_table(rows, metric).set_index("method")


def test_a_line_by_hand():
    table = contrast(rows_of(MCS))
    assert table["value"].tolist() == pytest.approx([0.6, 0.2, 0.2]) and table["images"].tolist() == [3, 3, 3]
    half = stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3)
    assert table.loc["grad_cam", ["low", "high"]].tolist() == pytest.approx([0.6 - half, 0.6 + half])
    assert table.loc["grad_cam", "sd"] == pytest.approx(spread_over_trials(MCS["grad_cam"]))
    assert table["random_mask"].isna().all()


def test_a_rate_of_one_training_is_wilsons():
    rows = rows_of({"gradient": [1.0] * 7 + [0.0] * 3}, metric="idr")
    known = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert contrast(rows, "idr").loc["gradient", ["low", "high"]].tolist() == pytest.approx([known.low, known.high])


def test_an_image_of_two_trainings_counts_once():
    again = {name: [value + 0.2 for value in own] for name, own in MCS.items()}
    both = pd.concat([rows_of(MCS), rows_of(again, model_seed=1)], ignore_index=True)
    one, two = contrast(rows_of(MCS)), contrast(both)
    assert two["value"].tolist() == pytest.approx([value + 0.1 for value in one["value"]])
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.1**2 / 3 + 0.02 / 2)  # variances of three images and of two trainings
    assert two["images"].tolist() == [3] * 3
    assert (two["high"] - two["value"]).tolist() == pytest.approx([min(half, 1 - v) for v in two["value"]])


def test_random_masks_and_other_places_have_columns():
    parts = [
        rows_of({"gradient": [0.4, 0.6]}),
        rows_of({"gradient": [0.1, 0.3]}, part="random", mask="random"),
        rows_of({"gradient": [0.9, 0.7]}, part="robustness", placing="centre"),
        rows_of({"gradient": [-0.9, -0.7]}, part="robustness", placing="centre", mask="random"),
    ]
    line = contrast(pd.concat(parts, ignore_index=True)).loc["gradient"]
    assert (line["value"], line["random_mask"], line["at_centre"]) == pytest.approx((0.5, 0.2, 0.8))


def test_maps_that_say_nothing_count_as_the_worst_and_are_counted():
    own = rows_of({"grad_cam": [0.5, 0.7, np.nan], "gradient": [0.1, 0.3, 0.2]}).drop(columns="failed")
    own.loc[2, "status"] = "zero map"
    table = contrast(own)
    assert table.loc["grad_cam", ["value", "value_defined", "failed"]].tolist() == pytest.approx([0.2 / 3, 0.6, 1 / 3])
    assert table.loc["gradient", ["value", "value_defined", "failed"]].tolist() == pytest.approx([0.2, 0.2, 0])


@pytest.mark.parametrize("status", ["no correct input", "no sample", "below gate"])
def test_who_was_not_asked_takes_no_part(status):
    own = rows_of({"grad_cam": [0.5, 0.7, np.nan]}).drop(columns="failed")
    own.loc[2, "status"] = status
    assert contrast(own).loc["grad_cam", ["value", "images"]].tolist() == pytest.approx([0.6, 2])


def test_tcav_has_an_interval_over_inputs_and_sets():
    line = contrast(with_tcav([0.2, 0.4, 0.6], [0.3, 0.5])).loc["tcav"]
    half = stats.t.ppf(0.975, 1) * np.sqrt(0.04 / 3 + 0.02 / 2)
    assert line[["value", "images"]].tolist() == pytest.approx([0.4, 3])
    assert line[["low", "high"]].tolist() == pytest.approx([max(0.4 - half, -1), min(0.4 + half, 1)])
    assert np.isnan(line["sd"]) and np.isnan(line["own_sets"])


def test_tcav_of_which_no_layer_passes_has_no_line():
    rows = with_tcav([0.2, 0.4], [0.3, 0.5])
    rows.loc[rows["part"].eq("concepts"), ["status", "value"]] = ["undefined", np.nan]
    assert "tcav" not in contrast(rows[~rows["part"].isin(["concept_inputs", "concept_sets"])]).index


def test_mcs_as_printed_has_a_set_for_each_network():
    rows = rows_of({"gradient": [0.1, 0.2, 0.3]})
    rows = rows.assign(first=[0.9, 0.8, 0.1], second=[0.5, 0.3, 0.2], right_first=[1, 1, 0], right_second=[0, 1, 1])
    assert contrast(rows).loc["gradient", "own_sets"] == pytest.approx(0.85 - 0.25)


def test_changes_by_a_patch_and_iir_over_thresholds():
    rows = rows_of({"gradient": [1.0, 0.0, 0.0, 0.0]}, metric="iir")
    rows = rows.assign(first=[1.05, 1.5, 0.5, 0.0], second=[1.0, 1.0, 0.0, 0.0])
    np.testing.assert_allclose(tables.relative_changes(rows), [0.05, 0.5, np.nan, np.nan])
    assert tables.iir_over_thresholds(rows, [0.01, 0.1, 0.6, 5.0]) == [0, 0.25, 0.5, 0.5]
    line = contrast(rows, "iir").loc["gradient"]
    assert line["change"] == pytest.approx(0.275) and line["t_0.1"] == line["value"] == 0.25 and line["t_1"] == 0.5


def test_iir_of_two_trainings_has_every_image_once():
    one = rows_of({"gradient": [1.0, 0.0]}, metric="iir").assign(first=[1.0, 2.0], second=1.0)
    two = rows_of({"gradient": [1.0]}, metric="iir", model_seed=1).assign(first=3.0, second=1.0)
    assert tables.iir_over_thresholds(pd.concat([one, two]), [0.5]) == [0.25]  # half of the first image of two


def test_accuracies_are_counted_over_trainings():
    shares = {("f_o", "s", "accuracy"): 0.1, ("f_o", "os", "accuracy"): 0.7}
    again = {("f_o", "s", "accuracy"): 0.3}
    rows = pd.concat([verification_rows(shares), verification_rows(again, seed=1)], ignore_index=True)
    table = tables.verification_table(rows).set_index("shown")
    assert table["value"].to_dict() == {"s": 0.2, "os": 0.7} and table["n"].to_dict() == {"s": 20, "os": 10}
    known = stats.binomtest(7, 10).proportion_ci(method="wilson")
    assert table.loc["os", ["low", "high"]].tolist() == pytest.approx([known.low, known.high])
    assert table.loc["s", "low"] == 0 and table.loc["s", "high"] == 1  # two trainings that disagree say little


def test_a_drop_has_no_interval_and_is_sorted_by_k():
    rows = drop_rows({1.0: 0.9, 0.1: 0.9}, {1.0: 0.8, 0.1: 0.2})
    table = tables.drop_table(rows)
    assert table["k"].tolist() == [0.1, 1.0] and table["value"].tolist() == pytest.approx([0.7, 0.1])
    assert table["low"].isna().all()
    assert tables.drop_table(rows[rows["metric"].eq("accuracy")]).empty


def test_accuracies_by_training_and_k():
    one = drop_rows(dict.fromkeys(KS, 0.9), {0.1: 0.2, 0.5: 0.4, 1.0: 0.8}, n=30)
    right = tables.accuracies(pd.concat([one, one.assign(model_seed=1, n=20)]))
    assert right.n == 20 and right.ks == list(KS) and right.values.shape == (2, 2, 3)
    assert right.at([1.0])[0].tolist() == [[0.9], [0.8]]


def small_series() -> pd.DataFrame:
    """One map that follows the drop, one that is flat, and one that has a single k."""
    fine = series_rows(
        {
            "grad_cam": {0.1: [0.8, 0.6], 0.5: [0.5, 0.3], 1.0: [0.0, 0.0]},
            "constant": {k: [0.0, 0.0] for k in KS},
            "gradient": {0.1: [0.4, 0.4]},
        }
    )
    return pd.concat([fine, drop_rows(dict.fromkeys(KS, 1.0), {0.1: 0.3, 0.5: 0.6, 1.0: 1.0})], ignore_index=True)


def test_series_by_hand():
    table = tables.series_table(small_series()).set_index("method")
    assert list(table.index) == ["grad_cam", "constant"]  # one k has no correlation
    assert table.loc["grad_cam", ["k_0.1", "k_0.5", "k_1"]].tolist() == pytest.approx([0.7, 0.4, 0.0])
    assert table.loc["grad_cam", "rho"] == pytest.approx(1.0) and table.loc["grad_cam", "rho_low"] > 0.9
    assert table.loc["grad_cam", ["range", "images", "ks"]].tolist() == pytest.approx([0.7, 2, 3])
    assert np.isnan(table.loc["constant", "rho"]) and table.loc["constant", "range"] == 0


def test_a_series_shows_the_share_of_maps_that_say_nothing_and_the_correlation_without_them():
    rows = small_series()
    assert tables.series_table(rows).set_index("method").loc["grad_cam", "failed"] == 0
    empty = rows["method"].eq("grad_cam") & rows["k"].eq(0.1) & rows["sample"].eq(0)
    rows = rows.assign(value=rows["value"].mask(empty), status=rows["status"].mask(empty, "zero map"))
    line = tables.series_table(rows.drop(columns="failed")).set_index("method").loc["grad_cam"]
    assert line["failed"] == pytest.approx(1 / 6)
    assert line["k_0.1"] == pytest.approx((0.6 - 1) / 2)  # the worst MCS is -1
    assert line["rho"] == pytest.approx(np.corrcoef([-0.2, 0.4, 0.0], [0.7, 0.4, 0.0])[0, 1])
    assert line["rho_defined"] == pytest.approx(np.corrcoef([0.6, 0.4, 0.0], [0.7, 0.4, 0.0])[0, 1])
    assert line["range_defined"] == pytest.approx(0.6) and line["range"] == pytest.approx(0.6)
    silent = tables.rows_over_k(rows.drop(columns="failed"), "grad_cam", [0.1]).assign(failed=True)
    line = tables.failures_over_k(silent, tables.accuracies(rows), trainings=[0])
    assert line["failed"] == 1 and np.isnan([line["rho_defined"], line["range_defined"]]).all()


def test_a_run_without_series_has_an_empty_table():
    assert tables.series_table(drop_rows({0.1: 0.9}, {0.1: 0.2}).assign(mask="object")).empty


def test_series_of_tcav_are_by_input_and_by_set():
    parts = [
        rows_of({"tcav": [value]}, part=part, k=k)
        for k, value in ((0.1, 0.8), (1.0, 0.2))
        for part in ("concepts", "concept_inputs", "concept_sets")
    ]
    rows = pd.concat(parts, ignore_index=True)
    own = tables.series(tables.rows_over_k(rows, "tcav", [0.1, 1.0]), trainings=[0])
    assert own.ks == [0.1, 1.0] and own.values.tolist() == [[[0.8, 0.2]]] and own.sets is not None
    assert own.sets.tolist() == [[[0.8, 0.2]]]


def test_draws_of_series_are_the_same_for_all():
    rows = small_series()
    double = rows[rows["method"].eq("grad_cam")].assign(method="gradient")
    double = double.assign(value=2 * double["value"])
    rows = pd.concat([rows[rows["method"].ne("gradient")], double], ignore_index=True)
    rhos, ranges = tables.draws_of_series(rows, ["grad_cam", "gradient"])
    np.testing.assert_allclose(rhos["grad_cam"], rhos["gradient"])
    np.testing.assert_allclose(2 * ranges["grad_cam"], ranges["gradient"])
