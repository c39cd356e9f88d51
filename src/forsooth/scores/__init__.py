"""Attribution, and what a score declares to read, in; one number per sample out."""

from dataclasses import replace

from forsooth.records import Metric
from forsooth.scores.bias import M_BIAS, M_BIAS_SPLIT, RELATIVE_BIAS
from forsooth.scores.contrast import IDR, IIR, MCS
from forsooth.scores.localisation import IMA, PRECISION
from forsooth.scores.planted import ATTR, PRECISION_TOP, RECALL_TOP
from forsooth.scores.promises import GAP
from forsooth.scores.selection import ATTR_WORDS, PRECISION_SELECTED, RECALL_SELECTED
from forsooth.scores.transport import EMD, EMD_RELEASED

# Of features that tell nothing, the less the better.
ATTR_NON_INFORMATIVE = replace(ATTR, name="attr_non_informative", better="lower")

# Of articles that tell nothing, too.
ATTR_WORDS_NON_CORRELATING = replace(ATTR_WORDS, name="attr_words_non_correlating", better="lower")

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
