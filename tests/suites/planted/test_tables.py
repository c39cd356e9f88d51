"""Attr% of every model, its slopes and the Shapley range, by hand."""

import numpy as np
import pandas as pd
import pytest
from suites.planted.smallest import image_rows

from forsooth.suites.planted.tables import in_range, model_means, slopes


def test_a_map_that_says_nothing_counts_as_zero():
    shared = {"method": "grad_cam", "presence": "without"}
    answers = [(0.8, "ok", 0.4), (0.6, "ok", 0.4), (np.nan, "zero map", 0.4), (np.nan, "error", np.nan)]
    rows = [image_rows({"": [value]}, **shared, status=status, er=er) for value, status, er in answers]
    rows.append(image_rows({"": [np.nan]}, **shared, status="below gate", er=np.nan))
    models = model_means(pd.concat(rows))
    assert models[["value", "defined", "failed"]].to_numpy().tolist() == [pytest.approx([0.35, 0.7, 0.5])]
    assert models["er"].tolist() == [0.4]


def test_a_method_that_raised_on_all_images_has_the_region_of_the_others():
    fine = image_rows({"saliency": [0.5]})
    broken = image_rows({"mine": [np.nan]}, status="error", er=np.nan)
    models = model_means(pd.concat([fine, broken])).set_index("method")
    assert models.loc["mine", "value"] == 0 and models.loc["mine", "failed"] == 1
    assert models.loc["mine", "er"] == 0.4


def test_nulls_and_other_metrics_are_left_out():
    rows = [image_rows({"saliency": [0.5]}), image_rows({"random": [0.9]}, model="none")]
    rows.append(image_rows({"saliency": [0.1]}, metric="attr_non_informative"))
    assert model_means(pd.concat(rows))["value"].tolist() == [0.5]
    assert model_means(pd.concat(rows), "attr_non_informative")["value"].tolist() == [0.1]
    assert model_means(rows[1]).empty


def test_checkpoints_and_presences_have_means_of_their_own():
    steps = [image_rows({"saliency": [0.1, 0.2]}, epoch=k, accuracy=0.5 + k / 10) for k in range(3)]
    steps.append(image_rows({"saliency": [0.3, 0.4]}, epoch=0, accuracy=0.5, presence="without"))
    models = model_means(pd.concat([*steps, *steps]))  # two images of each
    assert len(models) == 8 and sorted(models["value"].unique()) == pytest.approx([0.1, 0.2, 0.3, 0.4])


def test_presences_of_one_model_are_no_repetition_of_it():
    steps = []
    for k in range(3):
        for presence in ("with", "without"):
            steps.append(image_rows({"saliency": [0.1 * k, 0.2 * k]}, level=k, presence=presence))
    assert slopes(model_means(pd.concat(steps)), "level") == pytest.approx([0.1, 0.2])


def test_one_point_has_no_slope():
    assert slopes(model_means(image_rows({"saliency": [0.5, 0.6]})), "level") == []


def test_the_share_in_the_shapley_range_by_hand():
    models = pd.concat([image_rows({"saliency": [1.0, 0.9]}, r=0.5), image_rows({"saliency": [0.7, 0.4]}, r=1.0)])
    share = in_range(models)
    assert (share.mean, share.n) == (0.5, 4)  # from 1 at r = 0.5, from 0.5 at r = 1
    assert in_range(models[:0]).n == 0
