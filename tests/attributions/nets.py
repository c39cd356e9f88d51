"""Small networks for the tests of propagation, with everything that trips other libraries."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forsooth.seeds import generator, generators


def drawn(model: nn.Module, seed: int = 0) -> nn.Module:
    """The model in float64 and eval mode, with parameters and batch statistics from a seed."""
    source = generator(seed, "net")
    for module in model.modules():
        for name, value in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            if value.is_floating_point():
                scale = 1 / max(1, value[0].numel()) ** 0.5
                new = torch.randn(value.shape, generator=source, dtype=torch.float64) * scale
                positive = name == "running_var" or (isinstance(module, nn.BatchNorm2d) and name == "weight")
                value.data = new.abs() + 0.5 if positive else new
    return model.eval()


def mlp(features: int = 5, classes: int = 3, *, bias: bool = True) -> nn.Sequential:
    layers = (nn.Linear(features, 6, bias=bias), nn.ReLU(), nn.Linear(6, classes, bias=bias))
    return nn.Sequential(*layers)


def cnn(size: int = 8, *, stride: int = 2) -> nn.Sequential:
    """Two blocks of convolution, ReLU and max-pool, as in XAI-TRIS."""
    blocks: list[nn.Module] = []
    for channels in (1, 4):
        blocks += [nn.Conv2d(channels, 4, 2, padding=1), nn.ReLU(), nn.MaxPool2d(2, stride=stride)]
    features = nn.Sequential(*blocks)(torch.zeros(1, 1, size, size)).numel()
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(features, 2))


class Block(nn.Module):
    """A residual block with one in-place ReLU used twice, an empty shortcut and `+=`."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels)
        self.relu, self.shortcut = nn.ReLU(inplace=True), nn.Sequential()

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.shortcut(x)
        return self.relu(y)


class Residual(nn.Module):
    """Functional ReLU, overlapping padded max-pool, two residual blocks, one `y + z`, average, dropout, linear."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.blocks = nn.Sequential(Block(4), Block(4))
        self.dropout, self.head = nn.Dropout(0.5), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        y = F.max_pool2d(F.relu(self.bn(self.conv(x))), 3, stride=2, padding=1)
        z = self.blocks(y)
        z = F.relu(y + z)
        return self.head(self.dropout(F.adaptive_avg_pool2d(z, 1).view(x.size(0), -1)))


def without_shifts(model: nn.Module) -> nn.Module:
    """A copy in which no constant is added anywhere: biases, shifts and means of batch normalisation are zero."""
    model = copy.deepcopy(model)
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if name.endswith(("bias", "running_mean")):
            value.data.zero_()
    return model


def own(seed: int, n: int = 4) -> list[torch.Generator]:
    """A generator for each of n inputs."""
    return generators(seed, "own", range(n))


def inputs(n: int, *shape: int, seed: int = 1) -> Tensor:
    """(n, *shape) normal float64"""
    return torch.randn((n, *shape), generator=generator(seed, "inputs"), dtype=torch.float64)


def output(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """(n,) the targets' outputs"""
    return model(x).detach().gather(1, target.unsqueeze(1)).squeeze(1)


def gap(attribution: Tensor, total: Tensor) -> float:
    """The largest relative difference between the sums of the maps (n, *shape) and the totals (n,)."""
    return ((attribution.flatten(1).sum(1) - total).abs() / total.abs()).max().item()
