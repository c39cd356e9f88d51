"""TCAV of a network: one score of its layers, and what each of them says."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forsooth.attributions.concepts import LayerTest, averaged, parted


class TcavScore(NamedTuple):
    """TCAV of one network, the mean over the layers that pass the test.

    score, chance  of the concept, nan where no layer passes; and of random concepts
    inputs, sets   the score by input and by random set, which have its mean; empty where no layer passes
    rows           numbers of the inputs
    layers         what the layers say, in words
    """

    score: float
    chance: float
    inputs: list[float]
    sets: list[float]
    rows: list[int]
    layers: str


def tcav_score(tests: Sequence[LayerTest], rows: Tensor, *, level: float, inside: str = "") -> TcavScore:
    """One score of the layers of a network. inside: what stands before the names of its layers"""
    passed = [test for test in tests if test.p <= level]
    random_scores = [test.random_scores.mean() for test in passed or tests]
    inputs, sets = parted(tests, level=level)
    return TcavScore(
        score=averaged(tests, level=level),
        chance=float(torch.tensor(random_scores).mean()),
        inputs=inputs.tolist(),
        sets=sets.tolist(),
        rows=rows.tolist(),
        layers=f"{len(passed)} of {len(tests)} layers pass p <= {level} ({layer_words(tests, level, inside)})",
    )


def layer_words(tests: Sequence[LayerTest], level: float, inside: str) -> str:
    """The score of each layer, in brackets where it does not pass the test."""
    words = []
    for test in tests:
        score = f"{test.layer.removeprefix(inside)} {test.scores.mean():.2f}"
        words.append(score if test.p <= level else f"[{score}]")
    return ", ".join(words)
