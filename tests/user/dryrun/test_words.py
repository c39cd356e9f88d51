"""The answer in numbers worked out by hand, and in the words of the issue."""

import numpy as np
import pandas as pd
import pytest

from forsooth.records import UsageError
from forsooth.user.dryrun import result, words

METHODS = ("good", "poor", "blind", "edgy")
KINDS = {**dict.fromkeys(METHODS, "method"), "random": "null", "sobel": "null", "oracle": "oracle"}
N = 40


def shares(present: dict[str, float], absent: dict[str, float], artefact="watermark", er=0.09, accuracy=0.97, **more):
    """Rows of one artefact: alternately 3 points above and below the mean, so that it is exact."""
    shared = {"manipulation": artefact, "status": "ok", "message": "", "er": er, "p_star": 0.5}
    trained = {**shared, "metric": "accuracy", "method": "", "sample": -1, "value": accuracy, "presence": None, **more}
    rows = [trained]
    for presence, given, first in (("with", present, 0), ("without", absent, N)):
        for method, mean in {**given, "constant": er}.items():
            spread = 0.0 if method in ("oracle", "constant") else 0.03
            for k in range(N):
                value = mean + spread * (1 if k % 2 else -1)
                rows.append({**shared, "metric": "attr", "method": method, "presence": presence, "sample": first + k})
                rows[-1]["value"] = value
    return rows


PRESENT = {"good": 0.61, "poor": 0.3, "blind": 0.084, "edgy": 0.58, "random": 0.09, "sobel": 0.59, "oracle": 1.0}
ABSENT = {"good": 0.09, "poor": 0.3, "blind": 0.1, "edgy": 0.15, "random": 0.09, "sobel": 0.2, "oracle": 1.0}


def answered(rows, **more):
    frame = pd.DataFrame(rows)
    table = result.tabled(frame, KINDS)
    return table, words.summary(table, frame, ["300 images."], **{"visibility": 3, "own": True, **more})


def test_the_sentence_of_the_issue():
    table, said = answered(shares(PRESENT, ABSENT))
    good = table.set_index("method").loc["good"]
    error = 1.96 * 0.03 / N**0.5
    assert good[["present", "low", "high"]].tolist() == pytest.approx([0.61, 0.61 - error, 0.61 + error], abs=0.002)
    assert (
        "watermark: good puts 61 % [60, 62] of its attribution on the 9 % of the image where the artefact is; a random "
        "map puts 9 %. Absent artefact: 9 %, not clearly better than random."
    ) in said
    assert "watermark: poor puts 30 % [29, 31]" in said and "Absent artefact: 30 %, better than random." in said
    assert "edgy puts 58 % [57, 59]" in said and "But sobel, which never looks at the model, puts 59 % there." in said
    assert "Absent artefact: 15 %, not clearly better than sobel, which never looks at the model." in said
    assert "blind puts 8 % [7, 9]" in said and "That is not clearly better than random." in said
    assert "right on 97 % of the test images, and could expect 50 % without the artefact: it uses it." in said
    assert "40 images with it were explained, and 40 without." in said and "may rightly lie elsewhere" not in said


def test_findings_and_whom_to_trust():
    table, said = answered(shares(PRESENT, ABSENT))
    found = table.set_index("method")["finding"]
    assert found.to_dict() == {
        **{"good": "shows it", "poor": "a hint", "blind": "nothing", "edgy": "a hint"},
        **{"random": "", "sobel": "", "oracle": ""},
    }
    assert said.split("\n\n")[-1] == (
        "To show such an artefact (watermark) you may trust good. Take poor and edgy as a hint at most: much of what "
        "they mark lies elsewhere. Do not trust blind here: it is not clearly better than a random map."
    )


def test_few_images_condemn_no_method():
    rows = pd.DataFrame(shares(PRESENT, ABSENT))
    _, said = answered(rows[rows["sample"].lt(3) | rows["sample"].between(40, 42)])
    assert "Do not trust" in said and said.endswith("give more before you decide.")


def test_halfway_is_counted_from_the_size_of_the_region():
    """61 % of the attribution is much on 9 % of the image and little on 50 %."""
    wide = {name: max(value, 0.5) for name, value in PRESENT.items()} | {"sobel": 0.4}
    table, _ = answered(shares(wide, ABSENT, er=0.5))
    assert table.set_index("method").loc["good", "finding"] == "a hint"


def test_trust_for_some_artefacts_only():
    less = {**PRESENT, "good": 0.3}
    rows = shares(PRESENT, ABSENT) + shares(less, ABSENT, artefact="striped_hue")
    said = answered(rows)[1].split("\n\n")[-1]
    assert said.startswith("You may trust good for watermark only. Take poor and edgy as a hint at most")
    nothing = {**PRESENT, "good": 0.08, "poor": 0.08}
    said = answered(shares(PRESENT, ABSENT) + shares(nothing, ABSENT, artefact="striped_hue"))[1].split("\n\n")[-1]
    assert said.endswith("On striped_hue good and poor are not clearly better than random.")


def test_a_model_within_luck_and_what_to_do():
    rows = shares(PRESENT, ABSENT)[:1]
    rows[0] |= {"status": "below gate", "value": 0.57, "p_value": 0.2923}
    gone = {"metric": "attr", "presence": "with", "sample": -1, "value": np.nan, "status": "below gate", "message": "x"}
    rows += [{**rows[0], **gone, "method": method} for method in KINDS]
    table, said = answered(rows)
    assert table["present"].isna().all()
    assert (
        "watermark: the model is right on 57 % of the test images, and could expect 50 % without the artefact. Chance "
        "alone gets so far with a p-value of 0.29, which is too much. It need not use the artefact, so it was not "
        "explained. To change that, make the artefact more visible (visibility 4), give more images (images) or train "
        "longer."
    ) in said
    assert "visibility 2 to 4" in answered(rows, visibility=1)[1]
    last = answered(rows, visibility=4, own=False)[1]
    assert "visible" not in last and "or give a training of your own that goes on for longer (train)" in last
    assert "nothing can be said of the methods" in last


def test_a_weak_model_and_few_images_are_said():
    rows = [row for row in shares(PRESENT, ABSENT, accuracy=0.8) if row["sample"] < 0 or row["sample"] % N < 6]
    said = answered(rows)[1]
    assert (
        "a part of its attribution may rightly lie elsewhere" in said
        and "These are few: an interval from less than 15 images is rather too narrow." in said
    )


def test_images_without_a_map_count_as_nothing():
    rows = shares(PRESENT, ABSENT)
    for row in [r for r in rows if r["method"] == "good" and r["presence"] == "with"][: N // 2]:
        row |= {"status": "zero map", "value": np.nan}
    table, said = answered(rows)
    good = table.set_index("method").loc["good"]
    assert good["present"] == pytest.approx(0.305) and good["failed"] == 0.25
    assert "It gave no usable map for 25 % of the images, each counted as 0 %." in said


def test_the_artefact_in_no_test_image():
    rows = [row for row in shares(PRESENT, ABSENT) if row["presence"] != "without"]
    table, said = answered(rows)
    assert table["absent"].isna().all() and "Absent" not in said and "good puts 61 %" in said


def test_no_model_at_all_is_an_error():
    rows = pd.DataFrame([{"metric": "accuracy", "status": "error", "message": "mine:train raised ValueError: no"}])
    with pytest.raises(UsageError, match="`train` must give a model to explain, but mine:train raised ValueError: no"):
        result.demand_a_model(rows)


def test_one_image_proves_nothing():
    """There is no interval, and nobody is clearly better than a null."""
    rows = [row for row in shares(PRESENT, ABSENT) if row["sample"] < 0 or row["sample"] % N < 1]
    table, _ = answered(rows)
    good = table.set_index("method").loc["good"]
    assert good["unbeaten"] == "sobel, random" and good["finding"] == "nothing" and np.isnan(good["low"])
