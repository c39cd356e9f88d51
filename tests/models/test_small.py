"""The small networks: weights counted by hand, shapes, and the padding written out."""

import pytest
import torch
from torch.nn import functional as F

from forsooth.models import MODELS
from forsooth.models.small import CNN, LLR, MLP, cnn, llr, mlp
from forsooth.records import UsageError


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("build", "size", "variant", "weights"),
    [
        (llr, 64, "released", 8192),
        (llr, 8, "paper", 128),
        (mlp, 64, "released", 1_130_624),
        (mlp, 64, "paper", 1_130_624 + 256 + 256 + 64 + 2),
        (mlp, 8, "released", 64 * 32 + 32 + 32 * 16 + 16 + 16 * 8 + 8 + 8 * 2 + 2),
        (cnn, 64, "released", 11_452),
        (cnn, 64, "paper", 11_452 - 288 * 2 + 32 * 60 * 60 * 2 + 2),
        (cnn, 8, "released", (16 + 4) + 3 * (64 + 4) + 4 * 2 + 2),
        (cnn, 8, "paper", (16 + 4) + 3 * (64 + 4) + 4 * 2 + 2),
    ],
)
def test_number_of_weights(build, size, variant, weights):
    assert count(build(size=size, variant=variant)) == weights


@pytest.mark.parametrize("size", [8, 64])
@pytest.mark.parametrize("variant", ["paper", "released"])
@pytest.mark.parametrize("model", [LLR, MLP, CNN], ids=lambda model: model.name)
def test_logits_of_two_classes(model, size, variant):
    net = model.function(size=size, variant=variant).eval()
    x = torch.randn(3, 1, size, size, generator=torch.Generator().manual_seed(0))
    logits = net(x)
    assert logits.shape == (3, 2)
    assert not torch.allclose(logits.sum(1), torch.ones(3))  # not probabilities
    assert model.layer is None or model.layer in dict(net.named_modules())


def test_released_cnn_ends_in_288_features():
    net = cnn(size=64, variant="released")
    assert net[:-1](torch.zeros(1, 1, 64, 64)).shape == (1, 288)
    assert net.head.bias is None


def test_dropout_only_in_the_released_large_mlp():
    rates = {
        (size, variant): [m.p for m in mlp(size=size, variant=variant).modules() if isinstance(m, torch.nn.Dropout)]
        for size in (8, 64)
        for variant in ("paper", "released")
    }
    assert rates.pop((64, "released")) == [0.3, 0.3, 0.3]
    assert not any(rates.values())


def test_paper_cnn_written_out_for_8_pixels():
    """'same' padding of a 2×2 kernel adds one row below and one column to the right."""
    net, x = cnn(size=8, variant="paper"), torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    h = x
    for i, conv in enumerate([net.conv1, net.conv2, net.conv3, net.conv4]):
        h = torch.cat([h, torch.zeros_like(h[:, :, :1])], 2)
        h = torch.cat([h, torch.zeros_like(h[:, :, :, :1])], 3)
        h = F.conv2d(h, conv.weight, conv.bias).clamp(min=0)
        if i < 3:
            h = h.unflatten(2, (-1, 2)).unflatten(4, (-1, 2)).amax((3, 5))
    assert h.shape == (5, 4, 1, 1)
    torch.testing.assert_close(net(x), h.flatten(1) @ net.head.weight.T + net.head.bias)


def test_same_padding_keeps_64_pixels():
    net = cnn(size=64, variant="paper")
    assert net[:2](torch.zeros(1, 1, 64, 64)).shape == (1, 4, 64, 64)
    assert net.pad1.padding == (1, 2, 1, 2)


@pytest.mark.parametrize("build", [llr, mlp, cnn])
def test_unknown_size_and_variant(build):
    with pytest.raises(UsageError, match="`size` must be 8 or 64 for the XAI-TRIS networks, got 32"):
        build(size=32, variant="paper")
    with pytest.raises(UsageError, match="`variant` must be 'paper' or 'released', got 'Paper'"):
        build(size=8, variant="Paper")


def test_catalogue_names_are_unique():
    names = [model.name for model in MODELS]
    assert names[:3] == ["llr", "mlp", "cnn"]
    assert len(set(names)) == len(names)
