"""Attention against the threshold, by hand; and the pages without figure where nobody was asked."""

from report.by_hand import run_of
from report.made_up import row

from forsooth.report import Results
from forsooth.report.attention import NO_PATCH, attention


def answered(changes: dict[str, list[float | None]], status: str = "ok") -> Results:
    """A run with these relative changes of the patch's place, a method each."""
    rows = [
        row("patches", method=name, sample=k, change=change, status=status if change is not None else "error")
        for name, own in changes.items()
        for k, change in enumerate(own)
    ]
    return run_of(rows, nulls=["random"])


def test_a_line_falls_where_an_input_leaves_and_a_failure_stays() -> None:
    (drawing,) = attention(answered({"lrp": [0.05, 0.5, None, 0.0], "random": [1.0] * 4}), {})
    lines = {line.get_label(): line for line in drawing.figure.axes[0].get_lines()}
    height = lines["lrp"].get_ydata()
    assert [height[percent - 1] for percent in (1, 5, 6, 50, 51, 100)] == [0.75, 0.75, 0.5, 0.5, 0.25, 0.25]
    assert lines["random"].get_linestyle() == "--" and lines["lrp"].get_linestyle() == "-"


def test_inputs_without_a_patch_ask_nobody() -> None:
    assert attention(answered({"lrp": [0.5, 0.1]}, status=NO_PATCH), {}) == ()
