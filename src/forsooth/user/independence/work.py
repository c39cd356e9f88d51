"""Patches are found, methods are asked with and without them, and the answer is made of both."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pandas import DataFrame
from torch import Tensor, nn

from forsooth import chunks, plugins, seeds
from forsooth.adapters import inputs, methods, models, texts
from forsooth.adapters.methods import NamedMethod
from forsooth.adapters.places import placed
from forsooth.attributions import METHODS
from forsooth.engine import Progress, task
from forsooth.games import players
from forsooth.records import Cell, Facts, Row, UsageError
from forsooth.scores.contrast import reduced, relative_change
from forsooth.scores.functionless import Patched
from forsooth.scores.promises import completeness_gap
from forsooth.suites import choose, explain
from forsooth.user.independence import patches, pictures, words
from forsooth.user.independence.patches import Case, prepare, prepare_again
from forsooth.user.independence.request import IndependenceRequest
from forsooth.user.independence.result import IndependenceResult, tabled
from forsooth.user.pages import Page, asked, command, described_methods
from forsooth.user.requests import answer_folder
from forsooth.user.steps import Key, Step, carry_out, shared_arguments

DEFAULTS = (
    *("grad_cam", "guided_grad_cam"),
    *("gradient", "smooth_grad", "integrated_gradients", "gradient_x_input"),
    *("guided_backprop", "deep_lift", "lrp"),
)
NULLS = ("random", "constant")
BACKGROUND = 100  # inputs that stand for the background
QUESTION = "Would a map point at patches that can be seen, and that the model does not react to?"
COLUMNS = ("method", "sample", "target", "change", "rise", "ratio", "visible", "gap", "status", "message")


def answer(
    request: IndependenceRequest, *, out: Path | None = None, workers: int = 1, progress: Progress | None = None
) -> IndependenceResult:
    """How often every method would draw attention to functionless patches. See `forsooth.independence`."""
    begun = time.monotonic()
    plugins.known(request.methods, METHODS)  # words and files come first: to build the model may take long
    if texts.read(request.inputs) is None:  # of texts the places are known when the model has read them
        placed(request.patch, inputs.batch(request.inputs, "inputs")[0], seed=request.seed)
    thing = models.load_model(request.model)
    check_module(thing)
    with models.in_eval(thing):
        case = prepare(thing, request)
        chosen = chosen_methods(case)
        folder = answer_folder(out, "independence")
        shared = shared_arguments(case.request.words(), case.digest, chosen)
        cells = carry_out(steps_of(case, chosen), shared, folder, workers=workers, progress=progress)
    prepare_again.forget()  # type: ignore[attr-defined]
    patched = patches.joined([cell for (kind, _), cell in cells.items() if kind == patches.PATCH])
    rows = [row.flat() for one in chosen for row in rows_of(case, patched, one.name, cells["method", one.name])]
    frame = DataFrame(rows)[list(COLUMNS)]
    nulls = {one.name: one.method.null for one in chosen}
    table = tabled(frame, nulls, threshold=request.threshold)
    summary = words.summary(case, patched, table, frame)
    maps = {one.name: cells["method", one.name] for one in chosen}
    plain = page_of(request, chosen, frame, seconds=time.monotonic() - begun)
    shown = replace(plain, **pictures.pictured(case, patched, maps))
    return IndependenceResult(table, frame, summary, page=shown).kept(folder, "independence")


def page_of(request: IndependenceRequest, chosen: Sequence[NamedMethod], rows: DataFrame, *, seconds: float) -> Page:
    """What the page says beside table and words. Changes of a place are no scores of maps, so nothing is ranked."""
    lines = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return Page(
        suite="independence",
        question=QUESTION,
        command=command("independence", request),
        settings=asked(request),
        seed=request.seed,
        methods=described_methods(chosen),
        scores={"exhibits": ["attention", "examples"]},
        rows=[{"suite": "independence", "part": "patches", **line} for line in lines],
        seconds=seconds,
    )


def check_module(thing: Any) -> None:
    """UsageError where the model has no gradients."""
    if isinstance(thing, nn.Module):
        return
    what = type(thing).__name__
    if hasattr(thing, "predict"):
        what = f"an estimator ({what})"
    raise UsageError(f"`model` must be a torch module, since patches are found by its gradients, got {what}")


def chosen_methods(case: Case) -> list[NamedMethod]:
    """The methods to ask, and behind them the nulls, which are always asked."""
    suitable = [name for name in DEFAULTS if case.layer or "layer" not in plugins.method(name, METHODS).needs]
    chosen = methods.with_nulls(case.request.methods or suitable, NULLS, METHODS)
    for one in chosen:
        if "truth" in one.method.needs:
            raise UsageError(f"`methods` must need no ground truth, since there is none, got {one.name}")
    return chosen


def steps_of(case: Case, chosen: Sequence[NamedMethod]) -> dict[Key, Step]:
    """A step for every piece of the search, and behind them one for every method."""
    steps = patches.steps_of(case)
    needs = tuple(steps)
    for one in chosen:
        layer = case.layer if "layer" in one.method.needs else None
        arguments = {**one.identity(), "layer": layer}
        work = partial(ask_here, case, one)
        steps["method", one.name] = Step(f"explain: {one.name}", work, ask_task, arguments, needs)
    return steps


def ask_here(case: Case, named: NamedMethod, *cells: Cell) -> Cell:
    return ask(case, patches.joined(cells), named)


@task("user.independence_explain", version=3)
def ask_task(*cells: Cell, words: Facts, digest: str, method: str, version: int, code: str, layer: str | None) -> Cell:
    """`version` and `code` change the key with the method."""
    case = replace(prepare_again(words, digest), layer=layer)
    return ask_here(case, methods.named(method, METHODS), *cells)


def ask(case: Case, patched: Patched, named: NamedMethod) -> Cell:
    """The relative change of the saliency of each patch's place, (n,), or why there is none. The others go on.

    `before` and `after` are the saliency of the inputs that the page shows, without and with their patches.
    """
    tensors = {name: torch.full((len(case.x),), torch.nan, dtype=torch.float64) for name in ("change", "rise", "gap")}
    answers = []
    for x, name in ((case.x, "x"), (patched.x.to(case.x.device), "patched")):
        answers.append(answer_to(case, named, x, name))
        if answers[-1].facts["status"] != "ok":
            return Cell(tensors=tensors, facts=answers[-1].facts)
    maps, later = (one.tensors["maps"].to(case.x.device) for one in answers)
    gap = tensors["gap"]
    if named.method.promise:
        gap = completeness_gap(maps, promised(case, named)).cpu()
    before = saliency(case, maps)
    after = saliency(case, later)
    seen = pictures.shown(patched).to(before.device)
    pair = {"before": before[seen].float().cpu(), "after": after[seen].float().cpu()}
    return Cell(tensors={**changes(case, before, after), "gap": gap, **pair}, facts=answers[0].facts)


def changes(case: Case, before: Tensor, after: Tensor) -> dict[str, Tensor]:
    """By how much the saliency (n, *spatial) of each patch's place changes, (n,), and the same with its sign."""
    change = relative_change(after, before, case.mask)
    difference = (after - before).masked_fill(~case.mask, 0).flatten(1).sum(1)
    return {"change": change, "rise": torch.sign(difference) * change}


def rows_of(case: Case, patched: Patched, name: str, answer: Cell) -> list[Row]:
    """A row per input of what one method said."""
    columns = {
        "found": patched.found(),
        "target": case.target,
        "ratio": patched.ratio,
        "visible": patched.change,
        **{name: answer.tensors[name] for name in ("change", "rise", "gap")},
    }
    state = {"status": answer.facts["status"], "message": answer.facts["message"]}
    rows = []
    for place in range(len(case.x)):
        own = {column: values[place].item() for column, values in columns.items()}
        row = Row("independence", "scores", method=name, sample=place).having(**own, **state)
        rows.append(explain.with_promise(row.having(**exception(own, state)), own["gap"]))
    return rows


def exception(own: Mapping[str, float], state: Mapping[str, str]) -> dict[str, str]:
    """Status and message of an input that has no patch, or no change though its method gave maps."""
    if not own["found"]:
        return {"status": "no patch", "message": "no functionless patch was found for this input"}
    if state["status"] == "ok" and own["change"] != own["change"]:
        return {"status": "undefined", "message": "no usable map, or nothing at that place before and after"}
    return {}


def background(case: Case) -> Tensor:
    """The inputs that methods are given as background, evenly over the explained classes. (k, *shape)"""
    chosen = choose.evenly(case.target, BACKGROUND, seed=case.request.seed, role="background")
    return case.x[chosen.to(case.x.device)]


def promised(case: Case, named: NamedMethod) -> Tensor:
    """What the maps of the inputs promise to sum to, (n,)."""
    behind = background(case)

    def of(x: Tensor, target: Tensor) -> Tensor:
        return explain.promised(named.method, case.module, x, target, background=behind)

    return chunks.over(of, case.x, case.target, size=explain.at_once(case.x))


def saliency(case: Case, maps: Tensor) -> Tensor:
    """(n, *spatial) in [0, 1] of maps (n, *shape)."""
    if maps.ndim == case.mask.ndim:  # no axis of channels
        maps = maps[:, None]
    return reduced(maps, lowest="zero")


def answer_to(case: Case, named: NamedMethod, x: Tensor, name: str) -> Cell:
    """(n, *shape). Every input has draws of its own, and others with the patch than without."""
    if "layer" in named.method.needs and case.layer is None:
        message = f"ValueError: {named.name} reads a layer that gives a map, and the model has none: name a `layer`"
        return Cell(facts={"failed": True, "status": "error", "message": message})
    seed = seeds.derive(case.request.seed, named.name, name)
    game: Facts = {}
    if not named.own:
        game = {"players": players.pixels(tuple(x.shape[1:])).to(x.device)}
    question = explain.Question(
        model=case.module,
        x=x,
        target=case.target,
        background=background(case),
        fit=case.x,
        truth=None,
        layer=case.layer,
        seed=seed,
        game=game,
        whole=named.own,
    )
    return explain.answered(named.method, question, seed=seed, stream="draws", wrap=methods.accepting_arrays)
