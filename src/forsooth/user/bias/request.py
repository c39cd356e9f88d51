"""What the user asks: a model, inputs, and how the Shapley values beside them are reckoned."""

from dataclasses import dataclass
from typing import Any

from forsooth.adapters.methods import MethodLike
from forsooth.names import unknown
from forsooth.records import Facts, UsageError
from forsooth.user.requests import plain_words

BUDGET = 50_000_000
KNOWN = {
    "anchor": ("permutations", "leverage"),
    "output": ("logits", "probabilities"),
    "channels": ("signed_max", "max_abs", "sum"),
    "device": ("auto", "cpu", "cuda"),
}


@dataclass(frozen=True, kw_only=True)
class BiasRequest:
    """The user's words. Where all of them are text and numbers, the finished work can be kept on disk.

    model         package.module:name, or a torch module, an estimator, a function
    inputs        (n, *shape): a file, an array or a tensor
    methods       to judge; empty: those that suit the model
    target        None: the predicted class; a class; one for each input (n,), in memory or in a file
    players       auto (words of a text, pixels or features while they are few, else patches), pixels, features, words,
                  grid:N, units:LAYER, or integer labels (*spatial) or (*shape)
    permutations  random orders of joining, or "exact"
    anchor        permutations: walks along these orders; leverage: least squares with a tenth of their forwards, a
                  fifth above 64 players
    budget        most forwards for all Shapley values
    baseline      auto: rows for a table with text, categories or gaps, else mean; mean, channel_mean, zero, blur;
                  rows or rows:N: values of N rows of the data, over which the outputs are averaged; or values (*shape)
                  or (n, *shape)
    data          (k, *shape), what means are taken over and what methods read as background; None: the inputs
    output        logits: the outputs as they are; probabilities: their softmax
    channels      how the channels of a derivative become one number
    device        auto, cpu or cuda
    """

    model: Any
    inputs: Any
    methods: tuple[MethodLike, ...] = ()
    target: Any = None
    players: Any = "auto"
    permutations: int | str = 1000
    baseline: Any = "auto"
    data: Any = None
    output: str = "logits"
    channels: str = "signed_max"
    device: str = "auto"
    seed: int = 0
    anchor: str = "permutations"
    budget: int = BUDGET

    def words(self) -> Facts | None:
        """What decides the games, as plain values that a task can carry; None where something lives in memory."""
        words = plain_words(self, without=("methods", "budget"))
        if words is not None and words["anchor"] == "permutations":
            del words["anchor"]  # what was finished before there was a choice still serves
        return words

    def check(self) -> None:
        """UsageError where a word is on no list."""
        for argument, words in KNOWN.items():
            word = getattr(self, argument)
            if word not in words:
                raise unknown(str(word), words, argument=argument)
        count = self.permutations
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 2
        if count != "exact" and not whole:
            raise UsageError(f"`permutations` must be a whole number of at least 2, or exact, got {count!r}")
        if not isinstance(self.budget, int) or self.budget < 1:
            raise UsageError(f"`budget` must be a whole number of at least 1, got {self.budget!r}")
