"""Would an explanation of my model point at something that has no function? IIR on the user's own model and inputs."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from forsooth import chunks, seeds, store
from forsooth.doors import inputs, models
from forsooth.doors.bias import Asker, asker_of
from forsooth.doors.independence_words import Case, IndependenceResult, Wanted, judged
from forsooth.engine import Progress
from forsooth.games import players
from forsooth.progress import Silent
from forsooth.records import Method, UsageError
from forsooth.scores.contrast import reduced, relative_change
from forsooth.scores.functionless import functionless
from forsooth.suites import explain

DEFAULTS = (
    *("gradient", "smooth_grad", "integrated_gradients", "gradient_x_input"),
    *("guided_backprop", "deep_lift", "lrp"),
)
ON_LAYERS = ("grad_cam", "guided_grad_cam")
NULLS = ("random", "constant")


def independence(
    wanted: Wanted,
    methods: Iterable[str | Method | Callable[..., Tensor]] = (),
    *,
    out: Path | None = None,
    progress: Progress | None = None,
) -> IndependenceResult:
    """How often every method would draw attention to functionless patches. See `forsooth.independence`."""
    thing, bar = models.given(wanted.model), progress or Silent()
    if not isinstance(thing, nn.Module):
        what = f"an estimator ({type(thing).__name__})" if hasattr(thing, "predict") else type(thing).__name__
        raise UsageError(f"`model` must be a torch module, since patches are found by its gradients, got {what}")
    folder = None if out is None else writable(out)
    with models.in_eval(thing):
        asked = chosen(tuple(methods), thing, wanted.layer)
        bar.start(total=len(asked) + 1, done=0)
        case = prepared(thing, wanted)
        bar.step("functionless patches")
        rows: list[dict[str, Any]] = []
        for asker in asked:
            rows += answers(case, asker)
            bar.step(f"explain: {asker.name}")
    result = judged(case, pd.DataFrame(rows), {asker.name: asker.method.null for asker in asked})
    if folder is not None:
        store.replace(folder / "independence.csv", result.rows.to_csv(index=False).encode())
        store.replace(folder / "independence.md", result.markdown().encode())
    return result


def writable(out: Path) -> Path:
    """The folder, if it is new, empty or an earlier answer: a user's own files are never written over."""
    if out.is_dir() and any(out.iterdir()) and not (out / "independence.csv").exists():
        raise UsageError(f"`out` must be new, empty or an earlier answer, got {out}, which holds other files")
    return store.writable(out, "out")


def chosen(
    methods: Sequence[str | Method | Callable[..., Tensor]], module: nn.Module, layer: str | None
) -> list[Asker]:
    """The methods to ask, and behind them the nulls, which are always asked."""
    defaults = (*ON_LAYERS, *DEFAULTS) if last_convolution(module, layer) else DEFAULTS
    askers = [asker_of(method) for method in (methods or defaults)]
    found = [asker.name for asker in askers]
    if len(set(found)) < len(found):
        raise UsageError(f"`methods` must have names of their own, got {', '.join(found)}")
    for asker in askers:
        if "truth" in asker.method.needs:
            raise UsageError(f"`methods` must need no ground truth, since there is none, got {asker.name}")
    return [*askers, *(asker_of(name) for name in NULLS if name not in found)]


def last_convolution(module: nn.Module, layer: str | None) -> str | None:
    """The dotted name of the layer that Grad-CAM reads, or None where there is no convolution."""
    known = [name for name, _ in module.named_modules() if name]
    if layer is not None:
        if layer not in known:
            raise UsageError(f"`layer` must be a part of the model, got {layer!r}; known: {', '.join(known[:12])}")
        return layer
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return next((name for name, part in reversed(list(module.named_modules())) if isinstance(part, kinds)), None)


def prepared(thing: nn.Module, wanted: Wanted) -> Case:
    """The case of the user's words, with patches. All that cannot be is refused here."""
    if not wanted.threshold > 0:
        raise UsageError(f"`threshold` must be above 0, got {wanted.threshold}")
    raw, arrays = inputs.batch(wanted.inputs, "inputs")
    adapted, x = models.adapt(thing, raw, arrays=arrays, device=wanted.device, output="logits")
    assert adapted.module is not None
    target = inputs.targets(wanted.target, models.outputs(adapted.model, x))
    mask, noun = placed(wanted, x)
    low, high = wanted.bounds or (x.min().item(), x.max().item())
    if not low < high or bool((x < low).any() or (x > high).any()):
        came = f"{low:g} and {high:g} with inputs from {x.min().item():g} to {x.max().item():g}"
        raise UsageError(f"`bounds` must be two numbers in order that hold all inputs, got {came}")
    start = seeds.generator(wanted.seed, "patch")
    try:
        done = functionless(adapted.module, x, mask, start=start, bounds=(low, high))
    except RuntimeError as error:  # torch: nothing that was done to the input can be derived
        why = models.told(error)
        raise UsageError(f"`model` must let gradients through to its input, but torch says {why}") from error
    return Case(wanted, adapted.module, x, target, mask, done, last_convolution(thing, wanted.layer), noun)


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


def answers(case: Case, asker: Asker) -> list[dict[str, Any]]:
    """A row per input: the relative change of the saliency of the patch's place, or why there is none."""
    told, found = ("ok", ""), case.done.found().tolist()
    change = rise = torch.full((len(case.x),), torch.nan, dtype=torch.float64)
    try:
        before, after = (saliency(case, asker, x, name) for x, name in ((case.x, "x"), (case.done.x, "patched")))
        change = relative_change(after, before, case.mask)
        rise = torch.sign((after - before).masked_fill(~case.mask, 0).flatten(1).sum(1)) * change
    except UsageError as error:
        told = ("wrong shape", str(error))
    except Exception as error:  # a user's method may raise anything; the others go on
        told = ("error", models.told(error))
    rows = []
    for place, (value, up) in enumerate(zip(change.tolist(), rise.tolist(), strict=True)):
        status, message = told
        if not found[place]:
            status, message = "no patch", "no functionless patch was found for this input"
        elif status == "ok" and value != value:
            status, message = "undefined", "no usable map, or nothing at that place before and after"
        row = {"method": asker.name, "sample": place, "target": int(case.target[place]), "change": value, "rise": up}
        row |= {"ratio": case.done.ratio[place].item(), "visible": case.done.change[place].item()}
        rows.append({**row, "status": status, "message": message})
    return rows


def saliency(case: Case, asker: Asker, x: Tensor, name: str) -> Tensor:
    """(n, *spatial) in [0, 1]. The same draws for every slice, others for inputs with the patch than without."""
    method, seed = asker.method, seeds.derive(case.wanted.seed, asker.name, name)
    if "layer" in method.needs and case.layer is None:
        raise ValueError(f"{asker.name} reads a convolution, and the model has none: name a `layer`")

    def ask(part: Tensor, target: Tensor) -> Tensor:
        game = {"players": players.pixels(tuple(part.shape[1:])).to(part.device)}
        takes = set(inspect.signature(method.function).parameters) - set(method.settings)
        ready = method if asker.own or "players" not in takes else explain.alike(method, game)
        maps = ready(
            case.module,
            part.clone(),
            target.clone(),
            background=case.x[:100],
            fit=case.x,
            layer=case.layer,
            generator=seeds.generator(seed, "draws"),
        )
        if hasattr(maps, "__array__") and not isinstance(maps, Tensor):
            maps = models.as_tensor(maps, part)
        if not isinstance(maps, Tensor) or maps.shape != part.shape:
            came = tuple(maps.shape) if isinstance(maps, Tensor) else type(maps).__name__
            raise UsageError(f"the map must have the shape of x {tuple(part.shape)}, got {came}")
        return maps.detach()

    whole = method.null or asker.own or "fit" in method.needs
    size = len(x) if whole else max(1, explain.VALUES_AT_ONCE // x[0].numel())
    with explain.lent_randomness(seed):
        maps = chunks.over(ask, x, case.target, size=max(1, size))
    channels = maps if maps.ndim - 1 > case.mask.ndim - 1 else maps[:, None]
    return reduced(channels, lowest="zero")
