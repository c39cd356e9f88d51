"""Seed and setting in, inputs, labels and the truth of what mattered out."""

from collections.abc import Callable
from dataclasses import dataclass

from forsooth.datasets import tetromino
from forsooth.records import Dataset


@dataclass(frozen=True)
class Source:
    """A maker of datasets: `function(setting, *, seed, photos=None) -> Dataset`."""

    name: str
    function: Callable[..., Dataset]
    description: str
    cite: str
    version: int


DATASETS = (
    Source(
        name="tetromino",
        function=tetromino.tetromino,
        description="T and L tetrominoes on white, correlated or photographic noise; the pixels that matter are known.",
        cite="clark2024xaitris",
        version=1,
    ),
)
