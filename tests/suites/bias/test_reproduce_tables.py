"""Tables 3 to 12: settings as published, means that count maps without a score, intervals over inputs and trainings."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forsooth
from forsooth import papers
from forsooth.records import Choice, Outcome, UsageError
from forsooth.stats import crossed_interval, mean_interval
from forsooth.suites.bias import reproduce_words
from forsooth.suites.bias.reproduce_tables import CIFAR, VOC, judge_table, published, settings_of
from forsooth.suites.bias.tables import means, rounded, score_rows

SHARED = {"end": "top", "fraction": 0.1, "player": "input", "error": 0.01, "status": "ok", "message": "", "noise": 0.2}
METRICS = ("m_bias", "m_bias_split")


def score_frame(values: dict[str, list[list[float]]], **changes: object) -> pd.DataFrame:
    """Rows of both metrics from method -> values by training and sample."""
    rows = []
    for method, trainings in values.items():
        for number, column in enumerate(trainings):
            for sample, value in enumerate(column):
                about = {**SHARED, "method": method, "model_seed": number, "sample": sample, "value": value, **changes}
                rows += [{**about, "metric": metric, "task": "bias.judge", "cell": "any"} for metric in METRICS]
    frame = pd.DataFrame(rows)
    frame.loc[frame["value"].isna(), "status"] = "zero map"
    return frame


def test_tables_of_photographs_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`data` must name a folder with CIFAR-10 to make Table 3 again"):
        forsooth.reproduce("bias/table-3", out=tmp_path)
    with pytest.raises(UsageError, match="`data` must name a folder with Pascal VOC 2012 to make Table 10 again"):
        forsooth.reproduce("bias/table-10", out=tmp_path)


def test_pixels_play_on_small_images_and_patches_on_large_ones() -> None:
    for number, net in {**CIFAR, **VOC}.items():
        settings = settings_of(number)
        assert settings.models == (net,) and settings.datasets == () and settings.trainings == 1
        assert (settings.grid, settings.side) == ((16, 224) if number in VOC else (None, 32))
    assert [settings_of(number).samples for number in (3, 4, 5, 12)] == [50, 50, 16, 16]
    assert [number for number in {**CIFAR, **VOC} if "shapley" in settings_of(number).methods] == [3]
    assert settings_of(3).permutations == 1000 and settings_of(8).permutations == 100


def test_a_map_of_zeros_counts_and_its_share_is_shown() -> None:
    """Grad-CAM scored on two of three images was scored on two; the third now has the worst value of its row."""
    frame = score_frame({"grad_cam": [[0.1, 0.2, np.nan]], "random": [[0.3, 0.5, 0.4]]}, player="units")
    other = score_frame({"gradient": [[9.0, 9.0, 9.0]]})  # another game, whose values say nothing here
    table = means(pd.concat([frame, other])).set_index("method")
    assert table.loc["grad_cam", "ours"] == pytest.approx((0.1 + 0.2 + 0.5) / 3)
    assert table.loc["grad_cam", "scored"] == pytest.approx(0.15)
    assert table.loc["grad_cam", "failed"] == pytest.approx(1 / 3) and table.loc["grad_cam", "inputs"] == 3
    assert table.loc["random", "failed"] == 0 and table.loc["random", "scored"] == table.loc["random", "ours"]


def test_one_training_has_students_interval_over_inputs() -> None:
    table = means(score_frame({"gradient": [[0.1, 0.2, 0.3, 0.4]]})).iloc[0]
    expected = mean_interval([0.1, 0.2, 0.3, 0.4], bounds=(0, np.inf))
    assert tuple(table[["ours", "low", "high"]]) == pytest.approx(expected[:3])
    assert table["sampling_error"] == pytest.approx(0.01 / 2) and table["split"] == pytest.approx(0.25)  # of four


def test_several_trainings_have_an_interval_over_both() -> None:
    table = means(score_frame({"gradient": [[0.1, 0.2, 0.3], [0.4, 0.3, 0.5]]})).iloc[0]
    expected = crossed_interval([0.25, 0.25, 0.4], [0.2, 0.4], bounds=(0, np.inf))
    assert tuple(table[["ours", "low", "high"]]) == pytest.approx(expected[:3])
    assert table["inputs"] == 6


def test_no_bias_lies_below_zero() -> None:
    table = means(score_frame({"gradient": [[0.0, 0.0, 0.9]]})).iloc[0]
    assert table["low"] == 0 and table["high"] > 0.9


def test_a_table_without_any_network_is_refused() -> None:
    rows = score_frame({"gradient": [[np.nan]]}).assign(status="below gate", message="the network is below its gate")
    with pytest.raises(UsageError, match=r"no network passed its gate.*below its gate"):
        score_rows(rows)


def test_rows_of_other_tasks_are_no_scores() -> None:
    rows = score_frame({"gradient": [[0.1]]})
    beside = rows.assign(task=None, part="training")
    assert len(score_rows(pd.concat([rows, beside]))) == len(rows)


def test_a_judgement_stands_beside_the_published_table() -> None:
    methods = {"gradient": [[0.1, 0.2]], "lrp_epsilon_1": [[0.2, 0.2]], "deep_shap": [[0.3, 0.3]], "own": [[0.1, 0.1]]}
    on_units = score_frame({"gradient": [[7.0, 7.0]], "grad_cam": [[0.5, 0.6]]}, player="units")
    rows = pd.concat([score_frame(methods), on_units])
    outcome = Outcome(rows=rows, facts={}, settings=settings_of(4), choice=Choice(data="any"))
    judgement = judge_table(outcome, number=4)
    table = judgement.table.set_index("method")
    assert table.loc["gradient", "ours"] == 0.15  # that on units is of another game
    assert table.loc["grad_cam", "ours"] == 0.55  # which is in the table on units alone
    printed = published(4).query("end == 'top' and fraction == 0.1").set_index("method")["published"]
    assert table.loc["deep_shap", "published"] == printed["deep_shap"]
    assert np.isnan(table.loc["own", "published"])
    assert judgement.words.startswith("Table 4, resnet20: the published order of methods in a row")
    assert "2 inputs, 1000 permutations" in judgement.words and "noise is 20.0%" in judgement.words


def test_a_printing_error_is_kept_as_printed_and_the_order_is_told_without_it_too() -> None:
    table = published(3)
    moved = table[table["published"].ne(table["corrected"])]
    assert moved[["end", "method", "published", "corrected"]].to_numpy().tolist() == [
        ["bottom", "integrated_gradients", 0.0716, 0.00716]
    ]
    assert "corrected" not in published(4) and "errata" not in papers.names()
    ours = table.assign(ours=table["corrected"], failed=0.0, scored=table["corrected"])
    (sentence,) = reproduce_words.on_errata(ours, settings_of(3))
    assert "integrated_gradients bottom-90% 0.0716 → 0.00716" in sentence
    assert "of these rows bottom-90% 1.00" in sentence
    assert reproduce_words.orders(ours)["rho"].min() < 1


def test_numbers_are_rounded_for_print() -> None:
    table = pd.DataFrame({"ours": [0.123456789], "failed": [0.33333], "inputs": [3]})
    assert rounded(table).iloc[0].tolist() == [0.12346, 0.333, 3]
