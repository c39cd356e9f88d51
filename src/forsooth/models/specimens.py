"""Small untrained networks and inputs for them, on which a method is tried."""

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from forsooth import seeds
from forsooth.models.vit import vit as small_vit

ROWS = 3
CLASSES = 3
SIZES = {"x": ROWS, "background": 5, "fit": 40}


class Block(nn.Module):
    """Two convolutions and the way around them: (n, c, h, w) -> (n, c, h, w). [he2016deep]"""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.bn2 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU()
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        inner = self.relu1(self.bn1(self.conv1(x)))
        outer: Tensor = self.relu2(self.bn2(self.conv2(inner)) + x)
        return outer


class Weighing(nn.Module):
    """Word vectors (n, length, dims) to logits (n, classes): it says how it weighs and selects its words."""

    def __init__(self, dims: int) -> None:
        super().__init__()
        self.key = nn.Linear(dims, 1)
        self.value = nn.Linear(dims, 6)
        self.relu = nn.ReLU()
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        weighed = self.attention_of(x)[..., None] * self.relu(self.value(x))
        logits: Tensor = self.head(weighed.sum(1))
        return logits

    def attention_of(self, x: Tensor) -> Tensor:
        """(n, length), one in sum"""
        chosen = self.selection_of(x)
        return chosen / chosen.sum(1, keepdim=True)

    def selection_of(self, x: Tensor) -> Tensor:
        """(n, length) in (0, 1)"""
        keys: Tensor = self.key(x)
        return keys[..., 0].sigmoid()


@dataclass(frozen=True)
class Specimen:
    """A small untrained network and inputs for it: x (n, *shape), target (n,), others (k, *shape) for background and
    fit; layer: what Grad-CAM reads, None where there is no convolution; samples (n,): the inputs' numbers."""

    name: str
    model: nn.Module
    x: Tensor
    target: Tensor
    background: Tensor
    fit: Tensor
    layer: str | None
    samples: Tensor


def specimens(seed: int, device: str) -> tuple[Specimen, ...]:
    """One network for each kind of input. No ReLU is used twice or in place, which trips many hooks."""
    return (
        specimen("image 1×8×8", plain_network(), (1, 8, 8), "3", seed=seed, device=device),
        specimen("image 3×16×16", residual_network(), (3, 16, 16), "3", seed=seed, device=device),
        specimen("ViT 1×8×8", small_vit(size=8, classes=CLASSES), (1, 8, 8), "grid", seed=seed, device=device),
        specimen("table of 6", table_network(), (6,), None, seed=seed, device=device),
        specimen("words 5×4", Weighing(4), (5, 4), None, seed=seed, device=device),
    )


def plain_network() -> nn.Module:
    """(n, 1, 8, 8) -> (n, classes)"""
    first = (nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
    second = (nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.Flatten())
    return nn.Sequential(*first, *second, nn.Linear(6 * 4 * 4, CLASSES))


def residual_network() -> nn.Module:
    """(n, 3, h, w) -> (n, classes)"""
    begin = (nn.Conv2d(3, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), Block(6))
    end = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(6, CLASSES))
    return nn.Sequential(*begin, *end)


def table_network() -> nn.Module:
    """(n, 6) -> (n, classes)"""
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, CLASSES))


def specimen(
    name: str, model: nn.Module, shape: tuple[int, ...], layer: str | None, *, seed: int, device: str
) -> Specimen:
    """The network with drawn weights, and drawn inputs for it: uniform in [0, 1] for images, else normal."""
    draw = torch.rand if len(shape) == 3 else torch.randn
    inputs = {
        part: draw((n, *shape), generator=seeds.generator(seed, name, part)).to(device) for part, n in SIZES.items()
    }
    return Specimen(
        name=name,
        model=drawn(model, seeds.generator(seed, name, "weights")).to(device),
        target=torch.arange(ROWS, device=device) % CLASSES,
        layer=layer,
        samples=torch.arange(ROWS),
        **inputs,
    )


def drawn(model: nn.Module, generator: torch.Generator) -> nn.Module:
    """The model in eval mode, its weights and batch statistics drawn: as a trained one, it has none that is 0 or 1."""
    for part in model.modules():
        for name, value in (*part.named_parameters(recurse=False), *part.named_buffers(recurse=False)):
            if not value.is_floating_point():
                continue
            new = torch.randn(value.shape, generator=generator) / max(1, value[0].numel()) ** 0.5
            if name == "running_var" or (isinstance(part, nn.BatchNorm2d) and name == "weight"):
                new = new.abs() + 0.5
            value.data = new
    return model.eval()


def only(kind: Specimen, row: int) -> Specimen:
    one = slice(row, row + 1)
    return replace(kind, x=kind.x[one], target=kind.target[one], samples=kind.samples[one])


def without_shifts(model: nn.Module) -> nn.Module:
    """A copy in which no constant is added anywhere."""
    model = copy.deepcopy(model)
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if name.endswith(("bias", "running_mean", "positions.weight")):
            value.data.zero_()
    return model
