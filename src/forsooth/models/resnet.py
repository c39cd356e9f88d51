"""Residual networks for small images: ResNet-20/32/44/56 of the CIFAR experiments, and siblings of free size.

State-dict names follow the common public weights (`conv1`, `bn1`, `layer1.0.conv1`, …, `linear`), so those load.
"""

from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from forsooth.models import checks
from forsooth.models.builders import of_fixed_images, of_images
from forsooth.records import Architecture, UsageError


class BasicBlock(nn.Module):
    """Two 3×3 convolutions and the way around them: (n, c, h, w) -> (n, c', h/stride, w/stride). [he2016deep]

    The shortcut is option A: take every `stride`-th pixel and pad with channels of zeros, half on each side.
    """

    def __init__(self, channels_in: int, channels: int, *, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu2 = nn.ReLU()
        self.stride = stride
        self.extra = channels - channels_in

    def forward(self, x: Tensor) -> Tensor:
        shortcut = self.shortcut(x)
        inner = self.relu1(self.bn1(self.conv1(x)))
        return self.relu2(self.bn2(self.conv2(inner)) + shortcut)

    def shortcut(self, x: Tensor) -> Tensor:
        """x (n, c, h, w) in the shape that the block gives."""
        if self.stride == 1 and not self.extra:
            return x
        low = self.extra // 2
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, low, self.extra - low))


class ResNet(nn.Module):
    """A 3×3 convolution, stages of blocks (channels doubled, sides halved), global average, linear.

    x        (n, channels_in, h, w)
    returns  (n, classes) logits
    """

    def __init__(self, *, channels_in: int, classes: int, width: int, blocks: tuple[int, ...], stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.stages = len(blocks)
        before = width
        for i, count in enumerate(blocks):
            channels = width * 2**i
            stage_stride = min(i + 1, 2)  # all stages but the first halve the sides
            self.add_module(f"layer{i + 1}", _stage(before, channels, count, stride=stage_stride))
            before = channels
        self.linear = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        for i in range(self.stages):
            x = self.get_submodule(f"layer{i + 1}")(x)
        return self.linear(x.mean((2, 3)))


def _stage(channels_in: int, channels: int, count: int, *, stride: int) -> nn.Module:
    """`count` blocks, the first of this stride."""
    blocks = [BasicBlock(channels_in, channels, stride=stride)]
    while len(blocks) < count:
        blocks.append(BasicBlock(channels, channels, stride=1))
    return nn.Sequential(*blocks)


def small_resnet(*, channels_in: int, classes: int, width: int, blocks: tuple[int, ...], stride: int = 1) -> ResNet:
    """A residual network of any size; `blocks` says how many blocks each stage has, `stride` is the first layer's.

    >>> sum(p.numel() for p in small_resnet(channels_in=1, classes=2, width=4, blocks=(1, 1)).parameters())
    1262
    """
    if not blocks or min(blocks) < 1:
        raise UsageError(f"`blocks` must name at least one block for every stage, got {blocks!r}")
    checks.positive({"channels_in": channels_in, "classes": classes, "width": width, "stride": stride})
    return ResNet(channels_in=channels_in, classes=classes, width=width, blocks=tuple(blocks), stride=stride)


def cifar_resnet(*, size: int = 32, variant: str = "paper", depth: int) -> ResNet:
    """ResNet-20, 32, 44 or 56 for x (n, 3, 32, 32), ten classes: 6·blocks + 2 layers of width 16, 32, 64.

    There is one variant. Departure: logits are given, softmax is left to the loss. [he2016deep]
    """
    if depth not in (20, 32, 44, 56):
        raise UsageError(f"`depth` must be 20, 32, 44 or 56, got {depth!r}")
    if size != 32:
        raise UsageError(f"`size` must be 32 for the CIFAR residual networks, got {size!r}")
    if variant != "paper":
        raise UsageError(f"`variant` must be 'paper' for the CIFAR residual networks, got {variant!r}")
    blocks_a_stage = (depth - 2) // 6
    return small_resnet(channels_in=3, classes=10, width=16, blocks=(blocks_a_stage,) * 3)


def residual_small(*, size: int = 64, variant: str = "paper", channels_in: int = 3, classes: int = 2) -> ResNet:
    """Three stages of one block, 16, 32 and 64 channels: x (n, channels_in, size, size) to logits (n, classes).

    Ours, after [he2016deep], made to be trained on two cores. The first convolution has stride 2, which makes a step
    four times cheaper on images of 64×64.
    """
    checks.check("residual_small", size=size, least=16, variant=variant, channels_in=channels_in, classes=classes)
    return small_resnet(channels_in=channels_in, classes=classes, width=16, blocks=(1, 1, 1), stride=2)


_of_cifar = partial(Architecture, layer="layer3", cite="he2016deep", version=1, channels_last=True)
RESNET20 = _of_cifar("resnet20", partial(cifar_resnet, depth=20))
RESNET32 = _of_cifar("resnet32", partial(cifar_resnet, depth=32))
RESNET44 = _of_cifar("resnet44", partial(cifar_resnet, depth=44))
RESNET56 = _of_cifar("resnet56", partial(cifar_resnet, depth=56))
RESIDUAL_SMALL = Architecture("residual_small", residual_small, layer="layer3", cite="he2016deep", version=1)
_built = partial(of_fixed_images, channels=3, classes=10, variant="paper")
BUILDERS = {record.name: _built(record.function) for record in (RESNET20, RESNET32, RESNET44, RESNET56)}
BUILDERS["residual_small"] = of_images(residual_small)
