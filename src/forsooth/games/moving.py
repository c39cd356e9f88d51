"""A map at many steps, each of which moves a window of it: which step covered each place last, and with what."""

from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.games.reach import Span, Stage

SMALL = torch.int16  # of the numbers of steps in one forward


def rows_of(x: Tensor) -> Tensor:
    """A map (1, channels, h, w) place by place, and zeros for what lies beyond it. (places + 1, channels)"""
    places = x[0].flatten(1).T
    return torch.cat([places, places.new_zeros(1, places.shape[1])])


def picked(rows: Tensor, at: Tensor) -> Tensor:
    """The rows (k, channels) at some places (…) of them, (…, channels): several times as fast as `rows[at]`."""
    return rows.index_select(0, at.flatten()).view(*at.shape, rows.shape[1])


def corners(stage: Stage, pixels: Tensor, width: int) -> tuple[Tensor, Tensor]:
    """The first row and the first column, (k,) each, of the windows of a stage's map that see pixels (k,)."""
    tops = torch.tensor(stage.rows.starts, device=pixels.device)
    lefts = torch.tensor(stage.columns.starts, device=pixels.device)
    return tops[pixels // width], lefts[pixels % width]


def seen_by(stage: Stage, pixels: Tensor, width: int) -> Tensor:
    """The places of a stage's input that its windows read which see pixels (k,); beyond it, the last. (k, seen)"""
    top, left = corners(stage, pixels, width)
    rows, inside_rows = places_read(stage.rows, top)
    columns, inside_columns = places_read(stage.columns, left)
    places = rows[:, :, None] * stage.columns.before + columns[:, None]
    inside = inside_rows[:, :, None] & inside_columns[:, None]
    return torch.where(inside, places, stage.rows.before * stage.columns.before).flatten(1)


def places_read(span: Span, start: Tensor) -> tuple[Tensor, Tensor]:
    """The places (k, seen) along an axis that windows read which begin at start (k,), and which lie in the input."""
    places = span.first(start)[:, None] + torch.arange(span.seen, device=start.device)
    return places, (places >= 0) & (places < span.before)


@dataclass(frozen=True)
class Moving:
    """A map at some steps: as it was before the first, with the windows of the steps laid upon it.

    rows     (places + 1 + steps · window, channels): the map, zeros for what lies beyond it, the windows
    places   (steps, window) that the windows cover
    latest   (steps + 1, places + 1) the last step whose window covers a place, counted from 1; 0: none
    shift    (steps + 1,) what to add to a place's number in a window that begins at 0
    inner    (places + 1,) that number
    alone    each window lies on the map by itself, as if there were no steps before
    """

    rows: Tensor
    places: Tensor
    latest: Tensor
    shift: Tensor
    inner: Tensor
    alone: bool

    def whole(self, step: int) -> Tensor:
        """The map after a step, counted from 1, with the zeros beyond it. (places + 1, channels)"""
        every = torch.arange(len(self.inner), device=self.inner.device)
        last = self.latest[step].long()
        return picked(self.rows, torch.where(last > 0, self.shift[last] + self.inner, every))

    def at(self, places: Tensor, *, before: bool = False) -> Tensor:
        """The map at places (steps, k) after each step, or before it. (steps, k, channels)"""
        if before and self.alone:
            return picked(self.rows, places)
        last = self.latest[1:]
        if before:
            last = self.latest[: len(places)]
        last = last.gather(1, places).long()
        return picked(self.rows, torch.where(last > 0, self.shift[last] + self.inner[places], places))

    def all_maps(self, stage: Stage) -> Tensor:
        """The map after each step, (steps, channels, h, w) with the channels of a place together."""
        every = torch.arange(stage.places, device=self.inner.device)
        last = self.latest[1:, :-1].long()
        maps = picked(self.rows, torch.where(last > 0, self.shift[last] + self.inner[:-1], every))
        return maps.unflatten(1, (stage.rows.side, stage.columns.side)).permute(0, 3, 1, 2)

    def windows(self) -> Tensor:
        """What the windows hold, (steps, window, channels)."""
        return self.rows[len(self.inner) :].unflatten(0, self.places.shape)


def laid(stage: Stage, windows: Tensor, kept: Tensor, pixels: Tensor, width: int, *, alone: bool) -> Moving:
    """A stage's map at steps in which pixels (k,) join.

    windows  (k, seen, channels) of the stage's input
    kept     (places + 1, channels) the map before the first step
    alone    each window lies on `kept` by itself
    """
    rows = stage.rows
    columns = stage.columns
    crops = windows.unflatten(1, (rows.seen, columns.seen)).permute(0, 3, 1, 2)
    made = stage.block(crops).permute(0, 2, 3, 1).flatten(0, 2)  # (k · window, channels)
    top, left = corners(stage, pixels, width)
    inner = torch.arange(stage.window, device=top.device)
    inner = inner // columns.window * columns.side + inner % columns.window
    places = (top * columns.side + left)[:, None] + inner  # (k, window)
    number = torch.arange(1, len(pixels) + 1, device=top.device)
    latest = numbers_of(places, len(kept))
    if not alone:
        latest = running_maximum(latest)
    shift = len(kept) + (number - 1) * stage.window - (top * columns.window + left)
    every = torch.arange(len(kept), device=top.device)
    within = every // columns.side * columns.window + every % columns.side
    return Moving(torch.cat([kept, made]), places, latest, torch.cat([shift[:1], shift]), within, alone)


def numbers_of(places: Tensor, size: int) -> Tensor:
    """The number of each step, from 1 on, at the places (steps, window) of its window, else 0. (steps + 1, size)"""
    number = torch.arange(1, len(places) + 1, device=places.device, dtype=SMALL)
    latest = torch.zeros(len(places) + 1, size, device=places.device, dtype=SMALL)
    latest[1:].scatter_(1, places, number[:, None].expand_as(places))
    return latest


def running_maximum(numbers: Tensor) -> Tensor:
    """The largest number so far in each column of numbers (k, m), which are overwritten.

    By doubling, between two buffers: several times as fast as `cummax`.
    """
    other = torch.empty_like(numbers)
    distance = 1
    while distance < len(numbers):
        other[:distance] = numbers[:distance]
        torch.maximum(numbers[distance:], numbers[:-distance], out=other[distance:])
        numbers, other = other, numbers
        distance *= 2
    return numbers
