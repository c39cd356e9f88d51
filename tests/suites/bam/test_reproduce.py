"""Published figures of BAM made again: a table, a verdict for every claim, and what cannot be judged."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from suites.bam.small import FEW, drop_rows, of, outcome_of, rows_of, series_rows, training_rows, verification_rows

from forsooth import api
from forsooth.records import Choice, Reproduction, UsageError
from forsooth.suites.bam import reproduce, settings
from forsooth.suites.bam.reproduce import REPRODUCTIONS

BY_NAME: dict[str, Reproduction] = {record.name: record for record in REPRODUCTIONS}
KS = (0.1, 0.5, 1.0)


def test_all_figures_are_there_at_two_scales():
    assert list(BY_NAME) == [f"bam/{name}" for name in ("figure-2", "figure-4", "figure-8", "figure-10", "figure-13",
                                                        "section-5")]  # fmt: skip
    for record in REPRODUCTIONS:
        assert record.settings.models == ("residual_small",) and len(record.settings.ks) == 10
        assert record.with_data.models == ("resnet50",) and record.with_data.methods == record.settings.methods
    assert BY_NAME["bam/figure-2"].settings.methods == ("constant",)
    assert BY_NAME["bam/section-5"].settings.methods == settings.PAPER.methods
    assert BY_NAME["bam/section-5"].with_data.trainings == 1  # as printed


def test_section_5_has_a_line_for_every_method_and_words_for_every_claim(judged):
    assert {"value", "low", "high", "sd", "random_mask", "at_centre", "t_0.1", "own_sets"} <= set(judged.table)
    assert set(judged.table["metric"]) == {"mcs", "idr", "iir"}
    bars = of(judged.table, metric="iir")
    np.testing.assert_allclose(bars["t_0.1"], bars["value"], atol=1e-4)  # IIR is its curve at t = 10 %
    for claim in (
        *("GC has the highest MCS", "TCAV has the highest MCS (its", "Smoothing improves", "gradient_x_input is more"),
        *("around 50 %", "draws attention", "Robust with objects centre", "complementary", "2 trainings of each"),
    ):
        assert claim in judged.words


def test_values_are_means_over_images_that_count_once(judged):
    rows = judged.outcome().rows
    own = of(rows, part="samples", method="gradient", metric="iir", status="ok")
    line = of(judged.table, metric="iir", method="gradient").iloc[0]
    assert line["value"] == pytest.approx(own.groupby("sample")["value"].mean().mean(), abs=1e-4)
    assert line["images"] == own["sample"].nunique() < len(own)
    tcav = judged.table.set_index("method").loc["tcav"]
    assert tcav["low"] <= tcav["value"] <= tcav["high"] and tcav["images"] == 15


@pytest.mark.parametrize("figure, metric", [("figure-4", "mcs"), ("figure-8", "idr"), ("figure-10", "iir")])
def test_a_figure_is_its_part_of_section_5(judged, figure, metric):
    part = BY_NAME[f"bam/{figure}"].judge(judged.outcome())
    whole = of(judged.table, metric=metric).reset_index(drop=True)
    pd.testing.assert_frame_equal(part.table, whole[list(part.table)], check_dtype=False)
    own = part.words.splitlines()
    assert own[0] == judged.words.splitlines()[0] and set(own) <= set(judged.words.splitlines())


def test_figure_2_has_our_shares_beside_the_published(judged):
    found = BY_NAME["bam/figure-2"].judge(judged.outcome())
    table = found.table
    assert len(table) == len(table[["net", "shown", "metric"]].drop_duplicates())
    assert set(table["metric"]) == {"accuracy", "confidence_rises", "drop"} and table["published"].notna().any()
    line = of(table, net="f_s", shown="os", metric="accuracy").iloc[0]
    rows = of(judged.outcome().rows, part="verification", net="f_s", shown="os", metric="accuracy")
    assert line["value"] == pytest.approx(100 * rows["value"].mean(), abs=0.06) and line["low"] < line["high"]
    assert "at chance without objects" in found.words and "Too few k" in found.words


def test_figure_13_follows_the_drop(judged):
    found = BY_NAME["bam/figure-13"].judge(judged.outcome())
    table = found.table.set_index("method")
    assert {"rho", "rho_low", "rho_high", "published", "k_0.1", "k_1", "range"} <= set(table)
    assert (table["k_1"].abs() < 1e-12).all() and table.loc["tcav", "images"] == 15
    assert "TCAV follows the drop best of all (its rho" in found.words and "GB evolves minimally" in found.words


def test_the_page_of_a_reproduction_has_its_words(judged):
    about = json.loads((judged.folder / "run.json").read_text())["reproduction"]
    assert about["name"] == "bam/section-5" and about["words"] == judged.words
    assert len(about["table"]) == len(judged.table) == len(pd.read_csv(judged.folder / "table.csv"))
    assert (judged.folder / "report.html").is_file() and (judged.folder / "verdict.md").read_text() == judged.words


def test_what_cannot_be_judged_is_said(tmp_path):
    changes = {**FEW, "gate": 0.999, "methods": ("gradient",)}
    with pytest.raises(UsageError, match=r"mcs: nothing to judge .*f_o, f_s below the gate"):
        api.reproduce("bam/section-5", settings=changes, out=tmp_path)


def test_one_metric_that_cannot_be_judged_leaves_the_others():
    lost = rows_of({"gradient": [np.nan]}, metric="mcs", part="scores").assign(
        status="below gate", message="f_o below the gate: not explained", sample=-1
    )
    idr = rows_of({"gradient": [1.0, 0.0, 1.0]}, metric="idr")
    rows = pd.concat([training_rows({"f_o": 0.2, "f_s": 0.6}), lost, idr], ignore_index=True)
    table, lines = reproduce.contrasts(rows, ("mcs", "idr"))
    assert set(table["metric"]) == {"idr"}
    assert "mcs: nothing to judge (f_o below the gate: not explained)." in lines


def test_chance_is_that_of_the_classes_of_the_users_scenes():
    facts = {"a": {"name": "f_o", "classes": 2}, "b": {"name": "f_s", "classes": 5}, "c": {"said": []}}
    assert reproduce.class_numbers(outcome_of(pd.DataFrame(), facts)) == {"f_o": 2, "f_s": 5}
    shares = {(net, shown, "accuracy"): 0.9 for net in ("f_o", "f_s") for shown in ("os", "s", "og")}
    rows = verification_rows(shares | {("f_o", "s", "accuracy"): 0.5, ("f_s", "og", "accuracy"): 0.2}, n=400)
    rows = pd.concat([rows, training_rows({"f_o": 0.9, "f_s": 0.9})], ignore_index=True)
    words = reproduce.judge_networks(outcome_of(rows, facts)).words
    assert "f_o is at chance without objects: holds. Ours 0.50 [0.45, 0.55], n = 400; chance 0.50." in words
    assert "f_s is at chance without scenes: holds. Ours 0.20 [0.16, 0.24], n = 400; chance 0.20." in words


def series_outcome(**by_method: dict[float, list[float]]) -> pd.DataFrame:
    drops = drop_rows(dict.fromkeys(KS, 1.0), {0.1: 0.3, 0.5: 0.6, 1.0: 1.0})
    return pd.concat([training_rows({"f_s_1": 0.9}), series_rows(by_method), drops], ignore_index=True)


def test_a_series_is_set_beside_the_published_rho():
    rows = series_outcome(grad_cam={0.1: [0.8, 0.6], 0.5: [0.5, 0.3], 1.0: [0.0, 0.0]}, lrp={k: [k, k] for k in KS})
    found = reproduce.judge_series(outcome_of(rows))
    table = found.table.set_index("method")
    assert table["published"].notna().to_dict() == {"grad_cam": True, "lrp": False}
    assert table["rho"].to_dict() == pytest.approx({"grad_cam": 1.0, "lrp": -1.0}, abs=0.01)
    assert "The accuracy drop falls as k grows (Spearman's rho <= -0.7): holds." in found.words


def test_too_few_k_are_refused():
    rows = series_outcome(grad_cam={0.1: [0.8, 0.6]})
    with pytest.raises(UsageError, match="fewer than 2 k have an image of the first class"):
        reproduce.judge_series(outcome_of(rows))


def test_the_first_line_says_over_what_intervals_are():
    rows = training_rows({"f_o": 0.4, "f_s": 0.6})
    line = reproduce.about(rows)
    assert line.startswith("2 networks (resnet50), test accuracy: f_o 40%, f_s 60%. Intervals are over images of one")
    both = pd.concat([rows, training_rows({"f_o": 0.6, "f_s": 0.6}, seed=1)])
    line = reproduce.about(both)
    assert line.startswith("4 networks (resnet50), 2 trainings of each, mean test accuracy: f_o 50%, f_s 60%.")
    assert "2000 draws of images and trainings" in line


@pytest.fixture
def photos(tmp_path):
    dice = np.random.default_rng(0)
    for kind, mode, names in (
        ("scenes", "RGB", ("sea", "wood", "hill", "town", "road")),
        ("objects", "RGBA", ("cat", "dog")),
    ):
        for k, name in enumerate(names):
            folder = tmp_path / "data" / kind / name
            folder.mkdir(parents=True)
            for i in range(12):
                image = dice.integers(0, 60, (20, 20, len(mode)), dtype=np.uint8) + np.uint8(40 * k)
                if mode == "RGBA":
                    image[..., 3] = 255 * (np.hypot(*np.mgrid[-1:1:20j, -1:1:20j]) < 0.9)
                Image.fromarray(image, mode=None).save(folder / f"{i}.png")
    return tmp_path / "data"


def test_scenes_and_objects_of_the_user(tmp_path, photos):
    changes = {**FEW, "ks": (0.2, 1.0), "scenes": None, "test": 2, "models": ("residual_small",), "recipe": "quick"}
    table, words = api.reproduce("bam/figure-2", settings=changes, data=photos, out=tmp_path / "out")
    assert set(table["net"]) == {"f_o", "f_s", "f_0", "f_s_0.2", "f_s_1"}
    assert words.count("chance 0.50.") == 1 and words.count("chance 0.20.") == 1
    run = json.loads((tmp_path / "out" / "bam-figure-2" / "run.json").read_text())
    assert any("common feature is the dog; the class that always has it is hill" in fact for fact in run["facts"])
    assert run["settings"]["trials"] == 2 and run["settings"]["pairing"] == "spread"


def test_a_k_that_cannot_be_with_the_users_classes_is_refused(photos, tmp_path):
    with pytest.raises(UsageError, match=r"`k` must lie in .* multiple of 1/5 with 5 scene classes, got 0.1"):
        api.run("bam", methods=["constant"], settings=FEW, data=photos, out=tmp_path / "run")


def test_plans_of_reproductions_share_their_trainings():
    keys = []
    for name in ("bam/figure-2", "bam/section-5"):
        record = BY_NAME[name]
        keys.append({task.key for task in record.plan(record.settings, Choice()).tasks if task.id == "bam.train"})
    assert keys[0] == keys[1] and len(keys[0]) == 26
