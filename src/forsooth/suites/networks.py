"""The one way to keep a trained network in a cell, to judge it by its gate, and to load it as it is explained."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.records import Dataset, Row

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)
AT_ONCE = 256  # images in one forward


def accuracy_row(template: Row, accuracy: float, *, gate: float, passed: bool | None = None) -> Row:
    """The row of a training: its test accuracy, and whether it is enough to be explained.

    passed  whether it is; by default whether the accuracy reaches the gate
    """
    row = template.having(method="", metric="accuracy", sample=-1, value=accuracy)
    if accuracy >= gate if passed is None else passed:
        return row
    return row.having(status="below gate", message=below_gate(accuracy, gate))


def below_gate(accuracy: float, gate: float) -> str:
    return f"accuracy {accuracy:.1%}, below the gate of {gate:.0%}"


def weights_of(module: nn.Module, prefix: str = "") -> dict[str, Tensor]:
    """The tensors of a cell that keeps the network."""
    return {f"{prefix}{name}": value for name, value in module.state_dict().items()}


def loaded(module: nn.Module, tensors: Mapping[str, Tensor], *, device: str, prefix: str = "") -> nn.Module:
    """The network with the weights that a cell keeps under `prefix`, in eval mode and without gradients of weights."""
    own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    module.load_state_dict(own)
    return module.eval().requires_grad_(False).to(device)


def normalising(mean: tuple[float, ...] = IMAGENET_MEAN, spread: tuple[float, ...] = IMAGENET_SPREAD) -> nn.Conv2d:
    """A convolution that normalises images in [0, 1]: in front of a network, every method can read through it."""
    scale = nn.Conv2d(len(mean), len(mean), 1, groups=len(mean))
    scale.load_state_dict({"weight": 1 / column(spread)[:, None], "bias": -torch.tensor(mean) / torch.tensor(spread)})
    return scale


def column(values: tuple[float, ...]) -> Tensor:
    """One value for each channel. (channels, 1, 1)"""
    return torch.tensor(values)[:, None, None]


def inside(layer: str | None, place: str) -> str | None:
    """The name of a layer of a network that became the part `place` of a larger module."""
    return None if layer is None else f"{place}.{layer}"


@torch.no_grad()
def predicted(model: nn.Module, x: Tensor, *, size: int = AT_ONCE) -> Tensor:
    """The class of the largest output. (n,)"""
    return chunks.over(lambda part: model(part).argmax(1), x, size=size)


@torch.no_grad()
def correct(model: nn.Module, dataset: Dataset, rows: Tensor, *, device: str, size: int = AT_ONCE) -> Tensor:
    """Which of the rows (k,) of a dataset the network gets right. (k,) bool"""
    parts = [model(dataset.x[part].to(device)).argmax(1).cpu() for part in rows.split(size)]
    return torch.cat(parts) == dataset.y[rows]
