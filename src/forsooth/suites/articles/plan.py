"""The plan of the articles suite: train every reader, let rationale models select, ask every method."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets import texts
from forsooth.datasets.articles import KINDS, Setting
from forsooth.digests import digest
from forsooth.engine import make_task
from forsooth.models import MODELS
from forsooth.models.train_text import TextRecipe
from forsooth.records import Architecture, Choice, Method, Metric, Plan, Row, Task, UsageError
from forsooth.scores import METRICS
from forsooth.suites.articles import data, selections, tasks
from forsooth.suites.articles.data import DataSpec, Panel
from forsooth.suites.articles.settings import ATTENTION, READERS, RECIPES, REINFORCE, Settings, check
from forsooth.suites.articles.word_weights import Ask

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
class Reader:
    """One training to be: its network, its number, and its target rate (None: attention has none)."""

    net: Architecture
    number: int
    rate: float | None


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every reader, then explain those of the main rate, method by method; all select."""
    check(settings)
    names.check_factors(choice.only, FACTORS)
    methods = [plugins.method(name, METHODS) for name in choice.methods or settings.methods]
    work: list[Task] = []
    skips: list[Row] = []
    for spec in chosen_data(settings, choice):
        trained = trainings(spec, settings, choice)
        work += trained.values()
        work += selecting_tasks(spec, trained, choice)
        work += page_tasks(spec, trained, settings)
        for method in methods:
            explaining, unmet = explaining_tasks(method, spec, trained, settings, choice)
            work += explaining
            skips += unmet
    return Plan(tasks=tuple({task.key: task for task in work}.values()), skips=tuple(skips), facts=FACTS)


def chosen_data(settings: Settings, choice: Choice) -> Iterator[DataSpec]:
    """What decides the data of each kind that was not left out."""
    check_files(settings, choice)
    for kind in settings.kinds:
        if kind not in KINDS:
            raise names.unknown(kind, KINDS, argument="kinds")
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
            digest=digest_of(choice.data),
            vectors_digest=digest_of(settings.vectors),
            seed=seeds.derive(choice.seed, "data"),
        )


def check_files(settings: Settings, choice: Choice) -> None:
    """UsageError where a file of the user's cannot be read: it is told before any work."""
    for argument, path in (("data", choice.data), ("vectors", settings.vectors)):
        if path is None or Path(path).is_file():
            continue
        problem = "is a folder" if Path(path).is_dir() else "does not exist"
        raise UsageError(f"`{argument}` must be a file, but {path} {problem}")
    if choice.data:
        texts.documents(choice.data)
    if settings.vectors:
        texts.read_vectors(settings.vectors)


def digest_of(path: str | None) -> str | None:
    return digest(path) if path else None


def rates(spec: DataSpec, settings: Settings) -> list[float]:
    """All target rates of selection; the first is that whose models all methods explain."""
    if spec.setting.kind == "Article":
        return list(dict.fromkeys((settings.rate_article, *settings.rates_article)))
    return list(dict.fromkeys((settings.rate_halves, *settings.rates_halves)))


def readers(spec: DataSpec, settings: Settings, choice: Choice) -> Iterator[Reader]:
    """Every training of one kind of data that was not left out."""
    for name in names.kept(settings.models, choice.only, "model"):
        net = names.find(name, MODELS, argument="models")
        if name not in READERS:
            raise UsageError(f"`models` must be models of text ({', '.join(READERS)}), got {name!r}")
        if name == ATTENTION:
            yield from (Reader(net, number, None) for number in range(settings.trainings))
            continue
        for rate in rates(spec, settings):
            yield from (Reader(net, number, rate) for number in range(settings.rationale_trainings))


def panel(spec: DataSpec, reader: Reader) -> Panel:
    return Panel(spec.setting.kind, reader.net.name, reader.number, reader.rate)


def title(panel: Panel) -> str:
    words = f"{panel.model} {panel.model_seed}"
    if panel.rate is not None:
        words += f", rate {panel.rate:g}"
    return f"{words}, {panel.kind}"


def trainings(spec: DataSpec, settings: Settings, choice: Choice) -> dict[Reader, Task]:
    """The task of every training on one kind of data."""
    return {reader: training_task(spec, reader, settings, choice) for reader in readers(spec, settings, choice)}


def training_task(spec: DataSpec, reader: Reader, settings: Settings, choice: Choice) -> Task:
    own = panel(spec, reader)
    variant = {ATTENTION: settings.attention_variant}.get(reader.net.name, settings.rationale_variant)
    arguments = {
        "spec": spec,
        "net": tasks.NetSpec(reader.net.name, reader.net.version, variant),
        "recipe": recipe(reader, settings),
        "panel": own,
        "seed": seeds.derive(choice.seed, "training", reader.number),
        "device": choice.device,
    }
    return make_task(tasks.train, arguments, name=f"train {title(own)}")


def recipe(reader: Reader, settings: Settings) -> TextRecipe:
    """How the reader is trained: as its preset says, towards its own rate."""
    name = reader.net.name
    preset = RECIPES[settings.recipe][name]
    aim = preset.aim
    if aim is not None and reader.rate is not None:
        aim = replace(aim, rate=reader.rate)
    gate = {REINFORCE: settings.gate_reinforce}.get(name, settings.gate)
    epochs = settings.epochs or preset.epochs
    return replace(preset, aim=aim, gate=gate, restarts=settings.restarts, epochs=epochs)


def selecting_tasks(spec: DataSpec, trained: Mapping[Reader, Task], choice: Choice) -> list[Task]:
    """What every rationale model selects."""
    versions = {name: metric(name).version for name in (selections.PRECISION, selections.RECALL)}
    work = []
    for reader, training in trained.items():
        if reader.rate is None:
            continue
        own = panel(spec, reader)
        arguments = {"spec": spec, "panel": own, "metrics": versions, "device": choice.device}
        work.append(make_task(selections.select, arguments, [training], name=f"select: {title(own)}"))
    return work


def page_tasks(spec: DataSpec, trained: Mapping[Reader, Task], settings: Settings) -> list[Task]:
    """The document that the page shows, and the lines of Fig. 8."""
    shared = {"spec": spec, "factors": data.factors(spec)}
    example = {**shared, "samples": settings.samples}
    work = [make_task(tasks.show, example, name=f"example, {spec.setting.kind}")]
    if any(reader.rate is not None for reader in trained):
        work.append(make_task(selections.optimum, shared, name="lines of Fig. 8"))
    return work


def explaining_tasks(
    method: Method, spec: DataSpec, trained: Mapping[Reader, Task], settings: Settings, choice: Choice
) -> tuple[list[Task], list[Row]]:
    """Tasks of one method on all models of the main rate, and rows for those it cannot meet."""
    main = [reader for reader in trained if reader.rate in (None, rates(spec, settings)[0])]
    needs = [trained[reader] for reader in main]
    if method.null:  # it ignores the model, so it is asked once for all of them
        return [explaining_task(method, -1, spec, Panel(spec.setting.kind), needs, settings, choice)], []
    work: list[Task] = []
    skips: list[Row] = []
    for index, reader in enumerate(main):
        own = panel(spec, reader)
        reason = unable(method, reader.net)
        if reason:
            skips.append(skipped(own, method, reason))
        else:
            work.append(explaining_task(method, index, spec, own, needs, settings, choice))
    return work, skips


def skipped(panel: Panel, method: Method, reason: str) -> Row:
    """The row of a method and a model that cannot meet."""
    row = panel.row("scores", "articles", method.name)
    return row.having(metric="", sample=-1, status="skipped", message=reason)


def explaining_task(
    method: Method,
    index: int,
    spec: DataSpec,
    panel: Panel,
    trained: Sequence[Task],
    settings: Settings,
    choice: Choice,
) -> Task:
    """One task weighs the words and scores the weights; index -1: of a method that ignores the models."""
    ask = Ask(
        **plugins.identity(method),
        samples=settings.samples,
        null=method.null,
        metrics={metric.name: metric.version for metric in metrics(settings)},
        show=panel.model_seed < 1,
        keep=bool(method.belongs_to),
        seed=seeds.derive(choice.seed, "method", panel.model_seed),
        device=choice.device,
    )
    arguments = {"spec": spec, "index": index, "ask": ask, "panel": panel}
    where = panel.kind if method.null else title(panel)
    return make_task(tasks.explain, arguments, trained, name=f"explain: {method.name}, {where}")


def unable(method: Method, net: Architecture) -> str:
    """Why the two cannot meet; empty where they can."""
    if not method.belongs_to or net.name in method.belongs_to:
        return ""
    return f"{method.name} is asked of {' and '.join(method.belongs_to)} only: {net.name} has none"


def metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(metric(name) for name in settings.metrics)


def metric(name: str) -> Metric:
    return names.find(name, METRICS, argument="metrics")
