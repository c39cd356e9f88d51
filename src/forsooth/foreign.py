"""Explainers of other libraries as functions (model, x, target) -> map like x. None of these libraries is imported."""

import copy
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forsooth.records import UsageError

Function = Callable[..., Tensor]


def of_captum_class(kind: type[Any]) -> Function:
    """A class of Captum that needs nothing but the model."""

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        return asked_captum(kind(model), x, target)

    return attribute


def of_captum(explainer: Any, **keywords: Any) -> Function:
    """An object of Captum with its arguments, asked of whichever model is explained.

    keywords  of its `attribute`
    """

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        return asked_captum(rebound(explainer, model), x, target, **keywords)

    return attribute


def asked_captum(explainer: Any, x: Tensor, target: Tensor, **keywords: Any) -> Tensor:
    maps: Tensor = explainer.attribute(x.clone().requires_grad_(), target=target, **keywords)
    return maps.detach()


def rebound(explainer: Any, model: nn.Module) -> Any:
    """A copy of an object of Captum that explains another model, and so does what it holds inside (NoiseTunnel(…)).

    One that holds a layer cannot be moved, since the layer is a part of its own model.
    """
    own = explainer.forward_func
    if own is model:
        return explainer
    copied = copy.copy(explainer)
    for name, value in vars(explainer).items():
        if value is own:
            setattr(copied, name, model)
        elif type(value).__module__.startswith("captum.attr."):
            setattr(copied, name, rebound(value, model))
        elif isinstance(value, nn.Module):
            raise UsageError(
                f"`methods` must explain any model, got a {type(explainer).__name__} with a layer of its own model: "
                "write a function(model, x, target) that makes it"
            )
    return copied


def giving_tensors(function: Function) -> Function:
    """The function, giving a tensor like x where it gives an array of numbers, as those made for Quantus do."""

    @functools.wraps(function, updated=())
    def asked(model: Any, x: Tensor, target: Tensor, **keywords: Any) -> Any:
        maps = function(model, x, target, **keywords)
        if isinstance(maps, Tensor) or not hasattr(maps, "__array__") or np.asarray(maps).dtype.kind not in "biuf":
            return maps
        return torch.from_numpy(np.ascontiguousarray(maps)).to(x)

    return asked


def of_shap(explainer: Any) -> Function:
    """An explainer of shap, which explains the model that it was made with, whichever it is asked about."""

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        values = explainer.shap_values(_as_shap_takes(explainer, x))
        stacked = torch.as_tensor(np.stack(values, -1) if isinstance(values, list) else np.asarray(values)).to(x)
        if stacked.shape == x.shape:
            return stacked
        return stacked[torch.arange(len(x)), ..., target.cpu()].reshape(x.shape)

    return attribute


def _as_shap_takes(explainer: Any, x: Tensor) -> Any:
    """Tensors for those that explain torch modules, arrays for the others."""
    inner = getattr(explainer, "explainer", explainer)
    if isinstance(getattr(inner, "model", None), nn.Module):
        return x
    return x.detach().cpu().numpy()
