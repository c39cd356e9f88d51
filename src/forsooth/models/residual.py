"""Residual networks for large colour images: ResNet-34, 50 and 101.

State-dict names follow the common public weights (`conv1`, `bn1`, `layer1.0.conv1`, `layer1.0.downsample.0`, …, `fc`),
so those load.

Why not torchvision's: its binary package is pinned to one build of torch, and its ReLUs work in place, which the rules
of attribution (guided backpropagation, LRP, DeepLIFT) cannot hook. Each ReLU here is a module of its own, too.
"""

from functools import partial

from torch import Tensor, nn

from forsooth.models import checks
from forsooth.models.builders import of_images
from forsooth.records import Architecture

LEAST = 32  # pixels a side: the last map is then one pixel
STAGES = {34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}  # blocks in each


class Block(nn.Module):
    """A branch of convolutions and the way around it: (n, c, h, w) -> (n, c', h/stride, w/stride). [he2016deep]

    thin   ResNet-34: two 3×3 convolutions, c' = width
    deep   ResNet-50, 101: 1×1, 3×3, 1×1, c' = 4 · width. Departure: the stride is in the 3×3 convolution, as in the
           common public weights; the paper has it in the first 1×1

    The shortcut is option B: a 1×1 convolution with batch normalisation where the shape changes, else nothing.
    """

    def __init__(self, channels_in: int, width: int, *, stride: int, deep: bool) -> None:
        super().__init__()
        branch = _branch(width, stride=stride, deep=deep)
        self.depth = len(branch)
        before = channels_in
        for i, (channels, kernel, step) in enumerate(branch, start=1):
            conv = nn.Conv2d(before, channels, kernel, stride=step, padding=kernel // 2, bias=False)
            self.add_module(f"conv{i}", conv)
            self.add_module(f"bn{i}", nn.BatchNorm2d(channels))
            self.add_module(f"relu{i}", nn.ReLU())
            before = channels
        self.downsample: nn.Module | None = None
        if stride != 1 or before != channels_in:
            projection = nn.Conv2d(channels_in, before, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(projection, nn.BatchNorm2d(before))

    def forward(self, x: Tensor) -> Tensor:
        shortcut = x
        if self.downsample is not None:
            shortcut = self.downsample(x)
        inner = x
        for i in range(1, self.depth + 1):
            inner = self.get_submodule(f"bn{i}")(self.get_submodule(f"conv{i}")(inner))
            if i == self.depth:
                inner = inner + shortcut
            inner = self.get_submodule(f"relu{i}")(inner)
        return inner


def _branch(width: int, *, stride: int, deep: bool) -> tuple[tuple[int, int, int], ...]:
    """Channels, kernel and stride of each convolution of a block."""
    if deep:
        return (width, 1, 1), (width, 3, stride), (4 * width, 1, 1)
    return (width, 3, stride), (width, 3, 1)


class DeepResNet(nn.Module):
    """A 7×7 convolution and max-pool, four stages of blocks, global average, linear.

    x        (n, channels_in, h, w)
    returns  (n, classes) logits
    """

    def __init__(self, *, channels_in: int, classes: int, blocks: tuple[int, ...], deep: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = len(blocks)
        before = 64
        for i, count in enumerate(blocks):
            stride = min(i + 1, 2)  # all stages but the first halve the sides
            stage, before = _stage(before, 64 * 2**i, count, stride=stride, deep=deep)
            self.add_module(f"layer{i + 1}", stage)
        self.fc = nn.Linear(before, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for i in range(self.stages):
            x = self.get_submodule(f"layer{i + 1}")(x)
        return self.fc(x.mean((2, 3)))


def _stage(channels_in: int, width: int, count: int, *, stride: int, deep: bool) -> tuple[nn.Module, int]:
    """`count` blocks, the first of this stride; and the channels that they give."""
    channels = _branch(width, stride=stride, deep=deep)[-1][0]
    blocks = [Block(channels_in, width, stride=stride, deep=deep)]
    while len(blocks) < count:
        blocks.append(Block(channels, width, stride=1, deep=deep))
    return nn.Sequential(*blocks), channels


def resnet(
    *, size: int = 224, variant: str = "paper", channels_in: int = 3, classes: int = 1000, depth: int
) -> DeepResNet:
    """ResNet-34, 50 or 101: x (n, channels_in, size, size) to logits (n, classes). [he2016deep]"""
    if depth not in STAGES:
        raise checks.unknown("depth", depth, STAGES)
    checks.check(f"resnet{depth}", size=size, least=LEAST, variant=variant, channels_in=channels_in, classes=classes)
    return DeepResNet(channels_in=channels_in, classes=classes, blocks=STAGES[depth], deep=depth >= 50)


RESNET34 = Architecture("resnet34", partial(resnet, depth=34), layer="layer4", cite="he2016deep", version=1)
RESNET50 = Architecture("resnet50", partial(resnet, depth=50), layer="layer4", cite="he2016deep", version=1)
RESNET101 = Architecture("resnet101", partial(resnet, depth=101), layer="layer4", cite="he2016deep", version=1)
BUILDERS = {record.name: of_images(record.function) for record in (RESNET34, RESNET50, RESNET101)}
