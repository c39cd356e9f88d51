"""How far a pixel reaches in a chain of convolutions and pools: which places of each map move with it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Along:
    """What one block does along one axis: zeros in front and behind, a kernel and a pool, each with its stride."""

    front: int
    behind: int
    kernel: int
    step: int
    pool: int
    pool_step: int

    @property
    def sees(self) -> int:
        """Places of the input that one of the output reads."""
        return self.kernel + (self.pool - 1) * self.step

    @property
    def stride(self) -> int:
        return self.step * self.pool_step

    def after(self, side: int) -> int:
        """The side of the output for an input of this side."""
        convolved = (side + self.front + self.behind - self.kernel) // self.step + 1
        return (convolved - self.pool) // self.pool_step + 1


@dataclass(frozen=True)
class Block:
    """[ZeroPad2d,] Conv2d, ReLU[, MaxPool2d]; along the rows and along the columns."""

    conv: nn.Conv2d
    rows: Along
    columns: Along

    def __call__(self, x: Tensor) -> Tensor:
        """Convolution, pool and ReLU without padding. (n, channels, h, w) -> (n, channels', h', w')

        Where the pool's stride is one, maxima of shifted maps are faster than the pool of torch.
        """
        z = F.conv2d(x, self.conv.weight, self.conv.bias, self.conv.stride, groups=self.conv.groups)
        rows = self.rows
        columns = self.columns
        if (rows.pool_step, columns.pool_step) != (1, 1):
            size = (rows.pool, columns.pool)
            return F.max_pool2d(z, size, (rows.pool_step, columns.pool_step)).relu()
        return shifted_maxima(z, rows.pool, columns.pool).relu()

    def padded(self, x: Tensor) -> Tensor:
        """The block on whole maps (n, channels, h, w)."""
        rows = self.rows
        columns = self.columns
        return self(F.pad(x, (columns.front, columns.behind, rows.front, rows.behind)))


def shifted_maxima(z: Tensor, rows: int, columns: int) -> Tensor:
    """A pool of so many rows and columns with stride one."""
    for _ in range(1, rows):
        z = torch.maximum(z[:, :, :-1], z[:, :, 1:])
    for _ in range(1, columns):
        z = torch.maximum(z[..., :-1], z[..., 1:])
    return z


@dataclass(frozen=True)
class Span:
    """Which places of a block's map move with a pixel, along one axis.

    along   what the block does
    before  side of its input
    side    of its map
    window  places that move with one pixel at most
    starts  where the window begins, by the place of the pixel
    """

    along: Along
    before: int
    side: int
    window: int
    starts: tuple[int, ...]

    @property
    def seen(self) -> int:
        """Places of the input that a window reads."""
        return (self.window - 1) * self.along.stride + self.along.sees

    def first(self, start: Tensor) -> Tensor:
        """The first place of the input that a window reads that begins at start (k,); below 0 in the margin."""
        return start * self.along.stride - self.along.front


@dataclass(frozen=True)
class Stage:
    """A block, and what of its map moves with a pixel."""

    block: Block
    rows: Span
    columns: Span

    @property
    def places(self) -> int:
        """Of the map."""
        return self.rows.side * self.columns.side

    @property
    def window(self) -> int:
        """Places of it that move with one pixel."""
        return self.rows.window * self.columns.window

    @cached_property
    def weights(self) -> int:
        """Products behind one place of the convolution's output."""
        return self.block.conv.weight.numel()

    def work(self, *, window: bool) -> int:
        """Products of a forward of the whole map, or of a window."""
        sizes = []
        for span in (self.rows, self.columns):
            length = span.window if window else span.side
            sizes.append((length - 1) * span.along.pool_step + span.along.pool)
        return math.prod(sizes) * self.weights


def stages_of(blocks: Sequence[Block], shape: Sequence[int]) -> list[Stage]:
    """The stages of blocks in a chain, on images of some height and width."""
    rows = spans([block.rows for block in blocks], shape[0])
    columns = spans([block.columns for block in blocks], shape[1])
    return [Stage(*parts) for parts in zip(blocks, rows, columns, strict=True)]


def spans(blocks: Sequence[Along], side: int) -> list[Span]:
    """What moves along an axis of so many pixels, block by block."""
    found = []
    first = torch.arange(side)  # of the places that move with each pixel
    last = torch.arange(side)
    before = side
    for along in blocks:
        after = along.after(before)
        first = -((along.sees - 1 - along.front - first) // along.stride)
        last = (last + along.front) // along.stride
        low = first.clamp(0, max(0, after - 1))
        high = last.clamp(0, max(0, after - 1))
        window = max(1, int((high - low).max()) + 1)
        starts = low.clamp(max=max(0, after - window))
        found.append(Span(along, before, after, window, tuple(starts.tolist())))
        before = after
    return found


def blocks_of(layers: Sequence[nn.Module]) -> tuple[list[Block], list[int]]:
    """The blocks with which a chain of layers begins, and how many layers are gone after each."""
    left = list(layers)
    blocks: list[Block] = []
    gone: list[int] = []
    while left:
        block = taken(left)
        if block is None:
            break
        blocks.append(block)
        gone.append(len(layers) - len(left))
    return blocks, gone


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
    pool_step = (1, 1)
    if layers and isinstance(layers[0], nn.MaxPool2d):
        found = layers.pop(0)
        if (found.padding, found.dilation, found.ceil_mode) != (0, 1, False):
            return None
        pool = both(found.kernel_size)
        pool_step = both(found.stride)
    assert isinstance(conv, nn.Conv2d)
    if conv.dilation != (1, 1) or conv.padding_mode != "zeros" or isinstance(conv.padding, str):
        return None
    more = conv.padding  # zeros on both sides
    rows = Along(pad[2] + more[0], pad[3] + more[0], conv.kernel_size[0], conv.stride[0], pool[0], pool_step[0])
    columns = Along(pad[0] + more[1], pad[1] + more[1], conv.kernel_size[1], conv.stride[1], pool[1], pool_step[1])
    return Block(conv, rows, columns)


def both(size: int | tuple[int, int]) -> tuple[int, int]:
    """A size along two axes."""
    if isinstance(size, int):
        return (size, size)
    return size
