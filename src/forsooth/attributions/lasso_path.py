"""The path of solutions of lassos, from the largest penalty down, all samples in one batch. [efron2004least]

A turn follows each path until one player joins or leaves. Who takes part sits in one of m slots, and the inverse of
the products of their columns is kept up to date, which costs one sum of outer products a turn. Samples are the last
axis of every tensor here: a turn is some sixty operations on little data, and these are quickest so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

INF = float("inf")
LONGEST = 20  # turns for each mask, after which a path is left where it stands
CROWD = 0.6  # the share of the samples that still go on at which the others are put aside
APART = 1e-4  # a slope that closes up on the level more slowly never meets it, as that of a sum of those inside


class Design(Protocol):
    """The weighted, centred masks of k players, for n samples and m masks."""

    def slopes(self, rest: Tensor) -> Tensor:
        """The products (k, n) of all columns with the rest (m, n)."""

    def columns(self, players: Tensor) -> Tensor:
        """The columns (m, n) of one player of each sample, (n,)."""

    def __getitem__(self, samples: Tensor) -> "Design":
        """The chosen samples."""


@dataclass(frozen=True)
class Path:
    """Where the path of each lasso stands, for n samples, m masks and k players.

    design        of the columns
    goal          (m, n)
    number        (n,) int64, of the samples among all
    level         (n,), the penalty reached
    slope         (k, n), of all players
    barred        (k, n), inf for those who take part and 0 for the others
    player        (m, n) int64, who sits in a slot
    sign          (m, n), 0 where a slot is free
    coefficients  (m, n)
    columns       (m, m, n), by slot and mask; 0 where a slot is free
    inverse       (m, m, n), of the products of the columns, by slots; 0 where one is free
    """

    design: Design
    goal: Tensor
    number: Tensor
    level: Tensor
    slope: Tensor
    barred: Tensor
    player: Tensor
    sign: Tensor
    coefficients: Tensor
    columns: Tensor
    inverse: Tensor

    def some(self, samples: Tensor, slots: int) -> "Path":
        """Copies of the chosen samples, of which at most so many slots are taken."""
        chosen = {field.name: getattr(self, field.name)[..., samples] for field in fields(self)[1:-2]}
        masks = len(self.sign)
        columns = self.columns.new_zeros(masks, masks, len(samples))
        inverse = torch.zeros_like(columns)
        columns[:slots] = self.columns[:slots, :, samples]
        inverse[:slots, :slots] = self.inverse[:slots, :slots, samples]
        return Path(self.design[samples], **chosen, columns=columns, inverse=inverse)


class Event(NamedTuple):
    """What ended the last step of each sample.

    joining, leaving  (n,) bool; neither where the penalty is reached
    player            (n,) int64, who joins
    slot              (n,) int64, whose player leaves
    """

    joining: Tensor
    leaving: Tensor
    player: Tensor
    slot: Tensor

    def some(self, samples: Tensor) -> "Event":
        return Event(*(values[samples] for values in self))


def followed(design: Design, goal: Tensor, penalty: float) -> Tensor:
    """The ends (k, n) of the paths from the penalty at which all coefficients are zero; goal (m, n).

    It takes about as many turns as there are masks. A path that does not arrive is left where it stands.
    """
    masks = len(goal)
    path, event = beginning(design, goal)
    result = torch.zeros_like(path.slope)
    for turn in range(LONGEST * masks):
        slots = min(turn + 1, masks)
        path, event = after(path, event, slots, penalty)
        going = event.joining | event.leaving
        count = int(going.sum())
        if count <= CROWD * len(going):
            put(path, ~going, slots, result)
            if not count:
                return result
            stay = going.nonzero()[:, 0]
            path = path.some(stay, slots)
            event = event.some(stay)
    put(path, torch.ones_like(going), slots, result)
    return result


def put(path: Path, samples: Tensor, slots: int, result: Tensor) -> None:
    """Write the coefficients of samples (n,) bool into the result (k, all samples); 0 for those that lost their way.

    They are refined once: the slopes of those inside are brought to the level.
    """
    inside = path.sign[:slots]
    columns = path.columns[:slots]
    rest = path.goal - (columns * path.coefficients[:slots, None]).sum(0)
    missing = (columns * rest).sum(1) - path.level * inside
    path.coefficients[:slots] += (path.inverse[:slots, :slots] * missing).sum(1) * inside.abs()
    found = path.coefficients.nan_to_num(0.0, 0.0, 0.0)
    ends = torch.zeros_like(path.slope).scatter_add_(0, path.player, found)
    result[:, path.number[samples]] = ends[:, samples]


def beginning(design: Design, goal: Tensor) -> tuple[Path, Event]:
    """The paths at the penalty at which all coefficients are zero, and who joins first; goal (m, n)."""
    slope = design.slopes(goal)
    level, first = slope.abs().max(dim=0)
    masks, count = goal.shape
    nobody = torch.zeros(count, dtype=torch.bool, device=goal.device)
    free = torch.zeros_like(goal)
    square = goal.new_zeros(masks, masks, count)
    path = Path(
        design,
        goal,
        torch.arange(count, device=goal.device),
        level,
        slope,
        barred=torch.zeros_like(slope),
        player=torch.zeros_like(goal, dtype=torch.int64),
        sign=free,
        coefficients=free.clone(),
        columns=square,
        inverse=square.clone(),
    )
    return path, Event(~nobody, nobody, first, torch.zeros_like(first))


def after(path: Path, event: Event, slots: int, penalty: float) -> tuple[Path, Event]:
    """The path after the event, in place, and one step on; at most so many slots are taken then. What ends the step."""
    seat(path, event, slots)
    inside = path.sign[:slots]
    pace = (path.inverse[:slots, :slots] * inside).sum(1) * inside.abs()  # of the coefficients, level falling by 1
    fall = (path.columns[:slots] * pace[:, None]).sum(0)  # (m, n) of the rest
    change = path.design.slopes(fall)
    join, player = next_join(path, change, inside)
    leave, slot = next_leave(path.coefficients[:slots], pace)
    left = path.level - penalty
    step = torch.minimum(torch.minimum(join, leave), left)
    path.coefficients[:slots].addcmul_(step, pace)
    path.slope.addcmul_(step, change, value=-1)
    going = step < left  # not where it is nan: a path that lost its way stops
    leaving = going & (leave <= step)
    return replace(path, level=path.level - step), Event(going & ~leaving, leaving, player, slot)


def seat(path: Path, event: Event, slots: int) -> None:
    """Let players join in a free slot, and others leave theirs, in place.

    The inverse changes by a multiple of an outer product either way. Where nothing happens a free slot is written to,
    whose sign stays 0.
    """
    free = path.sign[:slots].abs().min(dim=0).indices
    slot = torch.where(event.leaving, event.slot, free)[None]
    column = path.design.columns(event.player)
    inverse = path.inverse[:slots, :slots]
    taken = path.columns[:slots]
    explained = (inverse * (taken * column).sum(1)).sum(1)  # (slots, n), by those inside
    rest = column - (taken * explained[:, None]).sum(0)
    products = (taken * rest).sum(1)
    more = (inverse * products).sum(1)  # refined, since errors add up where columns nearly depend on each other
    explained += more
    unexplained = rest.square().sum(0) - (products * more).sum(0)
    own = inverse.gather(0, slot.expand(1, slots, -1))[0]
    along = torch.where(event.leaving, own, explained.scatter_(0, slot, -1.0))
    times = torch.where(event.leaving, -1 / own.gather(0, slot)[0], 1 / unexplained)
    times = times.masked_fill(~(event.joining | event.leaving), 0)
    inverse.addcmul_(along[:, None], along * times)

    path.columns.scatter_(0, slot.expand(1, len(column), -1), (column * event.joining)[None])
    path.sign.scatter_(0, slot, path.slope.gather(0, event.player[None]).sign() * event.joining)
    path.coefficients.mul_(path.sign.abs())
    player = torch.where(event.leaving, path.player.gather(0, slot)[0], event.player)[None]
    path.player.scatter_(0, slot, player)
    path.barred.scatter_(0, player, torch.zeros_like(path.level).masked_fill_(~event.leaving, INF)[None])


def next_join(path: Path, change: Tensor, inside: Tensor) -> Sequence[Tensor]:
    """After which step (n,) which player (n,) joins, since its slope meets the level before the others do.

    change  (k, n), by how much a slope falls as the level falls by 1
    inside  (slots, n) signs of who takes part
    """
    above = until_met(path.level - path.slope, 1 - change)
    below = until_met(path.level + path.slope, 1 + change)
    step, player = torch.minimum(above, below).add_(path.barred).min(dim=0)
    if len(inside) >= len(path.sign) - 1:  # once the rest is spanned, all slopes fall together, and nobody can join
        step = step.masked_fill(inside.count_nonzero(0) == len(path.sign) - 1, INF)
    return step, player


def until_met(distance: Tensor, closing: Tensor) -> Tensor:
    """How far until a distance (k, n) that shrinks by `closing` is 0; inf if never. Both are overwritten."""
    least = torch.finfo(distance.dtype).tiny  # above 0, which divided by 0 is no number
    return distance.clamp_(min=least).div_(F.threshold(closing, APART, 0.0, inplace=True))


def next_leave(coefficients: Tensor, pace: Tensor) -> Sequence[Tensor]:
    """After which step (n,) which slot (n,) is left, its coefficient at 0 before the others; both (slots, n)."""
    steps = -coefficients / pace
    return steps.masked_fill_(~(steps > 0), INF).min(dim=0)
