"""Walks on a convolutional network without strides: one pixel moves only a window of the last map.

When a pixel joins, the last map changes within the window that sees it. So a step needs no forward of the image, but
two of a crop, before and after; what a linear head makes of the change is added to what it said before. The head's sums
are kept in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth.games.chains import layers_of, may_rewrite
from forsooth.games.values import Game, class_outputs, owners, part_of

STEPS = {"cpu": 24, "cuda": 2**12}  # steps in one forward


@dataclass(frozen=True)
class Along:
    """What one block does along one axis: zeros in front and behind, a kernel, a pool with stride one."""

    front: int
    behind: int
    kernel: int
    pool: int

    @property
    def grows(self) -> int:
        """By how much a window grows from the block's output to its input."""
        return self.kernel + self.pool - 2

    def after(self, side: int) -> int:
        """The side of the output for an input of this side."""
        return side + self.front + self.behind - self.grows


@dataclass(frozen=True)
class Block:
    """[ZeroPad2d,] Conv2d, ReLU[, MaxPool2d], all with stride one; along the rows and along the columns."""

    conv: nn.Conv2d
    rows: Along
    columns: Along


@dataclass(frozen=True)
class Axis:
    """How crops lie along one axis.

    sides   of the input of every block and of the last map
    fronts  zeros that stand in front, from the input of every block on, and 0 for the last map
    sizes   of the crop at the input of every block, and of the window of the last map
    """

    sides: tuple[int, ...]
    fronts: tuple[int, ...]
    sizes: tuple[int, ...]

    def starts(self, place: Tensor) -> Tensor:
        """Where the windows of the last map begin that see the pixels at these places (k,)."""
        reach = self.sizes[0] - self.sizes[-1]
        return (place + self.fronts[0] - reach).clamp(0, self.sides[-1] - self.sizes[-1])

    def frame(self) -> tuple[int, int]:
        """How many places crops reach beyond the image, in front and behind."""
        end = self.sides[-1] - self.sizes[-1] - self.fronts[0] + self.sizes[0]  # of the last crop
        return self.fronts[0], max(0, end - self.sides[0])

    def inside(self, starts: Tensor, block: int) -> Tensor:
        """Which places of the crops at the input of a block lie in its map. (k, size) bool"""
        at = starts[:, None] - self.fronts[block] + torch.arange(self.sizes[block], device=starts.device)
        return (at >= 0) & (at < self.sides[block])


@dataclass(frozen=True)
class Local:
    """A network without strides: blocks, a linear head on the last map, and what comes after it."""

    blocks: tuple[Block, ...]
    head: nn.Linear
    rest: nn.Module
    rows: Axis
    columns: Axis


def local(played: Game) -> Local | None:
    """The parts of the network of a game whose players are pixels; None where it is no such chain, or too small."""
    shape = played.x.shape[1:]
    if len(shape) != 3 or played.count != shape[1] * shape[2] or played.labels.numel() != played.count:
        return None
    if not may_rewrite(played):
        return None
    assert isinstance(played.model, nn.Module)
    layers = layers_of(played.model)
    blocks: list[Block] = []
    while layers and not isinstance(layers[0], nn.Flatten):
        block = taken(layers)
        if block is None:
            return None
        blocks.append(block)
    if len(layers) < 2 or not blocks or not isinstance(layers[1], nn.Linear):
        return None
    rows = axis([block.rows for block in blocks], shape[1])
    columns = axis([block.columns for block in blocks], shape[2])
    if 2 * rows.sizes[0] * columns.sizes[0] >= played.count:
        return None
    return Local(tuple(blocks), layers[1], nn.Sequential(*layers[2:]), rows, columns)


def taken(layers: list[nn.Module]) -> Block | None:
    """The next block, its layers taken from the list; None where something else comes."""
    pad = (0, 0, 0, 0)
    if isinstance(layers[0], nn.ZeroPad2d):
        pad = layers.pop(0).padding  # type: ignore[assignment]
    if len(layers) < 2 or not isinstance(layers[0], nn.Conv2d) or not isinstance(layers[1], nn.ReLU):
        return None
    conv = layers.pop(0)
    layers.pop(0)
    pool = (1, 1)
    if layers and isinstance(layers[0], nn.MaxPool2d):
        found = layers.pop(0)
        if not plain_pool(found):
            return None
        pool = both(found.kernel_size)
    assert isinstance(conv, nn.Conv2d)
    plain = conv.stride == (1, 1) and conv.dilation == (1, 1) and conv.padding_mode == "zeros"
    if not plain or isinstance(conv.padding, str):
        return None
    more = conv.padding  # zeros on both sides
    rows = Along(pad[2] + more[0], pad[3] + more[0], conv.kernel_size[0], pool[0])
    columns = Along(pad[0] + more[1], pad[1] + more[1], conv.kernel_size[1], pool[1])
    return Block(conv, rows, columns)


def plain_pool(pool: nn.MaxPool2d) -> bool:
    """Whether a pool has stride one and no other setting."""
    return both(pool.stride) == (1, 1) and (pool.padding, pool.dilation, pool.ceil_mode) == (0, 1, False)


def both(size: int | tuple[int, int]) -> tuple[int, int]:
    """A size along two axes."""
    if isinstance(size, int):
        return (size, size)
    return size


def axis(blocks: Sequence[Along], side: int) -> Axis:
    """How crops lie along an axis of this many pixels."""
    sides = [side]
    for block in blocks:
        sides.append(block.after(sides[-1]))
    window = min(sides[-1], 1 + sum(block.grows for block in blocks))
    fronts = [0]
    sizes = [window]
    for block in reversed(blocks):
        fronts.insert(0, fronts[0] + block.front)
        sizes.insert(0, sizes[0] + block.grows)
    return Axis(tuple(sides), tuple(fronts), tuple(sizes))


@torch.no_grad()
def values_by_crops(played: Game, ranks: Tensor, parts: Local) -> Tensor:
    """The target's output at the inner steps of walks, (n, walks, players - 1); as `walk_values`.

    ranks  (walks, players) int64
    """
    found = played.x.new_empty(len(played.x), len(ranks), played.count - 1)
    empty = logits(parts, played.baseline).double()  # (1 or n, classes)
    for i in range(len(played.x)):
        some = part_of(played, i, i + 1)
        joining = ranks[:, labels_of(some)]  # (walks, h, w)
        start = empty[i % len(empty)]
        for walk, join in enumerate(joining):
            change = changes(some, join, parts)[:-1].double().cumsum(dim=0)  # (players - 1, classes)
            said = class_outputs(parts.rest, (start + change).to(played.x.dtype), played.classes)
            found[i, walk] = said[:, played.target[i]]
    return found


@torch.no_grad()
def alone_by_crops(played: Game, stands: Tensor, parts: Local) -> Tensor:
    """The target's output when each pixel of x alone is as in stands (n, *shape). (n, players)"""
    found = []
    full = logits(parts, played.x)
    moved = replace(played, x=stands, baseline=played.x)
    for i in range(len(played.x)):
        change = changes(part_of(moved, i, i + 1), played.labels[0], parts, alone=True)
        said = class_outputs(parts.rest, full[i] + change, played.classes)
        found.append(said[:, played.target[i]])
    return torch.stack(found)


def labels_of(played: Game) -> Tensor:
    """The player, or the role, at every pixel of one input. (h, w)"""
    if played.roles is None:
        return played.labels[0]
    return owners(played)[0, 0]


def logits(parts: Local, x: Tensor) -> Tensor:
    """What the head says of x (n, channels, h, w), by whole maps. (n, classes)"""
    for block in parts.blocks:
        rows = block.rows
        columns = block.columns
        padded = F.pad(x, (columns.front, columns.behind, rows.front, rows.behind))
        x = convolved(block, padded)
    return parts.head(x.flatten(1))


def convolved(block: Block, x: Tensor) -> Tensor:
    """Convolution, pool and ReLU without padding: two maxima of shifted maps are faster than the pool of torch."""
    z = F.conv2d(x, block.conv.weight, block.conv.bias, groups=block.conv.groups)
    for _ in range(1, block.rows.pool):
        z = torch.maximum(z[:, :, :-1], z[:, :, 1:])
    for _ in range(1, block.columns.pool):
        z = torch.maximum(z[..., :-1], z[..., 1:])
    return z.relu()


def changes(played: Game, joins: Tensor, parts: Local, *, alone: bool = False) -> Tensor:
    """By how much the logits change at every step of one walk. (players, classes)

    joins  (h, w) int64, the rank of every pixel
    alone  every pixel joins the empty coalition, as if nobody had joined before
    """
    order = joins.flatten().argsort()  # the pixel that joins at each step
    width = joins.shape[1]
    top = parts.rows.starts(order // width)
    left = parts.columns.starts(order % width)
    x = framed(played.x[0], parts)
    stands = framed(played.baseline[0], parts)
    join = framed(joins[None].to(x.dtype), parts, fill=torch.inf)[0]
    windows = head_windows(parts)
    found = []
    steps = torch.arange(len(order), device=x.device)
    for some in steps.split(STEPS.get(x.device.type, STEPS["cpu"])):
        at = entries_of(top[some], left[some], parts, x.shape[2])  # (s, rows, columns)
        ranks = join.flatten()[at]
        now = some[:, None, None].to(x.dtype)
        with_all = x.flatten(1)[:, at]  # (channels, s, rows, columns)
        without = stands.flatten(1)[:, at]
        before = without
        after = torch.where(ranks == now, with_all, without)
        if not alone:
            before = torch.where(ranks < now, with_all, without)
            after = torch.where(ranks <= now, with_all, without)
        maps = last_maps(torch.cat([before, after], dim=1).movedim(0, 1), top[some], left[some], parts)
        change = (maps[len(some) :] - maps[: len(some)]).flatten(1)
        weights = windows[top[some], left[some]].flatten(2)  # (s, classes, entries of a window)
        found.append((weights @ change[:, :, None])[..., 0])
    return torch.cat(found)


def framed(maps: Tensor, parts: Local, fill: float = 0.0) -> Tensor:
    """Maps (channels, h, w) with room around them, so that no crop reaches beyond."""
    room = (*parts.columns.frame(), *parts.rows.frame())
    return F.pad(maps, room, value=fill)


def entries_of(top: Tensor, left: Tensor, parts: Local, width: int) -> Tensor:
    """The flat entries, in framed maps of this width, of crops that begin at top and left (s,). (s, rows, columns)"""
    rows = top[:, None] + torch.arange(parts.rows.sizes[0], device=top.device)
    columns = left[:, None] + torch.arange(parts.columns.sizes[0], device=top.device)
    return rows[:, :, None] * width + columns[:, None]


def last_maps(crops: Tensor, top: Tensor, left: Tensor, parts: Local) -> Tensor:
    """The windows (2 s, channels, rows, columns) of the last map for crops (2 s, …), of two states at s places each."""
    x = crops.contiguous()
    for number, block in enumerate(parts.blocks):
        if number > 0:  # outside of its map a block is given zeros
            rows = parts.rows.inside(top, number)
            columns = parts.columns.inside(left, number)
            inside = (rows[:, None, :, None] & columns[:, None, None]).to(x.dtype)
            x = x * torch.cat([inside, inside])
        x = convolved(block, x)
    return x


def head_windows(parts: Local) -> Tensor:
    """The weights of the head at every window of the last map. (rows, columns, classes, channels, window, window)"""
    sides = (parts.rows.sides[-1], parts.columns.sides[-1])
    weight = parts.head.weight.unflatten(1, (-1, *sides))  # (classes, channels, h, w)
    windows = weight.unfold(2, parts.rows.sizes[-1], 1).unfold(3, parts.columns.sizes[-1], 1)
    return windows.permute(2, 3, 0, 1, 4, 5)
