"""What the page shows."""

from forsooth.report.drawing import Drawing, sheet


def needle_columns(results, tables) -> tuple[Drawing, ...]:
    figure = sheet(4, 2)
    means = results.rows[results.rows["metric"].eq("ima")].groupby("method")["value"].mean()
    figure.subplots().barh(means.index, means)
    return (Drawing("needle_columns", "Needle", "Mean IMA of every method.", "Bars of mean IMA by method", figure),)


FIGURES = {"needle_columns": needle_columns}
