"""Adam on one vector."""

import pytest
import torch
from torch import nn

from forsooth.models.adam import Adam, flatten


def test_parameters_become_pieces_of_one_vector_and_get_their_own_memory_back():
    net = nn.Linear(2, 3)
    values = [p.detach().clone() for p in net.parameters()]
    adam = Adam(list(net.parameters()), rate=0.1, decay=0.0)
    assert adam.flat.tolist() == torch.cat([value.flatten() for value in values]).tolist()
    adam.flat.zero_()
    assert not any(p.any() for p in net.parameters())
    adam.release()
    adam.flat.fill_(1)
    assert not any(p.any() for p in net.parameters())


def test_flatten_keeps_shapes():
    net = nn.Conv2d(2, 3, 2)
    shapes = [p.shape for p in net.parameters()]
    assert flatten(list(net.parameters())).shape == (2 * 3 * 4 + 3,)
    assert [p.shape for p in net.parameters()] == shapes


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_steps_are_those_of_torch(decay):
    generator = torch.Generator().manual_seed(0)
    ours, theirs = (nn.Linear(4, 3).double() for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    adam = Adam(list(ours.parameters()), rate=0.01, decay=decay)
    torch_adam = torch.optim.Adam(theirs.parameters(), lr=0.01, weight_decay=decay)
    for _ in range(20):
        gradients = [torch.randn(p.shape, generator=generator).double() for p in ours.parameters()]
        for parameter, gradient in zip(theirs.parameters(), gradients, strict=True):
            parameter.grad = gradient.clone()
        adam.step(gradients)
        torch_adam.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)
