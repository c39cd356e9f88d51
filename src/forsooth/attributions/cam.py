"""Class activation maps: Grad-CAM, and guided Grad-CAM."""

from difflib import get_close_matches
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from forsooth.attributions.guided import guided_backprop
from forsooth.attributions.intercept import rows_at_once
from forsooth.chunks import over
from forsooth.records import Method, UsageError

Interpolation = Literal["linear", "nearest"]


def activations(model: nn.Module, x: Tensor, target: Tensor, layer: str) -> tuple[Tensor, Tensor]:
    """Output of `layer` (n, channels, *space), and the gradient by it of the targets' outputs."""
    output, gradient = activations_of(model, x, target, layer)
    check_places(output, x, layer)
    return output, gradient


def activations_of(model: nn.Module, x: Tensor, target: Tensor, layer: str) -> tuple[Tensor, Tensor]:
    """Output of `layer` (n, …), whatever its axes are, and the gradient by it of the targets' outputs."""
    kept: list[Tensor] = []

    def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if not isinstance(output, Tensor):
            raise UsageError(f"`layer` must be a module that gives one tensor, got {type(output).__name__}: {layer}")
        kept.append(output)
        return output.clone()  # an in-place ReLU behind the layer must not overwrite what we keep

    handle = module_named(model, layer).register_forward_hook(keep)
    try:
        with torch.enable_grad():
            frozen = {name: parameter.detach() for name, parameter in model.named_parameters()}
            output = functional_call(model, frozen, (x.detach().clone().requires_grad_(),))
    finally:
        handle.remove()
    inner = only(kept, x, layer)
    score = output.gather(1, target.unsqueeze(1)).sum()
    (gradient,) = torch.autograd.grad(score, inner)
    return inner.detach(), gradient


def module_named(model: nn.Module, layer: str) -> nn.Module:
    """The module with that dotted name, or an error."""
    modules = dict(model.named_modules())
    if layer not in modules:
        near = get_close_matches(layer, modules) or [name for name in modules if name]
        raise UsageError(f"`layer` must name a module of the model, got {layer!r}; known are {', '.join(near)}")
    return modules[layer]


def only(outputs: list[Tensor], x: Tensor, layer: str) -> Tensor:
    """The one output of a layer for x (n, *shape); an error unless it ran once."""
    if len(outputs) != 1:
        ran = f"{layer!r} ran {len(outputs)} times"
        raise UsageError(f"`layer` must be a module that gives {wanted_of(x)}, but {ran}")
    return outputs[0]


def wanted_of(x: Tensor) -> str:
    """What a layer must give for x (n, channels, *space), in words."""
    return f"one tensor (n, channels, *space) with {x.ndim - 2} axes of space"


def check_places(output: Tensor, x: Tensor, layer: str) -> None:
    """UsageError unless the output of a layer is (n, channels, *space) for x (n, *shape)."""
    if output.ndim != x.ndim or len(output) != len(x):
        came = f"gave the shape {tuple(output.shape)}"
        raise UsageError(f"`layer` must be a module that gives {wanted_of(x)}, but {layer!r} {came}")


def grad_cam_units(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """The class activation map before it is enlarged: one value for each place of `layer`, its channels together.

    x        (n, channels, *space)
    target   (n,) int64
    layer    dotted name of a module whose output is (n, c, *smaller space)
    returns  (n, *smaller space), never negative

    [selvaraju2017grad]. For scores that judge the map on the units of its layer.
    """
    if x.ndim not in (3, 4, 5):
        raise UsageError(f"`x` must be (n, channels, *space) with 1 to 3 axes of space, got {tuple(x.shape)}")

    def part(x: Tensor, target: Tensor) -> Tensor:
        output, gradient = activations(model, x, target, layer)
        return grad_cam_of(output, gradient)

    return over(part, x, target, size=rows_at_once(x))


def grad_cam_of(output: Tensor, gradient: Tensor) -> Tensor:
    """The map (n, *space) of activations (n, channels, *space) and the gradients by them."""
    weight = gradient.flatten(2).mean(2).reshape(*gradient.shape[:2], *(1,) * (gradient.ndim - 2))
    return (weight * output).sum(1).relu()


def grad_cam(
    model: nn.Module, x: Tensor, target: Tensor, *, layer: str, interpolation: Interpolation = "linear"
) -> Tensor:
    """Channels of `layer`, weighted by their mean gradient, summed, rectified and enlarged to the input.

    x              (n, channels, *space)
    target         (n,) int64
    layer          dotted name of a module whose output is (n, c, *smaller space)
    interpolation  "linear" (bilinear in two dimensions) or "nearest"
    returns        (n, channels, *space), never negative, the same in each channel

    [selvaraju2017grad]
    """
    if interpolation not in ("linear", "nearest"):
        raise UsageError(f"`interpolation` must be linear or nearest, got {interpolation!r}")
    small = grad_cam_units(model, x, target, layer=layer)[:, None]  # (n, 1, *smaller space)
    mode = "nearest"
    if interpolation == "linear":
        mode = {3: "linear", 4: "bilinear", 5: "trilinear"}[x.ndim]
    return F.interpolate(small, size=x.shape[2:], mode=mode).expand_as(x).contiguous()


def guided_grad_cam(
    model: nn.Module, x: Tensor, target: Tensor, *, layer: str, interpolation: Interpolation = "nearest"
) -> Tensor:
    """Guided backpropagation × Grad-CAM; arguments as in `grad_cam`.

    x, target  (n, channels, *space), (n,) int64
    returns    (n, channels, *space)

    [selvaraju2017grad]. Departure: the map is enlarged to the nearest value, as in Captum and so in
    [clark2024xaitris]; the paper says bilinear.
    """
    coarse = grad_cam(model, x, target, layer=layer, interpolation=interpolation)
    return guided_backprop(model, x, target) * coarse


GRAD_CAM = Method(
    name="grad_cam",
    function=grad_cam,
    needs=("module", "layer"),
    random=False,
    signed=False,
    cite="selvaraju2017grad",
    version=1,
    inputs=("image",),
    units=grad_cam_units,
)
GUIDED_GRAD_CAM = Method(
    name="guided_grad_cam",
    function=guided_grad_cam,
    needs=("module", "layer"),
    random=False,
    signed=True,
    cite="selvaraju2017grad",
    version=2,
    inputs=("image",),
)
CAM = (GRAD_CAM, GUIDED_GRAD_CAM)
