"""What a cell keeps for the page: pictures, each with a line that says what it is of."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from forsooth.records import Cell, Columns, Facts, Row


@dataclass(frozen=True)
class Album:
    """Pictures that have something in common: their panel, model or method.

    tensors   name -> (*map)
    pictures  a line of run.json for each, with the name of its tensor
    """

    shared: Columns
    tensors: dict[str, Tensor] = field(default_factory=dict)
    pictures: list[Facts] = field(default_factory=list)

    def add(self, picture: Tensor, name: str, place: int = 0, **about: Any) -> None:
        """One more, of the sample at that place of those explained; one tensor may have several lines."""
        tensor = placed(name, place)
        self.tensors[tensor] = picture
        self.pictures.append({**self.shared, **about, "place": place, "tensor": tensor})

    def cell(self, rows: Iterable[Row] = (), **facts: Any) -> Cell:
        """The cell with these pictures, and with rows and other facts."""
        return Cell(rows=tuple(rows), tensors=self.tensors, facts={**facts, "pictures": self.pictures})


def placed(name: str, place: int) -> str:
    """The name of a tensor of the sample at that place of those explained; the first has the plain name.

    >>> placed("example", 0), placed("example", 2)
    ('example', 'example 2')
    """
    if place == 0:
        return name
    return f"{name} {place}"


def scaled(flat: Tensor) -> Tensor:
    """A map without signs (h, w), its largest value 1, so that half precision can hold it."""
    return (flat / flat.amax().clamp(min=1e-30)).half()
