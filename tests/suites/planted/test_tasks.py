"""Tasks of the planted suite by hand: the gate, what a training keeps, which states are explained and which not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from suites.planted.smallest import LEAVES, ask_of, columns_of, spec_of
from torch import nn

from forsooth.engine import one_thread
from forsooth.models import resnet
from forsooth.models.gates import Gate
from forsooth.models.normalising import normalised, with_normalising
from forsooth.models.recipes import PLANTED_QUICK
from forsooth.models.train import Checkpoint, Trained
from forsooth.plain import from_plain, to_plain
from forsooth.records import Cell
from forsooth.suites import networks
from forsooth.suites.album import placed
from forsooth.suites.choose import SHOWN
from forsooth.suites.networks import NOT_EXPLAINED
from forsooth.suites.planted import data, tasks

pytestmark = pytest.mark.usefixtures("single")
GATE = Gate(accuracy=0.95, max_p_value=1e-3)
RECIPE = replace(PLANTED_QUICK, epochs=1)


@pytest.fixture(scope="module")
def trained() -> Cell:
    """One epoch of a small network, with its checkpoints and without a gate."""
    given = {"spec": spec_of(), "net": "residual_small", "recipe": RECIPE, "gate": Gate(0.0, 1.0), "keep": True}
    with one_thread():
        return tasks.train(**given, columns=columns_of("training"), seed=0, device="cpu")


@pytest.mark.parametrize(
    "accuracy, p_value, p_star, word",
    [
        (0.99, 1e-9, 0.5, ""),
        (0.6, 0.02, 0.5, "chance"),
        (0.8, 1e-9, 0.5, "gate"),
        (0.99, 1.0, 1.0, ""),
        (0.8, 1, 1, "gate"),
    ],
)
def test_the_gate(accuracy, p_value, p_star, word):
    objection = GATE.objection(accuracy, p_value, p_star=p_star)
    assert (word in objection) if word else objection == ""


def test_the_words_of_a_gate_in_keys_stay():
    assert to_plain(GATE) == {"accuracy": 0.95, "luck": 1e-3}
    assert from_plain({"accuracy": 0.95, "luck": 1e-3}, Gate) == GATE


@pytest.mark.parametrize(
    "accuracy, status, message",
    [
        (1.0, "ok", ""),
        (0.9, "below gate", "accuracy 90.0%, below the gate of 95%"),
        (0.5, "below gate", "accuracy 50.0% could be chance at p* = 50%: it need not use the artefact"),
    ],
)
def test_the_row_of_a_training(accuracy, status, message):
    planted = data.dataset(spec_of())
    row = tasks.training_row(planted, accuracy, GATE, tasks.template(planted, columns_of("training")))
    assert (row.value, row.status, row.message) == (accuracy, status, message)
    assert (row.suite, row.part, row.metric, row.method, row.sample) == ("planted", "training", "accuracy", "", -1)
    assert row.columns["p_star"] == 0.5 and row.columns["er"] == planted.facts["er"]
    assert row.columns["p_value"] == pytest.approx(0.5 ** len(planted.splits["test"])) or accuracy < 1
    assert "luck" not in row.columns and row.columns["visibility"] == 13.0


def test_checkpoints_that_are_the_final_network_are_not_kept_twice():
    module = nn.Linear(1, 1)
    other = {name: value + 1 for name, value in module.state_dict().items()}
    saved = (Checkpoint(2, 0.6, other), Checkpoint(5, 0.9, dict(module.state_dict())))
    run = SimpleNamespace(module=module, checkpoints=saved, epochs=5)
    assert [epoch for epoch, _ in Trained.states(run, checkpoints=True)] == [2, 5]
    ((epoch, weights),) = Trained.states(run, checkpoints=False)
    assert epoch == 5 and torch.equal(weights["weight"], module.weight)


def test_a_training_keeps_its_weights_and_their_accuracies(trained):
    assert set(trained.facts) == {"passed", "net", "states", "attempts", "said"}
    assert trained.facts["passed"] and trained.facts["net"] == "residual_small"
    assert trained.facts["said"] == data.notes(LEAVES)
    states = trained.facts["states"]
    assert {name.split(".")[0] for name in trained.tensors} == {str(k) for k in range(len(states))}
    assert states[-1]["epoch"] == 1 and states[-1]["accuracy"] == pytest.approx(trained.rows[0].value)
    assert trained.rows[0].model == "residual_small" and trained.rows[0].part == "training"


def test_normalisation_in_front_changes_no_output():
    net = resnet.residual_small(size=32).eval()
    planted = data.dataset(spec_of())
    network = networks.loaded(tasks.untrained("residual_small", planted), net.state_dict(), device="cpu")
    whole = with_normalising(network)
    with torch.no_grad(), one_thread():
        outputs = net(normalised(planted.x))
        torch.testing.assert_close(whole(planted.x), outputs, rtol=1e-4, atol=1e-5)
        end = with_normalising(network, output="probabilities")
        torch.testing.assert_close(end(planted.x), whole(planted.x).softmax(1))
    assert isinstance(whole, nn.Sequential) and not any(p.requires_grad for p in whole.parameters())


def test_accuracy_is_the_share_that_is_right():
    planted = data.dataset(spec_of())

    class Truth(nn.Module):
        """Sees the artefact by its effect on the sum of the image; half of the answers are turned round."""

        def forward(self, x):
            answers = [int(planted.y[(planted.x == one).flatten(1).all(1)][0]) for one in x]
            wrong = torch.arange(len(x)) % 4 == 0
            return nn.functional.one_hot(torch.tensor(answers) ^ wrong, 2).float()

    test = planted.splits["test"]
    expected = 1 - float((torch.arange(len(test)) % 4 == 0).double().mean())
    assert tasks.accuracy_of(Truth(), planted, device="cpu") == pytest.approx(expected)


def test_an_example_shows_image_and_region_of_both_presences():
    columns = {name: value for name, value in columns_of().items() if name != "part"}
    cell = tasks.show(spec=spec_of(), columns=columns)
    planted = data.dataset(spec_of())
    names = {f"{kind} {presence}" for kind in ("input", "truth") for presence in ("with", "without")}
    assert set(cell.tensors) == {placed(name, place) for name in names for place in range(SHOWN)}
    assert [p["place"] for p in cell.facts["pictures"] if p["tensor"] in ("truth with", "truth with 1")] == [0, 1]
    torch.testing.assert_close(cell.tensors["truth with"].bool(), planted.truth[0])
    labels = {picture["tensor"]: (picture["kind"], picture["label"]) for picture in cell.facts["pictures"]}
    assert labels["input with"] == ("input", 1) and labels["truth without"] == ("truth", 0)
    assert all(p["model"] == "none" and p["manipulation"] == "watermark" for p in cell.facts["pictures"])


def cell_of(passed: bool, *epochs: int) -> Cell:
    states = [{"epoch": epoch, "accuracy": epoch / 10} for epoch in epochs]
    return Cell(facts={"passed": passed, "net": "residual_small", "states": states})


def test_who_is_not_explained():
    below = {"status": "below gate", "message": NOT_EXPLAINED}
    both = (cell_of(False, 1), cell_of(True, 1))
    assert tasks.refused(both, 0, ask_of()) == below and tasks.refused(both, 1, ask_of()) == {}
    assert tasks.refused(both, -1, ask_of()) == {}
    assert tasks.refused(both[:1], -1, ask_of())["status"] == "no model"
    assert tasks.refused(both[:1], 0, ask_of(checkpoints=True)) == {}  # whatever their accuracy


def test_which_states_are_explained():
    cells = (cell_of(True, 2, 5, 9),)
    last = tasks.states_of(cells, 0, ask_of())
    assert [(state.number, state.epoch, state.accuracy) for state in last] == [(2, 9, 0.9)]
    every = tasks.states_of(cells, 0, ask_of(checkpoints=True))
    assert [state.epoch for state in every] == [2, 5, 9] and every[0].cell is cells[0]
    (null,) = tasks.states_of(cells, -1, ask_of())
    assert (null.cell, null.epoch, null.accuracy) == (None, -1, None)


def test_a_network_below_its_gate_is_one_row_for_each_presence_and_metric():
    ask = ask_of(metrics={"attr": 1, "recall_top": 1})
    cell = tasks.explain(cell_of(False, 1), spec=spec_of(), index=0, ask=ask, columns=columns_of(model="m"))
    told = [(row.part, row.columns["presence"], row.metric, row.sample, row.status) for row in cell.rows]
    assert told == [
        ("scores", "with", "attr", -1, "below gate"),
        ("scores", "with", "recall_top", -1, "below gate"),
        ("absence", "without", "attr", -1, "below gate"),
        ("absence", "without", "recall_top", -1, "below gate"),
    ]
    assert all(np.isnan(row.value) and row.columns["er"] is None and "epoch" not in row.columns for row in cell.rows)


def test_a_method_on_every_state_of_a_network(trained):
    ask = ask_of("saliency", checkpoints=True)
    with one_thread():
        cell = tasks.explain(trained, spec=spec_of(), index=0, ask=ask, columns=columns_of("checkpoints", model="m"))
    epochs = [state["epoch"] for state in trained.facts["states"]]
    assert list(dict.fromkeys(row.columns["epoch"] for row in cell.rows)) == epochs
    assert len(cell.rows) == 8 * len(epochs) and {row.status for row in cell.rows} == {"ok"}
    assert cell.facts == {"drawn": [], "failed": False, "pictures": []} and not cell.tensors


def test_maps_are_kept_where_the_page_shows_them(trained):
    ask = ask_of("oracle", show=True)
    with one_thread():
        cell = tasks.explain(trained, spec=spec_of(), index=-1, ask=ask, columns=columns_of(model="none"))
    assert {row.value for row in cell.rows} == {1.0} and {row.columns["epoch"] for row in cell.rows} == {-1}
    torch.testing.assert_close(cell.tensors["with"].bool(), data.dataset(spec_of()).truth[0])
    expected = [(presence, place) for presence in ("with", "without") for place in range(SHOWN)]
    assert [(p["tensor"], p["label"], p["place"], p["method"]) for p in cell.facts["pictures"]] == [
        (placed(presence, place), int(presence == "with"), place, "oracle") for presence, place in expected
    ]


def test_a_method_that_raises_is_rows_and_a_failure(trained):
    ask = ask_of("own_methods:raises")
    cell = tasks.explain(trained, spec=spec_of(), index=0, ask=ask, columns=columns_of(model="m"))
    assert cell.facts["failed"] and {row.status for row in cell.rows} == {"error"}
    assert len(cell.rows) == 8 and all("no map today" in row.message for row in cell.rows)
