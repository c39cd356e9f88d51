"""Leaderboards for a paper or a page: LaTeX and Markdown."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from forsooth.report import tables

SHOWN = ("method", "score", "95 % interval", "group", "failed")
SIGNS: dict[str, str | int | None] = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"–": "--", "○": r"$\circ$", "<": "$<$"},
}


def markdown(board: pd.DataFrame, metric: str) -> str:
    """The board with all its columns, below the name of the metric."""
    return f"## {metric}\n\n{tables.markdown(board)}"


def latex(board: pd.DataFrame, metric: str) -> str:
    """A `tabular` with the columns that a paper shows; it needs no package."""
    words = tables.display(board)[list(SHOWN)]
    lines = [_latex_line(words.columns), r"\hline", *map(_latex_line, words.itertuples(index=False))]
    head = f"% {metric}: median over samples, mean over panels; a circle marks nulls, which never look at the model"
    return "\n".join([head, rf"\begin{{tabular}}{{{'l' * len(SHOWN)}}}", *lines, r"\end{tabular}", ""])


def _latex_line(cells: Iterable[Any]) -> str:
    return " & ".join(str(cell).translate(str.maketrans(SIGNS)) for cell in cells) + r" \\"


WRITERS: Mapping[str, Callable[[pd.DataFrame, str], str]] = {"markdown": markdown, "latex": latex}
