"""Walks on a network that begins with a linear layer: what goes into its units is a running sum.

When a player joins, the pre-activations of the first layer move by its own column of the weights. So a walk never
multiplies by the whole matrix, which in a wide perceptron is nearly all of the work.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from forsooth.games.chains import layers_of, may_rewrite, overwriting
from forsooth.games.values import Game, class_outputs, part_of

BLOCK = 32  # steps summed by one product with a triangle
ROWS = {"cpu": 512, "cuda": 2**17}  # steps in one forward of the rest
PIECES = {"cpu": 2**20, "cuda": 2**27}  # most entries of what the players of some inputs add
LEAST = 512  # inputs of the first layer from which on the sums win


@dataclass(frozen=True)
class Opening:
    """A network in two parts: its first layer, behind a flattening, and the rest."""

    first: nn.Linear
    rest: nn.Module


def opening(played: Game) -> Opening | None:
    """The two parts of the network of a game; None where it begins otherwise, or is too small for this to pay."""
    if not may_rewrite(played):
        return None
    assert isinstance(played.model, nn.Module)
    layers = layers_of(played.model)
    if len(layers) > 1 and isinstance(layers[0], nn.Flatten) and layers[0].start_dim == 1:
        layers = layers[1:]
    elif played.x.ndim > 2:
        return None
    first = layers[0]
    if not isinstance(first, nn.Linear) or first.in_features < LEAST or played.count < 2:
        return None
    return Opening(first, overwriting(layers[1:]))


@torch.no_grad()
def values_by_sums(played: Game, ranks: Tensor, parts: Opening) -> Tensor:
    """The target's output at the inner steps of walks, (n, walks, players - 1); as `walk_values`.

    ranks  (walks, players) int64
    """
    kind = played.x.device.type
    order = ranks.argsort(dim=1)  # (walks, players): who joins at each step
    most = max(1, PIECES.get(kind, PIECES["cpu"]) // (played.count * parts.first.out_features))
    found = []
    for start in range(0, len(played.x), most):
        some = part_of(played, start, start + most)
        walks = max(1, ROWS.get(kind, ROWS["cpu"]) // (BLOCK * len(some.x)))
        found.append(torch.cat([outputs(some, part, parts) for part in order.split(walks)], dim=1))
    if not found:
        return played.x.new_empty(0, len(ranks), played.count - 1)
    return torch.cat(found)


@torch.no_grad()
def alone_by_sums(played: Game, stands: Tensor, parts: Opening) -> Tensor:
    """The target's output when each player of x alone is as in stands (n, *shape). (n, players)"""
    found = []
    full = parts.first(played.x.flatten(1))  # (n, units)
    moved = replace(played, x=stands, baseline=played.x)
    rows = ROWS.get(played.x.device.type, ROWS["cpu"])
    for i in range(len(played.x)):
        pieces = added(part_of(moved, i, i + 1), parts.first)[0]  # (players, units)
        said = [class_outputs(parts.rest, full[i] + some, played.classes) for some in pieces.split(rows)]
        found.append(torch.cat(said)[:, played.target[i]])
    return torch.stack(found)


def outputs(played: Game, order: Tensor, parts: Opening) -> Tensor:
    """The target's output when players, or roles, join in each order (walks, players). (n, walks, players - 1)"""
    columns = []
    for hidden in states(played, order, parts.first):
        rows = class_outputs(parts.rest, hidden.flatten(0, 2), played.classes).view(*hidden.shape[:3], -1)
        target = played.target[:, None, None, None].expand(*hidden.shape[:3], 1)
        columns.append(rows.gather(3, target)[..., 0])
    return torch.cat(columns, dim=2)[:, :, : played.count - 1]


def states(played: Game, order: Tensor, first: nn.Linear) -> Iterator[Tensor]:
    """What goes into the units of the first layer after each step, in turn: (n, walks, some steps, units).

    Past the last step whatever is there goes on, to fill the last block. Sums within a block are in the precision of
    the network, those over blocks in float64.
    """
    pieces = added(played, first)  # (n, players, units)
    n = len(pieces)
    walks = len(order)
    empty = first(played.baseline.flatten(1)).double().expand(n, -1)
    carried = empty[:, None, None].expand(-1, walks, 1, -1)  # (n, walks, 1, units)
    blocks = max(1, ROWS.get(order.device.type, ROWS["cpu"]) // (BLOCK * n * walks))
    blocks = min(blocks, -(-order.shape[1] // BLOCK))
    below = torch.ones(BLOCK, BLOCK, dtype=pieces.dtype, device=pieces.device).tril()
    firsts = torch.arange(n, device=order.device)[:, None] * pieces.shape[1]
    lacking = -order.shape[1] % (BLOCK * blocks)
    order = torch.cat([order, order[:, :1].expand(-1, lacking)], dim=1)
    room = pieces.new_empty(n * walks * blocks * BLOCK, pieces.shape[2])  # made once, since fresh memory is slow memory
    for joining in order.split(BLOCK * blocks, dim=1):  # (walks, steps)
        # rows of a matrix are picked several times as fast as by pieces[:, joining]
        torch.index_select(pieces.flatten(0, 1), 0, (firsts + joining.flatten()).flatten(), out=room)
        sums = below @ room.view(n, walks, blocks, BLOCK, -1)  # (n, walks, blocks, BLOCK, units)
        ends = carried + sums[:, :, :, -1].double().cumsum(dim=2)  # (n, walks, blocks, units)
        begins = torch.cat([carried, ends[:, :, :-1]], dim=2)
        carried = ends[:, :, -1:]
        yield sums.add_(begins[:, :, :, None].to(sums.dtype)).flatten(2, 3)


def added(played: Game, first: nn.Linear) -> Tensor:
    """What every player, or role, adds to the pre-activations of the first layer. (n, players, units)"""
    change = (played.x - played.baseline).flatten(1)  # (n, entries)
    pieces = change[:, :, None] * first.weight.T  # (n, entries, units)
    owner = played.labels.expand(played.x.shape[1:]).flatten()
    if not torch.equal(owner, torch.arange(len(owner), device=owner.device)):
        pieces = pieces.new_zeros(len(pieces), played.count, pieces.shape[2]).index_add_(1, owner, pieces)
    if played.roles is None:
        return pieces
    return pieces.gather(1, played.roles.argsort(dim=1)[:, :, None].expand_as(pieces))
