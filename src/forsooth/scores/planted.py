"""How much of an attribution lies where the planted artefact is [zhou2022feature]."""

from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.localisation import ima, top_hits

SHARE = 0.1  # of the pixels that top-k selects where k is a share; the paper leaves k open


def attr_percent(attribution: Tensor, region: Tensor) -> Tensor:
    """Attr%: the share of the absolute attribution that lies in the region of the truth, a planted artefact's, say.

    attribution  (n, *map) real; the absolute value is taken here
    region       (n, *map) bool
    returns      (n,) float64 in [0, 1]; nan for a map that is all zero or not finite, and for an empty region

    [zhou2022feature], section 3, of the joint effective region; the same number as `ima`. A constant map scores %ER,
    the share of the region, exactly.
    """
    return ima(attribution, region)


def attr_non_informative(attribution: Tensor, region: Tensor) -> Tensor:
    """Attr% on features that tell nothing: the share of the absolute attribution that lies there.

    Shapes and undefined maps as in `attr_percent`; the region is that of the features F_N of [zhou2022feature].
    """
    return attr_percent(attribution, region)


def precision_top(attribution: Tensor, region: Tensor, *, share: float = SHARE) -> Tensor:
    """Pr(F) = |F & F_C| / |F| for F the given share of pixels with the largest absolute attribution.

    attribution, region  (n, *map) real and bool
    returns              (n,) float64; see `top_hits`
    """
    hits, k = top_hits(attribution, region, share=share)
    return hits / k


def recall_top(attribution: Tensor, region: Tensor, *, share: float = SHARE) -> Tensor:
    """Re(F) = |F & F_C| / |F_C| for F the given share of pixels with the largest absolute attribution.

    attribution, region  (n, *map) real and bool
    returns              (n,) float64; see `top_hits`. With k the size of the region it would be `precision`
    """
    hits, _ = top_hits(attribution, region, share=share)
    return hits / region.flatten(1).sum(1)


def shapley_range(r: float, *, accuracy: float = 1.0) -> tuple[float, float]:
    """Least and largest normalised Shapley value of the manipulated features F_M for a model of two balanced classes.

    r         chance to keep a label; the original features F_O reach max(r, 1 - r) at most
    accuracy  p of the model, above 0.5

    [zhou2022feature], appendix C.5. With a(F) the accuracy from the features F alone, a() = 0.5, a(F_M) = a(all) = p
    and 0.5 <= a(F_O) <= p* = max(r, 1 - r):
    v(F_M) = [a(F_M) - a() + a(all) - a(F_O)] / 2 = [2p - 0.5 - a(F_O)] / 2, and the two values sum to p - 0.5. So the
    share of F_M is (2p - 0.5 - a(F_O)) / (2p - 1): from (2p - 0.5 - p*) / (2p - 1) to 1; for p = 1 from 1.5 - r to 1.
    """
    if not 0 <= r <= 1:
        raise UsageError(f"`r` must lie in [0, 1], got {r}")
    if not 0.5 < accuracy <= 1:
        raise UsageError(f"`accuracy` must lie in (0.5, 1], got {accuracy}")
    return (2 * accuracy - 0.5 - max(r, 1 - r)) / (2 * accuracy - 1), 1.0


ATTR = Metric(
    name="attr",
    function=attr_percent,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="zhou2022feature",
    version=1,
)
PRECISION_TOP = Metric(
    name="precision_top",
    function=precision_top,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="zhou2022feature",
    version=1,
)
RECALL_TOP = Metric(
    name="recall_top",
    function=recall_top,
    reads=("truth",),
    better="higher",
    bounds=(0.0, 1.0),
    cite="zhou2022feature",
    version=1,
)
