"""The BAM suite from words to rows at the smallest scale: the ends of the scale, X_corr, what is drawn and judged."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from forsooth import api, papers, records
from forsooth.attributions import METHODS as CATALOGUE
from forsooth.records import Choice, Task, UsageError
from forsooth.scores.contrast import g_c
from forsooth.store import Store
from forsooth.suites.bam import contrasts
from forsooth.suites.bam import data as worlds
from forsooth.suites.bam import plan as bam
from forsooth.suites.bam import settings as bam_presets
from forsooth.suites.bam import tasks as relative

METHODS = ("gradient", "deep_lift", "grad_cam", "random", "constant", "absolute_input", "own_methods:raises")
TINY = {
    **{"side": 32, "scenes": 60, "cutouts": 40, "train": 4, "val": 1, "test": 2, "epochs": 6, "gate": 0.0},
    **{"fine_train": 25, "fine_val": 3, "fine_test": 15, "samples": 60, "few": 10, "fine": 15, "robust": 10},
    **{"placings": ("as_built", "centre"), "trials": 5, "ks": (0.1, 1.0), "examples": 10, "sets": 3},
    "trainings": 1,
}
FEW = {**TINY, "train": 1, "test": 1, "epochs": 1, "fine_train": 5, "fine_test": 4, "samples": 6, "scenes": 20}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> api.Run:
    return api.run("bam", methods=METHODS, settings=TINY, out=tmp_path_factory.mktemp("bam") / "run")


@pytest.fixture(scope="module")
def rows(run) -> pd.DataFrame:
    return run.rows


def of(rows: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    for column, value in wanted.items():
        rows = rows[rows[column].eq(value)]
    assert len(rows)
    return rows


def tasks(settings: dict[str, object]) -> dict[str, Task]:
    return {task.name: task for task in bam.plan(dataclasses.replace(bam.QUICK, **settings), Choice()).tasks}


def test_every_part_has_its_rows(rows):
    parts = {"training", "verification", "patches", "concepts", "samples", "random", "robustness", "fine", "scores"}
    parts |= {"promises"}
    assert set(rows["part"]) - {"concept_inputs", "concept_sets"} == parts
    samples = of(rows, part="samples", method="gradient")
    assert samples.groupby("metric").size().to_dict() == {"mcs": 60, "idr": 60, "iir": 60}
    assert {"ok", "no sample"} == set(samples["status"])
    assert of(rows, part="scores", method="gradient").groupby("metric").size().eq(5).all()
    assert set(of(rows, part="robustness")["placing"]) == {"centre"}
    assert set(of(rows, part="fine")["k"]) == {0.1, 1.0}


def test_what_is_not_in_x_corr_is_a_row_with_its_reason(rows):
    lost = of(rows, part="samples", method="gradient", status="no sample")
    own = lost[lost["metric"].ne("iir")]
    assert (own["right_first"] * own["right_second"]).eq(0).all()
    assert own["message"].str.startswith("wrong class: f_").all()


def test_a_constant_map_has_mcs_0_idr_0_and_iir_1(rows):
    own = rows[rows["method"].eq("constant") & rows["status"].eq("ok")]
    ends = own.groupby("metric")["value"].agg(["min", "max"])
    assert ends.loc["mcs"].tolist() == [0, 0] and ends.loc["idr"].tolist() == [0, 0]
    assert ends.loc["iir"].tolist() == [1, 1]


def test_maps_that_never_look_at_the_model_have_no_contrast(rows):
    """The input's own size is the same for both models; random maps differ by chance only."""
    still = rows[rows["method"].eq("absolute_input") & rows["metric"].eq("mcs") & rows["status"].eq("ok")]
    assert (still["value"] == 0).all()
    noise = rows[rows["method"].eq("random") & rows["metric"].eq("mcs") & rows["status"].eq("ok")]["value"]
    assert 0 < noise.abs().max() < 0.2 and abs(noise.mean()) < 0.05


def test_a_model_against_itself_has_mcs_0(rows):
    same = of(rows, part="fine", k=1.0, status="ok")
    assert (same["value"] == 0).all()


def test_values_are_those_of_g_c(rows):
    mcs = rows[rows["metric"].eq("mcs") & rows["status"].eq("ok") & rows["sample"].ge(0) & rows["part"].ne("scores")]
    np.testing.assert_allclose(mcs["value"], mcs["first"] - mcs["second"], atol=1e-12)
    idr = of(rows, metric="idr", part="samples", status="ok")
    assert (idr["value"].eq(1) == (idr["first"] < idr["second"])).all()
    iir = of(rows, metric="iir", part="samples", status="ok")
    assert (iir["value"].eq(1) == ((iir["first"] - iir["second"]).abs() < 0.1 * iir["second"])).all()


def test_trials_are_means_without_common_images(rows):
    own = of(rows, part="samples", method="gradient", metric="idr").reset_index(drop=True)
    trial = of(rows, part="scores", method="gradient", metric="idr", sample=2)["value"].item()
    kept = own.iloc[2::5]
    assert trial == pytest.approx(kept[kept["status"].eq("ok")]["value"].mean())


def test_a_map_that_says_nothing_counts_as_the_worst_in_its_trial():
    shared = {"metric": "mcs", "message": ""}
    made = [
        {**shared, "value": v, "status": s, "sample": k}
        for k, (v, s) in enumerate([(0.5, "ok"), (np.nan, "zero map"), (np.nan, "no sample"), (np.nan, "zero map")])
    ]
    one, two = contrasts.grouped(made, 2)
    assert one["value"] == 0.5 and two["value"] == -1 and two["status"] == "zero map"
    assert contrasts.grouped(made, 1)[0]["value"] == pytest.approx((0.5 - 1 - 1) / 3)


def test_patches_leave_the_outputs_and_stay_in_their_mask(run):
    store, task = Store(run.folder / "store"), tasks(TINY)["functionless patches"]
    done = store.read(task.key)
    seen = worlds.images(task.arguments["world"], task.arguments["sizes"], 1.0, count=60)
    outside = ~seen.mask[:, None].expand_as(seen.s)
    assert torch.equal(done.tensors["x"][outside], seen.s[outside])
    assert done.tensors["x"].min() >= 0 and done.tensors["x"].max() <= 1
    assert done.facts["found"] >= 0.95


def test_verification_is_part_of_every_run(rows):
    told = of(rows, part="verification").set_index(["net", "shown", "metric"])["value"]
    for shown in ("os", "s", "og"):
        assert 0 <= told["f_o", shown, "accuracy"] <= 1
    assert told["f_s", "s", "accuracy"] > told["f_s", "og", "accuracy"]  # the scene is what f_s reads
    assert told["f_s_0.1", "s", "drop"] == pytest.approx(
        told["f_s_0.1", "os", "accuracy"] - told["f_s_0.1", "s", "accuracy"]
    )
    assert ("f_s", "s", "confidence_rises") in told.index and ("f_o", "og", "unfamiliar") in told.index


def test_strange_sets_are_named():
    row = {"metric": "unfamiliar", "net": "f_s", "shown": "og", "value": 0.4}
    (said,) = relative.warned([row, {**row, "value": 0.05}])
    assert said.startswith("Out of distribution") and "f_s on X_og (40%)" in said
    assert relative.warned([{**row, "value": 0.1}]) == []


def test_the_page_shows_the_exhibits(run):
    figures = {file.stem for file in (run.folder / "figures").glob("*.svg")}
    wanted = {"bam_verification", "bam_contrasts", "bam_series", "bam_patches", "examples_residual_small"}
    assert figures >= {*wanted, "leaderboard"}
    assert "common feature is the disc" in (run.folder / "report.html").read_text()


def test_leaderboards_rank_trials(run):
    for metric in ("mcs", "idr", "iir"):
        board = run.leaderboard(metric).set_index("method")
        assert set(board.index) == set(METHODS)
        assert board.loc["own_methods:raises", "failed"] == 1
    assert board.loc["constant", "score"] == 1


def test_tcav_has_a_contrast_or_says_why_not(rows):
    own = of(rows, part="concepts", method="tcav")
    assert set(own["comparison"]) == {"f_o/f_s", "f_s_0.1/f_s_1", "f_s_1/f_s_1"} and set(own["mask"]) == {
        "object",
        "random",
    }
    by_layer = r"f_o: \d of 4 layers pass p <= 0.01 \(\[?layer1 [01]\.\d\d.*linear [01]\.\d\d\]?\); f_s: "
    assert own[own["k"].isna()]["message"].str.match(by_layer).all() and len(own[own["k"].isna()])
    assert own["message"].str.contains("layers pass p <= 0.01").all()
    known = own[own["status"].eq("ok")]
    np.testing.assert_allclose(known["value"], known["first"] - known["second"], atol=1e-12)


def test_tcav_by_input_and_by_set_has_the_mean_of_its_score(run):
    task, store = tasks(TINY)["TCAV"], Store(run.folder / "store")
    cells = [store.read(key) for key in task.needs[:2]]  # f_o and f_s
    asked = {**task.arguments, "ask": {**task.arguments["ask"], "level": 1.0}}
    rows = of(pd.DataFrame(relative.ask_tcav(*cells, **asked).rows), mask="object")
    score = of(rows, part="concepts")[["first", "second", "value"]].iloc[0]
    inputs, sets = (of(rows, part=part) for part in ("concept_inputs", "concept_sets"))
    for part in (inputs, sets):
        np.testing.assert_allclose(part[["first", "second", "value"]].mean(), score, atol=1e-12)
    seen = worlds.images(task.arguments["world"], task.arguments["sizes"], 1.0, count=15)
    assert inputs["sample"].tolist() == seen.rows.tolist() and sets["sample"].tolist() == [0, 1, 2]


def test_without_a_layer_that_passes_tcav_has_no_rows_by_input():
    one, two = (relative.Asked(score, 0.5, [], [], [3, 4], "0 of 5") for score in (0.9, float("nan")))
    cells = [records.Cell(facts={"name": name, "net": {"k": None}}) for name in ("f_o", "f_s")]
    rows = relative._contrasts(cells, {"f_o": one, "f_s": two}, {})
    assert [(row["part"], row["mask"], row["status"]) for row in rows] == [
        ("concepts", "object", "undefined"),
        ("concepts", "random", "ok"),
    ]


def test_two_trainings_are_drawn_and_judged_together(tmp_path):
    methods = ("gradient", "grad_cam", "guided_backprop")
    settings = {**TINY, "trainings": 2, "epochs": 4, "samples": 30, "level": 1.0, "methods": methods}
    settings |= {"placings": ("as_built",), "sets": 2, "fine_train": 10}
    run = api.run("bam", methods=methods, settings=settings, out=tmp_path / "run")
    assert set(run.rows["model_seed"]) == {0, 1}
    assert {file.stem for file in (run.folder / "figures").glob("*.svg")} >= {"bam_verification", "bam_contrasts"}
    table, words = api.reproduce("bam/section-5", settings=settings, out=run.folder)
    assert "2 trainings of each" in words and "of 2000 draws" in words and "TCAV has the highest MCS (its" in words
    tcav = table.set_index("method").loc["tcav"]
    assert tcav["low"] <= tcav["value"] <= tcav["high"] and tcav["images"] == 15
    own = of(run.rows, part="samples", method="gradient", metric="iir", status="ok")
    line = of(table, metric="iir", method="gradient").iloc[0]
    assert line["value"] == pytest.approx(own.groupby("sample")["value"].mean().mean(), abs=1e-4)
    assert line["images"] == own["sample"].nunique() < len(own)
    table, words = api.reproduce("bam/figure-13", settings=settings, out=run.folder)
    assert (
        "TCAV follows the drop best of all (its rho" in words and table.set_index("method").loc["tcav", "images"] == 15
    )
    table, _ = api.reproduce("bam/figure-2", settings=settings, out=run.folder)
    assert len(table) == len(table[["net", "shown", "metric"]].drop_duplicates())


def test_a_model_below_its_gate_is_not_explained(tmp_path):
    run = api.run("bam", methods=["gradient", "constant"], settings={**FEW, "gate": 0.999}, out=tmp_path / "run")
    assert set(of(run.rows, part="training")["status"]) == {"below gate"}
    told = of(run.rows, part="training").set_index("net")["message"]
    assert "same_objects" in told["f_o"] and "same_objects" not in told["f_s"]
    scores = of(run.rows, part="scores")
    assert set(scores["status"]) == {"below gate"} and (tmp_path / "run" / "report.html").is_file()


def test_only_what_needs_a_failed_network_is_left_out(run):
    task, store = tasks(TINY)["explain: gradient"], Store(run.folder / "store")
    cells = [store.read(key) for key in task.needs]
    failed = [dataclasses.replace(c, facts=c.facts | {"passed": c.facts.get("name") != "f_o"}) for c in cells]
    left, whole = (contrasts.explain_network(*given, **task.arguments).rows for given in (failed, cells))
    (lost,) = [row for row in left if row["metric"] == "mcs" and row["k"] is None]
    assert lost["status"] == "below gate" and "f_o" in lost["message"]
    others = [row for row in whole if row["metric"] != "mcs" or row["k"] is not None]
    assert [row for row in left if row is not lost] == others


def test_a_figure_says_what_cannot_be_judged(tmp_path):
    with pytest.raises(UsageError, match=r"mcs: nothing to judge .*f_o, f_s below the gate"):
        api.reproduce("bam/section-5", settings={**FEW, "gate": 0.999, "methods": ("gradient",)}, out=tmp_path)


def test_weights_of_the_user_are_taken_and_not_trained(tmp_path, run):
    task = tasks(TINY)["train f_s_0.1, residual_small"]
    trained = Store(run.folder / "store").read(task.key)
    save_file(dict(trained.tensors), tmp_path / "f_s_0.1.safetensors")
    again = tasks({**TINY, "weights": str(tmp_path)})
    assert again["train f_o, residual_small"].key == tasks(TINY)["train f_o, residual_small"].key
    cell = relative.train_network(**again["train f_s_0.1, residual_small"].arguments)
    assert cell.facts["accuracy"] == trained.facts["accuracy"] and "epochs" not in cell.facts


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
    settings = {**FEW, "ks": (0.2, 1.0), "scenes": None, "test": 2}
    run = api.run("bam", methods=["constant"], settings=settings, data=photos, out=tmp_path / "run")
    assert set(of(run.rows, part="training")["net"]) == {"f_o", "f_s", "f_0", "f_s_0.2", "f_s_1"}
    facts = json.loads((run.folder / "run.json").read_text())["facts"]
    assert any("common feature is the dog; the class that always has it is hill" in fact for fact in facts)


@pytest.mark.parametrize(
    "words, message",
    [
        ({"only": {"size": "8"}}, "`only` must be a known name, got 'size'"),
        ({"settings": {"ks": "0.1,0.5"}}, "`ks` must hold 1.0"),
        ({"settings": {"models": "resnet51"}}, "did you mean resnet"),
        ({"settings": {"placings": "as_built,middle"}}, "`placings` must be a known name, got 'middle'"),
        ({"settings": {"placings": "centre"}}, "`placings` must hold as_built"),
        ({"settings": {"samples": 0}}, "`samples` must be at least 1, got 0"),
        ({"settings": {"sets": 1}}, "`sets` must be at least 2, got 1"),
        ({"settings": {"feature": "dinosaur"}}, "`feature` must be a known name, got 'dinosaur'"),
        ({"settings": {"metrics": "mcs,ird"}}, "`metrics` must be a known name, got 'ird'"),
        ({"methods": ["gradiant"]}, "did you mean gradient"),
        ({"data": "nowhere"}, "`data` must be a folder with scenes in scenes or"),
    ],
)
def test_bad_words_are_answered_before_any_work(tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        api.run("bam", out=tmp_path / "run", **words)
    assert not list(tmp_path.glob("run/store/cells/*/*"))


def test_a_class_without_images_and_a_k_that_cannot_be(tmp_path, photos):
    with pytest.raises(UsageError, match=r"`k` must lie in .* multiple of 1/5 with 5 scene classes, got 0.1"):
        api.run("bam", methods=["constant"], settings=FEW, data=photos, out=tmp_path / "run")


def test_presets_say_what_the_paper_and_the_code_do():
    null = {method.name for method in CATALOGUE if method.null}
    assert len(set(bam.QUICK.methods) - null) >= 9 and set(bam_presets.NULLS) <= set(bam.QUICK.methods)
    assert len(bam.PAPER.ks) == 10 and bam.PAPER.models == ("resnet50",)
    released = bam.RELEASED_SETTINGS
    assert released.lowest == "minimum" and released.zero == "failure" and released.sets == 2
    assert "smooth_grad_squared" in released.methods and "smooth_grad" not in released.methods
    assert set(papers.table("bam_figure_13")["method"]) == {*bam_presets.PUBLISHED, "tcav"}


def test_artefacts_have_a_table_and_a_verdict_for_every_claim(tmp_path, run):
    few = {**TINY, "methods": (*METHODS[:4], "smooth_grad", "guided_backprop")}
    shared = {"settings": few, "out": run.folder}
    table, words = api.reproduce("bam/figure-2", **shared)
    assert {"value", "published"} <= set(table) and "at chance without objects" in words and "Too few k" in words
    table, words = api.reproduce("bam/section-5", **shared)
    assert {"value", "low", "high", "sd", "random_mask", "at_centre", "t_0.1", "own_sets"} <= set(table)
    bars = table[table["metric"].eq("iir")]
    np.testing.assert_allclose(bars["t_0.1"], bars["value"], atol=1e-4)  # IIR is its curve at t = 10 %
    for claim in (
        "Smoothing improves",
        "around 50 %",
        "draws attention",
        "Robust with objects centre",
        "complementary",
    ):
        assert claim in words
    table, words = api.reproduce("bam/figure-13", **shared)
    assert {"rho", "rho_low", "published", "k_0.1"} <= set(table) and "GB evolves minimally" in words


def test_a_reversed_pair_reverses_idr():
    one, two = torch.rand(2, 6, 4, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(6, 4, 4, dtype=torch.bool)
    sides = [contrasts.Side("f_s", side, torch.ones(6, dtype=torch.bool), ("ok",) * 6) for side in (one, two)]
    there = contrasts.compared("idr", (sides[0], sides[1]), mask, torch.arange(6), {})
    back = contrasts.compared("idr", (sides[1], sides[0]), mask, torch.arange(6), {})
    assert [a["value"] + b["value"] for a, b in zip(there, back, strict=True)] == [1] * 6
    assert there[0]["first"] == pytest.approx(g_c(one, mask)[0].item())


def test_promised_sums_are_checked_on_every_image(rows):
    gaps = of(rows, metric="gap")
    assert set(gaps["method"]) == {"deep_lift"} and set(gaps["part"]) == {"promises"}
    assert gaps["value"].max() < 1e-3 and {"f_o os as_built", "f_s os as_built"} <= set(gaps["comparison"])
