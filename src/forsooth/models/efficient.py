"""EfficientNet-Lite0: a network for large colour images whose ImageNet weights are 19 MB.

`studies/imagenet_weights.py` turns a public file of them into one that `models.weights` reads.
"""

from torch import Tensor, nn

from forsooth.models import checks
from forsooth.models.builders import of_images
from forsooth.records import Architecture

LEAST = 32  # pixels a side: the last map is then one pixel
# blocks, kernel, stride of the first block, channels, and how many times wider the inside is
STAGES = (
    (1, 3, 1, 16, 1),
    (2, 3, 2, 24, 6),
    (2, 5, 2, 40, 6),
    (3, 3, 2, 80, 6),
    (3, 5, 1, 112, 6),
    (4, 5, 2, 192, 6),
    (1, 3, 1, 320, 6),
)
STEM = 32  # channels of the first convolution
HEAD = 1280  # and of the last
SPREAD = 1e-3  # ε of the batch normalisations, as trained


def around(kernel: int, stride: int) -> nn.ZeroPad2d:
    """Zeros that keep the side, or halve an even one; the odd row is below and right, as the weights were trained."""
    low = (kernel - stride) // 2
    high = kernel - stride - low
    return nn.ZeroPad2d((low, high, low, high))


class Inverted(nn.Module):
    """1×1 to a wider inside, one filter for each channel there, 1×1 back: (n, c, h, w) -> (n, c', h/stride, w/stride).

    The way around it is open where the shape stays. [sandler2018mobilenetv2]
    """

    def __init__(self, channels_in: int, channels: int, *, kernel: int, stride: int, wider: int) -> None:
        super().__init__()
        inside = channels_in * wider
        self.wide = wider > 1
        if self.wide:
            self.conv1 = nn.Conv2d(channels_in, inside, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(inside, eps=SPREAD)
            self.relu1 = nn.ReLU()
        self.pad = around(kernel, stride)
        self.conv2 = nn.Conv2d(inside, inside, kernel, stride=stride, groups=inside, bias=False)
        self.bn2 = nn.BatchNorm2d(inside, eps=SPREAD)
        self.relu2 = nn.ReLU()
        self.conv3 = nn.Conv2d(inside, channels, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(channels, eps=SPREAD)
        self.open = stride == 1 and channels == channels_in

    def forward(self, x: Tensor) -> Tensor:
        inner = x
        if self.wide:
            inner = self.relu1(self.bn1(self.conv1(inner)))
        inner = self.relu2(self.bn2(self.conv2(self.pad(inner))))
        inner = self.bn3(self.conv3(inner))
        if self.open:
            inner = inner + x
        return inner


class EfficientNet(nn.Module):
    """A 3×3 convolution, seven stages of inverted blocks, a 1×1 convolution, global average, linear.

    x        (n, channels_in, h, w)
    returns  (n, classes) logits
    """

    def __init__(self, *, channels_in: int, classes: int) -> None:
        super().__init__()
        self.pad = around(3, 2)
        self.conv1 = nn.Conv2d(channels_in, STEM, 3, stride=2, bias=False)
        self.bn1 = nn.BatchNorm2d(STEM, eps=SPREAD)
        self.relu1 = nn.ReLU()
        before = STEM
        for i, (count, kernel, stride, channels, wider) in enumerate(STAGES, start=1):
            stage = [Inverted(before, channels, kernel=kernel, stride=stride, wider=wider)]
            while len(stage) < count:
                stage.append(Inverted(channels, channels, kernel=kernel, stride=1, wider=wider))
            self.add_module(f"layer{i}", nn.Sequential(*stage))
            before = channels
        self.conv2 = nn.Conv2d(before, HEAD, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(HEAD, eps=SPREAD)
        self.relu2 = nn.ReLU()
        self.fc = nn.Linear(HEAD, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu1(self.bn1(self.conv1(self.pad(x))))
        for i in range(1, len(STAGES) + 1):
            x = self.get_submodule(f"layer{i}")(x)
        x = self.relu2(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


def efficientnet_lite0(
    *, size: int = 224, variant: str = "paper", channels_in: int = 3, classes: int = 1000
) -> EfficientNet:
    """EfficientNet-Lite0: x (n, channels_in, size, size) to logits (n, classes). [tan2019efficientnet]

    Departure: ReLU for ReLU6, for which guided backpropagation and its kin are not defined, and no dropout.
    """
    checks.check(
        "efficientnet_lite0", size=size, least=LEAST, variant=variant, channels_in=channels_in, classes=classes
    )
    return EfficientNet(channels_in=channels_in, classes=classes)


EFFICIENTNET_LITE0 = Architecture(
    "efficientnet_lite0", efficientnet_lite0, layer="relu2", cite="tan2019efficientnet", version=1
)
BUILDERS = {"efficientnet_lite0": of_images(efficientnet_lite0)}
