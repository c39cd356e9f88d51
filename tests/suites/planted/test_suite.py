"""The planted suite from words to rows at the smallest scale: the ends of the scale, the gate, what is stored."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn

from forsooth import api
from forsooth.attributions import METHODS as CATALOGUE
from forsooth.datasets.manipulations import FIXED
from forsooth.engine import one_thread
from forsooth.models import resnet
from forsooth.records import Choice, UsageError
from forsooth.suites.planted import data as plots
from forsooth.suites.planted import plan as planted
from forsooth.suites.planted import settings as planted_presets
from forsooth.suites.planted import tasks as planting

METHODS = ("saliency", "gradient_shap_5", "lime_25", "random", "constant", "oracle", "own_methods:raises")
TINY = {
    **{"per_class": 120, "side": 32, "strength": 6, "trainings": 2, "samples": 5, "gate": 0.7, "metrics": ("attr",)},
    **{"manipulations": ("center_brightness", "watermark"), "deeper": ("watermark",), "levels": (2, 4)},
    **{"rs": (0.5, 1.0), "restarts": 0, "epochs": 8},
}
MODEL_BYTES = 5 * 2**20


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> api.Run:
    folder = tmp_path_factory.mktemp("planted") / "run"
    return api.run("planted", methods=METHODS, settings=TINY, out=folder)


@pytest.fixture(scope="module")
def rows(run) -> pd.DataFrame:
    return run.rows


def attr(rows: pd.DataFrame, method: str, metric: str = "attr") -> pd.DataFrame:
    found = rows[rows["method"].eq(method) & rows["metric"].eq(metric) & rows["status"].eq("ok")]
    assert len(found)
    return found


def test_every_experiment_has_its_part(rows):
    parts = {"training", "scores", "absence", "checkpoints", "visibility", "r", "border"}
    assert set(rows["part"]) == parts
    ranked = rows[rows["part"].eq("scores")]
    assert set(ranked["experiment"]) == {"5.1"} and set(ranked["presence"]) == {"with"}
    assert set(rows[rows["part"].eq("absence")]["presence"]) == {"without"}
    explained = rows[rows["status"].eq("ok") & rows["metric"].eq("attr")]
    assert {p: set(own["presence"]) for p, own in explained.groupby("part")} == {
        **{part: {"with", "without"} for part in ("checkpoints", "visibility", "r", "border")},
        **{"scores": {"with"}, "absence": {"without"}},
    }


def test_the_oracle_scores_one_in_every_setting(rows):
    found = attr(rows, "oracle")
    assert set(found["experiment"]) == set(planted_presets.EXPERIMENTS)
    np.testing.assert_allclose(found["value"], 1.0, atol=1e-12)


def test_the_constant_map_scores_the_share_of_the_region_in_every_setting(rows):
    for metric in ("attr", plots.ON_F_N):
        found = attr(rows, "constant", metric)
        np.testing.assert_allclose(found["value"], found["er"], rtol=1e-12)
    assert set(attr(rows, "constant")["experiment"]) == set(planted_presets.EXPERIMENTS)


def test_random_maps_score_the_share_within_sampling_error(rows):
    """|N(0, 1)| or uniform values: the spread of a share over m pixels is below that of m Bernoulli draws."""
    for metric in ("attr", plots.ON_F_N):
        found = attr(rows, "random", metric)
        error = np.sqrt(found["er"] * (1 - found["er"]) / 32**2)
        assert ((found["value"] - found["er"]).abs() < 5 * error).all()


def test_the_oracle_puts_nothing_on_features_that_tell_nothing(rows):
    assert (attr(rows, "oracle", plots.ON_F_N)["value"] == 0).all()


def test_a_model_within_luck_is_a_row_and_is_not_explained(run, tmp_path):
    settings = {**TINY, "trainings": 1, "strength": 0.01, "experiments": ("5.1",)}
    settings |= {"manipulations": ("center_brightness",)}
    blind = api.run("planted", methods=["saliency", "constant"], settings=settings, out=tmp_path / "run").rows
    (trained,) = blind[blind["metric"].eq("accuracy")].to_dict("records")
    assert trained["status"] == "below gate" and trained["luck"] > 1e-3
    assert "is within luck of p* = 50%" in trained["message"]
    assert set(blind[blind["method"].eq("saliency")]["status"]) == {"below gate"}
    assert set(blind[blind["method"].eq("constant")]["status"]) == {"no sample"}
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    "found, chance, p_star, word",
    [
        (0.99, 1e-9, 0.5, ""),
        (0.6, 0.02, 0.5, "luck"),
        (0.8, 1e-9, 0.5, "gate"),
        (0.99, 1.0, 1.0, ""),
        (0.8, 1, 1, "gate"),
    ],
)
def test_the_gate(found, chance, p_star, word):
    told = planting.why_not(found, chance, p_star=p_star, gate={"accuracy": 0.95, "luck": 1e-3})
    assert (word in told) if word else told == ""


def test_checkpoints_climb_and_only_their_experiments_keep_them(run, rows):
    made = rows[rows["part"].eq("checkpoints") & rows["method"].eq("saliency")]
    per_model = made.groupby(["manipulation", "model_seed"])["epoch"].nunique()
    assert per_model.max() > 1 and set(made["model_seed"]) == {0}
    for cell in run.folder.glob("store/cells/*/*"):
        meta = json.loads((cell / "meta.json").read_text())
        if meta["name"].startswith("train"):
            kept = {name.split(".")[0] for name in load_file(cell / "tensors.safetensors")}
            assert len(kept) == len(meta["facts"]["states"])
            assert len(kept) == 1 or ("number 0" in meta["name"] and meta["name"].split(", ")[1] in ("5.1", "border"))


def test_little_is_stored_beside_the_weights(run):
    sizes = {"train": 0, "other": 0}
    for file in run.folder.glob("store/cells/*/*/*"):
        meta = json.loads((file.parent / "meta.json").read_text())
        weights = meta["name"].startswith("train") and file.name == "tensors.safetensors"
        sizes["train" if weights else "other"] += file.stat().st_size
    models = len(list(run.rows.query("metric == 'accuracy'").index))
    assert sizes["other"] / models < MODEL_BYTES / 10


def test_a_bad_method_is_rows_and_the_run_goes_on(rows):
    found = rows[rows["method"].eq("own_methods:raises") & ~rows["status"].eq("below gate")]
    assert set(found["status"]) == {"error"} and found["value"].isna().all()


def test_the_page_shows_curves_gate_and_examples(run):
    figures = {file.stem for file in (run.folder / "figures").glob("*.svg")}
    curves = {f"planted_{name}" for name in ("regions", "checkpoints", "visibility", "r", "border", "gate")}
    assert figures >= {*curves, "examples_residual_small", "leaderboard"}
    assert "dead leaves" in (run.folder / "report.html").read_text()


def test_the_leaderboard_ranks_5_1_with_the_artefact(run, rows):
    board = run.leaderboard("attr").set_index("method")
    own = rows[rows["part"].eq("scores") & rows["method"].eq("oracle") & rows["status"].eq("ok")]
    assert board.loc["oracle", "score"] == 1.0
    assert board.loc["constant", "panels"] == own["manipulation"].nunique()


def test_one_experiment_alone_makes_a_page(tmp_path):
    run = api.run("planted", methods=["constant"], only={"experiment": "5.4", "r": "0.5"}, settings=TINY, out=tmp_path)
    assert set(run.rows["part"]) == {"r"} and (run.folder / "report.html").is_file()


def test_images_of_the_user(tmp_path):
    dice, folder = np.random.default_rng(0), tmp_path / "photos"
    for name in ("one", "two", "three"):
        (folder / name).mkdir(parents=True)
        for k in range(40):
            Image.fromarray(dice.integers(0, 255, (20, 24, 3), dtype=np.uint8)).save(folder / name / f"{k}.png")
    settings = {**TINY, "trainings": 1, "manipulations": ("watermark",), "experiments": ("5.1",)}
    settings |= {"gate": 0.0, "luck": 1.0}
    run = api.run("planted", methods=["constant"], settings=settings, data=folder, out=tmp_path / "run")
    assert set(run.rows["pair"]) == {"one/three"} and set(run.rows["dataset"]) == {"images-photos"}
    assert any(
        "120 of 120 images used, in 3 classes" in fact
        for fact in json.loads((run.folder / "run.json").read_text())["facts"]
    )
    assert (run.rows.query("method == 'constant'")["value"] == run.rows.query("method == 'constant'")["er"]).all()


@pytest.mark.parametrize(
    "words, message",
    [
        ({"only": {"experiment": "5.5"}}, "`experiment` must be a known name, got '5.5'"),
        ({"only": {"manipulation": "watermrk"}}, "did you mean watermark"),
        ({"only": {"presence": "maybe"}}, "`presence` must be a known name"),
        ({"only": {"size": "8"}}, "`only` must be a known name, got 'size'"),
        ({"settings": {"models": "resnet35"}}, "did you mean resnet"),
        ({"settings": {"kinds": "similar,distinct"}}, "`kinds` must be similar"),
        ({"settings": {"level": 5}}, "`level` must be 0 to 4"),
        ({"settings": {"per_class": None}}, "`per_class` must be a number"),
        ({"data": "nowhere"}, "nothing at nowhere"),
    ],
)
def test_bad_words_are_answered_before_any_work(tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        api.run("planted", out=tmp_path / "run", **words)
    assert not list(tmp_path.glob("run/store/cells/*/*"))


def test_the_paper_preset_is_the_papers_plan():
    panels = list(planted.chosen_panels(planted.PAPER, Choice()))
    counts = pd.Series([panel.about["experiment"] for panel in panels]).value_counts()
    assert dict(counts) == {"5.1": 100, "5.3": 100, "5.4": 120, "border": 20}
    groups: dict[tuple[str, int], set[str]] = {}
    for panel in panels:
        if panel.about["experiment"] == "5.3":
            region = {k: v for k, v in panel.plot["manipulation"].items() if k != "visibility"}
            groups.setdefault((panel.about["manipulation"], panel.about["model_seed"]), set()).add(json.dumps(region))
    assert len(groups) == 20 and all(len(regions) == 1 for regions in groups.values())
    assert planted.PAPER.methods[:5] == planted_presets.PUBLISHED
    assert panels[0].plot["manipulation"]["characters"] == "digits"


def test_quick_asks_for_five_artefacts_and_eight_methods():
    null = {method.name for method in CATALOGUE if method.null}
    assert len(planted.QUICK.manipulations) == 5 and len(set(planted.QUICK.methods) - null) >= 8
    assert set(planted_presets.ENDS) <= set(planted.QUICK.traced)


def test_pairs_of_classes():
    birds = [name for pair in plots.BIRDS for name in pair]
    assert plots.class_pairs(sorted(birds))["similar"] == list(plots.BIRDS)
    distinct = plots.class_pairs(sorted(birds))["distinct"]
    assert len({name for pair in distinct for name in pair}) == 4
    assert plots.class_pairs(["a", "b"]) == {"similar": [("a", "b")], "distinct": []}
    assert plots.class_pairs(["a", "b", "c"])["distinct"] == [("a", "c")]
    assert plots.class_pairs(["a", "b", "c", "d"]) == {"similar": [("a", "b"), ("c", "d")], "distinct": [("a", "d")]}


def test_normalisation_in_front_changes_no_output():
    net = resnet.residual_small(size=32).eval()
    dataset = plots.base({"path": None, "digest": None, "classes": 2, "per_class": 20, "side": 32, "seed": 0})
    whole = planting.wrapped("residual_small", dataset, net.state_dict(), device="cpu")
    mean, spread = (torch.tensor(v)[:, None, None] for v in (planting.MEAN, planting.SPREAD))
    with torch.no_grad(), one_thread():
        torch.testing.assert_close(whole(dataset.x), net((dataset.x - mean) / spread), rtol=1e-4, atol=1e-5)
        end = planting.wrapped("residual_small", dataset, net.state_dict(), device="cpu", output="probabilities")
        torch.testing.assert_close(end(dataset.x), whole(dataset.x).softmax(1))
    assert isinstance(whole, nn.Sequential)


def test_the_printed_artefact_and_the_released_one():
    mark = FIXED[-1]
    assert plots.artefact(mark, strength=2, variant="released")["characters"] == "hex"
    assert plots.artefact(mark, strength=2, variant="printed")["visibility"] == 26
    assert plots.artefact(FIXED[3], strength=100, variant="printed")["visibility"] == 1


def test_figures_are_made_again_with_a_verdict_for_every_claim(tmp_path, run):
    few = {**TINY, "models": "residual_small", "recipe": "quick", "methods": METHODS[:6], "traced": METHODS[:2]}
    few |= {"classes": 3, "pairs": 1, "groups": 1, "followed": 2, "manipulations": ("watermark",)}
    few |= {"epochs": 3, "gate": 0.0, "luck": 1.0, "per_class": 60}
    table, words = api.reproduce("planted/figure-3", settings=few, out=tmp_path)
    assert set(table["experiment"]) == {"5.1", "5.2"} and {"attr", "low", "high", "slope"} <= set(table)
    for claim in ("No method is near 1", "70 % of models", "SHAP is the best", "presence of a watermark", "rises with"):
        assert claim in words
    table, words = api.reproduce("planted/figure-4", settings=few, out=tmp_path)
    assert table.query("experiment == '5.4'")["in_range"].between(0, 1).all()
    for claim in ("rises with visibility", "All models pass", "Shapley range", "Similar and distinct"):
        assert claim in words


def test_5_2_explains_the_trainings_of_5_1():
    keys = []
    for asked in (("5.2",), ("5.1", "5.2")):
        plan = planted.plan(replace(planted.PAPER, experiments=asked, trainings=1), Choice())
        keys.append({task.key for task in plan.tasks if task.name.startswith("train")})
    assert keys[0] == keys[1] and len(keys[0]) == 5
