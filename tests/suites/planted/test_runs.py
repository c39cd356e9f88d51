"""The planted suite from words to rows: the ends of the scale, the gate, what is stored, what the page shows."""

import json

import numpy as np
import pandas as pd
from PIL import Image
from safetensors.torch import load_file
from suites.planted.smallest import TINY

from forsooth import api
from forsooth.suites.planted.data import ON_F_N
from forsooth.suites.planted.settings import EXPERIMENTS

MODEL_BYTES = 5 * 2**20


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
    assert set(found["experiment"]) == set(EXPERIMENTS)
    np.testing.assert_allclose(found["value"], 1.0, atol=1e-12)


def test_the_constant_map_scores_the_share_of_the_region_in_every_setting(rows):
    for metric in ("attr", ON_F_N):
        found = attr(rows, "constant", metric)
        np.testing.assert_allclose(found["value"], found["er"], rtol=1e-12)
    assert set(attr(rows, "constant")["experiment"]) == set(EXPERIMENTS)


def test_random_maps_score_the_share_within_sampling_error(rows):
    """|N(0, 1)| or uniform values: the spread of a share over m pixels is below that of m Bernoulli draws."""
    for metric in ("attr", ON_F_N):
        found = attr(rows, "random", metric)
        error = np.sqrt(found["er"] * (1 - found["er"]) / 32**2)
        assert ((found["value"] - found["er"]).abs() < 5 * error).all()


def test_the_oracle_puts_nothing_on_features_that_tell_nothing(rows):
    assert (attr(rows, "oracle", ON_F_N)["value"] == 0).all()


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


def test_a_model_that_could_be_chance_is_a_row_and_is_not_explained(run, tmp_path):
    settings = {**TINY, "trainings": 1, "strength": 0.01, "experiments": ("5.1",)}
    settings |= {"manipulations": ("center_brightness",)}
    blind = api.run("planted", methods=["saliency", "constant"], settings=settings, out=tmp_path / "run").rows
    (trained,) = blind[blind["metric"].eq("accuracy")].to_dict("records")
    assert trained["status"] == "below gate" and trained["p_value"] > 1e-3
    assert "could be chance at p* = 50%" in trained["message"]
    assert set(blind[blind["method"].eq("saliency")]["status"]) == {"below gate"}
    assert set(blind[blind["method"].eq("constant")]["status"]) == {"no model"}
    assert (tmp_path / "run" / "report.html").is_file()


def test_the_page_shows_curves_gate_and_examples(run):
    figures = {file.stem for file in (run.folder / "figures").glob("*.png")}
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
    settings |= {"gate": 0.0, "max_p_value": 1.0}
    run = api.run("planted", methods=["constant"], settings=settings, data=folder, out=tmp_path / "run")
    assert set(run.rows["pair"]) == {"one/three"} and set(run.rows["dataset"]) == {"images-photos"}
    assert any(
        "120 of 120 images used, in 3 classes" in fact
        for fact in json.loads((run.folder / "run.json").read_text())["facts"]
    )
    assert (run.rows.query("method == 'constant'")["value"] == run.rows.query("method == 'constant'")["er"]).all()
