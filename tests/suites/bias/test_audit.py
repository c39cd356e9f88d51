"""Audits of several trainings: the first as it was alone, all on the same images, each with rows of its own."""

import dataclasses
from typing import Any

import pytest
import torch

from forsooth.models import train as training
from forsooth.records import Cell, Choice, Task, UsageError
from forsooth.suites.bias import audit, data
from forsooth.suites.bias.audit import Audit, AuditSettings, AuditSpec, Request

LEAVES = Choice(only={"dataset": ("leaves",)})
TETROMINO = Choice(only={"dataset": ("tetromino",)})
TRAINING_KEYS = {  # of a torch whose version is "pinned", and of 3,000 leaves: cells on a user's disk are still found
    "region": "fcff85eb0b9d45925222f2bf7a78dfc2",
    "pattern": "4c339874babe0cfcad27311871809898",
}


def tasks_of(kind: audit.Kind, choice: Choice = LEAVES, **changes: int) -> list[Task]:
    return list(audit.plan(AuditSettings(**changes), choice, kind).tasks)


def spec_of(kind: audit.Kind, name: str = "leaves", gate: float = 0.0) -> AuditSpec:
    spec = audit.audit_spec(name, kind, AuditSettings(), Choice())
    return dataclasses.replace(spec, gate=gate)


def trained(spec: AuditSpec, seed: int = 0, accuracy: float = 0.9) -> Cell:
    """An untrained network in the place of a trained one."""
    torch.manual_seed(seed)
    module = data.untrained(spec.net, audit.audited_data(spec)[0])
    weights = {f"net.{name}": value for name, value in module.state_dict().items()}
    return Cell(tensors=weights, facts={"accuracy": accuracy})


def request(number: int = 0, **changes: Any) -> Request:
    given = {"training": number, "samples": 3, "permutations": 4, "seed": 7, "device": "cpu", **changes}
    return Request(**given)


@pytest.fixture(autouse=True)
def few_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four regions have sixteen coalitions, sixteen have 65,536."""
    monkeypatch.setattr(audit, "REGIONS", 2)


@pytest.mark.parametrize("kind", ["region", "pattern"])
def test_the_first_training_is_the_one_that_stood_alone(kind: audit.Kind) -> None:
    alone = tasks_of(kind)
    three = tasks_of(kind, trainings=3)
    assert len(alone) == 2 and len(three) == 6
    assert alone[0].key == three[0].key
    assert {"spec", "recipe", "seed", "device"} == set(alone[0].arguments)
    assert len({task.arguments["seed"] for task in three[:3]}) == 3
    assert [task.arguments["request"]["training"] for task in three[3:]] == [0, 1, 2]
    assert all(list(task.needs) == [other.key for other in three[:3]] for task in three[3:])
    assert [task.name for task in three[4:]] == [f"audit leaves, lenet, {kind}, training {k}" for k in (2, 3)]


def test_keys_of_one_training_are_those_of_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Written down from the audit that knew no trainings."""
    monkeypatch.setattr(torch, "__version__", "pinned")
    for kind, key in TRAINING_KEYS.items():
        assert tasks_of(kind)[0].key == key  # type: ignore[arg-type]


def test_less_than_one_training_is_refused() -> None:
    with pytest.raises(UsageError, match="`trainings` must be at least 1, got 0"):
        audit.plan(AuditSettings(trainings=0), LEAVES, "region")


def test_tetrominoes_are_a_pattern_and_have_no_region() -> None:
    assert audit.datasets(Choice(), "pattern") == ["leaves", "tetromino"]
    assert audit.datasets(Choice(), "region") == ["leaves"]
    spec = spec_of("pattern", "tetromino")
    assert spec.net == "mlp" and audit.audited_data(spec)[0] is data.dataset(spec.source)


def test_a_pattern_is_easier_to_learn_than_the_data_themselves() -> None:
    assert audit.audit_spec("leaves", "pattern", AuditSettings(), Choice()).gate == 0.9
    assert audit.audit_spec("leaves", "region", AuditSettings(), Choice()).gate == 0.7
    assert spec_of("pattern").seed != spec_of("region").seed


def test_photographs_have_the_side_that_is_set_and_all_others_theirs() -> None:
    settings = AuditSettings(side=64)
    assert audit.audit_spec("leaves", "region", settings, Choice()).source.side == 32
    assert audit.audit_spec("voc", "region", settings, Choice()).source.side == 64


def test_a_training_leaves_its_weights_and_its_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = spec_of("pattern", "tetromino")
    recipe = dataclasses.replace(audit.RECIPES["mlp"], epochs=1, gate=0.0)
    made = audit.train(spec=spec, recipe=recipe, seed=0, device="cpu")
    assert 0 <= made.facts["accuracy"] <= 1 and all(name.startswith("net.") for name in made.tensors)
    monkeypatch.setattr(training, "fit", lambda *given, **more: pytest.fail("trained again"))
    Audit([made], dataclasses.replace(spec, gate=0.0), request())


@pytest.mark.parametrize("kind", ["region", "pattern"])
def test_all_trainings_are_audited_on_images_that_all_get_right(kind: audit.Kind) -> None:
    spec = spec_of(kind)
    cells = [trained(spec, seed) for seed in (0, 1)]
    one, other = (Audit(cells, spec, request(number, samples=50)) for number in (0, 1))
    assert one.chosen.equal(other.chosen)
    for module in (one.module, other.module):
        assert (module(one.dataset.x[one.chosen]).argmax(1) == one.dataset.y[one.chosen]).all()
    alone = Audit(cells[:1], spec, request(samples=50))
    assert set(one.chosen.tolist()) <= set(alone.dataset.splits["test"].tolist())
    assert len(alone.chosen) >= len(one.chosen)


def test_a_training_below_the_gate_has_no_say() -> None:
    spec = spec_of("pattern", gate=0.5)
    good = trained(spec, 0)
    cells = [good, trained(spec, 1, accuracy=0.2)]
    both = Audit(cells, spec, request(samples=50))
    assert both.chosen.equal(Audit([good], spec, request(samples=50)).chosen)
    made = audit.audit_pattern(*cells, spec=spec, request=request(1))
    (row,) = made.rows
    assert (row.part, row.status, row.value, row.model_seed) == ("training", "below gate", 0.2, 1)
    assert row.columns == {"kind": "pattern", "gate": 0.5} and not made.facts


def test_only_images_with_the_pattern_are_audited_for_it() -> None:
    spec = spec_of("pattern")
    own = Audit([trained(spec)], spec, request(samples=50))
    assert own.truth[own.chosen].flatten(1).any(1).all()
    assert len(own.wanted("region")) > len(own.wanted("pattern"))


def test_a_region_has_one_row_for_each_image() -> None:
    spec = spec_of("region")
    made = audit.audit_region(trained(spec), spec=spec, request=request(samples=2))
    accuracy, *rows = made.rows
    assert accuracy.metric == "accuracy" and accuracy.value == 0.9
    assert len(rows) <= 2 and {row.metric for row in rows} <= {"relative_attribution"}
    assert all(row.part == "audit" and 0 <= row.value <= 4 for row in rows)
    assert {line["role"] for line in made.facts["drawn"]} >= {"baseline"}


def test_a_pattern_has_the_share_with_and_without_noise() -> None:
    spec = spec_of("pattern", "tetromino")
    made = audit.audit_pattern(trained(spec), spec=spec, request=request(samples=2))
    rows = made.rows[1:]
    assert len(rows) == 2 and {row.metric for row in rows} == {"mass_inside"}
    assert all(0 <= row.columns["plain"] <= 1 for row in rows)
    assert all(set(row.columns) == {"kind", "gate", "plain", "error"} for row in rows)


def test_every_training_has_orders_of_its_own_and_the_first_those_it_had() -> None:
    assert audit.number_in_seeds(0) == () and audit.number_in_seeds(2) == (2,)
    spec = spec_of("pattern", "tetromino")
    same = [trained(spec), trained(spec)]
    first, second = (audit.audit_pattern(*same, spec=spec, request=request(k)).rows[1:] for k in (0, 1))
    assert [row.sample for row in first] == [row.sample for row in second]
    assert [row.value for row in first] != [row.value for row in second]


def test_the_baseline_is_drawn_evenly_over_classes() -> None:
    spec = spec_of("pattern")
    own = Audit([trained(spec)], spec, request())
    counts = own.dataset.y[own.reference_rows].unique(return_counts=True)[1]
    assert own.absent.shape == own.dataset.x.shape[1:] and len(counts) == 2
    smaller = int(own.dataset.y[own.dataset.splits["train"]].unique(return_counts=True)[1].min())
    assert int(counts.min()) == smaller or int(counts.max() - counts.min()) <= 1


def test_where_no_image_is_got_right_there_is_nothing_to_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Audit, "right", lambda self, modules, wanted: wanted[:0])
    for kind, function in (("region", audit.audit_region), ("pattern", audit.audit_pattern)):
        spec = spec_of(kind)  # type: ignore[arg-type]
        made = function(trained(spec), spec=spec, request=request())
        assert [row.metric for row in made.rows] == ["accuracy"]
