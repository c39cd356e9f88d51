"""What the user asks: maps, and the truth that they are scored against."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from forsooth import scores
from forsooth.records import Metric, Names, UsageError
from forsooth.user.requests import can_be_typed, typed

DEFAULTS = ("ima", "precision")
TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class ScoreRequest:
    """The user's words.

    maps           a file, a folder, an array, or arrays by the names of methods
    truth          a folder that `forsooth export-data` wrote, a folder of masks, a file, an array or a Dataset
    images         the inputs, for nulls that read them: a folder, a file or an array; None: those of the export, if any
    metrics        names; empty: `DEFAULTS`
    emd_tolerance  that an earth mover's score may be off, proven; 0: it is exact
    """

    maps: Any
    truth: Any
    images: Any = None
    metrics: Names = ()
    emd_tolerance: float = TOLERANCE
    seed: int = 0

    def records(self, given: Collection[str]) -> tuple[Metric, ...]:
        """The metrics, each of which reads nothing but what is given beside the map."""
        if not isinstance(self.emd_tolerance, int | float) or not self.emd_tolerance >= 0:
            raise UsageError(f"`emd_tolerance` must be 0 or more, got {self.emd_tolerance}")
        metrics = scores.metrics(dict.fromkeys(self.metrics or DEFAULTS))
        scores.check_reads(metrics, given)
        return metrics

    def command(self) -> str:
        """The words at the terminal that repeat it; empty where something lives in memory."""
        places = {"truth": self.truth, "images": self.images}
        if not all(map(can_be_typed, (self.maps, *places.values()))):
            return ""
        options = {**places, "metrics": self.metrics, "emd_tolerance": f"{self.emd_tolerance:g}", "seed": self.seed}
        return typed("score", options, self.maps)
