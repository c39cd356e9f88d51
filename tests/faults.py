"""Faults of the kinds that have been made, planted in the way from data to a board."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import way
from torch import Tensor

from forsooth.plain import remembered
from forsooth.records import Cell, Dataset
from forsooth.suites import choose, explain
from forsooth.suites.bias import data as bias_data
from forsooth.suites.planted import data as plots
from forsooth.suites.xaitris import data as tetrominoes

MAKERS = {"xaitris": tetrominoes, "planted": plots, "bias": bias_data}  # where the data of a walk are made


def remake(patch: pytest.MonkeyPatch, name: str, change: Callable[[Dataset], Dataset]) -> None:
    """The data of a walk are changed right after they are made."""
    module = MAKERS[name]
    make = module.dataset.__wrapped__
    patch.setattr(module, "dataset", remembered(2)(functools.wraps(make)(lambda spec: change(make(spec)))))


def one_class_only(patch: pytest.MonkeyPatch, name: str) -> None:
    """The first rows of data that come in blocks."""

    def first_rows(strata: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
        return strata.sort(stable=True).indices[:count]

    patch.setattr(choose, "evenly", first_rows)


def shifted_mask(patch: pytest.MonkeyPatch, name: str) -> None:
    def shift(dataset: Dataset) -> Dataset:
        assert dataset.truth is not None
        half = dataset.truth.shape[-1] // 4
        return dataclasses.replace(dataset, truth=dataset.truth.roll((half, half), (-2, -1)))

    remake(patch, name, shift)


def changed_answer(patch: pytest.MonkeyPatch, question: Callable, answer: Callable) -> None:
    ask = explain.attribute
    patch.setattr(explain, "attribute", lambda name, asked: answer(ask(name, question(asked))))


def transposed_map(patch: pytest.MonkeyPatch, name: str) -> None:
    def transposed(cell: Cell) -> Cell:
        return dataclasses.replace(cell, tensors={**cell.tensors, "maps": cell.tensors["maps"].mT.contiguous()})

    changed_answer(patch, lambda question: question, transposed)


def wrong_target(patch: pytest.MonkeyPatch, name: str) -> None:
    changed_answer(patch, lambda asked: dataclasses.replace(asked, target=1 - asked.target), lambda cell: cell)


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
    asked = [method for method in way.WALKS[name].methods if method in way.WATCHED]
    return way.walk(way.WALKS[name], folder, methods=asked)


Fault = Callable[[pytest.MonkeyPatch, str], None]
# fault -> walk -> the check that catches it
CAUGHT: dict[Fault, dict[str, str]] = {
    one_class_only: {
        **dict.fromkeys(("xaitris", "bias"), "every_class_is_asked_about"),
        "planted": "every_class_takes_part_evenly",
    },
    shifted_mask: dict.fromkeys(("xaitris", "planted"), "the_signal_lies_on_the_truth"),
    transposed_map: dict.fromkeys(("xaitris", "planted"), "the_truth_that_is_given_is_the_truth_that_is_scored"),
    wrong_target: dict.fromkeys(("xaitris", "bias", "planted"), "the_right_class_is_explained"),
    train_and_test_exchanged: dict.fromkeys(("xaitris", "bias", "planted"), "explained_inputs_are_held_out"),
    trained_on_what_is_explained: {"xaitris": "explained_inputs_are_held_out"},
    maps_of_other_samples: {"rigid": "the_truth_that_is_given_is_the_truth_that_is_scored"},
}
