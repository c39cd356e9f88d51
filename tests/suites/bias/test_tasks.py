"""The bias suite from data to rows, at the smallest scale: one epoch of training, a few inputs."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

import forsooth
from forsooth import engine, seeds
from forsooth.games import game, permutation
from forsooth.games.draws import shuffled
from forsooth.games.shapley import of_players
from forsooth.models import recipes
from forsooth.records import Cell, Choice, Row, UsageError
from forsooth.scores.bias import m_bias
from forsooth.suites import choose, networks
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data, plan, tasks
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.settings import QUICK
from forsooth.suites.bias.stage import PREFIX, Panel, Stage, explained, explained_network

pytestmark = pytest.mark.usefixtures("one_epoch")
FEW = {"samples": 3, "permutations": 8}
GAME = plan.game_of(dataclasses.replace(QUICK, **FEW))  # type: ignore[arg-type]
TABLE = Panel(data_spec("interactions", None, seed=1, side=32), "mlp5")
UNITS = Panel(data_spec("leaves", None, seed=1, side=32), "lenet", player="units")
ON_CPU: dict[str, Any] = {"seed": 0, "device": "cpu"}


def rows_of(run: forsooth.Run) -> pd.DataFrame:
    rows = run.rows
    return rows[rows["part"].eq("scores") & rows["status"].eq("ok")]


def a_network(panel: Panel, *, passed: bool = True, right: bool = True) -> Cell:
    """The cell of an untrained network, which gets everything right, or wrong, by decree."""
    torch.manual_seed(0)
    module = data.untrained(panel.net, data.dataset(panel.source))
    correct = torch.full((20,), right)
    return Cell(tensors={**networks.weights_of(module, PREFIX), "correct": correct}, facts={"passed": passed})


def asked(trained: Cell, panel: Panel, method: str) -> Cell:
    more: dict[str, Any] = {"version": 1, "code": "", "channels": "sum", "samples": 3}
    return tasks.explain(trained, panel=panel, spec=GAME, method=method, **more, **ON_CPU)


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
    samples = rows.groupby(["method", "model_seed"])["sample"].unique().map(sorted)
    assert sorted(set(rows["model_seed"])) == [0, 1] and samples.map(tuple).nunique() == 1
    one, other = (rows[rows["model_seed"].eq(k) & rows["method"].eq("gradient")]["value"].to_list() for k in (0, 1))
    assert one != other
    assert sorted(run.rows.query("part == 'training'")["model_seed"]) == [0, 1]


def test_the_page_shows_the_first_inputs_beside_their_shapley_values(tmp_path: Path) -> None:
    few = {**FEW, "samples": 5, "trainings": 2, "methods": ("gradient", "constant", "shapley")}
    run = forsooth.run("bias", only={"dataset": "tetromino"}, settings=few, out=tmp_path)
    about = json.loads((tmp_path / "run.json").read_text())
    shown = pd.DataFrame(about["pictures"])
    assert shown.groupby(["kind", "method"])["place"].agg(list).to_dict() == {
        ("example", "constant"): [0, 1, 2, 3],
        ("example", "gradient"): [0, 1, 2, 3],
        ("input", ""): [0, 1, 2, 3],
        ("truth", ""): [0, 1, 2, 3],
    }
    tensors = load_file(tmp_path / "pictures.safetensors")
    constant, truth = (shown[shown["method"].eq(name) & shown["kind"].ne("input")] for name in ("constant", ""))
    assert all(tensors[name].eq(tensors[name][0, 0]).all() for name in constant["tensor"])
    assert all(tensors[name].shape == (8, 8) and tensors[name].std() > 0 for name in truth["tensor"])
    assert "Under “truth” the pictures show the Shapley values" in (run.folder / "report.html").read_text()


def test_a_network_below_its_gate_shows_nothing() -> None:
    below = a_network(TABLE, passed=False)
    cell = tasks.show(below, below, panel=TABLE, spec=GAME, methods=(), trained=1, played=1, device="cpu")
    assert not cell.tensors and not cell.facts


def test_rows_equal_the_metric_computed_by_hand() -> None:
    """The suite's number for Gradient×Input, from the network's own gradient and a game played here."""
    few: dict[str, Any] = {**FEW, "methods": ("gradient_x_input",), "players": ("input",)}
    settings = dataclasses.replace(QUICK, **few, exact_up_to=0, trainings=1)
    choice = Choice(only={"dataset": ("interactions",)})
    panel = next(iter(plan.chosen_panels(settings, choice)))
    cells: dict[str, Cell] = {}
    for task in plan.plan(settings, choice).tasks:
        needs = [cells[key] for key in task.needs]
        cells[task.key] = task.function(*needs, **engine.typed(task.function, task.arguments))
    judged = list(cells.values())[-1]
    trained = next(iter(cells.values()))
    dataset = data.dataset(panel.source)
    module, _ = explained_network(trained, panel, plan.game_of(settings), "cpu")
    chosen = explained((trained,), panel, dataset)[:3]
    x, y = dataset.x[chosen], dataset.y[chosen]
    leaf = x.clone().requires_grad_()
    module(leaf).gather(1, y[:, None]).sum().backward()
    assert leaf.grad is not None
    known = choose.rows_of(dataset, dataset.splits["train"], 1000, seed=panel.source.seed, role="baseline")
    mean = dataset.x[known].double().mean(0).float()
    seed = seeds.derive(0, "anchor", 0)
    played = shuffled(game(module, x, y, baseline=mean), seeds.generators(seed, "roles", chosen.tolist()))
    drawn = permutation(played, permutations=8, generator=seeds.generator(seed, "permutations"))
    assert played.roles is not None
    anchor = of_players(drawn, played.roles)
    expected = m_bias((leaf.grad * x).double(), anchor, fraction=0.3, end="bottom").value
    flat = [row.flat() for row in judged.rows]
    found = [r for r in flat if (r["metric"], r["end"], r["fraction"]) == ("m_bias", "bottom", 0.3)]
    assert [r["value"] for r in found] == pytest.approx(expected.tolist(), rel=1e-4)
    assert [r["sample"] for r in found] == chosen.tolist()


def test_a_training_leaves_its_weights_its_accuracy_and_what_it_gets_right() -> None:
    recipe = dataclasses.replace(recipes.TABLE, epochs=1, gate=1.0)
    made = tasks.train(panel=TABLE, recipe=recipe, **ON_CPU)
    (row,) = made.rows
    assert isinstance(row, Row) and row.part == "training" and row.columns == {"player": ""}
    assert row.value == pytest.approx(made.tensors["correct"].double().mean().item())
    assert row.status == "below gate" and "below the gate of 100%" in row.message
    assert made.facts["passed"] is False and made.facts["epochs"] == 1
    assert any(name.startswith(PREFIX) for name in made.tensors)


def test_data_without_test_inputs_are_refused() -> None:
    dataset = data.dataset(TABLE.source)
    none = dataclasses.replace(dataset, splits={**dataset.splits, "test": torch.empty(0, dtype=torch.int64)})
    with pytest.raises(UsageError, match="`data` must hold test inputs"):
        tasks.rows_to_test(TABLE, none)


def test_grad_cam_is_judged_on_the_units_of_its_layer() -> None:
    trained = a_network(UNITS)
    anchor = tasks.play(trained, panel=UNITS, spec=GAME, first=0, last=3, **ON_CPU)
    said = asked(trained, UNITS, "grad_cam")
    assert said.facts["status"] == "ok" and said.tensors["players"].shape == (3, 100)  # relu2 is 10×10
    assert (said.tensors["players"] >= 0).all()
    assert anchor.tensors["values"].shape == (3, 100)
    stage = Stage((trained,), UNITS, GAME, "cpu")
    x, y = stage.inputs(stage.samples[:3])
    whole = stage.whole(x).gather(1, y[:, None])[:, 0]
    empty = stage.model(stage.references.double().mean(0).float()[None]).expand(3, -1).gather(1, y[:, None])[:, 0]
    assert torch.allclose(anchor.tensors["values"].sum(1).float(), whole - empty, atol=1e-4)  # efficiency


def test_a_method_whose_units_raise_is_a_row_and_changes_no_other() -> None:
    trained = a_network(UNITS)
    expected = asked(trained, UNITS, "grad_cam").tensors["players"]
    facts = asked(trained, UNITS, "leaky_methods:UNITS").facts
    assert facts["status"] == "error" and facts["message"].startswith("ValueError: no units today")
    assert torch.get_default_dtype() == torch.float32
    assert torch.equal(asked(trained, UNITS, "grad_cam").tensors["players"], expected)


def test_units_of_another_shape_are_a_row_that_says_so() -> None:
    facts = asked(a_network(UNITS), UNITS, "leaky_methods:WHOLE_UNITS").facts
    assert facts["status"] == "wrong shape"
    assert facts["message"] == "`units` must give real numbers of shape (3, 10, 10), got torch.float32 (3, 3, 32, 32)"


def test_what_a_network_below_its_gate_would_say_is_not_asked() -> None:
    trained = a_network(TABLE, passed=False)
    played = tasks.play(trained, panel=TABLE, spec=GAME, first=0, last=3, **ON_CPU)
    assert played.facts == {"status": "below gate"} and not played.tensors
    said = asked(trained, TABLE, "gradient")
    assert said.facts["status"] == "below gate" and "not explained" in said.facts["message"]


def test_nothing_is_explained_that_no_training_gets_right() -> None:
    trained = a_network(TABLE, right=False)
    played = tasks.play(trained, panel=TABLE, spec=GAME, first=0, last=3, **ON_CPU)
    said = asked(trained, TABLE, "gradient")
    assert played.facts["status"] == said.facts["status"] == "no correct input"
    made = tasks.score(
        played, said, panel=TABLE, method="gradient", ends=("top",), fractions=(0.5,), ties="share", played=1
    )
    flat = [row.flat() for row in made.rows]
    assert [row["metric"] for row in flat] == list(anchors.METRIC_NAMES)
    assert {row["sample"] for row in flat} == {-1} and {row["status"] for row in flat} == {"no correct input"}
    assert "error" not in flat[0] and "noise" not in flat[0]


def judged(anchor: Cell, said: Cell, **changes: Any) -> Cell:
    given: dict[str, Any] = {"ends": ("top",), "fractions": (0.1,), "ties": "share", "played": 1, **changes}
    return tasks.score(anchor, said, panel=TABLE, method="x", **given)


def test_failed_maps_are_rows_with_a_reason() -> None:
    trained = a_network(TABLE)
    anchor = tasks.play(trained, panel=TABLE, spec=GAME, first=0, last=3, **ON_CPU)
    maps = torch.ones(3, 10, dtype=torch.float64)
    maps[0] = 0
    maps[1, 0] = torch.nan
    said = Cell(tensors={"players": maps, "samples": torch.arange(3)}, facts={"status": "ok", "message": ""})
    rows = [row for row in judged(anchor, said).rows if row.metric == "m_bias"]
    assert [row.status for row in rows] == ["zero map", "not finite", "ok"]
    assert np.isnan(rows[0].value) and np.isnan(rows[1].value) and rows[2].value > 0
    failed = Cell(tensors={"samples": torch.arange(3)}, facts={"failed": True, "status": "error", "message": "boom"})
    made = judged(anchor, failed, ends=("top", "bottom"))
    assert {row.status for row in made.rows} == {"error"} and len(made.rows) == 18 and made.facts["failed"]
    order = [(row.metric, row.sample, row.columns["end"]) for row in made.rows[:3]]
    assert order == [("relative_bias", 0, "top"), ("relative_bias", 0, "bottom"), ("relative_bias", 1, "top")]


def test_a_method_that_misses_its_promise_has_rows_of_gaps() -> None:
    trained = a_network(TABLE)
    anchor = tasks.play(trained, panel=TABLE, spec=GAME, first=0, last=3, **ON_CPU)
    tensors = {"players": torch.rand(3, 10).double(), "samples": torch.arange(3), "gap": torch.tensor([0.0, 0.5, 0.01])}
    rows = judged(anchor, Cell(tensors=tensors, facts={"status": "ok", "message": ""})).rows
    numbers = anchor.tensors["samples"].tolist()
    by_sample = {row.sample: row.status for row in rows if row.metric == "m_bias"}
    assert [by_sample[number] for number in numbers] == ["ok", "broken promise", "ok"]
    gaps = [row.flat() for row in rows if row.metric == "gap"]
    assert [row["value"] for row in gaps] == pytest.approx([0.0, 0.5, 0.01])
    assert gaps[0]["fraction"] is None and gaps[0]["end"] == "" and "error" not in gaps[0]


def test_a_method_that_raises_fails_alone() -> None:
    said = asked(a_network(TABLE), TABLE, "own_methods:raises")
    assert said.facts["failed"] and said.facts["status"] == "error" and "no map today" in said.facts["message"]
    assert said.tensors["samples"].numel() == 3 and "players" not in said.tensors


def test_colours_are_collected_by_player() -> None:
    panel = dataclasses.replace(UNITS, player="input")
    stage = Stage((a_network(panel),), panel, GAME, "cpu")
    maps = torch.zeros(1, 3, 32, 32)
    maps[0, :, 0, 0] = torch.tensor([1.0, -3.0, 1.0])
    assert tasks.by_player(maps, stage, "sum")[0, 0] == -1
    assert tasks.by_player(maps, stage, "signed_max")[0, 0] == -3
    assert tasks.by_player(maps, stage, "max_abs")[0, 0] == 3
    assert tasks.by_player(maps, stage, "sum").shape == (1, 64)


@pytest.mark.parametrize(
    ("asking", "words"),
    [
        ({"only": {"dataset": "leafs"}}, "'leafs'; did you mean leaves"),
        ({"only": {"colour": "red"}}, "'colour'"),
        ({"data": "nowhere"}, "`data` must be a folder or file of data, but there is nothing at nowhere"),
        ({"settings": {"baseline": "median"}}, "'median'"),
        ({"settings": {"ties": "last"}}, "'last'"),
        ({"methods": ["gradiant"]}, "did you mean gradient"),
    ],
)
def test_bad_input_is_named(asking: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        forsooth.run("bias", out=tmp_path / "run", **asking)
    assert not (tmp_path / "run").exists()


def test_a_table_of_the_users_is_played(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(drawn.normal(size=(400, 6)), columns=list("abcdef"))
    frame["label"] = (frame["a"] * frame["b"] > 0).astype(int)
    (tmp_path / "in").mkdir()
    frame.to_csv(tmp_path / "in" / "mine.csv", index=False)
    few = {**FEW, "methods": ("gradient_x_input", "random", "constant", "shapley")}
    run = forsooth.run("bias", data=tmp_path / "in", only={"dataset": "mine"}, settings=few, out=tmp_path / "run")
    rows = rows_of(run)
    assert set(rows["dataset"]) == {"mine"} and set(rows["players"]) == {6}
    assert sorted(set(rows["fraction"])) == [0.3, 0.5, 0.7, 0.9]  # a tenth of six is nobody
    assert (tmp_path / "in" / "mine.csv").read_text() == frame.to_csv(index=False)


def test_the_joint_shapes_of_answers_and_anchors_match(tmp_path: Path) -> None:
    trained = a_network(TABLE)
    anchor = tasks.play(trained, panel=TABLE, spec=GAME, first=0, last=3, **ON_CPU)
    said: Tensor = asked(trained, TABLE, "gradient").tensors["players"]
    assert said.shape == anchor.tensors["values"].shape == (3, 10) and said.dtype == torch.float64
