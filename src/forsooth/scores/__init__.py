"""Attribution, and what a score declares to read, in; one number per sample out."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from forsooth.names import find
from forsooth.records import Metric, UsageError
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT, RELATIVE_BIAS
from forsooth.scores.contrast import IDR, IIR, MCS
from forsooth.scores.localisation import IMA, PRECISION
from forsooth.scores.planted import ATTR, PRECISION_TOP, RECALL_TOP, attr_non_informative
from forsooth.scores.promises import GAP
from forsooth.scores.selection import ATTR_WORDS, PRECISION_SELECTED, RECALL_SELECTED, attr_words_non_correlating
from forsooth.scores.transport import EMD, EMD_RELEASED

# Of features that tell nothing, the less the better.
ATTR_NON_INFORMATIVE = replace(ATTR, name="attr_non_informative", function=attr_non_informative, better="lower")

# Of articles that tell nothing, too.
ATTR_WORDS_NON_CORRELATING = replace(
    ATTR_WORDS, name="attr_words_non_correlating", function=attr_words_non_correlating, better="lower"
)

METRICS: tuple[Metric, ...] = (
    EMD,
    IMA,
    PRECISION,
    EMD_RELEASED,
    GAP,
    M_BIAS,
    M_BIAS_SPLIT,
    RELATIVE_BIAS,
    ATTR,
    ATTR_NON_INFORMATIVE,
    PRECISION_TOP,
    RECALL_TOP,
    ATTR_WORDS,
    ATTR_WORDS_NON_CORRELATING,
    PRECISION_SELECTED,
    RECALL_SELECTED,
    MCS,
    IDR,
    IIR,
)


def metrics(wanted: Iterable[str]) -> tuple[Metric, ...]:
    """The metrics of these names, in their order."""
    return tuple(metric(name) for name in wanted)


def check_reads(metrics: Iterable[Metric], given: Collection[str]) -> None:
    """UsageError where one of the metrics reads more than what is given beside the map."""
    most = f"{' and '.join(given)} beside the map"
    for one in metrics:
        lost = [name for name in one.reads if name not in given]
        if lost:
            raise UsageError(f"`metrics` must read no more than {most}; {one.name} reads {', '.join(lost)}, too")


def metric(name: str) -> Metric:
    """The metric called `name`; an unknown one is answered with the nearest known."""
    return find(name, METRICS, argument="metrics")
