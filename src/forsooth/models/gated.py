"""The gated bigram convolution of [lei2016rationalizing], with its gradient written out.

A recurrent net of which no library has a kernel: left to autograd, every word costs a chain of small operations for
each direction of reading, and a longer one back. Here a word costs six ahead and seven back for both directions
together, and what does not depend on its neighbour is done for many words at once. benchmarks/recurrent.py compares.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

BLOCK = 16  # words whose slopes are worked out at once on the way back: few enough for the cache of a processor


class Rcnn(nn.Module):
    """One direction of reading: x (n, length, dims) to states (n, length, hidden).

    gate_t = sigmoid(W x_t + U h_{t-1} + b)
    c1_t   = gate_t c1_{t-1} + (1 - gate_t) W1 x_t
    c2_t   = gate_t c2_{t-1} + (1 - gate_t) (c1_{t-1} + W2 x_t)
    h_t    = tanh(c2_t + b')
    """

    def __init__(self, dims: int, hidden: int) -> None:
        super().__init__()
        self.read = nn.Linear(dims, 3 * hidden, bias=False)  # W, W1, W2
        self.recall = nn.Linear(hidden, hidden)  # U, b
        self.bias = nn.Parameter(torch.zeros(hidden))

    def forward(self, x: Tensor) -> Tensor:
        """States at each place."""
        return together((self,), (x,))[0]


def together(cells: tuple[Rcnn, ...], inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """States (n, length, hidden) of each cell for its own x (n, length, dims), word by word at the same time."""
    read = _read(cells, inputs)
    recall = torch.stack([cell.recall.weight for cell in cells])
    bias = torch.stack([cell.bias for cell in cells])[:, None]
    if torch.is_grad_enabled():
        states: Tensor = Scan.apply(read, recall, bias)
    else:
        states = walk(read, recall, bias, whole=False).h
    return tuple(states.permute(1, 2, 0, 3))


def _read(cells: tuple[Rcnn, ...], inputs: tuple[Tensor, ...]) -> Tensor:
    """(cells, length, n, 3 hidden): W x + b, W1 x and W2 x + b' of all words in one product."""
    n, length, dims = inputs[0].shape
    x = torch.stack([x.transpose(0, 1) for x in inputs]).view(len(cells), length * n, dims)
    shifts = [torch.cat([c.recall.bias, torch.zeros_like(c.bias), c.bias]) for c in cells]
    weights = torch.stack([cell.read.weight.T for cell in cells])
    read = torch.baddbmm(torch.stack(shifts)[:, None], x, weights)
    return read.view(len(cells), length, n, -1)


class Ahead(NamedTuple):
    """What the way ahead leaves, each (words, cells, n, hidden); c1 and c2 have one word more, before the first."""

    keep: Tensor  # the gate
    one: Tensor  # c1
    two: Tensor  # c2, with its bias
    h: Tensor


def walk(read: Tensor, recall: Tensor, bias: Tensor, *, whole: bool) -> Ahead:
    """The gate, c1, c2 and h of all words.

    whole  keep all, for the way back; else h alone: then every word writes over the one before it
    read, recall and bias as in `Scan`. c2 is held with its bias b': it follows the same rule with W2 x + b' for W2 x,
    and h is its tanh.
    """
    gates, firsts, seconds = (part.unbind(1) for part in read.chunk(3, dim=-1))
    stride = int(whole)
    keep, one, two, h = _room(read, bias, stride=stride)
    before = torch.zeros_like(h[0])
    for place in range(len(h)):
        now = place * stride
        after = now + stride
        torch.baddbmm(gates[place], before, recall.mT, out=keep[now]).sigmoid_()
        torch.lerp(one[now] + seconds[place], two[now], keep[now], out=two[after])
        torch.lerp(firsts[place], one[now], keep[now], out=one[after])
        before = torch.tanh(two[after], out=h[place])
    return Ahead(keep, one, two, h)


def _room(read: Tensor, bias: Tensor, *, stride: int) -> Ahead:
    """Memory for the way ahead: of all words where stride is 1, of one where it is 0; c1 and c2 as they begin."""
    cells, length, n, three = read.shape
    shape = (cells, n, three // 3)
    one = read.new_empty(length * stride + 1, *shape)
    two = torch.empty_like(one)
    one[0] = 0
    two[0] = bias
    keep = read.new_empty((length - 1) * stride + 1, *shape)
    return Ahead(keep, one, two, read.new_empty(length, *shape))


class Slopes(NamedTuple):
    """Derivatives that do not depend on the neighbouring word, each (words, cells, n, hidden)."""

    keep: Tensor  # of c1 by the c1 before, and of c2 by the c2 before
    rest: Tensor  # of c1 by W1 x, and of c2 by W2 x and the c1 before
    by_one: Tensor  # of c1 by what the gate reads
    by_two: Tensor  # of c2 by what the gate reads
    bend: Tensor  # of h by c2


def slopes(read: Tensor, ahead: Ahead, part: slice) -> Slopes:
    """The slopes of the words of `part`, at once."""
    firsts, seconds = (chunk.transpose(0, 1)[part] for chunk in read.chunk(3, dim=-1)[1:])
    keep = ahead.keep[part]
    one = ahead.one[:-1][part]
    two = ahead.two[:-1][part]
    gate = keep * (1 - keep)
    by_two = gate * (two - one - seconds)
    by_one = gate * (one - firsts)
    return Slopes(keep, 1 - keep, by_one, by_two, 1 - ahead.h[part] ** 2)


class Back(NamedTuple):
    """Gradients of c1, c2 and what the gate reads: of one word (cells, n, hidden), or of many."""

    one: Tensor
    two: Tensor
    gate: Tensor


def back(upon: Tensor, local: Slopes, recall: Tensor, carried: Back) -> tuple[Back, Back]:
    """The way back through a block of words: their gradients (words, cells, n, hidden), and what they hand on.

    upon     (words, cells, n, hidden), the gradient of h from outside
    carried  handed on by the word behind the block
    """
    ones, twos, gates = (torch.empty_like(local.keep) for _ in range(3))
    d_one, d_two, d_gate = carried
    for place in reversed(range(len(upon))):
        keep = local.keep[place]
        d_h = torch.baddbmm(upon[place], d_gate, recall)
        d_two = torch.addcmul(d_two, d_h, local.bend[place], out=twos[place])
        d_gate = torch.mul(d_two, local.by_two[place], out=gates[place])
        d_gate.addcmul_(d_one, local.by_one[place])
        ones[place] = d_one
        d_one = torch.lerp(d_two, d_one, keep)
        d_two = d_two * keep
    return Back(ones, twos, gates), Back(d_one, d_two, d_gate)


class Scan(torch.autograd.Function):
    """h (length, cells, n, hidden) of all words.

    read    (cells, length, n, 3 hidden): W x + b, W1 x and W2 x + b'
    recall  (cells, hidden, hidden): U
    bias    (cells, 1, hidden): b'
    """

    @staticmethod
    def forward(ctx: Any, read: Tensor, recall: Tensor, bias: Tensor) -> Tensor:
        """Ahead."""
        ahead = walk(read, recall, bias, whole=True)
        ctx.save_for_backward(read, recall, *ahead)
        return ahead.h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upon: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the three from that of h, by the last word first."""
        read, recall, *saved = ctx.saved_tensors
        ahead = Ahead(*saved)
        d_read = torch.empty_like(read)
        d_recall = torch.zeros_like(recall)
        zero = torch.zeros_like(ahead.h[0])
        carried = Back(zero, zero, zero)
        for start in reversed(range(0, len(upon), BLOCK)):
            part = slice(start, min(start + BLOCK, len(upon)))
            local = slopes(read, ahead, part)
            block, carried = back(upon[part], local, recall, carried)
            _write(d_read, part, block, local.rest)
            d_recall += _recalled(block.gate, ahead.h, part)
        return d_read, d_recall, carried.two.sum(1, keepdim=True)


def _write(d_read: Tensor, part: slice, block: Back, rest: Tensor) -> None:
    """Put the gradients of the words of `part` into that of `read` (cells, length, n, 3 hidden)."""
    gates, firsts, seconds = (chunk.transpose(0, 1) for chunk in d_read.chunk(3, dim=-1))
    gates[part] = block.gate
    firsts[part] = block.one * rest
    seconds[part] = block.two * rest


def _recalled(gates: Tensor, h: Tensor, part: slice) -> Tensor:
    """(cells, hidden, hidden): the gradient of U from the words of `part`."""
    first = int(part.start == 0)  # the first word has nothing to recall
    before = h[part.start + first - 1 : part.stop - 1]
    return torch.einsum("lcni,lcnj->cij", gates[first:], before)
