"""Residual networks: public weights give the published accuracy, and a block equals its formula written out."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from forsooth.models.resnet import RESIDUAL_SMALL, RESNET20, RESNET32, RESNET44, RESNET56, BasicBlock, small_resnet
from forsooth.records import UsageError

DATA = Path(__file__).parents[3] / "shared" / "data"  # beside the checkout; not part of the project
needs_cifar = pytest.mark.skipif(
    not (DATA / "cifar10_resnet20_weights.npz").exists(), reason="the CIFAR-10 subset and weights are not at hand"
)


@needs_cifar
def test_resnet20_with_public_weights_reads_cifar():
    net = RESNET20.function(size=32, variant="paper").eval()
    with np.load(DATA / "cifar10_resnet20_weights.npz") as weights:
        net.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights.files})
    sheet = np.asarray(Image.open(DATA / "cifar10_test0.webp").convert("RGB"))[: 5 * 32]
    images = sheet.reshape(5, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = ((torch.from_numpy(images) / 255 - mean) / spread).permute(0, 3, 1, 2)
    with np.load(DATA / "cifar10_labels.npz") as labels:
        y = torch.from_numpy(labels["test_label"][:500].astype(int))
    with torch.no_grad():
        assert (net(x).argmax(1) == y).double().mean() >= 0.90


@needs_cifar
@pytest.mark.parametrize("model", [RESNET20, RESNET32, RESNET44, RESNET56], ids=lambda model: model.name)
def test_names_are_those_of_the_public_weights(model):
    with np.load(DATA / f"cifar10_{model.name}_weights.npz") as weights:
        public = {name: weights[name].shape for name in weights.files}
    ours = {name: tuple(value.shape) for name, value in model.function(size=32, variant="paper").state_dict().items()}
    assert {name: shape for name, shape in ours.items() if "num_batches" not in name} == public


def test_weights_counted_as_in_the_paper():
    """Table 6 of the paper: 0.27, 0.46, 0.66 and 0.85 million."""
    for model, millions in ((RESNET20, 0.27), (RESNET32, 0.46), (RESNET44, 0.66), (RESNET56, 0.85)):
        net = model.function(size=32, variant="paper")
        assert round(sum(p.numel() for p in net.parameters()) / 1e6, 2) == pytest.approx(millions, abs=0.011)
        assert model.layer in dict(net.named_modules())


def test_block_written_out():
    block = BasicBlock(2, 6, stride=2).double().eval()
    x = torch.randn(3, 2, 8, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def normed(h, bn):  # in eval mode with fresh statistics: mean 0, variance 1
        return h / (1 + bn.eps) ** 0.5

    inner = normed(F.conv2d(x, block.conv1.weight, stride=2, padding=1), block.bn1).clamp(min=0)
    inner = normed(F.conv2d(inner, block.conv2.weight, padding=1), block.bn2)
    inner[:, 2:4] += x[:, :, ::2, ::2]  # two channels of zeros on either side
    torch.testing.assert_close(block(x), inner.clamp(min=0))


def test_small_resnet_takes_any_square():
    net = small_resnet(channels_in=1, classes=2, width=4, blocks=(1, 2)).eval()
    assert net(torch.zeros(2, 1, 8, 8)).shape == (2, 2)
    assert net(torch.zeros(2, 1, 9, 9)).shape == (2, 2)


def test_residual_small():
    """Weights by hand: 27·16 + 2·9·16² + 9·(16·32 + 32²) + 9·(32·64 + 64²), 7 norms, 65·classes."""
    net = RESIDUAL_SMALL.function(size=64, variant="paper", classes=5).eval()
    norms = 2 * (16 * 3 + 32 * 2 + 64 * 2)
    assert sum(p.numel() for p in net.parameters()) == 432 + 4_608 + 13_824 + 55_296 + norms + 65 * 5
    x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    assert net.relu(net.bn1(net.conv1(x))).shape == (2, 16, 32, 32)
    assert net(x).shape == (2, 5) and RESIDUAL_SMALL.layer == "layer3"
    with pytest.raises(UsageError, match="`size` must be at least 16 for residual_small, got 8"):
        RESIDUAL_SMALL.function(size=8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(stride=0), "`stride` must be at least 1, got 0"),
        (dict(blocks=()), r"`blocks` must name at least one block for every stage, got \(\)"),
        (dict(blocks=(1, 0)), r"`blocks` must name at least one block for every stage, got \(1, 0\)"),
        (dict(width=0), "`width` must be at least 1, got 0"),
        (dict(classes=0), "`classes` must be at least 1, got 0"),
    ],
)
def test_bad_small_resnet(given, message):
    with pytest.raises(UsageError, match=message):
        small_resnet(**{"channels_in": 1, "classes": 2, "width": 4, "blocks": (1,), **given})


def test_bad_cifar_resnet():
    with pytest.raises(UsageError, match="`size` must be 32 for the CIFAR residual networks, got 8"):
        RESNET20.function(size=8, variant="paper")
    with pytest.raises(UsageError, match="`variant` must be 'paper' for the CIFAR residual networks, got 'released'"):
        RESNET20.function(size=32, variant="released")
