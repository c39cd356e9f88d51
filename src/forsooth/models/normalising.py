"""Images in [0, 1] as networks want them: by mean and spread of ImageNet."""

import torch
from torch import Tensor, nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)


def normalised(x: Tensor) -> Tensor:
    """The images x (n, 3, h, w), normalised."""
    return (x - column(IMAGENET_MEAN)) / column(IMAGENET_SPREAD)


def normalising(mean: tuple[float, ...] = IMAGENET_MEAN, spread: tuple[float, ...] = IMAGENET_SPREAD) -> nn.Conv2d:
    """A convolution that normalises images in [0, 1]: in front of a network, every method can read through it."""
    scale = nn.Conv2d(len(mean), len(mean), 1, groups=len(mean))
    scale.load_state_dict({"weight": 1 / column(spread)[:, None], "bias": -torch.tensor(mean) / torch.tensor(spread)})
    return scale


def column(values: tuple[float, ...]) -> Tensor:
    """One value for each channel. (channels, 1, 1)"""
    return torch.tensor(values)[:, None, None]


def with_normalising(network: nn.Module, *, output: str = "logits") -> nn.Sequential:
    """The network for images in [0, 1], which are normalised in front of it, ready to be explained.

    output  "logits" of the network, or "probabilities"
    """
    device = next(network.parameters()).device
    parts = [normalising(), network]
    if output == "probabilities":
        parts.append(nn.Softmax(1))
    return nn.Sequential(*parts).eval().requires_grad_(False).to(device)
