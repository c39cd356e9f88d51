"""Class activation maps after Grad-CAM: they differ in how a channel, or each of its places, is weighed."""

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forsooth.attributions.cam import GRAD_CAM, activations
from forsooth.attributions.intercept import rows_at_once
from forsooth.attributions.shares import divided
from forsooth.chunks import over
from forsooth.games.values import target_outputs
from forsooth.records import UsageError

Weigh = Callable[[Tensor, Tensor], Tensor]  # activations, gradients (n, c, *space) -> weights that broadcast to them
MODES = {3: "linear", 4: "bilinear", 5: "trilinear"}  # by the axes of the input


def enlarged(small: Tensor, x: Tensor) -> Tensor:
    """Maps (n, *smaller space) brought to the space of x (n, channels, *space) linearly, the same in each channel."""
    large = F.interpolate(small[:, None], size=x.shape[2:], mode=MODES[x.ndim])
    return large.expand_as(x).contiguous()


def weighed(model: nn.Module, x: Tensor, target: Tensor, *, layer: str, weigh: Weigh) -> Tensor:
    """The rectified sum over channels of weights × activations, enlarged to x (n, channels, *space)."""
    check_images(x)

    def part(x: Tensor, target: Tensor) -> Tensor:
        output, gradient = activations(model, x, target, layer)
        return (weigh(output, gradient) * output).sum(1).relu()

    return enlarged(over(part, x, target, size=rows_at_once(x)), x)


def check_images(x: Tensor) -> None:
    """UsageError unless x has channels and one to three axes of space."""
    if x.ndim not in MODES:
        raise UsageError(f"`x` must be (n, channels, *space) with 1 to 3 axes of space, got {tuple(x.shape)}")


def over_space(values: Tensor) -> Tensor:
    """Sums (n, c, 1, …) of values (n, c, *space) over the places of each channel."""
    return values.sum(dim=tuple(range(2, values.ndim)), keepdim=True)


def hires_cam(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """Activations times gradients at every place, summed over channels, rectified and enlarged.

    x        (n, channels, *space)
    target   (n,) int64
    layer    dotted name of a module whose output is (n, c, *smaller space)
    returns  (n, channels, *space), never negative

    [draelos2020use]. Rectified and enlarged as the other maps of this kind are.
    """
    return weighed(model, x, target, layer=layer, weigh=lambda output, gradient: gradient)


def layer_cam(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """Activations times the positive part of the gradient at every place. Shapes as in `hires_cam`.

    [jiang2021layercam]
    """
    return weighed(model, x, target, layer=layer, weigh=lambda output, gradient: gradient.relu())


def xgrad_cam(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """Channels weighed by their gradients, averaged with their activations as weights. Shapes as in `hires_cam`.

    [fu2020axiom]. A channel whose activations sum to zero weighs nothing.
    """

    def weigh(output: Tensor, gradient: Tensor) -> Tensor:
        return divided(over_space(output * gradient), over_space(output))

    return weighed(model, x, target, layer=layer, weigh=weigh)


def grad_cam_plus_plus(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """Channels weighed by positive gradients, each place by α = g² / (2 g² + g³ ΣA). Shapes as in `hires_cam`.

    [chattopadhay2018grad], for exp(output), whose higher derivatives are powers of the gradient g where the network is
    piecewise linear. The common factor exp(output) is left out: it changes nothing but the scale of a map.
    """

    def weigh(output: Tensor, gradient: Tensor) -> Tensor:
        square = gradient**2
        alpha = divided(square, 2 * square + gradient**3 * over_space(output))
        return over_space(alpha * gradient.relu())

    return weighed(model, x, target, layer=layer, weigh=weigh)


def score_cam(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """Channels weighed by what the model says of the image seen through each of them.

    x        (n, channels, *space)
    target   (n,) int64
    layer    dotted name of a module whose output is (n, c, *smaller space)
    returns  (n, channels, *space), never negative

    [wang2020score]: a channel, enlarged and brought to [0, 1], multiplies the image; the softmax over channels of the
    target's outputs is their weight. What the model says of an empty image falls out of that softmax. Cost: a forward
    for each channel.
    """
    check_images(x)

    def part(x: Tensor, target: Tensor) -> Tensor:
        output, _ = activations(model, x, target, layer)
        scores = torch.stack([seen_through(model, x, target, channel) for channel in output.unbind(1)], dim=1)
        weight = scores.softmax(1).reshape(*scores.shape, *(1,) * (x.ndim - 2))
        return (weight * output).sum(1).relu()

    return enlarged(over(part, x, target, size=rows_at_once(x)), x)


def seen_through(model: nn.Module, x: Tensor, target: Tensor, channel: Tensor) -> Tensor:
    """The targets' outputs (n,) for images x (n, channels, *space) times one channel (n, *smaller space)."""
    mask = F.interpolate(channel[:, None], size=x.shape[2:], mode=MODES[x.ndim])
    low = mask.flatten(1).amin(1).view(-1, *(1,) * (x.ndim - 1))
    high = mask.flatten(1).amax(1).view_as(low)
    return target_outputs(model, x * divided(mask - low, high - low), target)


HIRES_CAM = replace(GRAD_CAM, name="hires_cam", function=hires_cam, cite="draelos2020use", units=None)
LAYER_CAM = replace(HIRES_CAM, name="layer_cam", function=layer_cam, cite="jiang2021layercam")
XGRAD_CAM = replace(HIRES_CAM, name="xgrad_cam", function=xgrad_cam, cite="fu2020axiom")
GRAD_CAM_PLUS_PLUS = replace(
    HIRES_CAM, name="grad_cam_plus_plus", function=grad_cam_plus_plus, cite="chattopadhay2018grad"
)
SCORE_CAM = replace(HIRES_CAM, name="score_cam", function=score_cam, cite="wang2020score", cost="forwards", hides=True)
CAMS = (HIRES_CAM, LAYER_CAM, XGRAD_CAM, GRAD_CAM_PLUS_PLUS, SCORE_CAM)
