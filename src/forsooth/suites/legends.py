"""The one place of a legend in figures of many axes: a strip below all of them."""

from typing import Any

from matplotlib.figure import Figure


def legend_below(figure: Figure, *, room: float = 0.3, pad: float | None = None, **legend: Any) -> None:
    """The legend in a strip of `room` inches below all axes, which are laid out in what is left.

    pad  between axes, in letters; None: as matplotlib has it
    """
    figure.legend(loc="lower center", frameon=False, **legend)
    figure.tight_layout(rect=(0, room / figure.get_figheight(), 1, 1), h_pad=pad, w_pad=pad)
