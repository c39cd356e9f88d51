"""Explainers of other libraries as functions (model, x, target) -> map like x. None of these libraries is imported."""

import copy
import functools
import inspect
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forsooth.records import UsageError

Function = Callable[..., Tensor]


def of_captum_class(kind: type[Any]) -> Function:
    """A class of Captum that needs nothing but the model."""

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        needed = needs(kind, ())[1:]  # first is the model
        if needed:
            raise UsageError(
                f"`methods` must be an object where a class needs more than the model, and {kind.__name__} needs "
                f"{', '.join(needed)}: write {kind.__name__}(net, {written(needed)})"
            )
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
    check_asked(explainer, keywords)
    maps: Tensor = explainer.attribute(x.clone().requires_grad_(), target=target, **keywords)
    if maps.shape != x.shape and any(base.__name__ == "LayerAttribution" for base in type(explainer).__mro__):
        raise UsageError(
            f"`methods` must give a map of the shape {tuple(x.shape)} of x, got {type(explainer).__name__}, which "
            f"gives one of its layer, {tuple(maps.shape)}: write a function(model, x, target) that enlarges it, as "
            "LayerAttribution.interpolate(maps.sum(1, keepdim=True), x.shape[2:]).expand_as(x)"
        )
    return maps.detach()


def check_asked(explainer: Any, keywords: Collection[str]) -> None:
    """UsageError where an object of Captum, or the one inside it, wants other arguments than an input and a target."""
    name = type(explainer).__name__
    if any(base.__name__ == "NeuronAttribution" for base in type(explainer).__mro__):
        raise UsageError(f"`methods` must explain the outputs of a model, got {name}, which explains a neuron")
    asked = getattr(explainer, "attribution_method", explainer)  # of a NoiseTunnel
    needed = [one for one in needs(asked.attribute, keywords) if one not in ("inputs", "target")]
    if needed:
        raise UsageError(
            f"`methods` must be asked with inputs and target alone, and {type(asked).__name__} needs "
            f"{', '.join(needed)}: write functools.partial({name}(…).attribute, {written(needed)})"
        )


def needs(function: Callable[..., Any], given: Collection[str]) -> list[str]:
    """Names of the arguments that a function or class cannot do without, beside those that are given."""
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    wanted = [one.name for one in parameters if one.default is one.empty and one.kind not in several]
    return [name for name in wanted if name not in given]


def written(names: Iterable[str]) -> str:
    """The arguments as one would write them: a=…, b=…"""
    return ", ".join(f"{name}=…" for name in names)


def rebound(explainer: Any, model: nn.Module) -> Any:
    """A copy of an object of Captum that explains another model, and so does what it holds inside (NoiseTunnel(…)).

    One that holds a layer cannot be moved, since the layer is a part of its own model, unless that is a part of the
    other: networks are asked within others that give their logits or probabilities.
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
        elif holds_strange(value, model):
            raise UsageError(
                f"`methods` must explain any model, got a {type(explainer).__name__} with a layer of its own model: "
                "write a function(model, x, target) that makes it"
            )
    return copied


def holds_strange(value: Any, model: nn.Module) -> bool:
    """Whether this is a module, or some of them, that is no part of the model."""
    layers = value if isinstance(value, list | tuple) else (value,)
    own = {id(part) for part in model.modules()}
    return any(isinstance(layer, nn.Module) and id(layer) not in own for layer in layers)


def giving_tensors(function: Function) -> Function:
    """The function, giving a tensor like x where it gives an array of numbers, as those made for Quantus do.

    One that calls its arguments as Quantus does and cannot read tensors is given arrays, as Quantus gives them.
    """
    if hasattr(function, "gives_tensors"):
        return function
    ask = function
    if wants_arrays(function):
        ask = taking_arrays(function)

    @functools.wraps(function, updated=())
    def asked(model: Any, x: Tensor, target: Tensor, **keywords: Any) -> Any:
        maps = ask(model, x, target, **keywords)
        if isinstance(maps, Tensor) or not hasattr(maps, "__array__") or np.asarray(maps).dtype.kind not in "biuf":
            return maps
        return like(maps, x)

    asked.gives_tensors = True  # type: ignore[attr-defined]
    return asked


def wants_arrays(function: Function) -> bool:
    """Whether a function calls its arguments as Quantus does: model, inputs, targets."""
    try:
        return {"inputs", "targets"} <= set(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some built-in functions do not say
        return False


def taking_arrays(function: Function) -> Function:
    """A function (model, inputs, targets) asked with tensors, and where it cannot read those, with arrays."""

    def asked(model: Any, x: Tensor, target: Tensor, **keywords: Any) -> Any:
        try:
            return function(model, inputs=x, targets=target, **keywords)
        except (TypeError, AttributeError) as error:  # what torch and numpy raise at one another's arrays
            try:
                return function(model, inputs=as_array(x), targets=as_array(target), **keywords)
            except Exception:  # it fails with both: the first error is nearer to what was asked
                raise error from None

    return asked


def like(maps: Any, x: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(maps)).to(x)


def as_array(tensor: Tensor) -> Any:
    return tensor.detach().cpu().numpy()


def check_own(own: Any, model: Any, kind: str) -> None:
    """UsageError where an object that explains its own model alone is asked about another one."""
    if own is model or not isinstance(own, nn.Module):  # what shap makes of a function cannot be compared
        return
    if not isinstance(model, nn.Module) or all(part is not own for part in model.modules()):
        raise UsageError(
            f"`methods` must explain the model that is asked about, got {kind}, which knows only the model that it was "
            "made with: write a function(model, x, target) that makes it"
        )


def of_shap(explainer: Any) -> Function:
    """An explainer of shap, which explains the model that it was made with."""

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        inner = getattr(explainer, "explainer", explainer)
        own = getattr(inner, "model", None)
        check_own(own, model, "an explainer of shap")
        given = x if isinstance(own, nn.Module) else as_array(x)  # tensors for those that explain torch modules
        values = explainer.shap_values(given) if hasattr(explainer, "shap_values") else explainer(given).values
        return of_targets(values, x, target)

    return attribute


def of_targets(values: Any, x: Tensor, target: Tensor) -> Tensor:
    """The values like x of the targets (n,), from those of all classes: in the last axis, or one array for each."""
    if isinstance(values, list):
        values = np.stack(values, -1)
    stacked = torch.as_tensor(np.asarray(values)).to(x)
    if stacked.shape == x.shape:
        return stacked
    return stacked[torch.arange(len(x)), ..., target.cpu()].reshape(x.shape)


def of_zennit(thing: Any) -> Function:
    """A composite or an attributor of zennit, asked of whichever model is explained.

    Relevance starts with 1 at the target, as when an attributor is given the target's row of the unit matrix.
    """

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        leaf = x.detach().clone().requires_grad_()
        if hasattr(thing, "context"):
            with torch.enable_grad(), thing.context(model) as changed:
                output = changed(leaf)
                maps = torch.autograd.grad(output, leaf, one_hot(output, target))[0]
            return maps.detach()
        attributor = copy.copy(thing)
        attributor.model = model
        with torch.no_grad():
            start = one_hot(model(x), target)
        with attributor:
            _, relevance = attributor(leaf, start)
        found: Tensor = relevance.detach()
        return found

    return attribute


def one_hot(output: Tensor, target: Tensor) -> Tensor:
    """1 at each target (n,) of outputs (n, classes), else 0."""
    return torch.zeros_like(output).scatter_(1, target[:, None], 1)


def of_torchcam(extractor: Any) -> Function:
    """An extractor of torch-cam, which knows its own model; its maps are enlarged to the input."""

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        check_own(extractor.model, model, f"a {type(extractor).__name__} of torch-cam")
        with torch.enable_grad(), gradients_kept(extractor.model):
            output = model(x.detach().clone().requires_grad_())
            maps = extractor.fuse_cams(extractor(target.tolist(), output))
        return enlarged(maps.detach(), x)

    return attribute


def of_grad_cam(explainer: Any) -> Function:
    """A CAM of pytorch-grad-cam, which knows its own model."""

    def attribute(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
        check_own(explainer.model, model, f"a {type(explainer).__name__} of grad-cam")
        wanted = [operator.itemgetter(int(one)) for one in target]
        with torch.enable_grad(), gradients_kept(explainer.model):
            maps = explainer(input_tensor=x.detach().clone().requires_grad_(), targets=wanted)
        return enlarged(like(maps, x), x)

    return attribute


@contextmanager
def gradients_kept(model: nn.Module) -> Iterator[None]:
    """What is in .grad of the weights stays as it was, though a library calls backward()."""
    before = [parameter.grad for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = None
    try:
        yield
    finally:
        for parameter, gradient in zip(model.parameters(), before, strict=True):
            parameter.grad = gradient


def enlarged(maps: Tensor, x: Tensor) -> Tensor:
    """Maps (n, *smaller space) brought to the space of x (n, channels, *space), the same in each channel."""
    if maps.shape[1:] != x.shape[2:]:
        maps = F.interpolate(maps[:, None], size=x.shape[2:], mode=("linear", "bilinear", "trilinear")[x.ndim - 3])[
            :, 0
        ]
    return maps[:, None].expand_as(x).to(x).contiguous()


# By the package that an object's class, or a class above it, comes from: the packages themselves are not imported.
LIBRARIES: dict[str, Callable[[Any], Function]] = {
    "shap": of_shap,
    "zennit": of_zennit,
    "torchcam": of_torchcam,
    "pytorch_grad_cam": of_grad_cam,
}


def of_library(thing: Any) -> Function | None:
    """The function that asks an object of one of these libraries; None for any other thing."""
    if hasattr(thing, "shap_values"):
        return of_shap(thing)
    for base in type(thing).__mro__:
        home = base.__module__.partition(".")[0]
        if home in LIBRARIES:
            return LIBRARIES[home](thing)
    return None
