"""Patches without function on the user's own network: what is fixed before the search, and the search in pieces."""

import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.engine import known_as, one_thread
from forsooth.games import players
from forsooth.records import Cell, UsageError
from forsooth.scores.functionless import Patched, Search, functionless
from forsooth.user import inputs, models
from forsooth.user.independence_words import Case, Wanted

AT_ONCE = {"cpu": 16, "cuda": 128}  # inputs whose patches one task looks for: so few are lost when the work is stopped
TENSORS = ("x", "distance", "ratio", "change")


def prepared(thing: nn.Module, wanted: Wanted) -> Case:
    """The case of the user's words. `thing` is the model, in eval mode. All that cannot be is refused here."""
    if not wanted.threshold > 0:
        raise UsageError(f"`threshold` must be above 0, got {wanted.threshold}")
    raw, arrays = inputs.batch(wanted.inputs, "inputs")
    adapted, x = models.adapt(thing, raw, arrays=arrays, device=wanted.device, output="logits")
    assert adapted.module is not None
    with one_thread():  # a digest must not depend on the number of threads
        found = models.outputs(adapted.model, x)
    target = inputs.targets(wanted.target, found)
    mask, noun = placed(wanted, x)
    low, high = wanted.bounds or (x.min().item(), x.max().item())
    if not -math.inf < low < high < math.inf or bool((x < low).any() or (x > high).any()):
        came = f"{low:g} and {high:g} with inputs from {x.min().item():g} to {x.max().item():g}"
        raise UsageError(f"`bounds` must be two numbers in order that hold all inputs, got {came}")
    told = "" if wanted.words() is None else digest(models.digest(thing, wanted.model, found), x, target, mask)
    return Case(wanted, adapted.module, x, target, mask, (low, high), last_convolution(thing, wanted.layer), noun, told)


def digest(model: str, *tensors: Tensor) -> str:
    """A hash of the model's own and of all numbers that came from outside."""
    total = hashlib.sha256(model.encode())
    for tensor in tensors:
        total.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode() + models.raw(tensor))
    return total.hexdigest()[:32]


def last_convolution(module: nn.Module, layer: str | None) -> str | None:
    """The dotted name of the layer that Grad-CAM reads, or None where there is no convolution."""
    known = [name for name, _ in module.named_modules() if name]
    if layer is not None:
        if layer not in known:
            raise UsageError(f"`layer` must be a part of the model, got {layer!r}; known: {', '.join(known[:12])}")
        return layer
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return next((name for name, part in reversed(list(module.named_modules())) if isinstance(part, kinds)), None)


def placed(wanted: Wanted, x: Tensor) -> tuple[Tensor, str]:
    """Where the patches are, (n, *spatial) bool, and what they are called."""
    shape, spatial = tuple(x.shape[1:]), players.spatial(tuple(x.shape[1:]))
    draw, given = seeds.generator(wanted.seed, "places"), wanted.patch
    if not isinstance(given, str) or inputs.is_file(given):
        mask = inputs.numbers(given, "patch")[0].bool().to(x.device)
        if mask.shape not in (torch.Size(spatial), torch.Size((len(x), *spatial))):
            wanted_shapes = f"{spatial} or {(len(x), *spatial)}"
            raise UsageError(f"`patch` must have the shape {wanted_shapes}, got {tuple(mask.shape)}")
        mask = mask.expand(len(x), *spatial)
        if not bool(mask.flatten(1).any(1).all()):
            raise UsageError("`patch` must hold at least one place of every input, got an empty one")
        return mask, "your own mask"
    kind, _, number = given.partition(":")
    if kind not in ("grid", "size") or not number.isdecimal() or int(number) < 1:
        raise UsageError(f"`patch` must be grid:N, size:S or a file with a mask, got {given!r}")
    count = int(number)
    if kind == "grid":
        labels = players.patches(shape, count)
        cell = torch.randint(int(labels.max()) + 1, (len(x),), generator=draw)
        mask = labels == cell.view(-1, *[1] * labels.ndim)
        return mask.to(x.device), f"one cell of a grid of {count} along each axis"
    if count > min(spatial):
        raise UsageError(f"`patch` size must be at most {min(spatial)} for inputs of shape {shape}, got {count}")
    mask = torch.ones(len(x), *spatial, dtype=torch.bool)
    for axis, side in enumerate(spatial, start=1):
        first = torch.randint(side - count + 1, (len(x),), generator=draw)
        at = torch.arange(side)[None] - first[:, None]
        inside = (at >= 0) & (at < count)
        mask &= inside.view(len(x), *[side if k == axis else 1 for k in range(1, len(spatial) + 1)])
    return mask.to(x.device), f"a square of {count} a side"


def pieces(case: Case) -> list[tuple[int, int]]:
    """First and last place, exclusive, of the inputs of every task."""
    step = AT_ONCE.get(case.x.device.type, AT_ONCE["cpu"])
    return [(start, min(start + step, len(case.x))) for start in range(0, len(case.x), step)]


def title(start: int, stop: int) -> str:
    return f"functionless patches: inputs {start} to {stop - 1}"


def search(case: Case, settings: Search, start: int, stop: int) -> Cell:
    """Patches of the inputs `start` … `stop` - 1. The draw is one for all inputs, so that pieces do not change it."""
    x, mask = case.x[start:stop], case.mask[start:stop]
    draw = seeds.generator(case.wanted.seed, "patch")
    try:
        done = functionless(case.module, x, mask, start=draw, bounds=case.bounds, search=settings)
    except RuntimeError as error:  # torch: nothing that was done to the input can be derived
        why = plugins.describe_error(error)
        raise UsageError(f"`model` must let gradients through to its input, but torch says {why}") from error
    return Cell(tensors={name: getattr(done, name) for name in TENSORS})


@known_as("user.independence_patches")
def search_task(*, words: dict[str, Any], digest: str, settings: dict[str, Any], start: int, stop: int) -> Cell:
    return search(again(words, digest), Search(**settings), start, stop)


def whole(cells: Sequence[Cell]) -> Patched:
    """All inputs with their patches, from the pieces in order."""
    return Patched(*(torch.cat([cell.tensors[name] for cell in cells]) for name in TENSORS))


def again(words: Mapping[str, Any], digest: str) -> Case:
    """The case of a task's words in this process: read and built once, and the same as where the work began."""
    return _again(json.dumps(words, sort_keys=True), digest)


@functools.lru_cache(maxsize=1)
def _again(text: str, digest: str) -> Case:
    wanted = Wanted(**json.loads(text))
    thing = models.given(wanted.model)
    thing.eval()
    case = prepared(thing, wanted)
    models.check_same(case.digest, digest, wanted.model)
    return case


def forget() -> None:
    """Let go of what `again` keeps."""
    _again.cache_clear()
