"""Would an explanation of my model point at something that has no function? IIR on the user's own model and inputs."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from forsooth import chunks, plugins, seeds, store
from forsooth.attributions import METHODS
from forsooth.engine import Progress, execute, known_as, make_task
from forsooth.games import players
from forsooth.progress import Silent
from forsooth.records import Cell, Method, Task, UsageError
from forsooth.scores.contrast import reduced, relative_change
from forsooth.scores.functionless import DEFAULT, Patched
from forsooth.scores.promises import completeness_gap
from forsooth.suites import choose, explain
from forsooth.user import inputs, models, patching
from forsooth.user.bias import Asker, asker_of
from forsooth.user.independence_words import Case, IndependenceResult, Wanted, judged

DEFAULTS = (
    *("gradient", "smooth_grad", "integrated_gradients", "gradient_x_input"),
    *("guided_backprop", "deep_lift", "lrp"),
)
ON_LAYERS = ("grad_cam", "guided_grad_cam")
NULLS = ("random", "constant")
VERSION = 2
BACKGROUND = 100  # inputs that stand for the background


def independence(
    wanted: Wanted,
    methods: Iterable[str | Method | Callable[..., Tensor]] = (),
    *,
    out: Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> IndependenceResult:
    """How often every method would draw attention to functionless patches. See `forsooth.independence`."""
    methods = tuple(methods)
    plugins.known(methods, METHODS)  # words and files come first: to build the model may take long
    patching.placed(wanted, inputs.batch(wanted.inputs, "inputs")[0])
    thing = models.given(wanted.model)
    if not isinstance(thing, nn.Module):
        what = f"an estimator ({type(thing).__name__})" if hasattr(thing, "predict") else type(thing).__name__
        raise UsageError(f"`model` must be a torch module, since patches are found by its gradients, got {what}")
    with models.in_eval(thing):
        asked = chosen(methods, thing, wanted.layer)
        case = patching.prepared(thing, wanted)
        folder = None if out is None else writable(out)
        words = wanted.words()
        if folder is not None and words is not None and all(isinstance(m, str) for m in methods):
            tasks, cells = planned(case, words, asked), store.Store(folder / "store")
            execute(list(tasks.values()), cells, workers=workers, progress=progress or Silent())
            patching.forget()
            made = {key: cells.read(task.key) for key, task in tasks.items()}
        else:
            made = here(case, asked, progress or Silent())
    done = patching.whole([made[piece] for piece in patching.pieces(case)])
    rows = [row for asker in asked for row in rows_of(case, done, asker.name, made[asker.name])]
    result = judged(case, done, pd.DataFrame(rows), {asker.name: asker.method.null for asker in asked})
    if folder is not None:
        store.write_atomically(folder / "independence.csv", result.rows.to_csv(index=False).encode())
        store.write_atomically(folder / "independence.md", result.markdown().encode())
    return result


def writable(out: Path) -> Path:
    """The folder, if it is new, empty or an earlier answer."""
    return store.free_folder(out, ("store", "independence.csv"), "answer")


def chosen(
    methods: Sequence[str | Method | Callable[..., Tensor]], module: nn.Module, layer: str | None
) -> list[Asker]:
    """The methods to ask, and behind them the nulls, which are always asked."""
    defaults = (*ON_LAYERS, *DEFAULTS) if patching.last_convolution(module, layer) else DEFAULTS
    askers = [asker_of(method) for method in (methods or defaults)]
    found = [asker.name for asker in askers]
    if len(set(found)) < len(found):
        raise UsageError(f"`methods` must have names of their own, got {', '.join(found)}")
    for asker in askers:
        if "truth" in asker.method.needs:
            raise UsageError(f"`methods` must need no ground truth, since there is none, got {asker.name}")
    return [*askers, *(asker_of(name) for name in NULLS if name not in found)]


def planned(case: Case, words: Mapping[str, Any], askers: Sequence[Asker]) -> dict[Any, Task]:
    """A task for every piece of the search, and behind them one for every method; by piece and by name."""
    shared = {"words": dict(words), "digest": case.digest}
    tasks: dict[Any, Task] = {}
    for start, stop in patching.pieces(case):
        arguments = {**shared, "settings": asdict(DEFAULT), "start": start, "stop": stop}
        name = patching.title(start, stop)
        tasks[start, stop] = make_task(patching.search_task, arguments, name=name, version=VERSION)
    needs = list(tasks.values())
    for asker in askers:
        thing = plugins.load(asker.name, argument="methods") if ":" in asker.name else None
        about = {
            "method": asker.name,
            "version": asker.method.version,
            "code": "" if thing is None else plugins.fingerprint(thing),
            "layer": case.layer if "layer" in asker.method.needs else None,
        }
        name = f"explain: {asker.name}"
        tasks[asker.name] = make_task(ask_task, {**shared, **about}, needs, name=name, version=VERSION)
    return tasks


def here(case: Case, askers: Sequence[Asker], progress: Progress) -> dict[Any, Cell]:
    """The same work in this process, for a model that lives in it."""
    made: dict[Any, Cell] = {}
    parts = patching.pieces(case)
    progress.start(total=len(parts) + len(askers), done=0)
    for start, stop in parts:
        name = patching.title(start, stop)
        progress.doing([name])
        made[start, stop] = patching.search(case, DEFAULT, start, stop)
        progress.step(name)
    done = patching.whole(list(made.values()))
    for asker in askers:
        name = f"explain: {asker.name}"
        progress.doing([name])
        made[asker.name] = ask(case, done.x, asker)
        progress.step(name)
    return made


@known_as("user.independence_explain")
def ask_task(
    *cells: Cell, words: dict[str, Any], digest: str, method: str, version: int, code: str, layer: str | None
) -> Cell:
    """`version` and `code` change the key with the method."""
    case = replace(patching.again(words, digest), layer=layer)
    return ask(case, patching.whole(cells).x.to(case.x.device), asker_of(method))


def ask(case: Case, patched: Tensor, asker: Asker) -> Cell:
    """The relative change of the saliency of each patch's place, (n,), or why there is none. The others go on.

    patched  (n, *shape), the inputs with their patches
    """
    facts: dict[str, Any] = {"status": "ok", "message": ""}
    change, rise, gap = (torch.full((len(case.x),), torch.nan, dtype=torch.float64) for _ in range(3))
    try:
        maps = maps_of(case, asker, case.x, "x")
        before = saliency(case, maps)
        after = saliency(case, maps_of(case, asker, patched, "patched"))
        if asker.method.promise:
            gap = completeness_gap(maps, promised(case, asker)).cpu()
        change = relative_change(after, before, case.mask)
        rise = torch.sign((after - before).masked_fill(~case.mask, 0).flatten(1).sum(1)) * change
    except UsageError as error:
        facts = {"failed": True, "status": "wrong shape", "message": str(error)}
    except (Exception, SystemExit) as error:  # a user's method may raise anything, or leave
        facts = {"failed": True, "status": "error", "message": plugins.describe_error(error)}
    return Cell(tensors={"change": change, "rise": rise, "gap": gap}, facts=facts)


def rows_of(case: Case, done: Patched, name: str, said: Cell) -> list[dict[str, Any]]:
    """A row per input of what one method said."""
    found = done.found().tolist()
    change, rise, gaps = (said.tensors[name].tolist() for name in ("change", "rise", "gap"))
    rows = []
    for place, (value, up) in enumerate(zip(change, rise, strict=True)):
        status, message = said.facts["status"], said.facts["message"]
        if not found[place]:
            status, message = "no patch", "no functionless patch was found for this input"
        elif status == "ok" and value != value:
            status, message = "undefined", "no usable map, or nothing at that place before and after"
        row = {"method": name, "sample": place, "target": int(case.target[place]), "change": value, "rise": up}
        row |= {"ratio": done.ratio[place].item(), "visible": done.change[place].item()}
        row |= {"gap": gaps[place], "status": status, "message": message}
        rows.append(explain.broken(row, gaps[place]))
    return rows


def background(case: Case) -> Tensor:
    """The inputs that methods are given as background, evenly over the explained classes. (k, *shape)"""
    behind = choose.evenly(case.target, BACKGROUND, seed=case.wanted.seed, role="background")
    return case.x[behind.to(case.x.device)]


def promised(case: Case, asker: Asker) -> Tensor:
    """What the maps of the inputs promise to sum to, (n,)."""
    behind = background(case)

    def of(x: Tensor, target: Tensor) -> Tensor:
        return explain.promised(asker.method, case.module, x, target, background=behind)

    return chunks.over(of, case.x, case.target, size=max(1, explain.VALUES_AT_ONCE // case.x[0].numel()))


def saliency(case: Case, maps: Tensor) -> Tensor:
    """(n, *spatial) in [0, 1] of maps (n, *shape)."""
    channels = maps if maps.ndim - 1 > case.mask.ndim - 1 else maps[:, None]
    return reduced(channels, lowest="zero")


def maps_of(case: Case, asker: Asker, x: Tensor, name: str) -> Tensor:
    """(n, *shape). Every input has draws of its own, and others with the patch than without."""
    method, seed = asker.method, seeds.derive(case.wanted.seed, asker.name, name)
    if "layer" in method.needs and case.layer is None:
        raise ValueError(f"{asker.name} reads a convolution, and the model has none: name a `layer`")

    behind = background(case)

    def ask(part: Tensor, target: Tensor, places: Tensor) -> Tensor:
        game = {"players": players.pixels(tuple(part.shape[1:])).to(part.device)}
        takes = set(inspect.signature(method.function).parameters) - set(method.settings)
        ready = method if asker.own or "players" not in takes else explain.with_game(method, game)
        maps = ready(
            case.module,
            part.clone(),
            target.clone(),
            background=behind,
            fit=case.x,
            layer=case.layer,
            **explain.draws(seed, "draws", places),
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
        return chunks.over(ask, x, case.target, torch.arange(len(x)), size=max(1, size))
