"""What the user asks: a network, inputs, and where the patches are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

from forsooth.adapters.methods import MethodLike
from forsooth.records import Facts, UsageError
from forsooth.user.requests import plain_words


@dataclass(frozen=True, kw_only=True)
class IndependenceRequest:
    """The user's words.

    model      package.module:name, or a torch module
    inputs     (n, *shape): a file, an array or a tensor
    methods    to ask; empty: common ones
    target     None: the predicted class; a class; one for each input (n,)
    patch      grid:N (a cell of an N × N grid, drawn for each input), size:S (a square of S pixels a side, anywhere),
               or a mask (*spatial) or (n, *spatial), in memory or in a file
    bounds     least and largest value of an input; None: those of the inputs
    layer      what Grad-CAM reads; None: the last module that gives a map
    threshold  change of the patch's saliency, as a share, from which it draws attention
    """

    model: Any
    inputs: Any
    methods: tuple[MethodLike, ...] = ()
    target: Any = None
    patch: Any = "grid:4"
    bounds: tuple[float, float] | None = None
    layer: str | None = None
    threshold: float = 0.1
    device: str = "auto"
    seed: int = 0

    def words(self) -> Facts | None:
        """What decides the patches, as plain values that a task can carry; None where something lives in memory.

        The layer is a matter of single methods, and the threshold of the judgement.
        """
        plain = plain_words(replace(self, bounds=None), without=("methods", "layer", "threshold"))
        if plain is not None and self.bounds is not None:
            plain["bounds"] = [float(end) for end in self.bounds]
        return plain

    def check(self) -> None:
        """UsageError where a number has no meaning."""
        if not is_number(self.threshold) or not self.threshold > 0:
            raise UsageError(f"`threshold` must be a number above 0, got {self.threshold!r}")
        if self.bounds is not None and not are_two_numbers(self.bounds):
            raise UsageError(f"`bounds` must be two numbers in order that hold all inputs, got {self.bounds!r}")


def is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def are_two_numbers(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) == 2 and all(map(is_number, value))
