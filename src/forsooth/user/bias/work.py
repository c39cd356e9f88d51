"""The games and the methods, a piece at a time, and the answer from all pieces."""

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forsooth import plugins, seeds
from forsooth.adapters import inputs, methods, models, tables, texts
from forsooth.adapters.methods import NamedMethod
from forsooth.attributions import METHODS
from forsooth.engine import Progress, task
from forsooth.games import players
from forsooth.games.anchors import leverage
from forsooth.games.shapley import Estimate, exact, joined, permutation
from forsooth.progress import fitting_progress
from forsooth.records import Cell, Facts, Method
from forsooth.suites import explain
from forsooth.suites.bias import anchor as anchors
from forsooth.user.bias import page, price, words
from forsooth.user.bias.prepare import prepare, prepare_again
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.result import END, BiasResult, Judged, tabled
from forsooth.user.bias.subject import AT_ONCE, BACKGROUND, Subject
from forsooth.user.requests import BLIND, answer_folder, suited
from forsooth.user.steps import (
    Cells,
    Step,
    Steps,
    carry_out,
    gap_of,
    in_pieces,
    joined_tensors,
    of_kind,
    shared_arguments,
)

DEFAULTS = (
    "grad_cam",
    "gradient",
    "gradient_x_input",
    "smooth_grad",
    "integrated_gradients",
    "guided_backprop",
    "lrp",
    "deep_lift",
    "deep_shap",
    "gradient_shap",
    "kernel_shap",
    "lime",
    "shapley_sampling",
    "pfi",
)
ANCHOR = "anchor"
UNREADABLE = (
    "reads numbers, and this table is played by values: what hides whole columns can be asked (kernel_shap, lime, "
    "pfi …), and a forsooth.Method with hides=True, which is given the numbers of values, and hides one by 0"
)
SQUARE = 5_000  # most players of methods that solve a system of players × players


def answer(
    request: BiasRequest, *, out: Path | None = None, workers: int = 1, progress: Progress | None = None
) -> BiasResult:
    """M_bias of every method on the model and inputs of the request. See `forsooth.bias`."""
    begun = time.monotonic()
    request.check()  # words and files come first: to build the model may take long
    if texts.read(request.inputs) is None and not tables.needed(tables.loaded(request.inputs, "inputs")):
        inputs.batch(request.inputs, "inputs")
    plugins.known(request.methods, METHODS)
    thing = models.load_model(request.model)
    with models.in_eval(thing):
        subject = prepare(thing, request)
        chosen = chosen_methods(subject)
        progress = progress or fitting_progress()
        able = [one for one in chosen if not unable(one, subject)]
        price.told(subject, [one.method for one in able if not one.own], progress, workers=workers)
        folder = answer_folder(out, "bias")
        steps = steps_of(subject, able)
        shared = shared_arguments(subject.request.words(), subject.digest, chosen)
        cells = carry_out(steps, shared, folder, workers=workers, progress=progress)
    prepare_again.forget()  # type: ignore[attr-defined]
    judged = judged_from(subject, chosen, cells)
    table, rows = tabled(judged)
    costly = {one.name for one in chosen if one.method.cost != "passes"}
    shown = page.page(request, subject, chosen, judged, rows, time.monotonic() - begun)
    summary = words.summary(subject, table, judged.noise, costly)
    return BiasResult(table, rows, summary, page=shown).kept(folder, "bias")


def chosen_methods(subject: Subject) -> list[NamedMethod]:
    """The methods to judge, and behind them the nulls, which are always judged."""
    return methods.with_nulls(subject.request.methods or defaults(subject), BLIND, METHODS, reserved=END)


def defaults(subject: Subject) -> list[str]:
    """The names of common methods that can be asked of this model."""
    names = [name for name in DEFAULTS if not shut_out(plugins.method(name, METHODS), subject)]
    if not isinstance(subject.stage.model, nn.Module):
        return names
    return suited(names, subject.stage.model, subject.part(0, 1)[0])


def shut_out(method: Method, subject: Subject) -> str:
    """Why a method that looks into a model cannot look into this one; empty where it can. None such is a default."""
    if not subject.stage.open and {"gradient", "module"} & set(method.needs):
        return f"{method.name} needs a torch module, and the model is {closed(subject)}"
    if "layer" in method.needs and not speaks_of_units(method, subject):
        return (
            f"{method.name} reads a layer: it can be judged on the units of one, as grad_cam with players units:LAYER"
        )
    return ""


def speaks_of_units(method: Method, subject: Subject) -> bool:
    """Whether the players are units of a layer, and the method speaks of them."""
    return method.units is not None and subject.stage.head is not None


def unable(named: NamedMethod, subject: Subject) -> str:
    """Why the method cannot be asked here; empty where it can. A user's function is always tried."""
    name = named.name
    method = named.method
    if "truth" in method.needs:
        return f"{name} needs a ground truth, and there is none"
    if subject.stage.table is not None and not (method.hides or method.blind):
        return f"{name} {UNREADABLE}"
    if named.own:
        return ""
    reason = shut_out(method, subject)
    if reason:
        return reason
    image = subject.references.ndim > 2 and subject.stage.head is None
    if not image and set(method.inputs) == {"image"} and not speaks_of_units(method, subject):
        return f"{name} reads an image, and these are {subject.seats.noun}"
    if method.quadratic and subject.seats.count > SQUARE:
        many = f"{subject.seats.count:,} {subject.seats.noun}"
        return f"{name} solves a system of players × players, too large for {many}: take grid:N"
    return ""


def closed(subject: Subject) -> str:
    """What the model is, where methods cannot look into it."""
    if subject.module is None:
        return subject.kind
    return "a network that cannot be cut behind its layer"


def steps_of(subject: Subject, chosen: Sequence[NamedMethod]) -> Steps:
    """A step for every piece of games, a few inputs each, and for every method.

    Where the anchor is sampled, it is sampled once more for the other end of the scale.
    """
    roles = {ANCHOR: "Shapley values"}
    if not subject.exact:
        roles[END] = "Shapley values, again"
    steps: Steps = {}
    for role, title in roles.items():
        steps |= in_pieces(role, title, len(subject.x), AT_ONCE, partial(play, subject), play_task, role=role)
    for one in chosen:
        asking = partial(explain_players, subject, one)
        steps["method", one.name] = Step(f"explain: {one.name}", asking, explain_task, one.identity())
    return steps


def judged_from(subject: Subject, chosen: Sequence[NamedMethod], cells: Cells) -> Judged:
    """All that is compared, from the cells of all steps."""
    anchor = anchors.joined(of_kind(cells, ANCHOR))
    other_end = anchors.joined(of_kind(cells, END) or of_kind(cells, ANCHOR))
    answers = {one.name: cells["method", one.name] for one in chosen if ("method", one.name) in cells}
    end = Cell(tensors={"players": other_end.estimate.values})
    return Judged(
        anchor=anchor.estimate,
        noise=noise_of(anchor),
        target=subject.target,
        answers={**answers, END: end, **skipped(subject, chosen)},
        kinds={**{one.name: one.kind for one in chosen}, END: "anchor"},
    )


def noise_of(anchor: anchors.Anchor) -> list[float]:
    """The share of noise in the squared norm of the Shapley values of each input, nan where they are all zero."""
    zero = (anchor.estimate.values == 0).all(1).cpu().numpy()
    noise: list[float] = np.where(zero, np.nan, anchor.noise).tolist()
    return noise


def skipped(subject: Subject, chosen: Sequence[NamedMethod]) -> dict[str, Cell]:
    """method -> why it was not asked."""
    reasons = {one.name: unable(one, subject) for one in chosen}
    return {name: Cell(facts={"status": "skipped", "message": why}) for name, why in reasons.items() if why}


@task("user.bias_play", version=3)
def play_task(*, words: Facts, digest: str, role: str, start: int, stop: int) -> Cell:
    return play(prepare_again(words, digest), role=role, start=start, stop=stop)


@task("user.bias_explain", version=2)
def explain_task(*, words: Facts, digest: str, method: str, version: int, code: str) -> Cell:
    """`version` and `code` change the key with the method."""
    return explain_players(prepare_again(words, digest), methods.named(method, METHODS))


def play(subject: Subject, *, role: str, start: int, stop: int) -> Cell:
    """Shapley values of the inputs `start` … `stop` - 1; all inputs walk the same permutations."""
    pieces = range(start, stop, subject.step)
    whole = joined([estimate(subject, role, first, min(first + subject.step, stop)) for first in pieces])
    tensors = anchors.packed(whole, torch.arange(start, stop))
    return Cell(tensors=tensors, facts={"permutations": whole.permutations})


def estimate(subject: Subject, role: str, start: int, stop: int) -> Estimate:
    game = subject.game(start, stop)
    if subject.exact:
        return exact(game)
    generator = seeds.generator(subject.request.seed, role, "permutations")
    if subject.request.anchor == "leverage":
        return leverage(game, samples=subject.samples, generator=generator)
    return permutation(game, permutations=int(subject.request.permutations), generator=generator)


def explain_players(subject: Subject, named: NamedMethod) -> Cell:
    """What a method says of every player, (n, players), or why it says nothing. The others go on whatever it does."""
    ask = answer_of
    if speaks_of_units(named.method, subject):
        ask = answer_of_units
    answer = ask(subject, named)
    if answer.facts["status"] != "ok":
        return answer
    tensors = dict(answer.tensors)
    maps = tensors.pop("maps").to(subject.x.device)
    labels, count = players.seats(maps, subject.seats.labels)
    channels: Any = "sum"
    if named.method.values == "derivative":
        channels = subject.request.channels
    tensors["players"] = players.collect(maps, labels, count, channels=channels).cpu()
    return Cell(tensors=tensors, facts=answer.facts)


def answer_of(subject: Subject, named: NamedMethod) -> Cell:
    """The tensors `maps` of all inputs, (n, *played shape), and `gap` (n,)."""
    seed = seeds.derive(subject.request.seed, named.name)
    # A null ignores the model, so it may see all inputs at once even where the model cannot.
    size = len(subject.x) if named.method.null else subject.step
    parts: list[Cell] = []
    for places in torch.arange(len(subject.x)).split(size):
        asked = question(subject, named, places)
        made = explain.answered(named.method, asked, seed=seed, wrap=methods.accepting_arrays)
        if made.facts["status"] != "ok":
            return made
        parts.append(replace(made, tensors={"maps": made.tensors["maps"], "gap": gap_of(made)}))
    return Cell(tensors=joined_tensors(parts), facts=parts[0].facts)


def answer_of_units(subject: Subject, named: NamedMethod) -> Cell:
    """The tensor `maps` (n, 1, *places of the layer) of a method that speaks of units."""
    assert subject.module is not None
    asked = explain.Question(
        model=subject.module,
        x=subject.x,
        target=subject.target,
        background=subject.x[:0],
        fit=subject.x[:0],
        truth=None,
        layer=subject.stage.layer,
        seed=subject.request.seed,
        units=tuple(subject.references.shape[2:]),
    )
    return explain.answered(named.method, asked, seed=seeds.derive(subject.request.seed, named.name))


def question(subject: Subject, named: NamedMethod, places: Tensor) -> explain.Question:
    """What a method is asked about the inputs at these places (k,), which follow one another."""
    x, target, stand_in = subject.part(int(places[0]), int(places[-1]) + 1)
    game: Facts = {}
    if not named.own:
        game = {"baseline": stand_in, "players": subject.seats.labels.to(x.device)}
    return explain.Question(
        model=subject.stage.model,
        x=x,
        target=target,
        background=subject.references[:BACKGROUND],
        fit=subject.references,
        truth=None,
        layer=subject.stage.layer,
        seed=subject.request.seed,
        game=game,
        samples=places,
        whole=named.own,
    )
