"""Walks on a convolutional network: one pixel moves only a window of each map.

When a pixel joins, the map of every block changes within the window that sees it. So a step computes these windows
alone, block by block, each from what the map before it is at that step: as it was, with the windows of all the steps
since laid upon it. The last map is read by a linear head, of which only what the window changes is added, in float64;
or what comes behind is asked in full.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from forsooth.games.chains import layers_of, may_rewrite, overwriting
from forsooth.games.moving import Moving, laid, picked, rows_of, seen_by
from forsooth.games.reach import Stage, blocks_of, stages_of
from forsooth.games.values import Game, class_outputs, owners, part_of

ENTRIES = {"cpu": 2**18, "cuda": 2**24}  # of the largest windows at some steps, which are taken together
SAVES = 2**17  # products a step from which on this pays


@dataclass(frozen=True)
class Local:
    """A network in parts.

    stages  its first blocks, of whose maps windows are computed
    head    reads the last map, by windows; None: that map is asked whole
    rest    what comes behind
    """

    stages: tuple[Stage, ...]
    head: nn.Linear | None
    rest: nn.Module


def local(played: Game) -> Local | None:
    """The parts of the network of a game whose players are pixels; None where it is no such chain, or too small."""
    shape = played.x.shape[1:]
    if len(shape) != 3 or played.count != shape[1] * shape[2] or played.labels.numel() != played.count:
        return None
    if not may_rewrite(played):
        return None
    assert isinstance(played.model, nn.Module)
    layers = layers_of(played.model)
    blocks, gone = blocks_of(layers)
    stages = stages_of(blocks, shape[1:])
    if not stages or min(stage.places for stage in stages) < 1:
        return None
    best = best_stage(stages)
    if best is None:
        return None
    behind = layers[gone[best] :]
    last = stages[best]
    if best == len(stages) - 1 and reads_all(behind) and 2 * last.window < last.places:
        assert isinstance(behind[1], nn.Linear)
        return Local(tuple(stages), behind[1], overwriting(behind[2:]))
    return Local(tuple(stages[: best + 1]), None, overwriting(behind))


def best_stage(stages: Sequence[Stage]) -> int | None:
    """Up to which stage windows save most; None where they do not save enough to pay."""
    saved = list(itertools.accumulate(stage.work(window=False) - stage.work(window=True) for stage in stages))
    best = max(range(len(stages)), key=saved.__getitem__)
    return best if saved[best] >= SAVES else None


def reads_all(layers: Sequence[nn.Module]) -> bool:
    """Whether layers begin with a linear one behind a flattening."""
    return len(layers) > 1 and isinstance(layers[0], nn.Flatten) and isinstance(layers[1], nn.Linear)


@torch.no_grad()
def values_by_crops(played: Game, ranks: Tensor, parts: Local) -> Tensor:
    """The target's output at the inner steps of walks, (n, walks, players - 1); as `walk_values`.

    ranks  (walks, players) int64
    """
    found = played.x.new_empty(len(played.x), len(ranks), played.count - 1)
    for i in range(len(played.x)):
        some = part_of(played, i, i + 1)
        kept = rows_of_maps(some.baseline, parts)
        for walk, joins in enumerate(ranks[:, labels_of(some)]):  # (h, w)
            found[i, walk] = torch.cat(list(outputs(some, joins, parts, kept)))[:-1]
    return found


@torch.no_grad()
def alone_by_crops(played: Game, stands: Tensor, parts: Local) -> Tensor:
    """The target's output when each pixel of x alone is as in stands (n, *shape). (n, players)"""
    found = []
    moved = replace(played, x=stands, baseline=played.x)
    for i in range(len(played.x)):
        some = part_of(moved, i, i + 1)
        kept = rows_of_maps(some.baseline, parts)
        found.append(torch.cat(list(outputs(some, played.labels[0], parts, kept, alone=True))))
    return torch.stack(found)


def labels_of(played: Game) -> Tensor:
    """The player, or the role, at every pixel of one input. (h, w)"""
    if played.roles is None:
        return played.labels[0]
    return owners(played)[0, 0]


def rows_of_maps(x: Tensor, parts: Local) -> list[Tensor]:
    """The image x (1, channels, h, w) and the map of every stage, each as `rows_of`."""
    found = [rows_of(x)]
    for stage in parts.stages:
        x = stage.block.padded(x)
        found.append(rows_of(x))
    return found


def outputs(
    played: Game, joins: Tensor, parts: Local, kept: Sequence[Tensor], *, alone: bool = False
) -> Iterator[Tensor]:
    """The target's output after every step of one walk, in turn; each (steps,).

    joins  (h, w) int64, the rank of every pixel
    kept   the maps of the empty coalition, from `rows_of_maps`
    alone  every pixel joins the empty coalition, as if nobody had joined before
    """
    said = torch.zeros(1, 1, dtype=torch.float64, device=joins.device)
    if parts.head is not None:
        said = parts.head(kept[-1][:-1].T.reshape(1, -1)).double()
    for moving in last_maps(played, joins, parts, kept, alone=alone):
        if parts.head is None:
            given = moving.all_maps(parts.stages[-1])
        else:
            change = head_changes(parts.head, parts.stages[-1], moving).double()
            logits = said + (change if alone else change.cumsum(dim=0))
            said = said if alone else logits[-1:]
            given = logits.to(played.x.dtype, copy=True)  # the rest overwrites it
        yield class_outputs(parts.rest, given, played.classes)[:, played.target[0]]


def last_maps(played: Game, joins: Tensor, parts: Local, kept: Sequence[Tensor], *, alone: bool) -> Iterator["Moving"]:
    """The last map in the steps of one walk, some steps at a time; arguments as in `outputs`."""
    maps = list(kept)
    x = rows_of(played.x)
    width = joins.shape[1]
    ranks = torch.cat([joins.flatten(), joins.new_full((1,), joins.numel())])
    order = joins.flatten().argsort()  # the pixel that joins at each step
    steps = torch.arange(len(order), device=order.device)
    for some in steps.split(steps_at_once(parts, order.device)):
        pixels = order[some]
        at = seen_by(parts.stages[0], pixels, width)
        here = ranks[at] <= some[:, None]
        if alone:
            here = ranks[at] == some[:, None]
        windows = torch.where(here[..., None], picked(x, at), picked(maps[0], at))
        for number, stage in enumerate(parts.stages, start=1):
            moving = laid(stage, windows, maps[number], pixels, width, alone=alone)
            if not alone:
                maps[number] = moving.whole(len(some))
            if number < len(parts.stages):
                windows = moving.at(seen_by(parts.stages[number], pixels, width))
        yield moving


def steps_at_once(parts: Local, device: torch.device) -> int:
    """How many steps go into one forward."""
    widest = max(
        (stage.rows.seen * stage.columns.seen * stage.block.conv.in_channels for stage in parts.stages), default=1
    )
    if parts.head is None:
        widest = max(widest, parts.stages[-1].places * parts.stages[-1].block.conv.out_channels)
    return min(2**14, max(16, ENTRIES.get(device.type, ENTRIES["cpu"]) // widest))


def head_changes(head: nn.Linear, stage: Stage, moving: Moving) -> Tensor:
    """By how much each step moves what a head says of the last map. (steps, classes)"""
    change = moving.windows() - moving.at(moving.places, before=True)  # (steps, window, channels)
    weight = head.weight.unflatten(1, (-1, stage.places)).permute(2, 0, 1)  # (places, classes, channels)
    flat = picked(weight.flatten(1), moving.places).unflatten(2, (-1, change.shape[2]))
    return (flat @ change[..., None])[..., 0].sum(dim=1)
