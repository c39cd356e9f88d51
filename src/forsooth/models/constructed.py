"""Networks with weights set by hand: what each entry of their input contributes is known exactly.

They are unit tests for explanations. All inputs are chosen so that absent means zero, and the Shapley values against
zeros stand in closed form beside each network.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIDE = 4  # pixels along an axis of the quadrant that stands for a feature, where a network is asked about images
SHARP = 60.0  # the score of the token that a head attends to, over those of all others


@dataclass(frozen=True)
class Unit:
    """A network and inputs for which the right answer is known.

    purpose what the network computes and who gives what, in a sentence
    model   (n, *shape) -> (n, 2)
    x       (n, *shape)
    target  (n,) int64
    truth   (n, *shape), the Shapley values against a baseline of zeros
    slope   (n, *shape), the derivative, where that is a right answer too; None where it is not
    """

    name: str
    purpose: str
    model: nn.Module
    x: Tensor
    target: Tensor
    truth: Tensor
    slope: Tensor | None


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight))
    layer.weight.data = torch.tensor(weight)
    layer.bias.data = torch.tensor(bias)
    return layer


def weighted_sum() -> Unit:
    """f = 3 a - 2 b + c, and d has no weight: each gives its product."""
    weights = torch.tensor([3.0, -2.0, 1.0, 0.0])
    model = linear([weights.tolist(), (-weights).tolist()], [0.0, 0.0])
    x = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 2.0, -1.0, 2.0]])
    return unit("weighted sum", weighted_sum.__doc__ or "", model, x, truth=weights * x, slope=weights.expand_as(x))


def interaction() -> Unit:
    """f = relu(a + b - 1) at a = b = 1: nothing without both, so each gives half; c and d have no weight."""
    model = nn.Sequential(linear([[1.0, 1.0, 0.0, 0.0]], [-1.0]), nn.ReLU(), linear([[1.0], [-1.0]], [0.0, 0.0]))
    x = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.5, 2.0]])
    half = torch.tensor([0.5, 0.5, 0.0, 0.0]).expand_as(x)
    return unit("interaction", interaction.__doc__ or "", model, x, truth=half, slope=half)


def saturation() -> Unit:
    """f = 1 - relu(1 - a - b) at a = b = 1: either is enough, so each gives half, though the derivative is zero."""
    model = nn.Sequential(linear([[-1.0, -1.0, 0.0, 0.0]], [1.0]), nn.ReLU(), linear([[-1.0], [1.0]], [1.0, 0.0]))
    x = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.5, 2.0]])
    return unit(
        "saturation",
        saturation.__doc__ or "",
        model,
        x,
        truth=torch.tensor([0.5, 0.5, 0.0, 0.0]).expand_as(x),
        slope=None,
    )


def suppressor() -> Unit:
    """f = a - b, where a is signal and noise and b the noise alone: the model takes b off, and b gives that."""
    weights = torch.tensor([1.0, -1.0, 0.0, 0.0])
    model = linear([weights.tolist(), (-weights).tolist()], [0.0, 0.0])
    x = torch.tensor([[2.0, 1.0, 1.0, 1.0], [1.5, 1.0, 0.5, 2.0]])
    return unit("suppressor", suppressor.__doc__ or "", model, x, truth=weights * x, slope=weights.expand_as(x))


class CopyHead(nn.Module):
    """One attention head over tokens (n, length, dims): the last place asks, place 1 answers, and its value is copied.

    Keys and queries are of places alone, so attention is the same for every input: all of it is on place 1.
    """

    def __init__(self, length: int) -> None:
        super().__init__()
        places = torch.eye(length)
        self.register_buffer("query", SHARP * places[1:2])  # (1, length)
        self.register_buffer("key", places)
        self.head = linear([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], [0.0, 0.0])

    def forward(self, x: Tensor) -> Tensor:
        weights = (self.query @ self.key.T).softmax(-1)  # type: ignore[operator]
        mixed = F.linear(x.transpose(1, 2), weights)  # (n, dims, 1): attention that is the same for all, times values
        logits: Tensor = self.head(mixed[..., 0])
        return logits


def copy_head() -> Unit:
    """f = the first entry of the word at place 1, copied by attention: nothing else gives anything."""
    x = torch.linspace(0.5, 2.0, 40).reshape(2, 5, 4)
    truth = torch.zeros_like(x)
    truth[:, 1, 0] = x[:, 1, 0]
    slope = torch.zeros_like(x)
    slope[:, 1, 0] = 1.0
    return unit("attention copy head", copy_head.__doc__ or "", CopyHead(5), x, truth=truth, slope=slope)


def unit(name: str, says: str, model: nn.Module, x: Tensor, *, truth: Tensor, slope: Tensor | None) -> Unit:
    """The unit of the class 0."""
    target = torch.zeros(len(x), dtype=torch.int64)
    return Unit(name, " ".join(says.split()), model.eval(), x, target, truth, slope)


class Quadrants(nn.Module):
    """Images (n, 1, 8, 8) to the means of their four quadrants (n, 4), row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.means = nn.AvgPool2d(SIDE)
        self.flatten = nn.Flatten()

    def forward(self, x: Tensor) -> Tensor:
        means: Tensor = self.flatten(self.means(x))
        return means


def on_images(table: Unit) -> Unit:
    """The same of images, each quadrant of which stands for a feature and shares its value evenly."""

    def painted(values: Tensor) -> Tensor:
        return values.view(-1, 1, 2, 2).repeat_interleave(SIDE, 2).repeat_interleave(SIDE, 3)

    slope = None
    if table.slope is not None:
        slope = painted(table.slope) / SIDE**2
    model = nn.Sequential(Quadrants(), table.model).eval()
    return Unit(table.name, table.purpose, model, painted(table.x), table.target, painted(table.truth) / SIDE**2, slope)


UNITS = (weighted_sum, interaction, saturation, suppressor, copy_head)
