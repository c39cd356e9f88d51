"""Planted artefacts: a model that must look at a known region, and methods that should say so [zhou2022feature]."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets.manipulations import draw
from forsooth.datasets.planted import Border
from forsooth.engine import make_task
from forsooth.models import MODELS, recipes
from forsooth.records import Choice, Method, Metric, Plan, Suite, Task, UsageError
from forsooth.scores import METRICS
from forsooth.suites.planted import data as plots
from forsooth.suites.planted import tasks as planting
from forsooth.suites.planted.settings import DEMO, PAPER, QUICK, RELEASED, RELEASED_MAPS, Settings

ON_THE_WAY = ("5.2", "border")  # these explain the checkpoints, too
RECIPES = {"paper": recipes.PLANTED, "quick": recipes.PLANTED_QUICK}
Pairs = Mapping[str, Sequence[tuple[str, str]]]  # kind -> pairs of classes
FACTORS = ("experiment", "manipulation", "presence", "visibility", "r", "model")


@dataclass(frozen=True)
class Place:
    """One training in the paper's plan: who asks for it, its artefact, and its number among its like."""

    asks: tuple[str, ...]
    manipulation: str
    number: int
    level: int = 0
    r: float = 0.5
    kind: str = "similar"


@dataclass(frozen=True)
class Panel:
    """One training to be: the recipe of its data (`plots.data`), columns of its rows, and who explains it."""

    plot: dict[str, Any]
    about: dict[str, Any]
    asks: tuple[str, ...]


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every network, then explain what counts, method by method."""
    tasks: list[Task] = []
    nets = [names.find(net, MODELS, argument="models") for net in names.kept(settings.models, choice.only, "model")]
    for panel in chosen_panels(settings, choice):
        trained = [training_task(panel, net.name, settings, choice) for net in nets]
        tasks += trained
        if panel.about["model_seed"] == 0 and "5.1" in panel.asks:
            tasks.append(
                make_task(planting.show, {"plot": panel.plot, "about": panel.about}, name="example", version=2)
            )
        for experiment in panel.asks:
            found = [plugins.method(name, METHODS) for name in choice.methods or asked_methods(settings, experiment)]
            for method, index in itertools.product(found, range(-1, len(nets))):
                if method.null != (index == -1):
                    continue  # a null ignores the model, so it is asked once for all of them
                tasks.append(explaining_task(method, index, experiment, panel, trained, settings, choice))
    return Plan(tasks=tuple({task.key: task for task in tasks}.values()), facts=facts(settings))


def asked_methods(settings: Settings, experiment: str) -> list[str]:
    """The methods of an experiment, SmoothGrad and LIME with the settings that were asked for."""
    wanted = settings.methods if experiment == "5.1" else settings.traced
    changed = RELEASED_MAPS if settings.maps == "released" else {}
    return [changed.get(name, name) for name in wanted]


def chosen_panels(settings: Settings, choice: Choice) -> Iterator[Panel]:
    """Every training that was not left out."""
    names.check_factors(choice.only, FACTORS)
    classes = plots.class_names(choice.data, settings.classes)
    known = plots.class_pairs(classes)
    images = plots.spec(choice.data, classes=len(classes), per_class=settings.per_class)
    images |= {"side": settings.side, "seed": seeds.derive(choice.seed, "data")}
    asked = names.kept(settings.experiments, choice.only, "experiment")
    if "5.4" in asked and any(not known.get(kind) for kind in settings.kinds):
        raise UsageError(f"`kinds` must be similar (and distinct for three classes), got {', '.join(settings.kinds)}")
    for place in places(settings, choice, asked):
        yield panel(place, images, known, settings, choice)


def places(settings: Settings, choice: Choice, asked: Sequence[str]) -> Iterator[Place]:
    """All levels and all r of one number share their region."""
    kinds = names.kept(settings.manipulations, choice.only, "manipulation")
    deeper = [name for name in settings.deeper if name in kinds]
    steps = [int(k) for k in names.kept([str(k) for k in settings.levels], choice.only, "visibility")]
    rs = [float(r) for r in names.kept([f"{r:g}" for r in settings.rs], choice.only, "r")]
    for name, k in itertools.product(kinds, range(settings.trainings)):
        asks = tuple(e for e in ("5.1", "5.2") if e in asked and (e == "5.1" or k < settings.followed))
        if asks:
            yield Place(asks, name, k)
    for name, k, level in itertools.product(deeper, range(settings.groups), steps if "5.3" in asked else ()):
        yield Place(("5.3",), name, k, level=level)
    for name, kind, k in itertools.product(deeper, settings.kinds if "5.4" in asked else (), range(settings.pairs)):
        yield from (Place(("5.4",), name, k, r=r, kind=kind) for r in rs)
    for name, k in itertools.product(deeper, range(settings.groups if "border" in asked else 0)):
        yield Place(("border",), name, k)


def panel(place: Place, images: dict[str, Any], known: Pairs, settings: Settings, choice: Choice) -> Panel:
    """The recipe of one training; 5.2 explains those of 5.1. There the pair of classes is drawn, elsewhere numbered."""
    name, experiment = place.manipulation, {"5.1": 1, "5.2": 1, "5.3": 3}.get(place.asks[0], 4)
    seed = seeds.derive(choice.seed, "plot", experiment, name, place.number, place.kind)
    pair = known[place.kind][(seed if experiment == 1 else place.number) % len(known[place.kind])]
    drawn = draw(name, experiment, seed=seed, level=place.level)
    if experiment == 1 and settings.level is not None:
        drawn = replace(drawn, visibility=draw(name, 3, seed=seed, level=settings.level).visibility)
    artefact = plots.artefact(drawn, strength=settings.strength, variant=settings.variant)
    border = asdict(Border()) if "border" in place.asks else None
    plot = {"base": images, "pair": list(pair), "manipulation": artefact, "r": place.r, "border": border, "seed": seed}
    about: dict[str, Any] = {"manipulation": name, "level": place.level, "model_seed": place.number}
    about |= {"experiment": "5.1" if experiment == 1 else place.asks[0], "kind": place.kind}
    about |= {"visibility": float(artefact["visibility"]), "r": float(place.r), "pair": "/".join(pair)}
    return Panel(plot, about, place.asks)


def training_task(panel: Panel, net: str, settings: Settings, choice: Choice) -> Task:
    """States on the way are kept only where an experiment reads them: they are as large as the network."""
    known = RECIPES[settings.recipe]
    recipe = replace(known, epochs=settings.epochs or known.epochs, batch=settings.batch or known.batch)
    recipe = replace(recipe, gate=settings.gate, restarts=settings.restarts)
    arguments = {
        "plot": panel.plot,
        "net": net,
        "recipe": asdict(recipe),
        "gate": {"accuracy": settings.gate, "luck": settings.luck},
        "keep": bool({*panel.asks} & {*ON_THE_WAY}),
        "about": {**panel.about, "part": part(panel.about["experiment"], training=True)},
        "seed": seeds.derive(choice.seed, "training", panel.plot["seed"]),
        "device": choice.device,
    }
    return make_task(planting.train_network, arguments, name=f"train {net}, {title(panel)}", version=2)


def explaining_task(
    method: Method,
    index: int,
    experiment: str,
    panel: Panel,
    trained: Sequence[Task],
    settings: Settings,
    choice: Choice,
) -> Task:
    """One task makes the maps and scores them, since maps are not stored."""
    own, lime = ":" in method.name, method.name.startswith("lime")
    metrics = settings.metrics if experiment == "5.1" else ("attr",)
    if experiment == "border":
        metrics = (plots.ON_F_N, "attr")
    ask = {
        "method": method.name,
        "version": method.version,
        "code": plugins.fingerprint(plugins.load(method.name, argument="methods")) if own else "",
        "samples": settings.samples,
        "presences": names.kept(settings.presences, choice.only, "presence"),
        "output": settings.lime_output if lime else settings.output,
        "metrics": {m: names.find(m, METRICS, argument="metrics").version for m in metrics},
        "every": experiment in ON_THE_WAY,
        "show": experiment == "5.1" and panel.about["model_seed"] == 0,
        "seed": seeds.derive(choice.seed, "method", panel.plot["seed"]),
        "device": choice.device,
    }
    net = trained[index].arguments["net"] if index >= 0 else "none"
    about = {**panel.about, "experiment": experiment, "part": part(experiment), "model": net}
    arguments = {"plot": panel.plot, "index": index, "ask": ask, "about": about}
    name = f"explain: {method.name}, {net}, {title(panel)}"
    return make_task(planting.explain_network, arguments, trained, name=name, version=2)


def part(experiment: str, *, training: bool = False) -> str:
    """Where the report looks for the rows: only 5.1 is ranked."""
    known = {"5.1": "training" if training else "scores", "5.2": "checkpoints", "5.3": "visibility", "5.4": "r"}
    return known.get(experiment, experiment)


def title(panel: Panel) -> str:
    about = panel.about
    number = {"5.3": f"level {about['level']}", "5.4": f"r {about['r']:g}"}.get(about["experiment"], "")
    words = (about["experiment"], about["manipulation"], number, f"number {about['model_seed']}")
    return ", ".join(word for word in words if word)


def chosen_metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in settings.metrics)


def facts(settings: Settings) -> tuple[str, ...]:
    said = [
        "Ranked is 5.1, on images that have the artefact: labels are drawn anew with r = 0.5, so that the joint "
        "effective region alone can tell them, and a constant map scores its share of the image.",
        "Maps are of the predicted class. In the examples y=1 has the artefact and y=0 has not; truth is the region.",
    ]
    if settings.strength != 1 or settings.level is not None:
        said.append(f"Artefacts are more visible than in the paper, since images have {settings.side} px.")
    return tuple(said)


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.planted.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="planted",
    title="Planted artefacts",
    question="The model can only be right by an artefact in a known region: which methods point at that region?",
    presets={"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED},
    plan=plan,
    figures=figures,
    factors=("manipulation", "model"),
    metrics=chosen_metrics,
    exhibits=("examples", "planted_curves", "planted_gate"),
    cite="zhou2022feature",
)
