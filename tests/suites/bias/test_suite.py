"""The bias suite from data to rows, at the smallest scale: one epoch of training, a few inputs."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

import forsooth
from forsooth import seeds
from forsooth.games import game, permutation, pixels
from forsooth.records import Cell, Choice, UsageError
from forsooth.scores.bias import m_bias
from forsooth.suites import choose
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data as sources
from forsooth.suites.bias import plan as bias
from forsooth.suites.bias import tasks as anchored

FEW = {"samples": 3, "permutations": 8}
DATA = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture(autouse=True)
def one_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Games can be played with any network, so training is cut short."""
    known = sources.played

    def short(name: str) -> sources.Played:
        entry = known(name)
        return dataclasses.replace(entry, recipe=dataclasses.replace(entry.recipe, epochs=1), gate=0.0)

    monkeypatch.setattr(sources, "played", short)


def rows_of(run: forsooth.Run) -> pd.DataFrame:
    rows = run.rows
    return rows[rows["part"].eq("scores") & rows["status"].eq("ok")]


def test_a_run_on_tables_has_a_row_for_every_method_end_and_fraction(tmp_path: Path) -> None:
    run = forsooth.run("bias", only={"dataset": "interactions"}, settings={**FEW, "trainings": 1}, out=tmp_path)
    rows = rows_of(run)
    gaps = rows[rows["metric"].eq("gap")]
    kept = gaps[gaps["method"].isin(["deep_lift", "kernel_shap", "shapley_sampling"])]
    assert kept["method"].nunique() == 3
    assert kept["value"].max() < 1e-3  # a promise on the baseline of the game, which these methods were given
    rows = rows[~rows["metric"].eq("gap")]
    assert set(rows["metric"]) == set(anchors.METRIC_NAMES)
    assert set(rows["end"]) == {"top", "bottom"} and sorted(set(rows["fraction"])) == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert (rows.groupby(["method", "metric", "end", "fraction"])["sample"].nunique() == 3).all()
    exact = rows[rows["method"].eq("shapley") & rows["metric"].eq("m_bias")]["value"]
    assert len(exact) == 30 and exact.max() < 1e-12  # ten features: enumerated, so the other end is the anchor itself
    skipped = run.rows[run.rows["status"].eq("skipped")]
    assert set(skipped["method"]) == {"grad_cam", "lime_superpixels", "sobel", "laplace"}
    assert skipped["message"].str.contains("reads").all()
    board = run.leaderboard()
    assert board["method"].iloc[0] == "shapley" and board["score"].is_monotonic_increasing
    assert (tmp_path / "report.html").stat().st_size > 10_000
    again = (tmp_path / "scores.parquet").read_bytes()
    forsooth.run("bias", only={"dataset": "interactions"}, settings={**FEW, "trainings": 1}, out=tmp_path)
    assert (tmp_path / "scores.parquet").read_bytes() == again


def test_all_classes_and_two_trainings_take_part_and_are_asked_about_the_same_inputs(tmp_path: Path) -> None:
    """Tetrominoes come in blocks by class, so that the first rows are of one class."""
    few = {**FEW, "samples": 5, "trainings": 2, "methods": ("gradient", "constant")}
    run = forsooth.run("bias", only={"dataset": "tetromino"}, settings=few, out=tmp_path)
    classes = pd.DataFrame(json.loads((tmp_path / "run.json").read_text())["classes"])
    counts = classes.pivot(index="role", columns="class", values="count")
    assert set(counts.index) == {"explained", "background", "baseline"} and list(counts.columns) == ["0", "1"]
    assert ((counts["0"] - counts["1"]).abs() <= 1).all() and counts.loc["explained"].sum() == 5
    rows = rows_of(run)
    asked = rows.groupby(["method", "model_seed"])["sample"].unique().map(sorted)
    assert sorted(set(rows["model_seed"])) == [0, 1] and asked.map(tuple).nunique() == 1
    one, other = (rows[rows["model_seed"].eq(k) & rows["method"].eq("gradient")]["value"].to_list() for k in (0, 1))
    assert one != other
    assert sorted(run.rows.query("part == 'training'")["model_seed"]) == [0, 1]


def test_weights_from_a_file_are_one_training(monkeypatch: pytest.MonkeyPatch) -> None:
    known = sources.spec
    monkeypatch.setattr(sources, "spec", lambda *a, **k: {**known(*a, **k), "weights": {"lenet": "a file"}})
    settings = dataclasses.replace(bias.QUICK, trainings=3, players=("input",))
    panels = list(bias.chosen_panels(settings, Choice(only={"dataset": ("leaves", "interactions")})))
    assert [(p["net"], p["training"], p["trainings"]) for p in panels] == [
        *(("mlp5", k, 3) for k in range(3)),
        ("lenet", 0, 1),
    ]
    with pytest.raises(UsageError, match="`trainings` must be at least 1, got 0"):
        list(bias.chosen_panels(dataclasses.replace(settings, trainings=0), Choice()))


def test_an_input_without_an_anchor_is_no_failure_of_a_map_of_zeros() -> None:
    still = game(lambda x: x[:, :2] * 0 + 0.1, torch.randn(1, 10), torch.zeros(1, dtype=torch.int64))
    anchor = permutation(still, permutations=4, generator=seeds.generator(0))
    rows = anchors.biases(torch.zeros(1, 10).double(), anchor, ends=["top"], fractions=[0.5], ties="share")
    assert {row["status"] for row in rows} == {"no anchor"}


def test_rows_equal_the_metric_computed_by_hand(tmp_path: Path) -> None:
    """The suite's number for Gradient×Input, from the network's own gradient and a game played here."""
    settings = dataclasses.replace(
        bias.QUICK, **FEW, methods=("gradient_x_input",), exact_up_to=0, players=("input",), trainings=1
    )
    choice = Choice(only={"dataset": ("interactions",)})
    panel = next(iter(bias.chosen_panels(settings, choice)))
    task = bias.training_task(panel, choice)
    trained = task.function(**task.arguments)
    cells = {task.key: trained}
    for task in bias.plan(settings, choice).tasks:
        cells[task.key] = task.function(*(cells[key] for key in task.needs), **task.arguments)
        judged = cells[task.key]
    dataset = anchored.data(panel)
    module, _ = anchored.network(trained, panel, bias.the_game(settings), "cpu")
    chosen = anchored.explained((trained,), panel, dataset)[:3]
    x, y = dataset.x[chosen], dataset.y[chosen]
    leaf = x.clone().requires_grad_()
    module(leaf).gather(1, y[:, None]).sum().backward()
    assert leaf.grad is not None
    known = choose.rows_of(dataset, dataset.splits["train"], 1000, seed=panel["source"]["seed"], role="baseline")
    mean = dataset.x[known].double().mean(0).float()
    drawn = seeds.generator(seeds.derive(0, "anchor", 0), "permutations")
    anchor = permutation(game(module, x, y, baseline=mean), permutations=8, generator=drawn)
    expected = m_bias((leaf.grad * x).double(), anchor, fraction=0.3, end="bottom").value
    found = [r for r in judged.rows if (r["metric"], r["end"], r["fraction"]) == ("m_bias", "bottom", 0.3)]
    assert [r["value"] for r in found] == pytest.approx(expected.tolist(), rel=1e-4)
    assert [r["sample"] for r in found] == chosen.tolist()


def a_network(net: str, name: str) -> tuple[dict[str, object], Cell]:
    """A panel and the cell of an untrained network, which gets everything right by decree."""
    about = sources.spec(name, None, seed=1, side=32)
    panel = {"source": about, "net": net, "player": "units", "training": 0, "trainings": 1}
    dataset = anchored.data(panel)
    torch.manual_seed(0)
    module = anchored.untrained(panel, dataset)
    state = {f"net.{key}": value for key, value in module.state_dict().items()}
    return panel, Cell(tensors={**state, "correct": torch.ones(20, dtype=torch.bool)}, facts={"passed": True})


def test_grad_cam_is_judged_on_the_units_of_its_layer() -> None:
    panel, trained = a_network("lenet", "leaves")
    settings = dataclasses.replace(bias.QUICK, **FEW)
    common = {"panel": panel, "game": bias.the_game(settings), "seed": 0, "device": "cpu"}
    anchor = anchored.play(trained, first=0, last=3, **common)
    asked = {"version": 1, "code": "", "channels": "sum", "samples": 3}
    said = anchored.attribute(trained, method="grad_cam", **asked, **common)
    assert said.facts["status"] == "ok" and said.tensors["players"].shape == (3, 100)  # relu2 is 10×10
    assert (said.tensors["players"] >= 0).all()
    assert anchor.tensors["values"].shape == (3, 100)
    stage = anchored.Stage((trained,), panel, bias.the_game(settings), "cpu")
    x, y = stage.inputs(stage.samples[:3])
    units = stage.shown(x)
    whole = stage.whole(x).gather(1, y[:, None])[:, 0]
    empty = stage.model(stage.references.double().mean(0).float()[None]).expand(3, -1).gather(1, y[:, None])[:, 0]
    assert torch.allclose(anchor.tensors["values"].sum(1).float(), whole - empty, atol=1e-4)  # efficiency
    assert units.shape[1:] == (16, 10, 10) and stage.labels(tuple(units.shape[1:])).equal(pixels((16, 10, 10)))


def test_failed_maps_are_rows_with_a_reason() -> None:
    panel, trained = a_network("mlp5", "interactions")
    panel = {**panel, "player": "input"}
    settings = dataclasses.replace(bias.QUICK, **FEW)
    common = {"panel": panel, "game": bias.the_game(settings), "seed": 0, "device": "cpu"}
    anchor = anchored.play(trained, first=0, last=3, **common)
    shared = {"panel": panel, "ends": ["top"], "fractions": [0.1], "ties": "share", "played": 1}

    def judged(maps: Tensor) -> list[dict[str, object]]:
        said = Cell(tensors={"players": maps, "samples": torch.arange(3)}, facts={"status": "ok", "message": ""})
        return [dict(r) for r in anchored.judge(anchor, said, method="x", **shared).rows if r["metric"] == "m_bias"]

    maps = torch.ones(3, 10, dtype=torch.float64)
    maps[0], maps[1, 0] = 0, torch.nan
    rows = judged(maps)
    assert [r["status"] for r in rows] == ["zero map", "not finite", "ok"]
    assert np.isnan(rows[0]["value"]) and np.isnan(rows[1]["value"]) and rows[2]["value"] > 0
    failed = Cell(tensors={"samples": torch.arange(3)}, facts={"failed": True, "status": "error", "message": "boom"})
    made = anchored.judge(anchor, failed, method="x", **shared)
    assert {r["status"] for r in made.rows} == {"error"} and len(made.rows) == 9 and made.facts["failed"]


def test_fewer_than_ten_players_leave_the_tenth_out() -> None:
    anchor = permutation(
        game(lambda x: x @ torch.ones(4, 2), torch.randn(2, 4), torch.zeros(2, dtype=torch.int64)),
        permutations=4,
        generator=seeds.generator(0),
    )
    rows = anchors.biases(torch.randn(2, 4).double(), anchor, ends=["top"], fractions=[0.1, 0.5], ties="share")
    assert {r["status"] for r in rows if r["fraction"] == 0.1} == {"too few players"}
    assert all("it takes at least 10" in r["message"] for r in rows if r["fraction"] == 0.1)
    assert {r["status"] for r in rows if r["fraction"] == 0.5} == {"ok"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"only": {"dataset": "leafs"}}, "`dataset` must be a known name, got 'leafs'; did you mean leaves"),
        ({"only": {"colour": "red"}}, "`only` must be a known name, got 'colour'"),
        ({"data": "nowhere"}, "`data` must be a folder or file of data, but there is nothing at nowhere"),
        ({"settings": {"baseline": "median"}}, "`baseline` must be a known name, got 'median'"),
        ({"settings": {"ties": "last"}}, "`ties` must be a known name, got 'last'"),
        ({"methods": ["gradiant"]}, "did you mean gradient"),
    ],
)
def test_bad_input_is_named(asked: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        forsooth.run("bias", out=tmp_path / "run", **asked)  # type: ignore[arg-type]


def test_data_without_anything_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(UsageError, match=r"`data` must hold CIFAR-10, Pascal VOC or tables"):
        forsooth.run("bias", data=tmp_path, out=tmp_path / "run")


def test_a_table_of_the_users_is_played(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(drawn.normal(size=(400, 6)), columns=list("abcdef"))
    frame["label"] = (frame["a"] * frame["b"] > 0).astype(int)
    (tmp_path / "in").mkdir()
    frame.to_csv(tmp_path / "in" / "mine.csv", index=False)
    asked = {**FEW, "methods": ("gradient_x_input", "random", "constant", "shapley")}
    run = forsooth.run("bias", data=tmp_path / "in", only={"dataset": "mine"}, settings=asked, out=tmp_path / "run")
    rows = rows_of(run)
    assert set(rows["dataset"]) == {"mine"} and set(rows["players"]) == {6}
    assert sorted(set(rows["fraction"])) == [0.3, 0.5, 0.7, 0.9]  # a tenth of six is nobody
    assert (tmp_path / "in" / "mine.csv").read_text() == frame.to_csv(index=False)


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not here")
def test_real_data_are_found_by_their_names() -> None:
    found = sources.found(str(DATA))
    assert {"cifar10", "voc", "adult", "compas", "german", "heloc"} <= set(found)
    about = sources.spec("cifar10", found["cifar10"], seed=0, side=32)
    assert set(about["weights"]) == set(sources.RESNETS)
