"""Random walks from the empty to the full coalition: what every player adds when it joins."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from forsooth.games.crops import local, values_by_crops
from forsooth.games.sums import opening, values_by_sums
from forsooth.games.values import Game, ends, evenly, masked_values, own_values, owners, refuse


def walks(
    played: Game,
    units: int,
    generator: torch.Generator,
    *,
    antithetic: bool,
    both: tuple[Tensor, Tensor] | None = None,
) -> Iterator[Tensor]:
    """What every player adds when it joins, in each of the random walks. Each (n, some units, players) float64.

    both  the `ends` of the walks, where they are known already
    """
    both = both or ends(played)
    at_once = max(1, played.masks_at_once() // max(1, played.count - 1) // (1 + antithetic))
    room = played.x.new_empty(played.masks_at_once(), *played.labels.shape)  # for masks, made once as that of inputs
    values = stepping(played, room)
    for block in orders(played.count, units, generator, played.x.device):
        total = torch.zeros((), dtype=torch.float64, device=played.x.device)
        for part in block.split(evenly(len(block), at_once)):
            ranks = there_and_back(part, antithetic=antithetic)
            inner = values(ranks)
            total += inner.sum()
            gains = gains_of(inner, ranks, both)
            if antithetic:
                gains = gains.unflatten(1, (2, -1)).mean(dim=1)
            yield gains
        if not total.isfinite():  # asked once in a block, since waiting for the device is slow
            refuse_walks(played, there_and_back(block, antithetic=antithetic), room, at_once=at_once)


def stepping(played: Game, room: Tensor) -> Callable[[Tensor], Tensor]:
    """What gives the values of walks by ranks, as `walk_values`: the fastest way that the network of a game allows."""
    parts = opening(played)
    if parts is not None:
        return lambda ranks: values_by_sums(played, ranks, parts)
    pieces = local(played)
    if pieces is not None:
        return lambda ranks: values_by_crops(played, ranks, pieces)
    return partial(walk_values, played, room=room)


def gains_of(inner: Tensor, ranks: Tensor, both: tuple[Tensor, Tensor]) -> Tensor:
    """What every player adds when it joins, (n, walks, players) float64.

    inner  (n, walks, players - 1) of `walk_values`
    ranks  (walks, players) int64
    both   the values of the empty and of the full coalition, (n,) each
    """
    first, last = (end[:, None, None].expand(-1, len(ranks), 1) for end in both)
    gains = torch.cat([first, inner, last], dim=2).double().diff(dim=2)  # in the order of joining
    return gains.gather(2, ranks.expand(len(inner), -1, -1))  # by player


def refuse_walks(played: Game, ranks: Tensor, room: Tensor, *, at_once: int) -> None:
    """An error that says how many outputs on the walks of ranks (walks, players) are no finite numbers."""
    parts = [walk_values(played, part, room).isfinite() for part in ranks.split(at_once)]
    refuse(sum(int((~part).sum()) for part in parts), sum(part.numel() for part in parts))


def there_and_back(ranks: Tensor, *, antithetic: bool) -> Tensor:
    """The permutations (walks, players), and if antithetic then their reverses, (2 · walks, players)."""
    if not antithetic:
        return ranks
    return torch.cat([ranks, ranks.shape[1] - 1 - ranks])


def orders(count: int, permutations: int, generator: torch.Generator, device: torch.device) -> Iterator[Tensor]:
    """Uniform random permutations, drawn in blocks whose size depends on nothing. Each (block, count) int64.

    The numbers are drawn on the processor, so that devices agree, and sorted on the device.
    """
    for start in range(0, permutations, 256):
        size = min(256, permutations - start)
        yield torch.rand(size, count, generator=generator, dtype=torch.float64).to(device).argsort(dim=1)


def walk_values(played: Game, ranks: Tensor, room: Tensor) -> Tensor:
    """The target's output at the inner steps of walks in which the players join by rank.

    ranks    (walks, players) int64, each row a permutation of 0 … players - 1
    room     (masks, *shape of the labels), dtype of x
    returns  (n, walks, players - 1); at step s, counted from 1, the players of rank below s take part
    """
    x = played.x
    if played.count == 1:
        return x.new_empty(len(x), len(ranks), 0)
    if len(ranks) > len(room):
        return torch.cat([walk_values(played, part, room) for part in ranks.split(len(room))], dim=1)
    steps = torch.arange(1.0, played.count, device=x.device)
    parts = steps.split(evenly(len(steps), len(room) // len(ranks)))
    columns = [step_values(played, ranks.float(), part, room).view(len(x), len(ranks), -1) for part in parts]
    return torch.cat(columns, dim=2)


def step_values(played: Game, ranks: Tensor, steps: Tensor, room: Tensor) -> Tensor:
    """The target's output at some steps (s,) of walks by ranks (walks, players) float. Returns (n, walks · s)."""
    masks = len(ranks) * len(steps)

    def compare(joins: Tensor, out: Tensor) -> None:
        # 1 where the rank is below the step, written as numbers at once: bools would have to be turned into them
        step = steps.view(-1, *[1] * (joins.ndim - 1))
        torch.lt(joins[:, None], step, out=out.view(len(ranks), len(steps), *joins.shape[1:]))

    def write(some: Game, out: Tensor) -> None:
        entries = owners(some)  # (n, *shape)
        compare(ranks.index_select(1, entries.flatten()).view(-1, *entries.shape), out)

    if played.roles is not None:
        return own_values(played, masks, write)
    keep = room[:masks]
    compare(ranks[:, played.labels], keep)
    return masked_values(played, keep)
