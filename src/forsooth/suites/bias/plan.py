"""The work of a run: train every network, play its games, ask every method, hold what it says against the anchor."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.engine import make_task
from forsooth.games import players
from forsooth.models import MODELS
from forsooth.records import WHOLE, Choice, Method, Metric, Plan, Row, Task, UsageError
from forsooth.scores import METRICS
from forsooth.suites.bias import data
from forsooth.suites.bias.anchor import METRIC_NAMES
from forsooth.suites.bias.settings import SHAPLEY, Settings, check
from forsooth.suites.bias.stage import GameSpec, Network, Panel, row_of, title
from forsooth.suites.bias.tasks import explain, play, score, train

FACTORS = ("dataset", "model", "player", "end", "fraction")
AT_ONCE = 8  # inputs played in one task, so that little is lost when a run is stopped
KINDS = {"image": "an image", "table": "a table", "words": "words"}


def plan(settings: Settings, choice: Choice) -> Plan:
    """All tasks of the chosen panels and methods, and a row for each two that cannot meet."""
    tasks: list[Task] = []
    skips: list[Row] = []
    for panel in chosen_panels(settings, choice):
        reasons = {name: unable(name, panel) for name in choice.methods or settings.methods}
        skips += [skipped(panel, name, reason) for name, reason in reasons.items() if reason]
        tasks += panel_tasks(panel, [name for name in reasons if not reasons[name]], settings, choice)
    return plan_of(tasks, skips=skips, facts=facts(settings, choice))


def panel_tasks(panel: Panel, methods: Iterable[str], settings: Settings, choice: Choice) -> list[Task]:
    """Train the network, play its games, ask every method and judge what it says."""
    trained = training_tasks(panel, choice)
    anchor = playing_tasks(panel, trained, settings, choice, "anchor")
    tasks = [*trained, *anchor]
    for name in methods:
        answer = answering_tasks(name, panel, trained, settings, choice)
        tasks += [*answer, scoring_task(name, panel, anchor, answer, settings, choice)]
    return tasks


def plan_of(tasks: Iterable[Task], *, skips: Iterable[Row] = (), facts: tuple[str, ...] = ()) -> Plan:
    """A plan in which each task stands once."""
    unique = {task.key: task for task in tasks}
    return Plan(tasks=tuple(unique.values()), skips=tuple(skips), facts=facts)


def skipped(panel: Panel, method: str, reason: str) -> Row:
    row = row_of(panel).having(method=method, metric="", sample=WHOLE, status="skipped", message=reason)
    return row.having(end="", fraction=None)


def chosen_panels(settings: Settings, choice: Choice) -> Iterator[Panel]:
    """Every dataset, network, kind of player and training that was not left out."""
    check(settings)
    names.check_factors(choice.only, FACTORS)
    paths = data.datasets_in(choice.data)
    datasets = list(dict.fromkeys([*settings.datasets, *paths]))
    for name in names.kept(datasets, choice.only, "dataset"):
        seed = seeds.derive(choice.seed, "data")
        source = data.data_spec(name, paths.get(name), seed=seed, side=settings.side)
        for net in data.entry_for(name).models:
            if net in settings.models and net in choice.only.get("model", (net,)):
                yield from panels_of(source, net, settings, choice)


def panels_of(source: data.DataSpec, net: str, settings: Settings, choice: Choice) -> Iterator[Panel]:
    """The panels of one network: weights from a file are its only training."""
    trainings = settings.trainings
    if net in source.weights:
        trainings = 1
    for player in settings.players:
        chosen = player in choice.only.get("player", (player,))
        if chosen and (player != "units" or layer_of(net)):
            for training in range(trainings):
                yield Panel(source, net, training=training, player=player, trainings=trainings)


def layer_of(net: str) -> str | None:
    return names.find(net, MODELS, argument="models").layer


def first_panel(settings: Settings, choice: Choice, dataset: str) -> Panel:
    """The network of an experiment on one dataset: the first of the settings that the dataset can be played with."""
    narrowed = dataclasses.replace(choice, only={"dataset": (dataset,)})
    panels = list(chosen_panels(settings, narrowed))
    for net in settings.models:
        own = [panel for panel in panels if panel.net == net]
        if own:
            return own[0]
    fit = ", ".join(data.entry_for(dataset).models)
    raise UsageError(f"`models` must name a network for {dataset} ({fit}), got {', '.join(settings.models)}")


def training_tasks(panel: Panel, choice: Choice) -> list[Task]:
    """All trainings of the panel's network: what is explained are inputs that all of them get right."""
    return [training_task(Network(panel.source, panel.net, k), choice) for k in range(panel.trainings)]


def training_task(network: Network, choice: Choice) -> Task:
    entry = data.entry_for(network.source.name)
    arguments = {
        "panel": network,
        "recipe": dataclasses.replace(entry.recipe, gate=entry.gate),
        "seed": seeds.derive(choice.seed, "training", network.training),
        "device": choice.device,
    }
    return make_task(train, arguments, name=f"train {title(network)}")


def game_of(settings: Settings) -> GameSpec:
    """What decides the Shapley values."""
    return GameSpec(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(GameSpec)})


def playing_tasks(panel: Panel, trained: Sequence[Task], settings: Settings, choice: Choice, role: str) -> list[Task]:
    """Shapley values of all explained inputs, a few at a time; every training has permutations of its own."""
    tasks = []
    for first in range(0, settings.samples, AT_ONCE):
        last = min(first + AT_ONCE, settings.samples)
        arguments = {
            "panel": panel,
            "spec": game_of(settings),
            "first": first,
            "last": last,
            "seed": seeds.derive(choice.seed, role, panel.training),
            "device": choice.device,
        }
        name = f"play {title(panel)}, inputs {first} to {last - 1}"
        tasks.append(make_task(play, arguments, trained, name=name))
    return tasks


def answering_tasks(name: str, panel: Panel, trained: Sequence[Task], settings: Settings, choice: Choice) -> list[Task]:
    """What a method says of the players; for the Shapley values themselves, games played again."""
    if name == SHAPLEY:
        return playing_tasks(panel, trained, settings, choice, "other end")
    return [explaining_task(name, panel, trained, settings, choice)]


def explaining_task(name: str, panel: Panel, trained: Sequence[Task], settings: Settings, choice: Choice) -> Task:
    method = plugins.method(name, METHODS)
    arguments = {
        "panel": panel,
        "spec": game_of(settings),
        **plugins.identity(method),
        "channels": channels_of(method, settings),
        "samples": settings.samples,
        "seed": seeds.derive(choice.seed, "method", panel.training),
        "device": choice.device,
    }
    return make_task(explain, arguments, trained, name=f"explain: {name}, {title(panel)}")


def channels_of(method: Method, settings: Settings) -> players.Channels:
    """How the colours of a map become one number.

    The channels of a gradient say the same thing three times, so the paper keeps one of them; the others are sums by
    their nature.
    """
    if settings.one_colour == "all" or method.values == "derivative":
        return settings.channels
    return "sum"


def scoring_task(
    name: str, panel: Panel, anchor: Sequence[Task], answer: Sequence[Task], settings: Settings, choice: Choice
) -> Task:
    """Holds what a method says against the anchor."""
    fractions = names.kept([f"{fraction:g}" for fraction in settings.fractions], choice.only, "fraction")
    arguments = {
        "panel": panel,
        "method": name,
        "ends": names.kept(list(settings.ends), choice.only, "end"),
        "fractions": [float(fraction) for fraction in fractions],
        "ties": settings.ties,
        "played": len(anchor),
    }
    return make_task(score, arguments, [*anchor, *answer], name=f"judge: {name}, {title(panel)}")


def unable(name: str, panel: Panel) -> str:
    """Why method and panel cannot meet; empty where they can."""
    if name == SHAPLEY:
        return ""
    method = plugins.method(name, METHODS)
    if panel.player == "units":
        return unable_on_units(method)
    if "layer" in method.needs and layer_of(panel.net) is None:
        return f"{name} reads a convolutional layer, and {panel.net} has none"
    if method.units:
        return f"{name} is judged on the units of its layer, as in the paper"
    kind = data.entry_for(panel.source.name).kind
    if kind not in method.inputs:
        reads = " or ".join(KINDS[other] for other in method.inputs)
        return f"{name} reads {reads}, and this is {KINDS[kind]}"
    return ""


def unable_on_units(method: Method) -> str:
    """Why a method says nothing of the units of a layer: they are no image, and no input of the network."""
    if method.units:
        return ""
    looks = method.null and not method.blind
    if looks or "layer" in method.needs or "table" not in method.inputs:
        return f"{method.name} reads an image, and units of a layer are none"
    return ""


def metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in METRIC_NAMES)


def facts(settings: Settings, choice: Choice) -> tuple[str, ...]:
    """What a reader of the results must know."""
    baseline = settings.baseline.replace("_", " ")
    sentences = [
        f"Absent players are replaced by the {baseline} of the training data; games are played on {settings.output}.",
        "relative_bias is M_bias times the root of the number of players: 1 is what a constant map says of each.",
    ]
    here = data.datasets_in(choice.data)
    idle = [name for name in here if not set(data.entry_for(name).models) & set(settings.models)]
    if idle:
        sentences.append(
            f"Found and not played: {', '.join(idle)}; its networks are in the preset paper, for an accelerator."
        )
    if choice.data is None:
        sentences.append("All data are generated; CIFAR-10, Pascal VOC and tables are read from --data.")
    return tuple(sentences)
