"""Articles: a and the alone carry the label; who says so? [zhou2022feature, sections 6 and 7]"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets import texts
from forsooth.datasets.articles import KINDS, Setting
from forsooth.engine import make_task
from forsooth.models import MODELS
from forsooth.records import Architecture, Choice, Method, Metric, Plan, Suite, Task, UsageError
from forsooth.scores import METRICS
from forsooth.suites.articles import tasks as reading
from forsooth.suites.articles import words as weighing
from forsooth.suites.articles.settings import (
    ATTENTION,
    DEMO,
    OWN,
    PAPER,
    QUICK,
    RECIPES,
    REINFORCE,
    RELAXED,
    RELEASED,
    SELECTIONS,
    Settings,
    check,
)
from forsooth.suites.bias import data as sources


@dataclass(frozen=True)
class Reader:
    """One training to be: its network, its number, and its target rate (None: attention has none)."""

    net: Architecture
    number: int
    rate: float | None


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every reader, then explain those of the main rate, method by method; all select."""
    check(settings)
    names.check_factors(choice.only, ("kind", "model"))
    methods = [plugins.method(name, METHODS) for name in choice.methods or settings.methods]
    tasks: list[Task] = []
    skips: list[dict[str, Any]] = []
    for plot in plots(settings, choice):
        readers = list(chosen_readers(settings, choice, plot))
        trained = {reader: training_task(plot, reader, settings, choice) for reader in readers}
        main = [r for r in readers if r.rate in (None, main_rate(settings, plot))]
        tasks += trained.values()
        tasks += [selecting_task(plot, r, trained[r], choice) for r in readers if r.rate is not None]
        tasks += page_tasks(plot, readers, settings)
        for method, index in itertools.product(methods, range(-1, len(main))):
            if method.null != (index == -1):
                continue  # a null ignores the model, so it is asked once for all of them
            reason = unable(method, main[index]) if index >= 0 else ""
            if reason:
                skips.append({**NO_SAMPLE, **about(plot, main[index]), "method": method.name, "message": reason})
            else:
                needed = [trained[reader] for reader in main]
                tasks.append(explaining_task(method, index, plot, main, needed, settings, choice))
    return Plan(tasks=tuple({task.key: task for task in tasks}.values()), skips=tuple(skips), facts=FACTS)


NO_SAMPLE = {
    **{"part": "scores", "suite": "articles", "dataset": "articles", "metric": "", "sample": -1, "value": None},
    "status": "skipped",
}


def plots(settings: Settings, choice: Choice) -> Iterator[dict[str, Any]]:
    """What decides the data of each kind, as plain values a task can be given."""
    files = {"path": choice.data, "vectors": settings.vectors}
    for argument, path in (("data", choice.data), ("vectors", settings.vectors)):
        if path is not None and not Path(path).is_file():
            there = "is a folder" if Path(path).is_dir() else "does not exist"
            raise UsageError(f"`{argument}` must be a file, but {path} {there}")
    if choice.data:  # what cannot be read is told before any work
        texts.documents(choice.data)
    if settings.vectors:
        texts.read_vectors(settings.vectors)
    digests = {
        "digest": sources.digest(choice.data) if choice.data else None,
        "vectors_digest": sources.digest(settings.vectors) if settings.vectors else None,
    }
    for kind in settings.kinds:
        if kind not in KINDS:
            raise names.unknown(kind, KINDS, argument="kinds")
    for kind in names.kept(settings.kinds, choice.only, "kind"):
        setting = Setting(kind, settings.sizes, settings.length, settings.cap, settings.filtered)  # type: ignore[arg-type]
        yield {"setting": reading.plain(setting), **files, **digests, "seed": seeds.derive(choice.seed, "data")}


def main_rate(settings: Settings, plot: dict[str, Any]) -> float:
    return settings.rate_article if plot["setting"]["kind"] == "Article" else settings.rate_halves


def chosen_readers(settings: Settings, choice: Choice, plot: dict[str, Any]) -> Iterator[Reader]:
    """Every training of one kind of data that was not left out; the main rate comes first."""
    others = settings.rates_article if plot["setting"]["kind"] == "Article" else settings.rates_halves
    rates = dict.fromkeys((main_rate(settings, plot), *others))
    for name in names.kept(settings.models, choice.only, "model"):
        net = names.find(name, MODELS, argument="models")
        if name not in (ATTENTION, RELAXED, REINFORCE):
            raise UsageError(f"`models` must be models of text ({ATTENTION}, {RELAXED}, {REINFORCE}), got {name!r}")
        if name == ATTENTION:
            yield from (Reader(net, k, None) for k in range(settings.trainings))
        else:
            yield from (Reader(net, k, rate) for rate in rates for k in range(settings.rationale_trainings))


def about(plot: dict[str, Any], reader: Reader) -> dict[str, Any]:
    """The columns of a reader's rows."""
    kind = plot["setting"]["kind"]
    return {"kind": kind, "model": reader.net.name, "model_seed": reader.number, "rate": reader.rate}


def title(plot: dict[str, Any], reader: Reader) -> str:
    rate = "" if reader.rate is None else f", rate {reader.rate:g}"
    return f"{reader.net.name} {reader.number}{rate}, {plot['setting']['kind']}"


def training_task(plot: dict[str, Any], reader: Reader, settings: Settings, choice: Choice) -> Task:
    name = reader.net.name
    recipe = RECIPES[settings.recipe][name]
    if recipe.aim is not None and reader.rate is not None:
        recipe = replace(recipe, aim=replace(recipe.aim, rate=reader.rate))
    gate = settings.gate_reinforce if name == REINFORCE else settings.gate
    recipe = replace(recipe, gate=gate, restarts=settings.restarts, epochs=settings.epochs or recipe.epochs)
    variant = settings.attention_variant if name == ATTENTION else settings.rationale_variant
    arguments = {
        "plot": plot,
        "net": {"name": name, "version": reader.net.version, "variant": variant},
        "recipe": asdict(recipe),
        "about": about(plot, reader),
        "seed": seeds.derive(choice.seed, "training", reader.number),
        "device": choice.device,
    }
    return make_task(reading.train_reader, arguments, name=f"train {title(plot, reader)}", version=2)


def selecting_task(plot: dict[str, Any], reader: Reader, trained: Task, choice: Choice) -> Task:
    arguments = {
        "plot": plot,
        "about": about(plot, reader),
        "metrics": {name: names.find(name, METRICS, argument="metrics").version for name in SELECTIONS},
        "device": choice.device,
    }
    return make_task(reading.select, arguments, [trained], name=f"select: {title(plot, reader)}", version=1)


def page_tasks(plot: dict[str, Any], readers: Sequence[Reader], settings: Settings) -> list[Task]:
    """The document that the page shows, and the lines of Fig. 8."""
    kind = {"kind": plot["setting"]["kind"]}
    shown = {"plot": plot, "about": kind, "samples": settings.samples}
    found = [make_task(reading.show, shown, name=f"example, {kind['kind']}", version=2)]
    if any(reader.rate is not None for reader in readers):
        found.append(make_task(reading.optimum, {"plot": plot, "about": kind}, name="lines of Fig. 8", version=1))
    return found


def explaining_task(
    method: Method,
    index: int,
    plot: dict[str, Any],
    readers: Sequence[Reader],
    trained: Sequence[Task],
    settings: Settings,
    choice: Choice,
) -> Task:
    """One task weighs the words and scores the weights."""
    null = {"kind": plot["setting"]["kind"], "model": "none", "model_seed": -1, "rate": None}
    here = about(plot, readers[index]) if index >= 0 else null
    ask = {
        "method": method.name,
        "version": method.version,
        "code": plugins.fingerprint(plugins.load(method.name, argument="methods")) if ":" in method.name else "",
        "samples": settings.samples,
        "null": method.null,
        "metrics": {m.name: m.version for m in chosen_metrics(settings)},
        "show": here["model_seed"] < 1,
        "keep": method.name in OWN,
        "seed": seeds.derive(choice.seed, "method", here["model_seed"]),
        "device": choice.device,
    }
    arguments = {"plot": plot, "index": index, "ask": ask, "about": here}
    words = title(plot, readers[index]) if index >= 0 else plot["setting"]["kind"]
    return make_task(weighing.explain_reader, arguments, trained, name=f"explain: {method.name}, {words}", version=2)


def unable(method: Method, reader: Reader) -> str:
    """Why the two cannot meet; empty where they can."""
    if reader.net.name in OWN.get(method.name, (reader.net.name,)):
        return ""
    return f"{method.name} is asked of {' and '.join(OWN[method.name])} only: {reader.net.name} has none"


def chosen_metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in settings.metrics)


FACTS = (
    "Labels are drawn anew, and articles are rewritten to tell them: a model that is right must read the correlating "
    "articles. A constant map scores their frequency.",
    "Post-hoc methods explain the logit of the predicted class on word vectors; a hidden word is a zero vector in its "
    "place, and the players are the words. The weight of a word is the sum over its dimensions, for gradient and "
    "smooth_grad the sum of absolute values; Attr% is its absolute value as a share.",
    "An attention weight and a rationale are what the model says of itself; they belong to one kind of model each.",
)


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.articles.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="articles",
    title="Articles",
    question="The words a and the alone carry the label: do attention, rationales and post-hoc methods point at them?",
    presets={"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED},
    plan=plan,
    figures=figures,
    factors=("kind", "model"),
    metrics=chosen_metrics,
    exhibits=("articles_shares", "articles_selection", "articles_attention", "articles_text"),
    cite="zhou2022feature",
)
