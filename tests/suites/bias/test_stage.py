"""A trained network made ready to be played."""

import dataclasses

import pytest
import torch
from torch import Tensor

from forsooth.games import pixels
from forsooth.games.shapley import joined
from forsooth.records import Cell
from forsooth.stats.intervals import mean_interval
from forsooth.suites import networks
from forsooth.suites.bias import data
from forsooth.suites.bias import stage as stage_module
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.plan import game_of
from forsooth.suites.bias.settings import QUICK
from forsooth.suites.bias.stage import (
    PREFIX,
    REFERENCES,
    GameSpec,
    Network,
    Panel,
    Stage,
    drawn,
    explained,
    explained_network,
    row_of,
    title,
)

GAME = game_of(dataclasses.replace(QUICK, permutations=8))
TABLE = Panel(data_spec("interactions", None, seed=1, side=32), "mlp5")
UNITS = Panel(data_spec("leaves", None, seed=1, side=32), "lenet", player="units")


def a_network(panel: Panel, *, passed: bool = True, correct: Tensor | None = None) -> Cell:
    """The cell of an untrained network, which gets everything right by decree."""
    torch.manual_seed(0)
    module = data.untrained(panel.net, data.dataset(panel.source))
    right = torch.ones(20, dtype=torch.bool) if correct is None else correct
    return Cell(tensors={**networks.weights_of(module, PREFIX), "correct": right}, facts={"passed": passed})


def test_a_panel_has_a_title_and_a_row() -> None:
    second = dataclasses.replace(UNITS, training=1, trainings=2)
    assert title(TABLE) == "interactions, mlp5"
    assert title(second) == "leaves, lenet, training 2, units of a layer"
    flat = row_of(second).flat()
    assert (flat["dataset"], flat["model"], flat["model_seed"], flat["player"]) == ("leaves", "lenet", 1, "units")
    assert (flat["suite"], flat["part"], flat["method"]) == ("bias", "scores", "")


def test_a_game_takes_its_fields_from_the_settings() -> None:
    spec = game_of(dataclasses.replace(QUICK, grid=4, output="probabilities", layer="conv1"))
    assert spec == GameSpec(4, 400, 12, False, "mean", "probabilities", "conv1", True)


def test_inputs_are_explained_that_all_trainings_above_their_gate_get_right() -> None:
    dataset = data.dataset(TABLE.source)
    rows = stage_module.tested(TABLE, dataset)[:4]
    one = Cell(tensors={"correct": torch.tensor([True, True, True, False])}, facts={"passed": True})
    other = Cell(tensors={"correct": torch.tensor([True, False, True, True])}, facts={"passed": True})
    failed = Cell(tensors={"correct": torch.zeros(4, dtype=torch.bool)}, facts={"passed": False})
    chosen = explained([one, other, failed], TABLE, dataset)
    assert sorted(chosen.tolist()) == sorted(rows[[0, 2]].tolist())
    assert len(explained([failed], TABLE, dataset)) == 0


def test_rows_are_drawn_evenly_and_alike_in_every_task() -> None:
    dataset = data.dataset(TABLE.source)
    one = drawn(TABLE, dataset, "train", 50, role="baseline")
    other = drawn(dataclasses.replace(TABLE, training=3), dataset, "train", 50, role="baseline")
    assert one.equal(other) and len(one) == 50
    assert abs(int((dataset.y[one] == 0).sum()) - 25) <= 1
    assert not one.equal(drawn(TABLE, dataset, "train", 50, role="explained"))


def test_the_baseline_is_the_mean_of_the_references() -> None:
    stage = Stage([a_network(TABLE)], TABLE, GAME, "cpu")
    assert stage.references.shape == (REFERENCES, 10)
    x, _ = stage.inputs(stage.samples[:2])
    assert torch.allclose(stage.absent(x), stage.references.double().mean(0).float())
    assert stage.labels((10,)).equal(pixels((10,)))


def test_images_are_cut_into_patches_where_they_are_larger_than_the_grid() -> None:
    panel = dataclasses.replace(UNITS, player="input")
    stage = Stage([a_network(panel)], panel, GAME, "cpu")
    labels = stage.labels((3, 32, 32))
    assert labels.unique().numel() == 64
    assert stage.labels((1, 8, 8)).unique().numel() == 64  # a patch of one pixel
    pixelwise = Stage([a_network(panel)], panel, dataclasses.replace(GAME, grid=None), "cpu")
    assert pixelwise.labels((3, 32, 32)).unique().numel() == 1024


def test_units_of_a_layer_play_with_the_rest_of_the_network() -> None:
    stage = Stage([a_network(UNITS)], UNITS, GAME, "cpu")
    x, _ = stage.inputs(stage.samples[:3])
    shown = stage.shown(x)
    assert shown.shape == (3, 16, 10, 10) and stage.labels((16, 10, 10)).equal(pixels((16, 10, 10)))
    assert torch.allclose(stage.model(shown), stage.whole(x), atol=1e-5)
    assert stage.question(shown, torch.zeros(3), seed=0, samples=stage.samples[:3]).layer is None


def test_few_players_are_enumerated_and_many_sampled() -> None:
    trained = [a_network(TABLE)]
    exact = Stage(trained, TABLE, GAME, "cpu")
    assert exact.estimate(exact.samples[:2], seed=0).permutations == 0
    sampled = Stage(trained, TABLE, dataclasses.replace(GAME, exact_up_to=0), "cpu")
    one = sampled.estimate(sampled.samples[:2], seed=0)
    assert one.permutations == 8
    assert one.values.equal(sampled.estimate(sampled.samples[:2], seed=0).values)
    assert not one.values.equal(sampled.estimate(sampled.samples[:2], seed=1).values)


def test_an_interval_over_inputs_holds_the_exact_value_though_few_orders_were_drawn() -> None:
    """Inputs that are all alike, so that orders are the only chance; where all share these, it held 0 of 300."""
    spec = dataclasses.replace(GAME, exact_up_to=0, permutations=5)
    stage = Stage([a_network(TABLE)], TABLE, spec, "cpu")
    absent = stage.absent(stage.references[:1])
    stage.model = lambda x: (x != absent)[:, :2].any(1, keepdim=True).float().expand(-1, 2)  # one of two is enough
    held = 0
    for seed in range(300):
        values = stage.estimate(stage.samples[:20], seed=seed).values[:, 0]
        interval = mean_interval(values)
        held += interval.low <= 0.5 <= interval.high
    assert 0.92 <= held / 300 <= 0.98


@pytest.mark.parametrize("antithetic", [False, True])
def test_an_input_has_the_same_orders_beside_others_and_alone(antithetic: bool) -> None:
    spec = dataclasses.replace(GAME, exact_up_to=0, antithetic=antithetic)
    stage = Stage([a_network(TABLE)], TABLE, spec, "cpu")
    together = stage.estimate(stage.samples[:3], seed=0)
    alone = joined([stage.estimate(stage.samples[k : k + 1], seed=0) for k in range(3)])
    for name in ("values", "error", "groups", "sizes"):
        torch.testing.assert_close(getattr(together, name), getattr(alone, name), atol=1e-6, rtol=1e-4)


def test_sampled_values_are_those_of_their_own_players() -> None:
    trained = [a_network(TABLE)]
    exactly = Stage(trained, TABLE, GAME, "cpu")
    sampled = Stage(trained, TABLE, dataclasses.replace(GAME, exact_up_to=0, permutations=400), "cpu")
    right = exactly.estimate(exactly.samples[:5], seed=0).values
    found = sampled.estimate(sampled.samples[:5], seed=0)
    assert ((found.values - right).abs() <= 4 * found.error + 1e-6).all()
    means = (found.groups * found.sizes[:, None]).sum(1) / found.sizes.sum()
    torch.testing.assert_close(means, found.values, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(("baseline", "given"), [("mean", {"baseline", "players"}), ("blur", {"players"})])
def test_methods_are_given_the_game_where_it_is_shared(baseline: str, given: set[str]) -> None:
    panel = dataclasses.replace(UNITS, player="input")
    spec = dataclasses.replace(GAME, baseline=baseline)  # type: ignore[arg-type]
    stage = Stage([a_network(panel)], panel, spec, "cpu")
    x, _ = stage.inputs(stage.samples[:2])
    assert set(stage.shared_game(x)) == given  # a blurred input is no one else's
    apart = Stage([a_network(panel)], panel, dataclasses.replace(spec, same_game=False), "cpu")
    assert apart.shared_game(x) == {}


def test_probabilities_are_explained_through_a_softmax() -> None:
    panel = dataclasses.replace(UNITS, player="input")
    trained = a_network(panel)
    module, layer = explained_network(trained, panel, dataclasses.replace(GAME, output="probabilities"), "cpu")
    logits, plain = explained_network(trained, panel, GAME, "cpu")
    x = torch.rand(2, 3, 32, 32)
    assert torch.allclose(module(x), logits(x).softmax(1)) and layer == f"0.{plain}"
    table, none = explained_network(a_network(TABLE), TABLE, dataclasses.replace(GAME, output="probabilities"), "cpu")
    assert none is None and table(torch.rand(2, 10)).sum(1).tolist() == pytest.approx([1.0, 1.0])
    assert not any(weight.requires_grad for weight in logits.parameters())


def test_a_network_and_a_panel_share_what_a_training_is() -> None:
    assert dataclasses.asdict(Network(TABLE.source, "mlp5", 2))["player"] == "input"
    assert isinstance(TABLE, Network) and TABLE.trainings == 1


def test_classes_of_all_roles_are_counted() -> None:
    stage = Stage([a_network(TABLE)], TABLE, GAME, "cpu")
    lines = stage.classes(stage.samples[:4])
    assert {line["role"] for line in lines} == {"explained", "background", "baseline"}
    total = {role: sum(line["count"] for line in lines if line["role"] == role) for role in ("explained", "baseline")}
    assert total == {"explained": 4, "baseline": REFERENCES}
    assert {line["dataset"] for line in lines} == {"interactions"}
