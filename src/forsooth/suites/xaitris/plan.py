"""The plan of XAI-TRIS: train every network of a setting, then explain what all of them get right."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets import folders
from forsooth.datasets import tetromino_settings as tetromino
from forsooth.engine import make_task
from forsooth.models import MODELS, recipes
from forsooth.records import Architecture, Choice, Method, Metric, Plan, Row, Task
from forsooth.scores import METRICS
from forsooth.suites import explain
from forsooth.suites.xaitris import data, strategies, tasks
from forsooth.suites.xaitris.data import DataSpec, Panel, Photos
from forsooth.suites.xaitris.settings import Settings

FACTORS = ("size", "scenario", "background", "model")
Trained = tuple[Architecture, int, Task]  # a network, the number of its training, and the task


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every network of a setting, then explain what all of them get right, method by method."""
    methods = [plugins.method(name, METHODS) for name in choice.methods or settings.methods]
    specs = list(chosen_data(settings, choice))
    work: list[Task] = []
    skips: list[Row] = []
    for spec in specs:
        trained = trainings(spec, settings, choice)
        work += [task for _, _, task in trained]
        work.append(showing_task(spec, trained, settings, choice))
        for method in methods:
            explaining, skipped = explaining_tasks(method, spec, trained, settings, choice)
            work += explaining
            skips += skipped
    work += sweep_tasks(specs, settings, choice)
    work += strategy_tasks(specs, settings)
    return Plan(tasks=tuple(work), skips=tuple(skips), facts=facts(specs))


def chosen_data(settings: Settings, choice: Choice) -> Iterator[DataSpec]:
    """Every size, scenario and background that was not left out."""
    names.check_factors(choice.only, FACTORS)
    sizes = names.kept([str(size) for size in settings.sizes], choice.only, "size")
    scenarios = names.kept(settings.scenarios, choice.only, "scenario")
    backgrounds = names.kept(known_backgrounds(settings, choice), choice.only, "background")
    photos = photographs(choice)
    for size, scenario, background in itertools.product(sizes, scenarios, backgrounds):
        yield DataSpec(
            setting=resolved(
                tetromino.Setting(scenario, background, int(size), settings.alpha, settings.n, settings.data)
            ),
            photos=photos if background == "IMAGENET" else None,
            seed=seeds.derive(choice.seed, "data"),
        )


def photographs(choice: Choice) -> Photos:
    """The user's photographs, or that there are none."""
    if choice.data is None:
        return Photos(None, None)
    return Photos(choice.data, folders.digest(choice.data))


def known_backgrounds(settings: Settings, choice: Choice) -> list[str]:
    """Photographs are given in order to be used, whether or not the preset has IMAGENET."""
    if choice.data is None:
        return list(settings.backgrounds)
    return list(dict.fromkeys([*settings.backgrounds, "IMAGENET"]))


def resolved(setting: tetromino.Setting) -> tetromino.Setting:
    """The setting with every default filled in, so that it stands in the keys of tasks."""
    full = tetromino.resolve(setting)
    return replace(
        setting, scenario=full.scenario, background=full.background, size=full.size, alpha=full.alpha, n=full.n
    )


def explained_networks(settings: Settings, choice: Choice, spec: DataSpec) -> list[Architecture]:
    """The networks to be explained: the linear model on the linear problem only, as in the paper."""
    linear = spec.setting.scenario == "LIN"
    return [net for net in networks(settings, choice) if linear or net.name != "llr"]


def networks(settings: Settings, choice: Choice) -> list[Architecture]:
    """Every network that was not left out."""
    return [names.find(net, MODELS, argument="models") for net in names.kept(settings.models, choice.only, "model")]


def trainings(spec: DataSpec, settings: Settings, choice: Choice) -> list[Trained]:
    """All trainings of all networks on one dataset."""
    pairs = itertools.product(explained_networks(settings, choice, spec), range(settings.trainings))
    return [(net, number, training_task(spec, net, number, settings, choice)) for net, number in pairs]


def training_task(
    spec: DataSpec, net: Architecture, number: int, settings: Settings, choice: Choice, part: str = "training"
) -> Task:
    setting = spec.setting
    recipe = recipes.recipe(settings.recipe, size=setting.size, scenario=setting.scenario)
    recipe = replace(recipe, gate=settings.gate)
    if part == "sweep":  # in a sweep over alpha, chance is a result and no collapse
        recipe = replace(recipe, restarts=0)
    arguments = {
        "spec": spec,
        "net": tasks.NetSpec(net.name, net.version, settings.network),
        "recipe": recipe,
        "model_seed": number,
        "seed": seeds.derive(choice.seed, "training", number),
        "device": choice.device,
        "part": part,
    }
    return make_task(tasks.train, arguments, name=f"train {net.name} {number}, {data.title(spec)}")


def showing_task(spec: DataSpec, trained: Sequence[Trained], settings: Settings, choice: Choice) -> Task:
    arguments = {"spec": spec, "samples": settings.samples, "sampling_seed": sampling_seed(choice)}
    return make_task(tasks.show, arguments, [task for _, _, task in trained], name="examples")


def explaining_tasks(
    method: Method, spec: DataSpec, trained: Sequence[Trained], settings: Settings, choice: Choice
) -> tuple[list[Task], list[Row]]:
    """Tasks of one method on all networks of a dataset, and rows for those it cannot meet."""
    needs = [task for _, _, task in trained]
    if method.null:  # it ignores the model, so it is asked once for all of them
        return asking_tasks(method, -1, data.panel(spec), needs, spec, settings, choice), []
    work: list[Task] = []
    skips: list[Row] = []
    for index, (net, number, _) in enumerate(trained):
        panel = data.panel(spec, net.name, number)
        reason = unable(method, net)
        if reason:
            skips.append(explain.skipped(panel.row("scores", method.name), reason))
        else:
            work += asking_tasks(method, index, panel, needs, spec, settings, choice)
    return work, skips


def asking_tasks(
    method: Method,
    index: int,
    panel: Panel,
    trained: Sequence[Task],
    spec: DataSpec,
    settings: Settings,
    choice: Choice,
) -> list[Task]:
    """One task that makes the maps, one that scores them: a new score needs no new maps."""
    ask = tasks.Ask(
        **plugins.identity(method),
        samples=settings.samples,
        output="logits" if method.name in settings.logits_for else settings.output,
        softmax=settings.softmax,
        seed=seeds.derive(choice.seed, "method", panel.model_seed),
        sampling_seed=sampling_seed(choice),
        device=choice.device,
    )
    what = f"{method.name}, {panel.model}, {data.title(spec)}"
    maps = make_task(tasks.explain, {"spec": spec, "index": index, "ask": ask}, trained, name=f"explain: {what}")
    versions = {metric.name: metric.version for metric in metrics(settings)}
    judged = {"spec": spec, "panel": panel, "method": method.name, "metrics": versions}
    return [maps, make_task(tasks.score, judged, [maps], name=f"score: {what}")]


def sweep_tasks(specs: Sequence[DataSpec], settings: Settings, choice: Choice) -> list[Task]:
    """Accuracy against alpha, as in Fig. B2, where the linear model is at chance but for the linear problem."""
    work = []
    for spec, alpha in itertools.product(specs, settings.sweep):
        moved = replace(spec, setting=replace(spec.setting, alpha=alpha))
        for net in networks(settings, choice):
            work.append(training_task(moved, net, 0, settings, choice, part="sweep"))
    return work


def strategy_tasks(specs: Sequence[DataSpec], settings: Settings) -> list[Task]:
    """What the scores say of explanations one can name, once for each size."""
    sizes = sorted({spec.setting.size for spec in specs})
    asked = [{"size": size, "metrics": list(settings.metrics)} for size in sizes]
    return [make_task(strategies.compare, arguments, name="strategies of Fig. B3") for arguments in asked]


def sampling_seed(choice: Choice) -> int:
    """The seed by which images are drawn to be explained or given as references, one for the whole run."""
    return seeds.derive(choice.seed, "choose")


def unable(method: Method, net: Architecture) -> str:
    """Why the two cannot meet; empty where they can."""
    if "layer" in method.needs and net.layer is None:
        return f"{method.name} reads a convolutional layer, and {net.name} has none"
    return ""


def metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in settings.metrics)


def facts(specs: Sequence[DataSpec]) -> tuple[str, ...]:
    """What a reader must know of the data."""
    for spec in specs:
        if spec.setting.scenario == "MULT" and spec.setting.variant.product == "pattern":
            return ("MULT follows the printed equation 2, whose signal vanishes: networks stay at chance there.",)
    return ()
