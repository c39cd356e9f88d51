"""How often the maps of each method change where a patch without function was put, at every threshold."""

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.frames import only, without
from forsooth.records import NO_PATCH, SCORED
from forsooth.report.aggregate import Results, nulls_in
from forsooth.report.axes import legend_beside, line_styles, wide_axes
from forsooth.report.drawing import MUTED, Drawing, Tables

PERCENT = np.arange(1, 101)


def attention(results: Results, tables: Tables) -> tuple[Drawing, ...]:
    """1 - IIR against the threshold, as the page of `forsooth.independence` shows it. [yang2019benchmarking]"""
    rows = without(only(results.rows, part="patches"), status=NO_PATCH)
    if rows.empty:
        return ()
    drawing = Drawing(
        name="attention",
        title="How often a patch without function draws attention",
        caption="The share of inputs whose map changes in the patch's place by t or more, against t; an input without "
        "a usable map counts. The upright line is the threshold of the table. A method whose line stays low leaves "
        "such places alone. Dashed grey: maps that never look at the model.",
        alt=f"Line chart of attention against the threshold for {rows['method'].nunique()} methods",
        figure=_figure(results, rows),
    )
    return (drawing,)


def shares(rows: DataFrame) -> NDArray[np.float64]:
    """The share of these inputs that draw attention, for each of PERCENT.

    >>> rows = DataFrame({"change": [0.02, 0.5, None], "status": ["ok", "ok", "error"]})
    >>> shares(rows)[[0, 1, 2, 49, 50]].round(2).tolist()
    [1.0, 1.0, 0.67, 0.67, 0.33]
    """
    change = rows["change"].astype(float).where(rows["status"].isin(SCORED), np.inf).fillna(np.inf).to_numpy()
    return np.asarray((change[:, None] >= PERCENT / 100 - 1e-12).mean(axis=0))


def _figure(results: Results, rows: DataFrame) -> Figure:
    lines = {name: shares(own) for name, own in rows.groupby("method", sort=False)}
    nulls = nulls_in(results)
    looks = line_styles({name: name in nulls for name in lines})
    figure, axis = wide_axes(len(lines))
    for name in sorted(lines, key=lambda name: lines[name].mean()):
        axis.plot(PERCENT, lines[name], label=name, **looks[name])
    threshold = results.run["settings"].get("threshold")
    if isinstance(threshold, int | float):
        axis.axvline(100 * threshold, color=MUTED, linewidth=0.8)
    axis.set(xlabel="threshold t, % of the saliency before", ylabel="share of inputs", ylim=(-0.02, 1.02))
    legend_beside(figure, left=0.75)
    return figure
