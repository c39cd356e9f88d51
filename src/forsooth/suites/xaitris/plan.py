"""The plan of XAI-TRIS: train every network of a setting, then explain what all of them get right."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from forsooth import names, plugins, seeds
from forsooth.datasets import folders
from forsooth.datasets import tetromino_settings as tetromino
from forsooth.engine import make_task
from forsooth.models import recipes
from forsooth.records import Architecture, Choice, Dataset, Facts, Method, Plan, Task, UsageError
from forsooth.suites import networks, planning
from forsooth.suites.planning import Work
from forsooth.suites.xaitris import data, strategies, tasks
from forsooth.suites.xaitris.data import DataSpec, Panel, Photos
from forsooth.suites.xaitris.questions import Ask
from forsooth.suites.xaitris.settings import Settings, check
from forsooth.wording import paragraphs

ALWAYS_EXACT = 8  # pixels; so small a map is solved at once
FACTORS = ("size", "scenario", "background", "model")


@dataclass(frozen=True)
class Round(planning.Round):
    """One dataset: the panels and the tasks of all trainings on it, and what is asked of them."""

    settings: Settings
    spec: DataSpec
    panels: Sequence[Panel]
    trained: Sequence[Task]


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every network of a setting, then explain what all of them get right, method by method."""
    check(settings)
    planning.check_metrics(settings, ("truth",))
    methods = planning.methods(choice, settings.methods)
    specs = list(chosen_data(settings, choice))
    work: list[Work] = []
    for spec in specs:
        this = round_of(spec, settings, choice)
        shown = {"spec": spec, "samples": settings.samples, "sampling_seed": sampling_seed(choice)}
        work += [*this.trained, make_task(tasks.show, shown, this.trained, name="examples")]
        work += explaining_tasks(methods, this)
    work += sweep_tasks(specs, settings, choice, alphas=settings.sweep, trainings=1)
    work += strategy_tasks(specs, settings)
    return planning.planned(work, facts(specs, settings))


def plan_of_one_size(settings: Settings, choice: Choice) -> Plan:
    """The same, for what has one number for each scenario, background and network."""
    check_one_size(settings, choice)
    return plan(settings, choice)


def check_one_size(settings: Settings, choice: Choice) -> None:
    """UsageError where images of several sizes are asked for, which would be pooled, or a number cannot be."""
    check(settings)
    sizes = names.kept_numbers(settings.sizes, choice.only, "size")
    if len(sizes) != 1:
        came = ", ".join(f"{size:g}" for size in sizes)
        raise UsageError(f"`sizes` must be one size, since results of several are not to be mixed, got {came}")


def datasets(settings: Settings, choice: Choice) -> Iterator[tuple[str, Dataset]]:
    """Every chosen dataset with its name."""
    for spec in chosen_data(settings, choice):
        yield data.FILE.format(spec.setting), data.dataset(spec)


def chosen_data(settings: Settings, choice: Choice) -> Iterator[DataSpec]:
    """Every size, scenario and background that was not left out."""
    names.check_factors(choice.only, FACTORS)
    sizes = names.kept_numbers(settings.sizes, choice.only, "size")
    scenarios = names.kept(settings.scenarios, choice.only, "scenario")
    known = list(settings.backgrounds)
    if choice.data is not None and "IMAGENET" not in known:
        known.append("IMAGENET")  # photographs are given in order to be used, whether or not the preset has it
    backgrounds = names.kept(known, choice.only, "background")
    photos = Photos(choice.data, choice.data and folders.digest(choice.data))
    for size, scenario, background in itertools.product(sizes, scenarios, backgrounds):
        yield DataSpec(
            setting=tetromino.resolved(
                tetromino.Setting(scenario, background, int(size), settings.alpha, settings.n, settings.data)
            ),
            photos=photos if background == "IMAGENET" else None,
            seed=seeds.derive(choice.seed, "data"),
        )


def explained_networks(settings: Settings, choice: Choice, spec: DataSpec) -> list[Architecture]:
    """The networks to be explained: the linear model on the linear problem only, as in the paper."""
    nets = planning.networks(settings, choice)
    return [net for net in nets if net.name != "llr" or spec.setting.scenario == "LIN"]


def round_of(spec: DataSpec, settings: Settings, choice: Choice) -> Round:
    """All trainings of all networks on one dataset."""
    pairs = list(itertools.product(explained_networks(settings, choice, spec), range(settings.trainings)))
    panels = [data.panel(spec, net.name, number) for net, number in pairs]
    trained = [training_task(spec, net, number, settings, choice) for net, number in pairs]
    return Round(settings, choice, spec, panels, trained)


def training_task(
    spec: DataSpec, net: Architecture, number: int, settings: Settings, choice: Choice, part: str = "training"
) -> Task:
    arguments = {
        "spec": spec,
        "net": networks.NetSpec(net.name, net.version, settings.network),
        "recipe": recipe_of(spec, net, settings, part),
        "model_seed": number,
        "seed": seeds.derive(choice.seed, "training", number),
        "device": choice.device,
        "part": part,
    }
    return make_task(tasks.train, arguments, name=f"train {net.name} {number}, {data.title(spec)}")


def recipe_of(spec: DataSpec, net: Architecture, settings: Settings, part: str) -> recipes.Recipe:
    """How a network is trained on a dataset."""
    setting = spec.setting
    recipe = recipes.recipe(settings.recipe, size=setting.size, scenario=setting.scenario, attends=net.attends)
    restarts = settings.restarts
    if part == "sweep":  # in a sweep over alpha, chance is a result and no collapse
        restarts = 0
    return recipes.changed(recipe, gate=settings.gate, restarts=restarts)


def explaining_tasks(methods: Sequence[Method], this: Round) -> Iterator[Work]:
    """Of every method and network of a dataset a task that makes the maps and one that scores them.

    A new score needs no new maps.
    """
    spec = this.spec
    panels = [*this.panels, data.panel(spec)]  # the last is that of no network: -1 is its place
    judged = {"spec": spec, "metrics": planning.versions(this.settings.metrics), **bounds(this.settings, spec)}

    def ask(method: Method, index: int) -> Iterator[Task]:
        panel = panels[index]
        what = f"{method.name}, {panel.model}, {data.title(spec)}"
        arguments = {"spec": spec, "index": index, "ask": ask_of(method, panel, this)}
        maps = make_task(tasks.explain, arguments, this.trained, name=f"explain: {what}")
        yield maps
        yield make_task(tasks.score, {**judged, "panel": panel, "method": method.name}, [maps], name=f"score: {what}")

    return planning.asked(methods, [panel.row("scores") for panel in this.panels], ask, kind="image")


def ask_of(method: Method, panel: Panel, this: Round) -> Ask:
    settings = this.settings
    return Ask(
        **plugins.identity(method),
        samples=settings.samples,
        output="logits" if method.name in settings.logits_for else settings.output,
        softmax=settings.softmax,
        seed=this.seed("method", panel.model_seed),
        sampling_seed=sampling_seed(this.choice),
        device=this.choice.device,
    )


def sweep_tasks(
    specs: Iterable[DataSpec], settings: Settings, choice: Choice, *, alphas: Sequence[float], trainings: int
) -> Iterator[Task]:
    """Accuracy against alpha, as in Fig. B2, of every network: off the linear problem the linear model is at chance."""
    nets = planning.networks(settings, choice)
    for spec, alpha, net, number in itertools.product(specs, alphas, nets, range(trainings)):
        moved = replace(spec, setting=replace(spec.setting, alpha=alpha))
        yield training_task(moved, net, number, settings, choice, part="sweep")


def strategy_tasks(specs: Sequence[DataSpec], settings: Settings) -> list[Task]:
    """What the scores say of explanations one can name, once for each size."""
    sizes = sorted({spec.setting.size for spec in specs})
    asked = [{"size": size, "metrics": list(settings.metrics)} for size in sizes]
    return [make_task(strategies.compare, arguments, name="strategies of Fig. B3") for arguments in asked]


def sampling_seed(choice: Choice) -> int:
    """The seed by which images are drawn to be explained or given as references, one for the whole run."""
    return seeds.derive(choice.seed, "choose")


def bounds(settings: Settings, spec: DataSpec) -> Facts:
    """The argument by which the earth mover's score is bounded; none where it is exact, as before there was one."""
    if settings.emd_tolerance is None or spec.setting.size <= ALWAYS_EXACT:
        return {}
    return {"emd_tolerance": settings.emd_tolerance}


def facts(specs: Sequence[DataSpec], settings: Settings) -> list[str]:
    """What a reader must know of the data and of scores that are no exact ones, in facts.jinja."""
    kinds = {(spec.setting.scenario, spec.setting.variant.product) for spec in specs}
    bounded = [spec.setting.size for spec in specs if bounds(settings, spec)]
    vanishing = ("MULT", "pattern") in kinds
    return paragraphs(__package__, "facts.jinja", settings=settings, vanishing=vanishing, bounded=bounded)
