"""Faults of the kinds that have been made, planted in the way from data to a board."""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import way
from torch import Tensor

from forsooth.datasets.articles import Articles
from forsooth.plain import remembered
from forsooth.records import Cell, Dataset
from forsooth.suites import choose, explain
from forsooth.suites.articles import data as documents
from forsooth.suites.bam import data as pastes
from forsooth.suites.bam import tcav
from forsooth.suites.bias import data as bias_data
from forsooth.suites.planted import data as plots
from forsooth.suites.xaitris import data as tetrominoes


@dataclass(frozen=True)
class Maker:
    """The function of one argument, by its name in these modules, that makes the data of a walk."""

    name: str
    modules: tuple[ModuleType, ...]


MAKERS = {
    "xaitris": Maker("dataset", (tetrominoes,)),
    "bias": Maker("dataset", (bias_data,)),
    "planted": Maker("dataset", (plots,)),
    "planted on": Maker("base", (plots,)),  # the images before artefacts
    "articles": Maker("dataset", (documents,)),
    "bam": Maker("world", (pastes, tcav)),
}


def remake(patch: pytest.MonkeyPatch, name: str, change: Callable[[Any], Any]) -> None:
    """The data of a walk are changed right after they are made."""
    maker = MAKERS[name]
    make = getattr(maker.modules[0], maker.name).__wrapped__
    remade = remembered(2)(functools.wraps(make)(lambda spec: change(make(spec))))
    for module in maker.modules:
        patch.setattr(module, maker.name, remade)


def one_class_only(patch: pytest.MonkeyPatch, name: str) -> None:
    """The first rows of data that come in blocks."""

    def first_rows(strata: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
        return strata.sort(stable=True).indices[:count]

    def first_of_two(one: Tensor, two: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
        return first_rows(one, count, seed=seed, role=role)

    patch.setattr(choose, "evenly", first_rows)
    patch.setattr(choose, "crossed", first_of_two)


def shifted_mask(patch: pytest.MonkeyPatch, name: str) -> None:
    def shift(data: Dataset | Articles) -> Dataset | Articles:
        if isinstance(data, Articles):  # by one word
            words = dataclasses.replace(data.dataset, truth=data.dataset.truth.roll(1, -1))
            return dataclasses.replace(data, dataset=words)
        half = data.truth.shape[-1] // 4
        return dataclasses.replace(data, truth=data.truth.roll((half, half), (-2, -1)))

    remake(patch, name, shift)


def changed_answer(patch: pytest.MonkeyPatch, question: Callable, answer: Callable) -> None:
    ask = explain.attribute
    patch.setattr(explain, "attribute", lambda name, asked: answer(ask(name, question(asked))))


def transposed_map(patch: pytest.MonkeyPatch, name: str) -> None:
    def transposed(cell: Cell) -> Cell:
        return dataclasses.replace(cell, tensors={**cell.tensors, "maps": cell.tensors["maps"].mT.contiguous()})

    changed_answer(patch, lambda question: question, transposed)


def wrong_target(patch: pytest.MonkeyPatch, name: str) -> None:
    def another(asked: explain.Question) -> explain.Question:
        return dataclasses.replace(asked, target=(asked.target - 1).abs())  # 1 for 0, else the one before

    changed_answer(patch, another, lambda cell: cell)


def train_and_test_exchanged(patch: pytest.MonkeyPatch, name: str) -> None:
    def exchange(dataset: Dataset) -> Dataset:
        splits = {**dataset.splits, "train": dataset.splits["test"], "test": dataset.splits["train"]}
        return dataclasses.replace(dataset, splits=splits)

    remake(patch, name, exchange)


def trained_on_what_is_explained(patch: pytest.MonkeyPatch, name: str) -> None:
    def leak(dataset: Dataset) -> Dataset:
        both = torch.cat([dataset.splits["train"], dataset.splits["test"]])
        return dataclasses.replace(dataset, splits={**dataset.splits, "train": both})

    remake(patch, name, leak)


def maps_of_other_samples(patch: pytest.MonkeyPatch, name: str) -> None:
    def rolled(cell: Cell) -> Cell:
        return dataclasses.replace(cell, tensors={**cell.tensors, "maps": cell.tensors["maps"].roll(1, 0)})

    changed_answer(patch, lambda question: question, rolled)


def walk(name: str, folder: Path) -> way.Walk:
    """The walk with few methods: those that watch, and one to compare with."""
    words = way.WALKS[name]
    asked = [method for method in words.methods if method in (*way.WATCHED, words.signal)]
    return way.walk(words, folder, methods=asked)


Fault = Callable[[pytest.MonkeyPatch, str], None]
# fault -> walk -> the check that catches it
CAUGHT: dict[Fault, dict[str, str]] = {
    one_class_only: {
        **dict.fromkeys(("xaitris", "bias", "articles", "bam"), "every_class_is_asked_about"),
        "planted": "every_class_takes_part_evenly",
    },
    shifted_mask: dict.fromkeys(("xaitris", "planted", "articles"), "the_signal_lies_on_the_truth"),
    transposed_map: dict.fromkeys(("xaitris", "planted"), "the_truth_that_is_given_is_the_truth_that_is_scored"),
    wrong_target: dict.fromkeys(("xaitris", "bias", "planted", "articles", "bam"), "the_right_class_is_explained"),
    train_and_test_exchanged: dict.fromkeys(("xaitris", "bias", "planted"), "explained_inputs_are_held_out"),
    trained_on_what_is_explained: {"xaitris": "explained_inputs_are_held_out"},
    maps_of_other_samples: dict.fromkeys(("rigid", "bam"), "the_truth_that_is_given_is_the_truth_that_is_scored"),
}
