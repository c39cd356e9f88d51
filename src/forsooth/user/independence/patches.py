"""Patches without function on the user's own network: what is fixed before the search, and the search in pieces."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.adapters import inputs, models
from forsooth.adapters.outputs import Function
from forsooth.adapters.places import placed
from forsooth.engine import task
from forsooth.plain import remembered
from forsooth.records import Cell, Facts, UsageError
from forsooth.scores.functionless import DEFAULT, Patched, Search, functionless
from forsooth.user.independence.request import IndependenceRequest
from forsooth.user.requests import rebuilt
from forsooth.user.steps import Steps, in_pieces, joined_tensors

AT_ONCE = {"cpu": 16, "cuda": 128}  # inputs whose patches one task looks for: so few are lost when the work is stopped
PATCH = "patch"  # the kind of the steps that look for patches


@dataclass(frozen=True)
class Case:
    """All that is fixed before the first method is asked.

    module   in eval mode
    x, mask  (n, *shape), (n, *spatial) bool
    target   (n,), the explained classes
    bounds   least and largest value of an input
    layer    what Grad-CAM reads; None: no module gives a map
    noun     the patch, in words
    digest   tells this model, these inputs and these places from any other; empty where something lives in memory
    """

    request: IndependenceRequest
    module: nn.Module
    x: Tensor
    target: Tensor
    mask: Tensor
    bounds: tuple[float, float]
    layer: str | None
    noun: str
    digest: str


def prepare(thing: Any, request: IndependenceRequest) -> Case:
    """The case of a request. `thing` is the model, in eval mode. All that cannot be is refused here."""
    request.check()
    module = as_module(thing)
    check_layer(module, request.layer)
    adapted, x, outputs = models.asked_inputs(module, request.inputs, device=request.device, output="logits")
    assert adapted.module is not None
    if adapted.framed is not None:
        raise UsageError(
            "`inputs` must be texts without padding, or the model must not read padding or a last word from their ids; "
            "got texts that only `forsooth.bias` can ask about, one at a time"
        )
    target = inputs.targets(request.target, outputs)
    mask, noun = placed(request.patch, x, seed=request.seed)
    own_digest = ""
    if request.words() is not None:
        own_digest = digest(models.digest(thing, request.model, outputs), x, target, mask)
    return Case(
        request=request,
        module=adapted.module,
        x=x,
        target=target,
        mask=mask,
        bounds=bounds_of(request, x),
        layer=request.layer or models.last_map(adapted.module, x[:2]),
        noun=noun,
        digest=own_digest,
    )


def as_module(thing: Any) -> nn.Module:
    """The model, or a module around a function of tensors; UsageError where there can be no gradients."""
    if isinstance(thing, nn.Module):
        return thing
    if callable(thing) and not hasattr(thing, "predict"):
        return Function(thing)
    what = type(thing).__name__
    if hasattr(thing, "predict"):
        what = f"an estimator ({what})"
    raise UsageError(
        "`model` must be a torch module, or a function of tensors that gradients go through, since patches are found "
        f"by gradients, got {what}: ask `forsooth.bias`, which takes any model"
    )


def bounds_of(request: IndependenceRequest, x: Tensor) -> tuple[float, float]:
    """Least and largest value of an input x (n, *shape)."""
    low, high = request.bounds or (x.min().item(), x.max().item())
    if not -math.inf < low < high < math.inf or bool((x < low).any() or (x > high).any()):
        came = f"{low:g} and {high:g} with inputs from {x.min().item():g} to {x.max().item():g}"
        raise UsageError(f"`bounds` must be two numbers in order that hold all inputs, got {came}")
    return low, high


def digest(model: str, *tensors: Tensor) -> str:
    """A hash of the model's own and of all numbers that came from outside."""
    total = hashlib.sha256(model.encode())
    for tensor in tensors:
        total.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode() + models.raw(tensor))
    return total.hexdigest()[:32]


def check_layer(module: nn.Module, layer: str | None) -> None:
    """UsageError where the user names a layer that is not there."""
    known = [name for name, _ in module.named_modules() if name]
    if layer is not None and layer not in known:
        raise UsageError(f"`layer` must be a part of the model, got {layer!r}; known: {', '.join(known[:12])}")


def steps_of(case: Case) -> Steps:
    """A step for the patches of some inputs each."""
    size = AT_ONCE.get(case.x.device.type, AT_ONCE["cpu"])
    work = partial(search, case)
    return in_pieces(PATCH, "functionless patches", len(case.x), size, work, search_task, settings=DEFAULT)


@task("user.independence_patches", version=2)
def search_task(*, words: Facts, digest: str, settings: Search, start: int, stop: int) -> Cell:
    return search(prepare_again(words, digest), settings, start=start, stop=stop)


def search(case: Case, settings: Search, *, start: int, stop: int) -> Cell:
    """Patches of the inputs `start` … `stop` - 1. The draw is one for all inputs, so that pieces do not change it."""
    x = case.x[start:stop]
    mask = case.mask[start:stop]
    generator = seeds.generator(case.request.seed, "patch")
    try:
        patched = functionless(case.module, x, mask, start=generator, bounds=case.bounds, search=settings)
    except RuntimeError as error:  # torch: nothing that was done to the input can be derived
        why = plugins.describe_error(error)
        raise UsageError(f"`model` must let gradients through to its input, but torch says {why}") from error
    return Cell(tensors=vars(patched))


def joined(cells: Sequence[Cell]) -> Patched:
    """All inputs with their patches, from the pieces in order."""
    return Patched(**joined_tensors(cells))


@remembered(1)
def prepare_again(words: Facts, digest: str) -> Case:
    """The case of a task's words in this process: read and built once, and the same as where the work began."""
    return rebuilt(prepare, IndependenceRequest(**words), digest)
