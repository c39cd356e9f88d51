"""What the model says when some players stay away: masked forwards, in chunks, for any callable.

This is the floor under Shapley values, surrogates and permutation importance, so it is built for rate: one
elementwise pass makes a chunk of hidden inputs, one forward reads them, and the target's output is all that stays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from forsooth.chunks import over
from forsooth.games.players import seats, spread
from forsooth.records import UsageError

Model = Callable[[Tensor], Tensor]  # (n, *shape) -> (n, classes)

# Most entries and rows in one forward. On a processor the chunk should stay in the cache; a GPU wants it large.
CHUNKS = {"cpu": (2**20, 2**13), "cuda": (2**26, 2**20)}


@dataclass(frozen=True)
class Game:
    """One game for each input: the players are parts of it, a coalition is worth what the model says of it.

    x         (n, *shape)
    target    (n,) int64, the explained class
    labels    who owns which entry, ready to broadcast against one input
    count     number of players
    baseline  (1, *shape), what stands for an absent player
    room      (rows, *shape) for the hidden inputs of one forward; made once, since fresh memory is slow memory
    """

    model: Model
    x: Tensor
    target: Tensor
    labels: Tensor
    count: int
    baseline: Tensor
    room: Tensor

    def masks_at_once(self) -> int:
        """Most masks to hide inputs with, so that neither they nor the values (n, masks) grow large."""
        return max(1, min(len(self.room), 2**20 // max(1, len(self.x))))

    def map(self, values: Tensor) -> Tensor:
        """A map shaped like x from the values of the players (n, count)."""
        return spread(values, self.labels, self.x)


def game(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    chunk: int | None = None,
) -> Game:
    """The game of every input of x (n, *shape). Arguments as in `coalition_values`."""
    labels, count = seats(x, players)
    if target.shape != x.shape[:1]:
        raise UsageError(f"`target` must have shape {tuple(x.shape[:1])}, got {tuple(target.shape)}")
    if chunk is not None and chunk < 1:
        raise UsageError(f"`chunk` must be at least 1, got {chunk}")
    room = x.new_empty((rows_at_once(x) if chunk is None else chunk, *x.shape[1:]))
    return Game(model, x, target, labels, count, absent(x, baseline), room)


def coalition_values(
    model: Model,
    x: Tensor,
    target: Tensor,
    masks: Tensor,
    *,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    chunk: int | None = None,
) -> Tensor:
    """The value of every coalition for every input: who is not in it is replaced by the baseline.

    x         (n, *shape)
    target    (n,) int64, the explained class
    masks     (m, players) bool or 0/1, who takes part
    players   (*spatial) or (*shape) integer labels; None: each pixel
    baseline  (*shape); None: zeros
    chunk     most inputs in one forward; None: by the device and the size of an input
    returns   (n, m), on the device of x
    """
    return values_of(game(model, x, target, players=players, baseline=baseline, chunk=chunk), masks)


def values_of(played: Game, masks: Tensor) -> Tensor:
    """The value of every coalition of masks (m, players) for every input. Returns (n, m)."""
    if masks.ndim != 2 or masks.shape[1] != played.count:
        raise UsageError(f"`masks` must have shape (m, {played.count}), got {tuple(masks.shape)}")
    columns = []
    for part in masks.to(played.x.device).split(evenly(len(masks), played.masks_at_once())):
        keep = part.to(played.x.dtype)[:, played.labels]  # (masks, *broadcastable to shape)
        columns.append(masked_values(played, keep))
    return torch.cat(columns, dim=1)


def masked_values(played: Game, keep: Tensor, *, baseline: Tensor | None = None) -> Tensor:
    """The target's output when every input is hidden by every mask; the caller chunks the masks.

    keep      (m, *broadcastable to shape) of the dtype of x, 1 where an entry stays and 0 where it is hidden;
              m is at most the rows of `room`
    baseline  (m, *shape), other values for the hidden entries; None: those of the game
    returns   (n, m)
    """
    stands = played.baseline.expand(len(keep), *played.x.shape[1:]) if baseline is None else baseline

    def forward(keep: Tensor, stands: Tensor, x: Tensor, target: Tensor) -> Tensor:
        masks, n = len(keep), len(x)
        hidden = played.room[: masks * n]
        # lerp is exact for weights 0 and 1, and several times as fast as torch.where
        torch.lerp(stands[:, None], x[None], keep[:, None], out=hidden.view(masks, n, *x.shape[1:]))
        outputs = played.model(hidden).reshape(masks, n, -1)  # (m, n, classes)
        return outputs.gather(2, target[None, :, None].expand(masks, n, 1))[..., 0]

    def all_masks(x: Tensor, target: Tensor) -> Tensor:
        return over(lambda k, s: forward(k, s, x, target), keep, stands, size=len(keep)).T  # (n, m)

    with torch.no_grad():
        return over(all_masks, played.x, played.target, size=evenly(len(played.x), len(played.room) // len(keep)))


def target_outputs(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The output of the target class, without gradients. x (n, *shape), target (n,); returns (n,)."""
    with torch.no_grad():
        return over(lambda part, wanted: model(part).gather(1, wanted[:, None])[:, 0], x, target, size=rows_at_once(x))


def ends(played: Game) -> tuple[Tensor, Tensor]:
    """The values of the empty and of the full coalition, each (n,)."""
    empty = played.baseline.expand_as(played.x)
    first, last = (target_outputs(played.model, x, played.target) for x in (empty, played.x))
    return first, last


def absent(x: Tensor, baseline: Tensor | None) -> Tensor:
    """What stands in place of an absent player, (1, *shape): the baseline, checked, or zeros."""
    shape = tuple(x.shape[1:])
    if baseline is None:
        return x.new_zeros((1, *shape))
    if tuple(baseline.shape) != shape:
        raise UsageError(f"`baseline` must have the shape of one input {shape}, got {tuple(baseline.shape)}")
    return baseline.to(x)[None]


def rows_at_once(x: Tensor) -> int:
    """How many inputs of the size of one row of x (n, *shape) go into one forward on its device."""
    entries, rows = CHUNKS.get(x.device.type, CHUNKS["cpu"])
    return max(8, min(rows, entries // max(1, math.prod(x.shape[1:]))))


def evenly(count: int, size: int) -> int:
    """The size of slices of at most `size` that cut `count` into like pieces, so that no small one is left over.

    >>> evenly(100, 60), evenly(10, 60)
    (50, 10)
    """
    pieces = max(1, -(-count // max(1, size)))
    return max(1, -(-count // pieces))
