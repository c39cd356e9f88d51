"""The gated bigram convolution of [lei2016rationalizing], with its gradient written out.

A recurrent net of which no library has a kernel: left to autograd, every word costs a chain of small operations for
each direction of reading, and a longer one back. Here a word costs six ahead and seven back for both directions
together, and what does not depend on its neighbour is done for many words at once. benchmarks/recurrent.py compares.
"""

from typing import Any

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
    n, length, dims = inputs[0].shape
    x = torch.stack([x.transpose(0, 1) for x in inputs]).view(len(cells), length * n, dims)
    shift = torch.stack([torch.cat([c.recall.bias, torch.zeros_like(c.bias), c.bias]) for c in cells])[:, None]
    weights = torch.stack([cell.read.weight.T for cell in cells])
    read = torch.baddbmm(shift, x, weights).view(len(cells), length, n, -1)
    recall = torch.stack([cell.recall.weight for cell in cells])
    bias = torch.stack([cell.bias for cell in cells])[:, None]
    if torch.is_grad_enabled():
        states: Tensor = Scan.apply(read, recall, bias)
    else:
        states = walk(read, recall, bias, whole=False)[-1]
    return tuple(states.permute(1, 2, 0, 3))


def walk(read: Tensor, recall: Tensor, bias: Tensor, *, whole: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gate, c1, c2 and h (length, cells, n, hidden) of all words; c1 and c2 begin before the first.

    whole  keep all, for the way back; else h alone
    read, recall and bias as in `Scan`. c2 is held with its bias b': it follows the same rule with W2 x + b' for W2 x,
    and h is its tanh.
    """
    gates, firsts, seconds = (part.unbind(1) for part in read.chunk(3, dim=-1))
    length, shape = len(gates), gates[0].shape
    keep, one, two = (read.new_empty(length + begins if whole else 1, *shape) for begins in (0, 1, 1))
    h = read.new_empty(length, *shape)
    one[0], two[0], before = 0, bias, read.new_zeros(shape)
    for place in range(length):
        now, then = (place, place + 1) if whole else (0, 0)
        torch.baddbmm(gates[place], before, recall.mT, out=keep[now]).sigmoid_()
        torch.lerp(one[now] + seconds[place], two[now], keep[now], out=two[then])
        torch.lerp(firsts[place], one[now], keep[now], out=one[then])
        before = torch.tanh(two[then], out=h[place])
    return keep, one, two, h


class Scan(torch.autograd.Function):
    """h (length, cells, n, hidden) of all words.

    read    (cells, length, n, 3 hidden): W x + b, W1 x and W2 x + b'
    recall  (cells, hidden, hidden): U
    bias    (cells, 1, hidden): b'
    """

    @staticmethod
    def forward(ctx: Any, read: Tensor, recall: Tensor, bias: Tensor) -> Tensor:
        """Ahead."""
        keep, one, two, h = walk(read, recall, bias, whole=True)
        ctx.save_for_backward(read, recall, keep, one, two, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upon: Tensor) -> tuple[Tensor, ...]:
        """Gradients of the three from that of h, by the last word first."""
        read, recall, keep, one, two, h = ctx.saved_tensors
        firsts, seconds = (part.transpose(0, 1) for part in read.chunk(3, dim=-1)[1:])
        dread, drecall = torch.empty_like(read), torch.zeros_like(recall)
        dgates, dfirsts, dseconds = (part.transpose(0, 1) for part in dread.chunk(3, dim=-1))
        done = dtwo = dgate = torch.zeros_like(h[0])  # of c1, c2 and the gate
        for start in reversed(range(0, len(h), BLOCK)):
            end = min(start + BLOCK, len(h))
            part = slice(start, end)
            k, c1, c2 = keep[part], one[:-1][part], two[:-1][part]
            slope, rest = k * (1 - k), 1 - k
            by_two, by_one, bend = slope * (c2 - c1 - seconds[part]), slope * (c1 - firsts[part]), 1 - h[part] ** 2
            ones, twos, gates = (torch.empty_like(k) for _ in range(3))
            for place in reversed(range(end - start)):
                dh = torch.baddbmm(upon[start + place], dgate, recall)
                dtwo = torch.addcmul(dtwo, dh, bend[place], out=twos[place])
                dgate = torch.mul(dtwo, by_two[place], out=gates[place]).addcmul_(done, by_one[place])
                ones[place] = done
                done, dtwo = torch.lerp(dtwo, done, k[place]), dtwo * k[place]
            dgates[part], dfirsts[part], dseconds[part] = gates, ones * rest, twos * rest
            first = 1 if start == 0 else 0  # the first word has nothing to recall
            drecall += torch.einsum("lcni,lcnj->cij", gates[first:], h[start + first - 1 : end - 1])
        return dread, drecall, dtwo.sum(1, keepdim=True)
