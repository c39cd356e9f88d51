"""AlexNet and VGG: chains of convolutions for large colour images, then three fully connected layers.

State-dict names follow the common public weights (`features.0.weight`, `classifier.1.weight`), so those load. An
adaptive average pool stands between the two parts: it does nothing at 224 pixels, and lets other sides from 64 pass.

Why not torchvision's: its binary package is pinned to one build of torch, and its ReLUs work in place, which the rules
of attribution (guided backpropagation, LRP, DeepLIFT) cannot hook.
"""

from functools import partial

from torch import Tensor, nn

from forsooth.models import checks
from forsooth.models.builders import of_images
from forsooth.records import Architecture

LEAST = 64  # pixels a side
UNITS = 4096

# Filters of the 3×3 convolutions; a 2×2 max-pool ends each group. Configurations D and E.
VGG = {
    16: ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512)),
    19: ((64, 64), (128, 128), (256, 256, 256, 256), (512, 512, 512, 512), (512, 512, 512, 512)),
}


class Chain(nn.Module):
    """x (n, channels_in, side, side) to logits (n, classes): features, average pool to `side` × `side`, classifier."""

    def __init__(self, features: nn.Module, classifier: nn.Module, *, side: int) -> None:
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d(side)
        self.classifier = classifier

    def forward(self, x: Tensor) -> Tensor:
        pooled = self.avgpool(self.features(x))  # (n, channels, side, side)
        return self.classifier(pooled.flatten(1))


def alexnet(*, size: int = 224, variant: str = "paper", channels_in: int = 3, classes: int = 1000) -> nn.Module:
    """Five convolutions and three linear layers: x (n, channels_in, size, size) to logits (n, classes).

    The single column of [krizhevsky2014one], which everybody now calls AlexNet [krizhevsky2012imagenet].
    Departure: without local response normalisation, as the common public weights are.
    """
    checks.check("alexnet", size=size, least=LEAST, variant=variant, channels_in=channels_in, classes=classes)
    return Chain(_alexnet_features(channels_in), _alexnet_classifier(classes), side=6)


def _alexnet_features(channels_in: int) -> nn.Module:
    """(n, channels_in, h, w) to 256 maps, of 6×6 pixels where h and w are 224."""
    return nn.Sequential(
        nn.Conv2d(channels_in, 64, 11, stride=4, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2),
        nn.Conv2d(64, 192, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2),
        nn.Conv2d(192, 384, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(384, 256, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(256, 256, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2),
    )


def _alexnet_classifier(classes: int) -> nn.Module:
    """(n, 256 * 6 * 6) to logits (n, classes)."""
    return nn.Sequential(
        nn.Dropout(),
        nn.Linear(256 * 6 * 6, UNITS),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(UNITS, UNITS),
        nn.ReLU(),
        nn.Linear(UNITS, classes),
    )


def vgg(*, size: int = 224, variant: str = "paper", channels_in: int = 3, classes: int = 1000, depth: int) -> nn.Module:
    """VGG of 16 or 19 layers without batch normalisation: x (n, channels_in, size, size) to logits (n, classes).

    Configurations D and E. [simonyan2015very]
    """
    if depth not in VGG:
        raise checks.unknown("depth", depth, VGG)
    checks.check(f"vgg{depth}", size=size, least=LEAST, variant=variant, channels_in=channels_in, classes=classes)
    return Chain(_vgg_features(channels_in, VGG[depth]), _vgg_classifier(classes), side=7)


def _vgg_features(channels_in: int, groups: tuple[tuple[int, ...], ...]) -> nn.Module:
    """(n, channels_in, h, w) to 512 maps, of 7×7 pixels where h and w are 224."""
    layers: list[nn.Module] = []
    before = channels_in
    for group in groups:
        for filters in group:
            layers += [nn.Conv2d(before, filters, 3, padding=1), nn.ReLU()]
            before = filters
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers)


def _vgg_classifier(classes: int) -> nn.Module:
    """(n, 512 * 7 * 7) to logits (n, classes)."""
    return nn.Sequential(
        nn.Linear(512 * 7 * 7, UNITS),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(UNITS, UNITS),
        nn.ReLU(),
        nn.Dropout(),
        nn.Linear(UNITS, classes),
    )


ALEXNET = Architecture("alexnet", alexnet, layer="features.10", cite="krizhevsky2012imagenet", version=1)
VGG16 = Architecture("vgg16", partial(vgg, depth=16), layer="features.28", cite="simonyan2015very", version=1)
VGG19 = Architecture("vgg19", partial(vgg, depth=19), layer="features.34", cite="simonyan2015very", version=1)
BUILDERS = {record.name: of_images(record.function) for record in (ALEXNET, VGG16, VGG19)}
