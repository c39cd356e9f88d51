"""BAM networks that begin with given weights, and several trainings of each."""

import dataclasses

import pytest
import torch
from safetensors.torch import save_file

from forsooth import api
from forsooth.models import RESIDUAL_SMALL
from forsooth.records import Choice, UsageError
from forsooth.store import Store
from forsooth.suites.bam import plan as bam
from forsooth.suites.bam import tasks as relative

FEW = {
    **{"side": 32, "scenes": 20, "cutouts": 10, "train": 1, "val": 1, "test": 1, "epochs": 1, "gate": 0.0},
    **{"fine_train": 5, "fine_val": 3, "fine_test": 4, "samples": 6, "few": 3, "fine": 4, "robust": 3, "trials": 2},
    **{"placings": ("as_built",), "ks": (0.1, 1.0), "examples": 5, "sets": 2, "methods": ("gradient", "constant")},
    "trainings": 1,
}


def plan(**settings):
    return bam.plan(dataclasses.replace(bam.QUICK, **FEW | settings), Choice()).tasks


@pytest.fixture
def lit(tmp_path):
    """A file of weights for 1000 classes."""
    net = RESIDUAL_SMALL.function(size=32, classes=1000)
    save_file(net.state_dict(), tmp_path / "lit.safetensors")
    return net, str(tmp_path / "lit.safetensors")


def test_a_training_begins_with_the_weights_of_the_file(lit):
    net, path = lit
    task = next(task for task in plan(start=path) if task.name.startswith("train f_o"))
    still = task.arguments | {"recipe": task.arguments["recipe"] | {"learning_rate": 1e-12}}
    cell = relative.train_network(**still)
    for name, value in net.named_parameters():
        if name.startswith("linear"):
            assert cell.tensors[name].shape[0] == 10
        else:
            torch.testing.assert_close(cell.tensors[name], value.detach(), atol=1e-8, rtol=0)


def test_a_changed_file_is_a_changed_task(lit):
    net, path = lit
    before = {task.name: task.key for task in plan(start=path)}
    from_nothing = {task.name: task.key for task in plan()}
    save_file({k: v + 1 for k, v in net.state_dict().items()}, path)
    after = {task.name: task.key for task in plan(start=path)}
    trained = [name for name in before if name.startswith("train")]
    assert len(trained) == 5
    for name in trained:
        assert len({before[name], after[name], from_nothing[name]}) == 3


def test_what_is_no_beginning_is_refused(tmp_path, lit):
    with pytest.raises(UsageError, match=r"`start` must be a file, got .*none\.safetensors"):
        plan(start=str(tmp_path / "none.safetensors"))
    with pytest.raises(UsageError, match="`trainings` must be at least 1, got 0"):
        plan(trainings=0)
    save_file({"other.weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    task = next(task for task in plan(start=str(tmp_path / "other.safetensors")) if task.name.startswith("train"))
    with pytest.raises(UsageError, match=r"missing: conv1\.weight.*unexpected: other\.weight"):
        relative.train_network(**task.arguments)


def test_two_trainings_are_two_networks_on_the_same_images(tmp_path):
    run = api.run("bam", settings={**FEW, "trainings": 2}, methods=["gradient"], out=tmp_path / "run")
    assert set(run.rows["model_seed"]) == {0, 1}
    for part in ("training", "verification", "samples", "fine"):
        own = run.rows[run.rows["part"].eq(part)]
        first, second = (own[own["model_seed"].eq(number)] for number in (0, 1))
        assert first["sample"].tolist() == second["sample"].tolist() and len(first)
    store = Store(run.folder / "store")
    trained = [task for task in plan(trainings=2) if task.name.startswith("train f_o")]
    one, two = (store.read(task.key).tensors["conv1.weight"] for task in trained)
    assert not torch.equal(one, two)
    assert trained[0].key == next(task for task in plan() if task.name.startswith("train f_o")).key
    assert (run.folder / "report.html").exists()
