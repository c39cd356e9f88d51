"""Patches are found, methods are asked with and without them, and the answer is made of both."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pandas import DataFrame
from torch import Tensor

from forsooth import plugins, seeds
from forsooth.adapters import inputs, methods, models, texts
from forsooth.adapters.methods import NamedMethod
from forsooth.adapters.outputs import Function
from forsooth.adapters.places import placed
from forsooth.attributions import METHODS
from forsooth.engine import Progress, task
from forsooth.games import players
from forsooth.records import NO_PATCH, Cell, Facts, Row, Tensors, UsageError
from forsooth.scores.contrast import reduced, relative_change
from forsooth.scores.functionless import Patched
from forsooth.suites import choose, explain
from forsooth.user.independence import patches, pictures, words
from forsooth.user.independence.patches import Case, prepare, prepare_again
from forsooth.user.independence.request import IndependenceRequest
from forsooth.user.independence.result import IndependenceResult, tabled
from forsooth.user.pages import Page, asked, described_methods, plain_rows
from forsooth.user.requests import BLIND, answer_folder, command, suited
from forsooth.user.steps import Cells, Step, Steps, carry_out, gap_of, of_kind, shared_arguments

DEFAULTS = (
    "grad_cam",
    "guided_grad_cam",
    "gradient",
    "smooth_grad",
    "integrated_gradients",
    "gradient_x_input",
    "guided_backprop",
    "deep_lift",
    "lrp",
)
BACKGROUND = 100  # inputs that stand for the background
QUESTION = "Would a map point at patches that can be seen, and that the model does not react to?"
SAID = ("change", "rise", "gap")  # of a method, (n,) each
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
    patches.as_module(thing)
    with models.in_eval(thing):
        case = prepare(thing, request)
        chosen = chosen_methods(case)
        folder = answer_folder(out, "independence")
        shared = shared_arguments(case.request.words(), case.digest, chosen)
        cells = carry_out(steps_of(case, chosen), shared, folder, workers=workers, progress=progress)
    prepare_again.forget()  # type: ignore[attr-defined]
    return result_of(case, chosen, cells, begun).kept(folder, "independence")


def result_of(case: Case, chosen: Sequence[NamedMethod], cells: Cells, begun: float) -> IndependenceResult:
    """The answer from the cells of all steps; begun: by the monotonic clock."""
    patched = patches.joined(of_kind(cells, patches.PATCH))
    maps = {one.name: cells["method", one.name] for one in chosen}
    rows = [row.flat() for name, cell in maps.items() for row in rows_of(case, patched, name, cell)]
    frame = DataFrame(rows)[list(COLUMNS)]
    table = tabled(frame, {one.name: one.kind for one in chosen}, threshold=case.request.threshold)
    page = Page(
        suite="independence",
        question=QUESTION,
        command=command("independence", case.request),
        settings=asked(case.request),
        seed=case.request.seed,
        methods=described_methods(chosen),
        scores={"exhibits": ["attention", "examples"]},  # changes of a place are no scores of maps: nothing is ranked
        rows=plain_rows(frame.assign(suite="independence", part="patches")),
        album=pictures.album_of(case, patched, maps),
        seen=pictures.SEEN,
        seconds=time.monotonic() - begun,
    )
    return IndependenceResult(table, frame, words.summary(case, patched, table, frame), page=page)


def chosen_methods(case: Case) -> list[NamedMethod]:
    """The methods to ask, and behind them the nulls, which are always asked."""
    chosen = methods.with_nulls(case.request.methods or defaults(case), BLIND, METHODS)
    for one in chosen:
        if "truth" in one.method.needs:
            raise UsageError(f"`methods` must need no ground truth, since there is none, got {one.name}")
    return chosen


def defaults(case: Case) -> list[str]:
    """The names of common methods that can be asked of this model: of a function no layers are known."""
    missing = set()
    if case.layer is None:
        missing.add("layer")
    if any(isinstance(part, Function) for part in case.module.modules()):
        missing.add("module")
    names = [name for name in DEFAULTS if not missing & set(plugins.method(name, METHODS).needs)]
    return suited(names, case.module, case.x)


def steps_of(case: Case, chosen: Sequence[NamedMethod]) -> Steps:
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
    first = question(case, named, case.x, "x")
    made = answer_to(named, first)
    later = made
    if made.facts["status"] == "ok":
        later = answer_to(named, question(case, named, patched.x.to(case.x.device), "patched"))
    if later.facts["status"] != "ok":
        nothing = torch.full((len(case.x),), torch.nan, dtype=torch.float64)
        return Cell(tensors={name: nothing.clone() for name in SAID}, facts=later.facts)
    before = saliency(case, made)
    after = saliency(case, later)
    seen = pictures.shown(patched).to(before.device)
    pair = {"before": before[seen].float().cpu(), "after": after[seen].float().cpu()}
    gap = gap_of(made)
    return Cell(tensors={**changes(case, before, after), "gap": gap, **pair}, facts=made.facts)


def changes(case: Case, before: Tensor, after: Tensor) -> Tensors:
    """By how much the saliency (n, *spatial) of each patch's place changes, (n,), and the same with its sign."""
    change = relative_change(after, before, case.mask)
    difference = (after - before).masked_fill(~case.mask, 0).flatten(1).sum(1)
    return {"change": change, "rise": torch.sign(difference) * change}


def rows_of(case: Case, patched: Patched, name: str, answer: Cell) -> list[Row]:
    """A row per input of what one method said."""
    said = {column: answer.tensors[column] for column in SAID}
    template = Row(
        "independence", "scores", method=name, status=answer.facts["status"], message=answer.facts["message"]
    )
    rows = explain.rows_by_sample(
        template,
        range(len(case.x)),
        found=patched.found(),
        target=case.target,
        ratio=patched.ratio,
        visible=patched.change,
        **said,
    )
    pairs = zip(rows, said["gap"].tolist(), strict=True)
    return [explain.with_promise(exceptional(row, **row.columns), gap) for row, gap in pairs]


def exceptional(row: Row, *, found: Any, change: Any, **others: Any) -> Row:
    """The row, which says so where an input has no patch, or no change though its method gave maps."""
    if not found:
        return row.having(status=NO_PATCH, message="no functionless patch was found for this input")
    if row.status == "ok" and change != change:
        return row.having(status="undefined", message="no usable map, or nothing at that place before and after")
    return row


def saliency(case: Case, made: Cell) -> Tensor:
    """(n, *spatial) in [0, 1] of maps (n, *shape)."""
    maps = made.tensors["maps"].to(case.x.device)
    if maps.ndim == case.mask.ndim:  # no axis of channels
        maps = maps[:, None]
    return reduced(maps, lowest="zero")


def question(case: Case, named: NamedMethod, x: Tensor, name: str) -> explain.Question:
    """What a method is asked about x (n, *shape). Every input has draws of its own, and others with the patch."""
    game: Facts = {}
    if not named.own:
        game = {"players": players.pixels(tuple(x.shape[1:])).to(x.device)}
    background = choose.evenly(case.target, BACKGROUND, seed=case.request.seed, role="background")
    return explain.Question(
        model=case.module,
        x=x,
        target=case.target,
        background=case.x[background.to(case.x.device)],
        fit=case.x,
        truth=None,
        layer=case.layer,
        seed=seeds.derive(case.request.seed, named.name, name),
        game=game,
        whole=named.own,
    )


def answer_to(named: NamedMethod, asked: explain.Question) -> Cell:
    """The tensor `maps` (n, *shape), or why there is none."""
    if "layer" in named.method.needs and asked.layer is None:
        message = f"ValueError: {named.name} reads a layer that gives a map, and the model has none: name a `layer`"
        return Cell(facts={"failed": True, "status": "error", "message": message})
    return explain.answered(named.method, asked, seed=asked.seed, stream="draws", wrap=methods.accepting_arrays)
