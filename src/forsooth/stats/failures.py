"""Means of methods of which some gave no score: each failure counts as the worse of the maps that ignore the model."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forsooth.stats.bootstrap import jackknife_parts
from forsooth.stats.panels import Floats


@dataclass(frozen=True)
class Scores:
    """Scores of all methods on the inputs where anybody can be judged, each failure as the worse of the nulls.

    values  (m, usable)
    left    (m, usable, g) without each group of permutations of the anchor
    failed  (m,) share of inputs without a score
    """

    values: Floats
    left: Floats
    failed: Floats

    @property
    def mean(self) -> Floats:
        """(m,), nan of a method that failed everywhere."""
        usable = max(1, self.values.shape[1])
        return np.where(self.failed < 1, self.values.sum(1) / usable, np.nan)

    def sampling_parts(self, sizes: Floats) -> Floats | None:
        """What the sampling of the anchor, in groups of these sizes (g,), does to the means, (m, g); None where
        nothing was sampled, or in one group."""
        if self.left.shape[2] < 2 or self.values.shape[1] == 0:
            return None
        return jackknife_parts(self.values, self.left, sizes)


def filled(values: Floats, left: Floats, *, nulls: Sequence[int]) -> Scores:
    """The scores of values (m, n) and left (m, n, g), of which the lower is better.

    nulls  places of the maps that ignore the model; where one has no score, nobody can be judged on the input
    """
    usable = np.asarray(np.isfinite(values[nulls]).all(0))
    bad = ~np.isfinite(values[:, usable])
    failed = np.ones(len(values))
    if usable.any():
        failed = bad.mean(1)
    return Scores(
        values=np.where(bad, values[nulls][:, usable].max(0), values[:, usable]),
        left=np.where(bad[..., None], left[nulls][:, usable].max(0), left[:, usable]),
        failed=failed,
    )
