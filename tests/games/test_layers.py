import torch
from pytest import mark, raises
from torch import Tensor, fx, nn

from forsooth.games.layers import split
from forsooth.games.players import pixels
from forsooth.games.shapley import exact
from forsooth.games.values import game
from forsooth.models.resnet import cifar_resnet, small_resnet
from forsooth.models.small import cnn
from forsooth.records import UsageError
from forsooth.seeds import generator

CASES = [
    (cnn(size=8), (1, 8, 8), "conv4", True),
    (cnn(size=64, variant="released"), (1, 64, 64), "relu3", True),
    (small_resnet(channels_in=1, classes=2, width=4, blocks=(1, 1)), (1, 8, 8), "layer1", True),
    (small_resnet(channels_in=1, classes=2, width=4, blocks=(1, 1)), (1, 8, 8), "layer2.0.bn2", False),
    (cifar_resnet(depth=20), (3, 32, 32), "layer3", True),
    (cifar_resnet(depth=20), (3, 32, 32), "layer3.0.conv1", False),
]


class Odd(nn.Module):
    """A network that cannot be traced, since its way depends on values."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(1, 2, 3), nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv(x).relu_()
        return self.head(h.mean((2, 3)) if x.sum() > 1e9 else h.amax((2, 3)))


class Mixed(nn.Module):
    """A network with a layer that is called twice, one that is never called, and one hidden in a leaf."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.never = nn.Linear(4, 4), nn.Linear(4, 4)
        self.deep = nn.TransformerEncoderLayer(4, 1, 8, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.deep(self.twice(self.twice(x))[:, None])[:, 0]


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(0, "layers"))


@mark.parametrize(("module", "shape", "layer", "fast"), CASES)
def test_tail_of_head_is_the_module(module: nn.Module, shape: tuple[int, ...], layer: str, fast: bool) -> None:
    module.eval()
    head, tail = split(module, layer)
    x = drawn(3, *shape)
    with torch.no_grad():
        h = head(x)
        torch.testing.assert_close(tail(h), module(x), rtol=1e-6, atol=1e-6)
    assert isinstance(tail, fx.GraphModule) == fast
    seen: list[Tensor] = []
    handle = module.get_submodule(layer).register_forward_hook(lambda _, __, output: seen.append(output))
    module(x)
    handle.remove()
    assert torch.equal(h, seen[0])


@mark.parametrize(("module", "shape", "layer", "fast"), CASES)
def test_the_tail_reads_what_it_is_given(module: nn.Module, shape: tuple[int, ...], layer: str, fast: bool) -> None:
    """As a hook that puts h in place of the layer's output, one input at a time."""
    module.eval()
    head, tail = split(module, layer)
    with torch.no_grad():
        for x in drawn(2, 1, *shape):
            h = torch.cat([head(x), torch.zeros_like(head(x)), 2 * head(x)])
            handle = module.get_submodule(layer).register_forward_hook(lambda _, __, output, h=h: h)
            expected = module(x.expand(3, *shape))
            handle.remove()
            torch.testing.assert_close(tail(h), expected, rtol=1e-6, atol=1e-6)


def test_a_fast_tail_runs_only_what_is_behind() -> None:
    net = cifar_resnet(depth=20).eval()
    _, tail = split(net, "layer3")
    assert isinstance(tail, fx.GraphModule)
    names = [name for name, _ in tail.named_parameters()]
    assert names == ["linear.weight", "linear.bias"]


def test_untraceable_networks_run_with_a_hook() -> None:
    net, x = Odd().eval(), drawn(1, 1, 6, 6)
    head, tail = split(net, "conv")
    h = head(x)
    assert h.shape == (1, 2, 4, 4) and bool((h < 0).any())  # as the layer gave it, before the ReLU in place
    kept = h.clone()
    torch.testing.assert_close(tail(h), net(x))
    torch.testing.assert_close(tail(torch.cat([h, h])), net(x).expand(2, 3))
    assert torch.equal(h, kept)
    assert not net.conv._forward_hooks


def test_writing_in_place_leaves_the_units_alone() -> None:
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(32, 2)).eval()
    head, tail = split(net, "0")
    with torch.no_grad():
        h = head(drawn(2, 1, 6, 6))
        kept = h.clone()
        tail(h)
    assert torch.equal(h, kept) and bool((h < 0).any())


def test_units_play() -> None:
    """Exact values of the 3x3 units add up to what the network says, less what it says without any unit."""
    net = cnn(size=64, variant="released").double().eval()
    head, tail = split(net, "pool4")
    with torch.no_grad():
        h = head(drawn(2, 1, 64, 64).double())
        target = torch.tensor([0, 1])
        found = exact(game(tail, h, target, players=pixels(tuple(h.shape[1:]))))
        total = (tail(h) - tail(torch.zeros_like(h))).gather(1, target[:, None])[:, 0]
    assert found.values.shape == (2, 9)
    torch.testing.assert_close(found.values.sum(dim=1), total)


def test_bad_layers_are_named() -> None:
    net = cifar_resnet(depth=20).eval()
    with raises(UsageError, match="`layer` must be a known name, got 'layer4'; did you mean layer"):
        split(net, "layer4")
    with raises(UsageError, match="`layer` must be called once in a forward, got 'twice', which is called 2 times"):
        split(Mixed().eval(), "twice")
    with raises(UsageError, match="got 'never', which is called 0 times"):
        split(Mixed().eval(), "never")


def test_a_layer_inside_a_leaf_runs_with_a_hook() -> None:
    net, x = Mixed().eval(), drawn(1, 4)
    head, tail = split(net, "deep.norm2")
    with torch.enable_grad():  # without gradients this layer takes a short way that calls no modules
        torch.testing.assert_close(tail(head(x)), net(x))


def test_a_skip_around_the_layer_takes_one_input_at_a_time() -> None:
    head, tail = split(cifar_resnet(depth=20).eval(), "layer3.0.conv1")
    with raises(UsageError, match="`head` must be called before `tail`"):
        tail(torch.zeros(1, 64, 8, 8))
    with torch.no_grad():
        h = head(drawn(2, 3, 32, 32))
        with raises(UsageError, match=r"`x` must be one input at a time for the layer 'layer3\.0\.conv1', .* got 2"):
            tail(h + 1)
