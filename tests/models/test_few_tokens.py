"""The ViT by the quicker ways of its blocks says what it says as it is written."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth.games.chains import made_ready
from forsooth.models import few_tokens
from forsooth.models.small import mlp
from forsooth.models.vit import Block, vit
from forsooth.quick import Quick, as_quick

X = torch.randn(7, 1, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def drawn(net: nn.Module) -> nn.Module:
    """The network with every number drawn, also those that begin as 0 or 1."""
    source = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=source))
    return net


def gradients(forward: Callable[[Tensor], Tensor], net: nn.Module, x: Tensor) -> tuple[Tensor, ...]:
    y = torch.arange(len(x)) % 2
    return torch.autograd.grad(F.cross_entropy(forward(x), y), list(net.parameters()))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_outputs_and_gradients_are_those_of_the_network_as_written(size: int) -> None:
    net = drawn(vit(size=size)).double()
    quick = as_quick(net)
    assert quick is not None
    x = X[..., :size, :size]
    torch.testing.assert_close(quick(x), net(x), rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(gradients(quick, net, x), gradients(net, net, x), rtol=1e-9, atol=1e-13)


def test_it_follows_its_network() -> None:
    net = vit(size=8).double()
    quick = as_quick(net)
    assert quick is not None
    drawn(net)
    torch.testing.assert_close(quick(X), net(X))


def test_many_tokens_go_the_usual_way_bit_for_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_tokens, "attended", None)
    net = vit(size=64)
    quick = as_quick(net)
    assert quick is not None
    x = torch.randn(2, 1, 64, 64)
    assert torch.equal(quick(x), net(x))


def test_attention_is_that_of_torch() -> None:
    joined = torch.randn(3, 5, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    query, key, value = (part.unflatten(2, (2, 4)).transpose(1, 2) for part in joined.split(8, 2))
    expected = F.scaled_dot_product_attention(query, key, value, scale=1.0).transpose(1, 2).flatten(2)
    torch.testing.assert_close(few_tokens.attended(joined, 2), expected)


@pytest.mark.parametrize("net", [mlp(size=8), Block(32, 4), nn.Sequential(nn.Flatten(), nn.Linear(64, 2))])
def test_no_chain_and_no_quicker_way(net: nn.Module) -> None:
    assert as_quick(net) is None


def test_whoever_hides_players_asks_it_in_its_quicker_way_whatever_is_behind_it() -> None:
    net = drawn(vit(size=8)).double().eval()
    for asked in (net, nn.Sequential(net, nn.Softmax(1)).eval()):
        ready = made_ready(asked, (1, 8, 8))
        assert isinstance(ready, Quick)
        torch.testing.assert_close(ready(X), asked(X), rtol=1e-12, atol=1e-13)
