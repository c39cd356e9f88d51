"""The suite from words to rows, at the smallest scale, with good methods and bad ones."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import tiny
import torch
from PIL import Image

from forsooth import api
from forsooth.records import Choice, UsageError
from forsooth.suites import explain
from forsooth.suites.xaitris import data as xaitris_data
from forsooth.suites.xaitris.plan import chosen_data, plan
from forsooth.suites.xaitris.settings import PAPER, PRESETS, QUICK

BAD = ("raises", "leaves", "wrong_shape", "no_tensor", "an_array", "not_a_number", "says_nothing")
BAD += ("changes_its_input", "draws", "RECORD")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> api.Run:
    methods = [*tiny.METHODS, "guided_grad_cam", "deep_lift", *(f"own_methods:{name}" for name in BAD)]
    folder = tmp_path_factory.mktemp("tiny") / "run"
    return api.run("xaitris", methods=methods, only=tiny.ONLY, settings=tiny.SETTINGS, out=folder)


@pytest.fixture(scope="module")
def scores(run) -> pd.DataFrame:
    return run.rows.query("part == 'scores'")


def of(scores: pd.DataFrame, method: str, metric: str = "ima") -> pd.DataFrame:
    return scores[(scores["method"] == method) & (scores["metric"] == metric)]


def test_the_oracle_scores_one_in_every_metric(scores):
    for metric in ("emd", "ima", "precision"):
        np.testing.assert_allclose(of(scores, "oracle", metric)["value"], 1.0, atol=1e-12)


def test_every_sample_has_a_row_for_every_method_and_metric(scores):
    asked = scores[~scores["status"].isin(["skipped"]) & scores["metric"].isin(["emd", "ima", "precision"])]
    counts = asked.groupby(["method", "model", "metric"])["sample"].nunique()
    assert set(counts) == {tiny.SETTINGS["samples"]}


@pytest.mark.parametrize(
    "name, status, message",
    [
        ("raises", "error", 'ValueError: no map today (own_methods.py, line 15: raise ValueError("no map today"))'),
        ("leaves", "error", "SystemExit: 3 (own_methods.py, line 19: raise SystemExit(3))"),
        ("wrong_shape", "wrong shape", "the map must have the shape of x (6, 1, 8, 8), got (6, 3)"),
        ("no_tensor", "wrong shape", "the map must be a torch tensor with the shape of x (6, 1, 8, 8), got NoneType"),
        ("says_nothing", "zero map", "the map is zero everywhere"),
    ],
)
def test_a_bad_method_is_rows_with_a_status_and_the_run_goes_on(scores, name, status, message):
    rows = of(scores, f"own_methods:{name}")
    assert set(rows["status"]) == {status}
    assert set(rows["message"]) == {message}
    assert rows["value"].isna().all()


def test_one_map_that_is_not_finite_is_one_row(scores):
    rows = of(scores, "own_methods:not_a_number")
    assert list(rows["status"]) == (["not finite"] + ["ok"] * 5) * 2
    assert rows["value"].isna().sum() == 2


def test_a_method_that_changes_its_input_changes_nobody_elses(run, tmp_path):
    alone = api.run("xaitris", methods=["saliency"], only=tiny.ONLY, settings=tiny.SETTINGS, out=tmp_path / "run")
    together = of(run.rows, "saliency")["value"].to_numpy()
    np.testing.assert_array_equal(of(alone.rows, "saliency")["value"], together)


def test_who_cannot_meet_is_skipped_with_a_reason(scores):
    skipped = scores[scores["status"] == "skipped"]
    assert set(skipped["model"]) == {"llr", "mlp"}
    assert skipped["message"].str.contains("guided_grad_cam reads a convolutional layer, and").all()


def test_a_promise_is_checked_on_every_sample(scores):
    gaps = of(scores, "deep_lift", "gap")
    assert len(gaps) == 2 * tiny.SETTINGS["samples"]
    assert gaps["value"].max() < 1e-4


def test_the_leaderboard_counts_a_failure_as_the_worst(run):
    board = run.leaderboard("ima").set_index("method")
    assert board.loc["own_methods:raises", "score"] == 0
    assert board.loc["own_methods:raises", "failed"] == 1
    assert board.loc["oracle", "score"] == 1


def test_the_page_is_one_file_that_names_the_failures(run):
    page = (run.folder / "report.html").read_text()
    assert "no map today" in page
    assert "http://" not in page.replace("http://www.w3.org", "") and 'src="http' not in page


@pytest.mark.parametrize("scenario, kinds", [("LIN", ["T", "L"]), ("XOR", ["++", "--", "+-", "-+"])])
def test_every_kind_is_explained_and_referred_to_equally_often(tmp_path, monkeypatch, scenario, kinds):
    monkeypatch.setattr(xaitris_data, "FIT_IMAGES", 400)  # less than there are, or there is nothing to choose
    only = {"scenario": (scenario,), "background": ("WHITE",), "model": ("mlp",)}
    run = api.run("xaitris", methods=["saliency"], only=only, settings=tiny.SETTINGS, out=tmp_path / "run")
    counts = pd.DataFrame(json.loads((run.folder / "run.json").read_text())["classes"])
    assert set(counts["scenario"]) == {scenario} and set(counts["size"]) == {8}
    wanted = {"explained": tiny.SETTINGS["samples"], "background": 100, "fit": 400}
    for role, count in wanted.items():
        own = counts[counts["role"] == role]
        assert sorted(own["class"]) == sorted(kinds) and own["count"].sum() == count
        assert own["count"].max() - own["count"].min() <= 1
    spec = next(iter(chosen_data(dataclasses.replace(QUICK, n=600, alpha=0.6), Choice(only=only))))
    dataset = xaitris_data.dataset(spec)
    explained = torch.tensor(run.rows.query("method == 'saliency' and metric == 'ima'")["sample"].to_numpy())
    assert torch.isin(explained, dataset.splits["test"]).all()
    per_kind = torch.bincount(dataset.strata[explained], minlength=len(kinds))
    assert per_kind.max() - per_kind.min() <= 1


def test_every_method_and_network_explains_the_same_images(scores):
    seen = scores[scores["metric"] == "ima"].groupby(["method", "model", "model_seed"])["sample"].agg(frozenset)
    assert seen.nunique() == 1


def test_only_the_sweep_trains_the_linear_model_off_the_linear_problem():
    tasks = plan(QUICK, Choice(only={"scenario": ("XOR",), "model": ("llr",)})).tasks
    trained = [task.arguments for task in tasks if task.name.startswith("train")]
    assert {one["part"] for one in trained} == {"sweep"} and {one["net"]["name"] for one in trained} == {"llr"}
    assert len(trained) == 2 * len(QUICK.sweep)


def test_released_explains_logits_with_three_methods_and_probabilities_with_the_others():
    only = {"scenario": ("LIN",), "background": ("WHITE",), "model": ("mlp",), "size": ("8",)}
    explained: dict[str, dict[str, set[str]]] = {}
    for preset in ("released", "paper"):
        outputs: dict[str, set[str]] = {}
        for task in plan(PRESETS[preset], Choice(only=only)).tasks:
            if task.name.startswith("explain"):
                outputs.setdefault(task.arguments["ask"]["output"], set()).add(task.arguments["ask"]["method"])
        explained[preset] = outputs
    assert explained["released"]["logits"] == {"deep_taylor", "pattern_net", "pattern_attribution"}
    assert "integrated_gradients" in explained["released"]["probabilities"]
    assert set(explained["paper"]) == {"probabilities"}


def test_a_pool_gives_the_same_bytes(run, tmp_path):
    again = {}
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        api.run("xaitris", methods=tiny.METHODS, only=tiny.ONLY, settings=tiny.SETTINGS, out=folder, workers=workers)
        again[workers] = (folder / "scores.parquet").read_bytes()
    assert again[1] == again[2]


def test_another_seed_gives_other_numbers(run, tmp_path):
    other = api.run(
        "xaitris", methods=["saliency"], only=tiny.ONLY, settings=tiny.SETTINGS, out=tmp_path / "run", seed=1
    )
    assert not np.array_equal(of(other.rows, "saliency")["value"], of(run.rows, "saliency")["value"])


def test_a_network_below_its_gate_is_not_explained(tmp_path):
    settings = {**tiny.SETTINGS, "alpha": 0.0}
    run = api.run("xaitris", methods=["saliency", "oracle"], only=tiny.ONLY, settings=settings, out=tmp_path / "run")
    rows = run.rows
    assert set(rows.query("part == 'training'")["status"]) == {"below gate"}
    assert set(rows.query("method == 'saliency'")["status"]) == {"below gate"}
    assert set(rows.query("method == 'oracle'")["status"]) == {"no correct input"}
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    "words, message",
    [
        ({"suite": "xaitri"}, r"`suite` must be a known name, got 'xaitri'; did you mean xaitris\?"),
        ({"preset": "papr"}, r"`preset` must be a known name, got 'papr'; did you mean paper\?"),
        ({"methods": ["salency"]}, r"`methods` must be a known name, got 'salency'; did you mean saliency"),
        ({"only": {"scenario": "LNI"}}, r"`scenario` must be a known name, got 'LNI'; did you mean LIN\?"),
        ({"only": {"szenario": "LIN"}}, r"unknown factor 'szenario' in `only`; did you mean scenario"),
        ({"settings": {"alpha": 1.3}}, r"`alpha` must be a share of signal from 0 to 1, got 1.3"),
        ({"settings": {"alpha": -0.1}}, r"`alpha` must be a share of signal from 0 to 1, got -0.1"),
        ({"settings": {"alfa": 0.1}}, r"unknown setting 'alfa' in `set`; did you mean alpha\?"),
        ({"device": "gpu"}, r"`device` must be auto, cpu or cuda, got 'gpu'; did you mean cuda"),
        ({"workers": 0}, "`workers` must be at least 1, got 0"),
        ({"data": "nowhere", "only": {"background": "IMAGENET"}}, "`data` must be .* nothing at nowhere"),
    ],
)
def test_bad_words_are_answered_before_any_work(tmp_path, words, message):
    words = {"suite": "xaitris", "preset": "paper", **words}
    with pytest.raises(UsageError, match=message):
        api.run(**words, out=tmp_path / "run")
    assert not list(tmp_path.glob("run/store/cells/*/*"))


def test_an_empty_photo_folder_is_named(tmp_path):
    empty = tmp_path / "photos"
    empty.mkdir()
    with pytest.raises(UsageError, match=f"`data` must .*{empty}"):
        api.run("xaitris", preset="paper", only={"background": "IMAGENET"}, data=empty, out=tmp_path / "run")


def test_a_folder_of_other_files_is_not_written_into(tmp_path):
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(UsageError, match=r"`out` must be new, empty or an earlier run, got .* which holds other files"):
        api.run("xaitris", only=tiny.ONLY, out=tmp_path)
    assert (tmp_path / "report.html").read_text() == "mine"


def test_a_damaged_cell_is_made_again_and_the_bytes_are_the_same(run, tmp_path, capsys):
    words = {"methods": ["saliency"], "only": tiny.ONLY, "settings": tiny.SETTINGS, "out": tmp_path / "run"}
    api.run("xaitris", **words)
    before = (tmp_path / "run" / "scores.parquet").read_bytes()
    damaged = next(tmp_path.glob("run/store/cells/*/*/rows.parquet"))
    damaged.write_bytes(b"rubbish")
    api.run("xaitris", **words)
    assert (tmp_path / "run" / "scores.parquet").read_bytes() == before
    assert "set aside" in capsys.readouterr().err


def test_presets_cover_the_paper():
    specs = list(chosen_data(PAPER, Choice()))
    assert len(specs) == 2 * 4 * 3
    assert {spec.setting.n for spec in specs} == {10_000, 40_000}
    trained = [
        task
        for task in plan(QUICK, Choice()).tasks
        if task.name.startswith("train") and task.arguments["part"] == "training"
    ]
    assert len(trained) == 18 * QUICK.trainings  # eight problems, two networks each, and the LLR on two


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_prints_a_board_of_one_training(preset):
    assert PRESETS[preset].trainings >= 2


def small(tmp_path, **words) -> tuple[pd.DataFrame, list[str]]:
    """Rows and facts of a run of the linear model on photographs or their stand-in."""
    settings = {**tiny.SETTINGS, "backgrounds": ("IMAGENET",)}
    only = {"scenario": "LIN", "model": "llr"}
    run = api.run("xaitris", methods=["saliency"], only=only, settings=settings, out=tmp_path / "run", **words)
    return run.rows, json.loads((run.folder / "run.json").read_text())["facts"]


def test_the_stand_in_for_photographs_is_labelled_in_every_table(tmp_path):
    rows, facts = small(tmp_path)
    assert set(rows.query("part != 'strategies'")["background"]) == {"IMAGENET (dead leaves)"}
    assert facts == ["IMAGENET backgrounds are dead leaves (generated stand-in for photographs)."]


def test_photographs_are_counted_and_what_cannot_be_read_is_named(tmp_path):
    photos = tmp_path / "photos"
    photos.mkdir()
    dice = np.random.default_rng(0)
    for k in range(3):
        Image.fromarray(dice.integers(0, 255, (30, 40, 3), dtype=np.uint8)).save(photos / f"{k}.png")
    (photos / "broken.jpg").write_bytes(b"no picture")
    rows, facts = small(tmp_path, data=photos)
    assert set(rows.query("part != 'strategies'")["background"]) == {"IMAGENET"}
    assert "3 photographs from photos, random crops and flips because 600 samples were asked" in facts[0]
    assert facts[1].startswith("1 image files could not be used: broken.jpg")
    assert sorted(path.name for path in photos.iterdir()) == ["0.png", "1.png", "2.png", "broken.jpg"]


def test_a_bounded_emd_is_asked_above_8_by_8_alone_and_said():
    bounded = dataclasses.replace(QUICK, sizes=(8, 64), emd_tolerance=1e-3)
    work = plan(bounded, Choice(methods=("random",), only={"scenario": ("LIN",)}))
    asked = {
        t.arguments["panel"]["size"]: t.arguments.get("emd_tolerance") for t in work.tasks if "panel" in t.arguments
    }
    assert asked == {8: None, 64: 1e-3}
    assert any("At 64×64 the earth mover's score is the middle of proven bounds" in fact for fact in work.facts)


def test_a_bounded_score_has_its_error_beside_it():
    truth = torch.zeros(2, 64, 64, dtype=torch.bool)
    truth[:, 10:30, 10:30] = True
    maps = torch.rand(2, 64, 64, generator=torch.Generator().manual_seed(0))
    template = xaitris_data.Panel(64, "LIN", "WHITE", None).row("scores", "random")
    samples = torch.tensor([3, 5])
    rows = explain.metric_rows(template, maps, {"truth": truth}, ["emd"], samples.tolist(), 1e-3)
    exact = explain.metric_rows(template, maps, {"truth": truth}, ["emd"], samples.tolist(), None)
    for row, other in zip(rows, exact, strict=True):
        assert 0 < row.columns["emd_error"] <= 1e-3 and "emd_error" not in other.columns
        assert abs(row.value - other.value) <= row.columns["emd_error"]
