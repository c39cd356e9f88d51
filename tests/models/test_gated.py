"""The scan against a loop left to autograd, and against finite differences."""

import pytest
import torch

from forsooth.models.gated import BLOCK, Rcnn, Scan, together
from forsooth.models.recurrent import initialise


def literal(cell, x):
    """The equations one after the other; the gradient is autograd's."""
    gates, firsts, seconds = cell.read(x).transpose(0, 1).chunk(3, dim=-1)
    one = two = h = torch.zeros_like(gates[0])
    states = []
    for gate, first, second in zip(gates, firsts, seconds, strict=True):
        keep = torch.sigmoid(gate + cell.recall(h))
        one, two = keep * one + (1 - keep) * first, keep * two + (1 - keep) * (one + second)
        h = torch.tanh(two + cell.bias)
        states.append(h)
    return torch.stack(states, dim=1)


def cells(count, dims=4, hidden=3):
    found = [initialise(Rcnn(dims, hidden), torch.Generator().manual_seed(k)).double() for k in range(count)]
    for k, cell in enumerate(found):
        cell.bias.data += torch.linspace(-0.5, 0.7, hidden).double() + k
        cell.recall.bias.data += torch.linspace(0.3, -0.9, hidden).double()
    return tuple(found)


def noise(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("length", [1, 2, BLOCK, 2 * BLOCK + 3])
def test_states_and_gradients_of_two_cells_are_those_of_the_loop(length):
    pair = cells(2)
    inputs = tuple(noise(5, length, 4, seed=k).requires_grad_() for k in range(2))
    weights = [noise(5, length, 3, seed=7 + k) for k in range(2)]
    parameters = [p for cell in pair for p in cell.parameters()]
    ours = together(pair, inputs)
    theirs = tuple(literal(cell, x) for cell, x in zip(pair, inputs, strict=True))
    found = []
    for states in (ours, theirs):
        loss = sum((w * s).sum() for w, s in zip(weights, states, strict=True))
        found.append(torch.autograd.grad(loss, [*inputs, *parameters]))
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(found[0], found[1])
    assert all(part.abs().max() > 0 for part in found[1][:2])


def test_without_gradients_the_states_are_the_same():
    pair, inputs = cells(2), (noise(3, 6, 4), noise(3, 6, 4, seed=1))
    with torch.no_grad():
        bare = together(pair, inputs)
    torch.testing.assert_close(bare, together(pair, inputs))


def test_the_gradient_against_finite_differences():
    given = [noise(2, 4, 3, 6), noise(2, 2, 2, seed=3), noise(2, 1, 2, seed=4)]
    assert torch.autograd.gradcheck(Scan.apply, [part.requires_grad_() for part in given])
