"""All figures, by the name that a suite writes into `exhibits`. To add one, write a function and name it here."""

from collections.abc import Callable, Mapping

import matplotlib

from forsooth.report.aggregate import Results, choose
from forsooth.report.articles import articles_selection, articles_shares
from forsooth.report.bam import bam_contrasts, bam_patches, bam_series, bam_verification
from forsooth.report.boxes import boxes
from forsooth.report.charts import accuracy, accuracy_by_alpha, leaderboards
from forsooth.report.coloured import articles_attention, articles_text
from forsooth.report.curves import bias_curves
from forsooth.report.drawing import STYLE, Drawing, Tables
from forsooth.report.maps import examples, global_maps, strategies
from forsooth.report.planted import planted_curves, planted_gate

FIGURES: Mapping[str, Callable[[Results, Tables], tuple[Drawing, ...]]] = {
    "leaderboard": leaderboards,
    "accuracies": accuracy,
    "boxes": boxes,
    "examples": examples,
    "globals": global_maps,
    "accuracy_by_alpha": accuracy_by_alpha,
    "strategies": strategies,
    "bias_curves": bias_curves,
    "planted_curves": planted_curves,
    "planted_gate": planted_gate,
    "bam_verification": bam_verification,
    "bam_contrasts": bam_contrasts,
    "bam_series": bam_series,
    "bam_patches": bam_patches,
    "articles_shares": articles_shares,
    "articles_selection": articles_selection,
    "articles_attention": articles_attention,
    "articles_text": articles_text,
}


def draw(name: str, results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """The figures called `name` in `FIGURES`; none where the run has no data for them."""
    with matplotlib.rc_context(STYLE):
        return FIGURES[choose("exhibits", name, FIGURES)](results, tables)
