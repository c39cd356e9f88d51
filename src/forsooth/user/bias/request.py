"""What the user asks: a model, inputs, and how the Shapley values beside them are reckoned."""

from dataclasses import dataclass
from typing import Any

from forsooth.adapters.methods import MethodLike
from forsooth.names import unknown
from forsooth.records import Facts, UsageError
from forsooth.user.requests import plain_words

BUDGET = 50_000_000
BUDGET_SECONDS = 86_400
KNOWN = {
    "anchor": ("auto", "permutations", "leverage"),
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
    permutations  random orders of joining, or "exact"; auto: 1,000, and 200 where `auto` chose leverage
    anchor        permutations: walks along these orders; leverage: least squares with a tenth of their forwards, a
                  fifth above 64 players; auto: leverage where nobody gave permutations, for up to 256 players
                  of an image of more than 64 pixels
    budget        most forwards for all Shapley values
    budget_seconds  most seconds that all work may be thought to take
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
    permutations: int | str = "auto"
    baseline: Any = "auto"
    data: Any = None
    output: str = "logits"
    channels: str = "signed_max"
    device: str = "auto"
    seed: int = 0
    anchor: str = "auto"
    budget: int = BUDGET
    budget_seconds: float = BUDGET_SECONDS

    def words(self) -> Facts | None:
        """What decides the games, as plain values that a task can carry; None where something lives in memory."""
        words = plain_words(self, without=("methods", "budget", "budget_seconds"))
        if words is not None and words["anchor"] == "permutations":
            del words["anchor"]  # what was finished before there was a choice still serves
        return words

    @classmethod
    def of_words(cls, words: Facts) -> "BiasRequest":
        """The request that these `words` decide."""
        return cls(**{"anchor": "permutations", **words})

    def check(self) -> None:
        """UsageError where a word is on no list."""
        for argument, words in KNOWN.items():
            word = getattr(self, argument)
            if word not in words:
                raise unknown(str(word), words, argument=argument)
        count = self.permutations
        whole = isinstance(count, int) and not isinstance(count, bool) and count >= 2
        if count not in ("exact", "auto") and not whole:
            raise UsageError(f"`permutations` must be a whole number of at least 2, exact or auto, got {count!r}")
        if not isinstance(self.budget, int) or self.budget < 1:
            raise UsageError(f"`budget` must be a whole number of at least 1, got {self.budget!r}")
        if isinstance(self.budget_seconds, bool) or not isinstance(self.budget_seconds, int | float):
            raise UsageError(f"`budget_seconds` must be a number of seconds, got {self.budget_seconds!r}")
        if not self.budget_seconds > 0:
            raise UsageError(f"`budget_seconds` must be above 0, got {self.budget_seconds}")
