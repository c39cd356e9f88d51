"""The plan of the articles suite: train every reader, let rationale models select, ask every method."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from forsooth import models, names, plugins, seeds
from forsooth.datasets import texts
from forsooth.datasets.articles import KINDS, Setting
from forsooth.digests import digest
from forsooth.engine import make_task
from forsooth.models import recipes
from forsooth.models.train_text import RECIPES, TextRecipe
from forsooth.records import Choice, Dataset, Method, Plan, Task, UsageError
from forsooth.settings import check_words
from forsooth.suites import planning
from forsooth.suites.articles import data, selections, tasks
from forsooth.suites.articles.data import DataSpec, Panel
from forsooth.suites.articles.questions import Ask
from forsooth.suites.articles.settings import ALL_READERS, PLAIN, REINFORCE, Settings, check
from forsooth.suites.networks import NetSpec
from forsooth.suites.planning import Work

FACTORS = ("kind", "model")
FACTS = (
    "Labels are redrawn, and articles are rewritten to tell them: a model that is right must read the correlating "
    "articles. A constant map scores their frequency.",
    "Post-hoc methods explain the logit of the predicted class on word vectors; a hidden word is a zero vector in its "
    "place, and the players are the words. The weight of a word is the sum over its dimensions, for gradient and "
    "smooth_grad the sum of absolute values; Attr% is its absolute value as a share.",
    "An attention weight and a rationale are what the model says of itself; they belong to one kind of model each.",
)


@dataclass(frozen=True)
class Round(planning.Round):
    """One kind of data: the panels and the tasks of all trainings on it, and what is asked of them."""

    settings: Settings
    spec: DataSpec
    trained: Mapping[Panel, Task]


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every reader, then explain those of the main rate, method by method; all select."""
    check(settings)
    planning.check_metrics(settings, ("truth", "x"))
    names.check_factors(choice.only, FACTORS)
    methods = planning.methods(choice, settings.methods)
    work: list[Work] = []
    for spec in chosen_data(settings, choice):
        this = round_of(spec, settings, choice)
        work += this.trained.values()
        work += selecting_tasks(this)
        work += page_tasks(this)
        work += explaining_tasks(methods, this)
    return planning.planned(work, FACTS)


def datasets(settings: Settings, choice: Choice) -> Iterator[tuple[str, Dataset]]:
    """Every chosen kind of documents, as token ids."""
    for spec in chosen_data(settings, choice):
        yield spec.setting.kind, data.dataset(spec).dataset


def chosen_data(settings: Settings, choice: Choice) -> Iterator[DataSpec]:
    """What decides the data of each kind that was not left out."""
    texts.check_files(data=choice.data, vectors=settings.vectors)
    check_words(settings, {"kinds": KINDS})
    for kind in names.kept(settings.kinds, choice.only, "kind"):
        setting = Setting(
            kind,  # type: ignore[arg-type]
            settings.sizes,
            settings.length,
            cap=settings.max_vocabulary,
            filtered=settings.require_articles_in_both_halves,
        )
        yield DataSpec(
            setting,
            path=choice.data,
            vectors=settings.vectors,
            digest=choice.data and digest(choice.data),
            vectors_digest=settings.vectors and digest(settings.vectors),
            seed=seeds.derive(choice.seed, "data"),
        )


def rates(spec: DataSpec, settings: Settings) -> list[float]:
    """All target rates of selection; the first is that whose models all methods explain."""
    wanted = (settings.rate_halves, *settings.rates_halves)
    if spec.setting.kind == "Article":
        wanted = (settings.rate_article, *settings.rates_article)
    return list(dict.fromkeys(wanted))


def readers(spec: DataSpec, settings: Settings, choice: Choice) -> Iterator[Panel]:
    """Every training of one kind of data that was not left out; attention has no target rate."""
    for net in planning.networks(settings, choice):
        if net.name not in ALL_READERS:
            raise UsageError(f"`models` must be models of text ({', '.join(ALL_READERS)}), got {net.name!r}")
        targets: list[float | None] = [*rates(spec, settings)]
        trainings = settings.rationale_trainings
        if net.name in PLAIN:
            targets = [None]
            trainings = settings.trainings
        for rate, number in itertools.product(targets, range(trainings)):
            yield Panel(spec.setting.kind, net.name, number, rate)


def title(panel: Panel) -> str:
    words = f"{panel.model} {panel.model_seed}"
    if panel.rate is not None:
        words += f", rate {panel.rate:g}"
    return f"{words}, {panel.kind}"


def round_of(spec: DataSpec, settings: Settings, choice: Choice) -> Round:
    """All trainings on one kind of data."""
    trained = {}
    for panel in readers(spec, settings, choice):
        variant = settings.rationale_variant
        if panel.model in PLAIN:
            variant = settings.attention_variant
        arguments = {
            "spec": spec,
            "net": NetSpec(panel.model, models.architecture(panel.model).version, variant),
            "recipe": recipe_of(panel, settings),
            "panel": panel,
            "seed": seeds.derive(choice.seed, "training", panel.model_seed),
            "device": choice.device,
        }
        trained[panel] = make_task(tasks.train, arguments, name=f"train {title(panel)}")
    return Round(settings, choice, spec, trained)


def recipe_of(panel: Panel, settings: Settings) -> TextRecipe:
    """How a reader is trained: as its preset says, towards its own rate."""
    preset = RECIPES[settings.recipe][panel.model]
    aim = preset.aim
    if aim is not None and panel.rate is not None:
        aim = replace(aim, rate=panel.rate)
    gate = {REINFORCE: settings.gate_reinforce}.get(panel.model, settings.gate)
    return recipes.changed(preset, aim=aim, gate=gate, restarts=settings.restarts, epochs=settings.epochs)


def selecting_tasks(this: Round) -> Iterator[Task]:
    """What every rationale model selects."""
    versions = planning.versions((selections.PRECISION, selections.RECALL))
    for panel, training in this.trained.items():
        if panel.rate is not None:
            arguments = {"spec": this.spec, "panel": panel, "metrics": versions, "device": this.choice.device}
            yield make_task(selections.select, arguments, [training], name=f"select: {title(panel)}")


def page_tasks(this: Round) -> Iterator[Task]:
    """The documents that the page shows, and the lines of Fig. 8."""
    kind = this.spec.setting.kind
    shared = {"spec": this.spec, "factors": {"kind": kind}}
    example = {**shared, "samples": this.settings.samples}
    yield make_task(tasks.show, example, name=f"example, {kind}")
    if any(panel.rate is not None for panel in this.trained):
        yield make_task(selections.optimum, shared, name="lines of Fig. 8")


def explaining_tasks(methods: Sequence[Method], this: Round) -> Iterator[Work]:
    """Tasks of every method on all models of the main rate, and rows for those who cannot meet."""
    main = [panel for panel in this.trained if panel.rate in (None, rates(this.spec, this.settings)[0])]
    panels = [*main, Panel(this.spec.setting.kind)]  # the last is that of no model: -1 is its place
    needs = [this.trained[panel] for panel in main]

    def ask(method: Method, index: int) -> Iterator[Task]:
        panel = panels[index]
        arguments = {"spec": this.spec, "index": index, "ask": ask_of(method, panel, this), "panel": panel}
        where = panel.kind if method.null else title(panel)
        yield make_task(tasks.explain, arguments, needs, name=f"explain: {method.name}, {where}")

    templates = [panel.row("scores", "articles") for panel in main]
    return planning.asked(methods, templates, ask, kind="words")


def ask_of(method: Method, panel: Panel, this: Round) -> Ask:
    return Ask(
        **plugins.identity(method),
        samples=this.settings.samples,
        null=method.null,
        metrics=planning.versions(this.settings.metrics),
        show=panel.model_seed < 1,
        keep=bool(method.belongs_to),
        seed=this.seed("method", panel.model_seed),
        device=this.choice.device,
    )
