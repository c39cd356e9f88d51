"""Who meets whom: panels, tasks, reasons for those who cannot meet."""

import dataclasses
import json
from pathlib import Path

import pytest

from forsooth import plugins
from forsooth.attributions import METHODS
from forsooth.records import Choice, UsageError
from forsooth.suites.bias import data, plan
from forsooth.suites.bias.data import data_spec
from forsooth.suites.bias.settings import PAPER, QUICK, SHAPLEY, Settings
from forsooth.suites.bias.stage import Network, Panel

INTERACTIONS = Choice(only={"dataset": ("interactions",)})
ON_A_TABLE = Panel(data_spec("interactions", None, seed=0, side=32), "mlp5")
ON_AN_IMAGE = Panel(data_spec("leaves", None, seed=0, side=32), "lenet")
ON_UNITS = dataclasses.replace(ON_AN_IMAGE, player="units")
WITHOUT_A_LAYER = Panel(data_spec("tetromino", None, seed=0, side=32), "mlp")


def asked_of(panel: Panel) -> plan.Experiment:
    return plan.Experiment(QUICK, Choice(), panel, trained=[])


def test_weights_from_a_file_are_one_training(monkeypatch: pytest.MonkeyPatch) -> None:
    known = data.data_spec

    def with_weights(*given: object, **more: object) -> data.DataSpec:
        return dataclasses.replace(known(*given, **more), weights={"lenet": "a file"})  # type: ignore[arg-type]

    monkeypatch.setattr(data, "data_spec", with_weights)
    settings = dataclasses.replace(QUICK, trainings=3, players=("input",))
    panels = list(plan.chosen_panels(settings, Choice(only={"dataset": ("leaves", "interactions")})))
    assert [(p.net, p.training, p.trainings) for p in panels] == [
        *(("mlp5", k, 3) for k in range(3)),
        ("lenet", 0, 1),
    ]
    with pytest.raises(UsageError, match="`trainings` must be at least 1, got 0"):
        list(plan.chosen_panels(dataclasses.replace(settings, trainings=0), Choice()))


def test_units_play_only_where_a_network_has_a_layer() -> None:
    panels = list(plan.chosen_panels(dataclasses.replace(QUICK, trainings=1), Choice()))
    players = {(panel.net, panel.player) for panel in panels}
    assert players == {("mlp5", "input"), ("mlp", "input"), ("lenet", "input"), ("lenet", "units")}


def test_factors_can_be_narrowed() -> None:
    only = {"model": ("lenet",), "player": ("units",), "end": ("top",), "fraction": ("0.3",)}
    made = plan.plan(dataclasses.replace(QUICK, trainings=1), Choice(only=only))
    judged = [task for task in made.tasks if task.id == "bias.judge"]
    assert {task.arguments["panel"]["player"] for task in judged} == {"units"}
    assert {json.dumps([t.arguments["ends"], t.arguments["fractions"]]) for t in judged} == {'[["top"], [0.3]]'}
    with pytest.raises(UsageError, match="colour"):
        plan.plan(QUICK, Choice(only={"colour": ("red",)}))


def test_the_json_of_tasks_has_the_words_of_earlier_runs() -> None:
    """They are hashed into the keys of cells that users have on disk."""
    by_id = {task.id: task for task in plan.plan(QUICK, INTERACTIONS).tasks}
    assert set(by_id["bias.train"].arguments) == {"panel", "recipe", "seed", "device"}
    assert set(by_id["bias.train"].arguments["panel"]) == {"source", "net", "training", "player"}
    assert set(by_id["bias.play"].arguments["panel"]) == {"source", "net", "training", "player", "trainings"}
    fields = {"grid", "permutations", "exact_up_to", "antithetic", "baseline", "output", "layer", "same_game"}
    assert set(by_id["bias.play"].arguments["spec"]) == fields
    assert by_id["bias.play"].function.task_words == {"spec": "game"}  # type: ignore[attr-defined]
    versions = {task_id: task.version for task_id, task in by_id.items()}
    assert versions == {"bias.train": 2, "bias.play": 3, "bias.explain": 3, "bias.judge": 2}


def test_keys_are_those_of_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.__version__", "pinned")
    network = Network(data_spec("interactions", None, seed=5, side=32), "mlp5", training=1)
    assert plan.training_task(network, Choice()).key == "6fbe83c81f75496d9e1cc98e4396a37a"
    panel = Panel(network.source, "mlp5", training=1, trainings=2)
    experiment = asked_of(panel)
    assert experiment.play("anchor")[0].key == "a4078c8c5b97270ea10ed153e6eaafb7"
    assert experiment.explain("gradient").key == "da21911faba4aa7dffd80550c695d4bb"
    assert experiment.judge("gradient", [], []).key == "5027bfb106e8c5a97ee649d8574dc014"


def test_a_training_serves_all_players_and_stands_once() -> None:
    made = plan.plan(dataclasses.replace(QUICK, trainings=2), Choice(only={"dataset": ("leaves",)}))
    assert len({task.key for task in made.tasks}) == len(made.tasks)
    assert sum(task.id == "bias.train" for task in made.tasks) == 2
    by_place = {task.key: place for place, task in enumerate(made.tasks)}
    assert all(by_place[need] < by_place[task.key] for task in made.tasks for need in task.needs)


def test_games_are_played_a_few_inputs_at_a_time() -> None:
    tasks = asked_of(ON_A_TABLE).having(samples=20).play("anchor")
    assert [(t.arguments["first"], t.arguments["last"]) for t in tasks] == [(0, 8), (8, 16), (16, 20)]
    other = asked_of(ON_A_TABLE).play("other end")
    assert other[0].arguments["seed"] != tasks[0].arguments["seed"]


def test_shapley_values_are_judged_by_games_played_again() -> None:
    again = asked_of(ON_A_TABLE).answers(SHAPLEY)
    assert {task.id for task in again} == {"bias.play"} and len(again) == 3
    (asked,) = asked_of(ON_A_TABLE).answers("gradient")
    assert asked.id == "bias.explain" and asked.arguments["method"] == "gradient"


@pytest.mark.parametrize(
    ("method", "panel", "reason"),
    [
        ("sobel", ON_A_TABLE, "sobel reads an image, and this is a table"),
        ("lime_superpixels", ON_A_TABLE, "lime_superpixels reads an image, and this is a table"),
        ("grad_cam", ON_A_TABLE, "grad_cam reads a convolutional layer, and mlp5 has none"),
        ("grad_cam", WITHOUT_A_LAYER, "grad_cam reads a convolutional layer, and mlp has none"),
        ("grad_cam", ON_AN_IMAGE, "grad_cam is judged on the units of its layer, as in the paper"),
        ("rectified_input", ON_UNITS, "rectified_input reads an image, and units of a layer are none"),
        ("lime_superpixels", ON_UNITS, "lime_superpixels reads an image, and units of a layer are none"),
        ("guided_grad_cam", ON_UNITS, "guided_grad_cam reads an image, and units of a layer are none"),
        ("grad_cam", ON_UNITS, ""),
        ("random", ON_UNITS, ""),
        ("gradient", ON_UNITS, ""),
        ("rectified_input", ON_A_TABLE, ""),
        ("guided_grad_cam", ON_AN_IMAGE, ""),
        ("sobel", ON_AN_IMAGE, ""),
        (SHAPLEY, ON_UNITS, ""),
    ],
)
def test_who_cannot_meet_is_told_why(method: str, panel: Panel, reason: str) -> None:
    assert plan.unable(method, panel) == reason


def test_reasons_become_rows() -> None:
    made = plan.plan(dataclasses.replace(QUICK, trainings=1), INTERACTIONS)
    rows = {row.method: row for row in made.skips}
    assert set(rows) == {"grad_cam", "lime_superpixels", "sobel", "laplace"}
    flat = rows["sobel"].flat()
    assert (flat["status"], flat["sample"], flat["value"], flat["fraction"]) == ("skipped", -1, None, None)
    assert (flat["dataset"], flat["model"], flat["player"], flat["end"]) == ("interactions", "mlp5", "input", "")


def test_colours_of_derivatives_become_one_and_others_are_sums() -> None:
    def channels(name: str, **changes: str) -> str:
        settings = dataclasses.replace(PAPER, **changes)  # type: ignore[arg-type]
        return plan.channels_of(plugins.method(name, METHODS), settings)

    derivatives = ("gradient", "saliency", "smooth_grad", "guided_backprop", "deconvolution")
    assert {channels(name) for name in derivatives} == {"signed_max"}
    assert {channels(name) for name in ("deep_shap", "lrp", "integrated_gradients", "random")} == {"sum"}
    assert channels("deep_shap", one_colour="all") == "signed_max"
    assert channels("gradient", channels="max_abs") == "max_abs"


def test_a_user_reads_what_was_played() -> None:
    said = plan.facts(QUICK, Choice())
    assert said[0].startswith("Absent players are replaced by the mean of the training data")
    assert "All data are generated" in said[-1]
    blurred = dataclasses.replace(QUICK, baseline="channel_mean", output="probabilities")
    assert "channel mean" in plan.facts(blurred, Choice())[0] and "probabilities" in plan.facts(blurred, Choice())[0]


def test_data_whose_networks_are_not_asked_are_named(tmp_path: Path) -> None:
    (tmp_path / data.voc.ZIP).write_bytes(b"")
    said = plan.facts(QUICK, Choice(data=str(tmp_path)))
    assert "Found and not played: voc" in said[-1]
    assert not any("Found" in sentence for sentence in plan.facts(PAPER, Choice(data=str(tmp_path))))


def test_an_experiment_takes_the_first_network_that_fits_its_data() -> None:
    settings = Settings(datasets=("leaves",), models=("resnet20", "lenet"), players=("input",))
    assert plan.experiment_on("leaves", settings, Choice()).panel.net == "lenet"
    with pytest.raises(UsageError, match=r"`models` must name a network for leaves \(lenet, vit\), got vgg16"):
        plan.experiment_on("leaves", dataclasses.replace(settings, models=("vgg16",)), Choice())


def test_metrics_are_the_three_of_the_paper() -> None:
    assert [metric.name for metric in plan.metrics(QUICK)] == ["relative_bias", "m_bias", "m_bias_split"]
