"""Planted artefacts: a model that must look at a known region, and methods that should say so [zhou2022feature]."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forsooth import names, plugins
from forsooth.datasets import plain_images
from forsooth.datasets.class_pairs import class_pairs
from forsooth.datasets.manipulations import Manipulation, draw
from forsooth.datasets.plain_images import Images
from forsooth.datasets.planted import Border
from forsooth.datasets.visibility import adjusted
from forsooth.engine import make_task
from forsooth.models import recipes
from forsooth.models.gates import Gate
from forsooth.records import NO_MODEL, Choice, Columns, Dataset, Method, Names, Plan, Row, Task, UsageError
from forsooth.suites import planning
from forsooth.suites.planted import data
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.questions import Ask
from forsooth.suites.planted.settings import RELEASED_MAPS, Output, Settings, check
from forsooth.suites.planted.tasks import explain, show, train
from forsooth.wording import paragraphs

FACTORS = ("experiment", "manipulation", "presence", "visibility", "r", "model")
SECTIONS = {"5.1": 1, "5.3": 3, "5.4": 4, "border": 4}  # experiment -> the section whose artefacts it draws
PARTS = {"5.1": "scores", "5.2": "checkpoints", "5.3": "visibility", "5.4": "r", "border": "border"}  # 5.1 is ranked
TRAINING_PARTS = {**PARTS, "5.1": "training"}
VARIED = {"5.3": ", level {0.level}", "5.4": ", r {0.r:g}"}  # experiment -> how the titles of its trainings differ
FILE = "{0.experiment}-{0.manipulation}-{0.level}-{0.r:g}-{0.number}"  # the name of a training's data
WITH_CHECKPOINTS = ("5.2", "border")  # these explain networks on their way, too
RECIPES = {"paper": recipes.PLANTED, "quick": recipes.PLANTED_QUICK}
Pairs = Mapping[str, Sequence[tuple[str, str]]]  # kind -> pairs of classes


@dataclass(frozen=True)
class Place:
    """One training in the paper's plan: the experiments that explain it, its artefact, its number among its like."""

    experiments: Names
    manipulation: str
    number: int
    level: int = 0
    r: float = 0.5
    kind: str = "similar"

    @property
    def experiment(self) -> str:
        """The one that it is trained for: 5.2 explains trainings of 5.1."""
        return self.experiments[0].replace("5.2", "5.1")


@dataclass(frozen=True)
class Panel:
    """One training to be: its place in the plan, and what decides its data."""

    place: Place
    spec: DataSpec

    @property
    def columns(self) -> Columns:
        """What all its rows have in common."""
        return {
            **data.factors(self.spec),
            "level": self.place.level,
            "model_seed": self.place.number,
            "kind": self.place.kind,
            "experiment": self.place.experiment,
        }


@dataclass(frozen=True)
class Round(planning.Round):
    """One panel, the trainings of all networks on it, and what is asked of them."""

    settings: Settings
    panel: Panel
    trained: Sequence[Task] = ()


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every network, then explain what counts, method by method."""
    planning.check_metrics(settings, ("truth",))
    nets = [net.name for net in planning.networks(settings, choice)]
    tasks: list[planning.Work] = []
    for panel in panels(settings, choice):
        this = Round(settings, choice, panel)
        this = replace(this, trained=[training_task(this, net) for net in nets])
        tasks += this.trained
        for experiment in panel.place.experiments:
            if shown(panel, experiment):
                tasks.append(make_task(show, {"spec": panel.spec, "columns": panel.columns}, name="example"))
            tasks += explaining_tasks(this, experiment)
    return planning.planned(tasks, facts(settings))


def datasets(settings: Settings, choice: Choice) -> Iterator[tuple[str, Dataset]]:
    """The data of every training that was not left out, with its name."""
    for panel in panels(settings, choice):
        yield FILE.format(panel.place), data.dataset(panel.spec)


def panels(settings: Settings, choice: Choice) -> list[Panel]:
    """Every training that was not left out."""
    check(settings)
    names.check_factors(choice.only, FACTORS)
    this = planning.Round(settings, choice)
    classes = plain_images.class_names(choice.data, settings.classes)
    images = plain_images.images_at(
        choice.data,
        classes=len(classes),
        per_class=settings.per_class,
        side=settings.side,
        seed=this.seed("data"),
    )
    pairs = class_pairs(classes)
    chosen = places(this)
    if any(not pairs[place.kind] for place in chosen if place.experiment == "5.4"):
        raise UsageError(f"`kinds` must be similar (and distinct for three classes), got {', '.join(settings.kinds)}")
    return [panel_of(place, images, pairs, this) for place in chosen]


def places(this: planning.Round) -> list[Place]:
    """All trainings of the plan. All levels and all r of one number share their region."""
    settings = this.settings
    only = this.choice.only
    experiments = names.kept(settings.experiments, only, "experiment")
    manipulations = names.kept(settings.manipulations, only, "manipulation")
    explained = {"5.1": settings.trainings, "5.2": settings.runs_with_checkpoints}  # so many trainings of each
    found = []
    for name, number in itertools.product(manipulations, range(settings.trainings)):
        own = tuple(e for e, count in explained.items() if e in experiments and number < count)
        found.append(Place(own, name, number))
    followup = [name for name in settings.manipulations_followup if name in manipulations]
    found += followup_places(followup, this)
    return [place for place in found if not set(experiments).isdisjoint(place.experiments)]


def followup_places(manipulations: Sequence[str], this: planning.Round) -> list[Place]:
    """Trainings of the experiments that vary more than the region."""
    settings = this.settings
    levels = names.kept_numbers(settings.levels, this.choice.only, "visibility")
    r_values = names.kept_numbers(settings.r_values, this.choice.only, "r")
    regions = list(itertools.product(manipulations, range(settings.groups)))
    pairs = itertools.product(manipulations, settings.kinds, range(settings.pairs), r_values)
    return [
        *(Place(("5.3",), *region, level=int(level)) for region, level in itertools.product(regions, levels)),
        *(Place(("5.4",), name, number, r=r, kind=kind) for name, kind, number, r in pairs),
        *(Place(("border",), *region) for region in regions),
    ]


def panel_of(place: Place, images: Images, pairs: Pairs, this: planning.Round) -> Panel:
    """What decides the data of one training. In 5.1 the pair of classes is drawn, elsewhere numbered."""
    seed = this.seed("plot", SECTIONS[place.experiment], place.manipulation, place.number, place.kind)
    number = seed if place.experiment == "5.1" else place.number
    border = Border() if place.experiment == "border" else None
    known = pairs[place.kind]
    manipulation = manipulation_of(place, this.settings, seed=seed)
    return Panel(place, DataSpec(images, known[number % len(known)], manipulation, place.r, border, seed))


def manipulation_of(place: Place, settings: Settings, *, seed: int) -> Manipulation:
    """The artefact of a training, as visible as the settings want it."""
    drawn = draw(place.manipulation, SECTIONS[place.experiment], seed=seed, level=place.level)
    if place.experiment == "5.1" and settings.level is not None:
        drawn = replace(drawn, visibility=draw(place.manipulation, 3, seed=seed, level=settings.level).visibility)
    return adjusted(drawn, strength=settings.strength, variant=settings.variant)


def training_task(this: Round, net: str) -> Task:
    """States on the way are kept only where an experiment reads them: they are as large as the network."""
    settings = this.settings
    panel = this.panel
    recipe = recipes.changed(
        RECIPES[settings.recipe],
        epochs=settings.epochs or None,
        batch=settings.batch or None,
        gate=settings.gate,
        restarts=settings.restarts,
    )
    arguments = {
        "spec": panel.spec,
        "net": net,
        "recipe": recipe,
        "gate": Gate(settings.gate, settings.max_p_value),
        "keep": not set(WITH_CHECKPOINTS).isdisjoint(panel.place.experiments),
        "columns": {**panel.columns, "part": TRAINING_PARTS[panel.place.experiment]},
        "seed": this.seed("training", panel.spec.seed),
        "device": this.choice.device,
    }
    return make_task(train, arguments, name=f"train {net}, {title(panel)}")


def explaining_tasks(this: Round, experiment: str) -> Iterator[planning.Work]:
    """A task for every method and network, and rows for those who cannot meet.

    One task makes the maps and scores them, since maps are not stored.
    """
    panel = this.panel
    where = {**panel.columns, "experiment": experiment, "part": PARTS[experiment]}
    nets = [*(task.arguments["net"] for task in this.trained), NO_MODEL]  # the last is that of no network

    def ask(method: Method, index: int) -> Iterator[Task]:
        columns = {**where, "model": nets[index]}
        arguments = {"spec": panel.spec, "index": index, "ask": ask_of(method, experiment, this), "columns": columns}
        yield make_task(explain, arguments, this.trained, name=f"explain: {method.name}, {nets[index]}, {title(panel)}")

    rows = [Row.of({"suite": "planted", **where, "model": net}) for net in nets[:-1]]
    return planning.asked(planning.methods(this.choice, methods_of(experiment, this.settings)), rows, ask, kind="image")


def ask_of(method: Method, experiment: str, this: Round) -> Ask:
    settings = this.settings
    return Ask(
        **plugins.identity(method),
        samples=settings.samples,
        presences=tuple(names.kept(settings.presences, this.choice.only, "presence")),
        output=output_of(method, settings),
        metrics=planning.versions(metric_names(experiment, settings)),
        checkpoints=experiment in WITH_CHECKPOINTS,
        show=shown(this.panel, experiment),
        seed=this.seed("method", this.panel.spec.seed),
        device=this.choice.device,
    )


def shown(panel: Panel, experiment: str) -> bool:
    """Whether the page shows pictures of it: the first training of every manipulation."""
    return experiment == "5.1" and panel.place.number == 0


def output_of(method: Method, settings: Settings) -> Output:
    if settings.authors_output and method.output is not None:
        return method.output
    return settings.output


def methods_of(experiment: str, settings: Settings) -> Sequence[str]:
    """The methods of an experiment, SmoothGrad and LIME with the settings that were asked for."""
    wanted = settings.methods_followup
    if experiment == "5.1":
        wanted = settings.methods
    if settings.maps == "released":
        return [RELEASED_MAPS.get(name, name) for name in wanted]
    return wanted


def metric_names(experiment: str, settings: Settings) -> Names:
    return {"5.1": settings.metrics, "border": (data.ON_F_N, "attr")}.get(experiment, ("attr",))


def title(panel: Panel) -> str:
    words = "{0.experiment}, {0.manipulation}" + VARIED.get(panel.place.experiment, "") + ", number {0.number}"
    return words.format(panel.place)


def facts(settings: Settings) -> list[str]:
    """What a reader of the page must know, in facts.jinja."""
    return paragraphs(__package__, "facts.jinja", settings=settings)
