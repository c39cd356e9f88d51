"""Attribution, and what a score declares to read, in; one number per sample out."""

from forsooth.records import Metric
from forsooth.scores.localisation import IMA, PRECISION
from forsooth.scores.promises import GAP
from forsooth.scores.transport import EMD, EMD_RELEASED

METRICS: tuple[Metric, ...] = (EMD, IMA, PRECISION, EMD_RELEASED, GAP)
