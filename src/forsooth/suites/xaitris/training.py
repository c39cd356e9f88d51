"""What a training leaves behind, and how many trainings of a run are done at once on an accelerator."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import torch
from torch import nn

from forsooth import models, seeds
from forsooth.datasets import remarks
from forsooth.group import Together
from forsooth.models import together
from forsooth.models.recipes import Recipe
from forsooth.models.samples import pooled
from forsooth.models.train import Trained
from forsooth.records import Cell, Dataset
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.networks import NetSpec
from forsooth.suites.xaitris import data
from forsooth.suites.xaitris.data import DataSpec

AT_ONCE = 512  # images in one forward


def untrained(net: NetSpec, spec: DataSpec) -> nn.Module:
    side = spec.setting.size
    return models.build(net.name, shape=(1, side, side), classes=2, variant=net.variant)


def cell(
    trained: Trained,
    dataset: Dataset,
    spec: DataSpec,
    net: NetSpec,
    recipe: Recipe,
    *,
    model_seed: int,
    device: str,
    part: str,
) -> Cell:
    """The row of a training, its weights, and which test images the network gets right."""
    template = data.panel(spec, net.name, model_seed).row(part)
    row = networks.accuracy_row(template, trained.test_accuracy, gate=recipe.gate, passed=trained.passed)
    facts = {
        "passed": trained.passed,
        "epochs": trained.epochs,
        "restarts": trained.restarts,
        "attempts": list(trained.attempts),
        "net": asdict(net),
        "train_mode": recipe.evaluate_in_train_mode,
        "said": remarks.on_backgrounds(dataset.facts),
    }
    rows = dataset.splits["test"]
    with explaining.lent_randomness(seeds.derive(0, "dropout")):
        correct = networks.correct(trained.module, dataset, rows, device=device, size=AT_ONCE)
    tensors = {"correct": correct}
    if part != "sweep":  # nobody is asked about those
        tensors |= networks.weights_of(trained.module, "net.")
    return Cell(rows=(row,), tensors=tensors, facts=facts)


def alike(task: Mapping[str, Any]) -> Any:
    """What trainings share that take one step: network, recipe, shape and number of images, device."""
    setting = task["spec"].setting
    if not together.can(partial(untrained, task["net"], task["spec"]), task["recipe"]):
        return None
    return task["net"], task["recipe"], setting.size, setting.n, task["device"]


def work(tasks: Sequence[Mapping[str, Any]], say: Callable[[str], None]) -> Iterator[Cell]:
    """The cells of trainings that are alike, trained at once."""
    specs = list(dict.fromkeys(task["spec"] for task in tasks))
    members = [together.Member(specs.index(task["spec"]), task["seed"]) for task in tasks]
    net, recipe, device = (tasks[0][name] for name in ("net", "recipe", "device"))
    light: list[Dataset] = []
    pool = pooled(made(specs, light), len(specs), torch.device(device))
    trained = together.fit_together(partial(untrained, net, specs[0]), pool, members, recipe, tell=say)
    for task, member, one in zip(tasks, members, trained, strict=True):
        dataset = replace(light[member.dataset], x=pool.each[member.dataset].x)
        shared = {name: task[name] for name in ("spec", "net", "recipe", "model_seed", "device", "part")}
        yield cell(one, dataset, **shared)


def made(specs: Sequence[DataSpec], light: list[Dataset]) -> Iterator[Dataset]:
    """The datasets one by one; `light` gets each without its images, which are on the device by then."""
    for spec in specs:
        dataset = data.dataset(spec)
        light.append(replace(dataset, x=torch.empty(0), truth=None))
        yield dataset


TOGETHER = Together(alike, work)
