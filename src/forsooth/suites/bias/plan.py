"""The work of a run: train every network, play its games, ask every method, hold what it says against the anchor."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from forsooth import models, names, plugins, scores, seeds
from forsooth.attributions import METHODS
from forsooth.engine import make_task
from forsooth.games import players
from forsooth.records import Cell, Choice, Method, Metric, Plan, Task, UsageError
from forsooth.suites import planning
from forsooth.suites.bias import data
from forsooth.suites.bias.anchor import METRIC_NAMES
from forsooth.suites.bias.settings import SHAPLEY, Settings, check
from forsooth.suites.bias.stage import GameSpec, Network, Panel, row_of, title
from forsooth.suites.bias.tasks import explain, play, score, show, train
from forsooth.suites.explain import skipped
from forsooth.suites.planning import Work
from forsooth.wording import paragraphs

FACTORS = ("dataset", "model", "player", "end", "fraction")
SEEN = "Under “truth” the pictures show the Shapley values of the players."
AT_ONCE = 8  # inputs played in one task, so that little is lost when a run is stopped
Function = Callable[..., Cell]  # of a task
Training = Callable[[Network, Choice], Task]


@dataclass(frozen=True)
class Experiment(planning.Round):
    """A panel, all trainings of its network, and the tasks that can be asked of them.

    What is explained are inputs that all trainings get right.
    """

    settings: Settings
    panel: Panel
    trained: Sequence[Task]

    @property
    def title(self) -> str:
        return title(self.panel)

    def having(self, **changes: Any) -> "Experiment":
        """The same under changed settings."""
        return dataclasses.replace(self, settings=dataclasses.replace(self.settings, **changes))

    def task(self, function: Function, words: str, needs: Sequence[Task], **arguments: Any) -> Task:
        """A task about the panel; words: what it does, for its name."""
        return make_task(function, {"panel": self.panel, **arguments}, needs, name=words)

    def task_on_network(self, function: Function, words: str, **arguments: Any) -> Task:
        """A task on the trained network and the games that are played with it."""
        shared = {"spec": game_of(self.settings), "device": self.choice.device}
        return self.task(function, words, self.trained, **shared, **arguments)

    def measured(self, function: Function, words: str, needs: Sequence[Task], **arguments: Any) -> list[Task]:
        """A task about the panel, behind the trainings and all that it needs."""
        return [*self.trained, *needs, self.task(function, words, needs, **arguments)]

    def play(self, role: str) -> list[Task]:
        """Shapley values of all explained inputs, a few at a time; every role and training has its own permutations."""
        seed = self.seed(role, self.panel.training)
        tasks = []
        for first in range(0, self.settings.samples, AT_ONCE):
            last = min(first + AT_ONCE, self.settings.samples)
            words = f"play {self.title}, inputs {first} to {last - 1}"
            tasks.append(self.task_on_network(play, words, first=first, last=last, seed=seed))
        return tasks

    def explain(self, name: str) -> Task:
        """What a method says of the players."""
        method = plugins.method(name, METHODS)
        return self.task_on_network(
            explain,
            f"explain: {name}, {self.title}",
            **plugins.identity(method),
            channels=channels_of(method, self.settings),
            samples=self.settings.samples,
            seed=self.seed("method", self.panel.training),
        )

    def answers(self, name: str) -> list[Task]:
        """What a method says of the players; for the Shapley values themselves, games played again."""
        if name == SHAPLEY:
            return self.play("other end")
        return [self.explain(name)]

    def judge(self, name: str, anchor: Sequence[Task], answers: Sequence[Task]) -> Task:
        """Holds what a method says against the anchor."""
        return self.task(
            score,
            f"judge: {name}, {self.title}",
            [*anchor, *answers],
            method=name,
            ends=names.kept(list(self.settings.ends), self.choice.only, "end"),
            fractions=names.kept_numbers(self.settings.fractions, self.choice.only, "fraction"),
            ties=self.settings.ties,
            played=len(anchor),
        )

    def show(self, anchor: Sequence[Task], asked: Mapping[str, Task]) -> Task:
        """Puts what methods say of the first inputs beside their Shapley values, for the page."""
        return self.task(
            show,
            f"show: {self.title}",
            [*self.trained, *anchor, *asked.values()],
            spec=game_of(self.settings),
            methods=list(asked),
            trained=len(self.trained),
            played=len(anchor),
            device=self.choice.device,
        )


def plan(settings: Settings, choice: Choice, *, training: Training | None = None) -> Plan:
    """All tasks of the chosen panels and methods, and a row for each two that cannot meet.

    training  makes the task that leaves a network; None: the suite's own
    """
    work: list[Work] = []
    for panel in chosen_panels(settings, choice):
        work += panel_work(experiment_of(panel, settings, choice, training or training_task))
    return planning.planned(work, facts(settings, choice))


def panel_work(experiment: Experiment) -> Iterator[Work]:
    """Train the network, play its games, ask every method and judge what it says."""
    anchor = experiment.play("anchor")
    yield from experiment.trained
    yield from anchor
    asked: dict[str, Task] = {}
    for name in experiment.choice.methods or experiment.settings.methods:
        reason = unable(name, experiment.panel)
        if reason:
            yield skipped(row_of(experiment.panel).having(method=name, end="", fraction=None), reason)
        else:
            answers = experiment.answers(name)
            yield from [*answers, experiment.judge(name, anchor, answers)]
            if name != SHAPLEY:
                asked[name] = answers[0]
    if seen(experiment.panel):
        yield experiment.show(anchor[:1], asked)


def seen(panel: Panel) -> bool:
    """Whether players are places of an image, whose maps the page can show; it shows those of the first training."""
    return panel.player == "input" and panel.training == 0 and data.entry_for(panel.source.name).kind == "image"


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
    trainings = 1 if net in source.weights else settings.trainings
    for player in settings.players:
        chosen = player in choice.only.get("player", (player,))
        if chosen and (player != "units" or models.architecture(net).layer):
            for training in range(trainings):
                yield Panel(source, net, training=training, player=player, trainings=trainings)


def experiment_of(panel: Panel, settings: Settings, choice: Choice, training: Training) -> Experiment:
    networks = [Network(panel.source, panel.net, number) for number in range(panel.trainings)]
    return Experiment(settings, choice, panel, [training(network, choice) for network in networks])


def experiment_on(dataset: str, settings: Settings, choice: Choice) -> Experiment:
    """That of the first network of the settings that the dataset can be played with."""
    panels = list(chosen_panels(settings, dataclasses.replace(choice, only={"dataset": (dataset,)})))
    for net in settings.models:
        own = [panel for panel in panels if panel.net == net]
        if own:
            return experiment_of(own[0], settings, choice, training_task)
    fit = ", ".join(data.entry_for(dataset).models)
    raise UsageError(f"`models` must name a network for {dataset} ({fit}), got {', '.join(settings.models)}")


def training_task(network: Network, choice: Choice) -> Task:
    entry = data.entry_for(network.source.name)
    arguments = {
        "panel": network,
        "recipe": dataclasses.replace(entry.recipe, gate=entry.gate),
        "seed": seeds.derive(choice.seed, "training", network.training),
        "device": choice.device,
    }
    # The version of the network is no argument, so that of the task moves with it.
    version = train.task_version + models.architecture(network.net).version - 1  # type: ignore[attr-defined]
    return make_task(train, arguments, name=f"train {title(network)}", version=version)


def game_of(settings: Settings) -> GameSpec:
    """What decides the Shapley values."""
    return GameSpec(**{field.name: getattr(settings, field.name) for field in dataclasses.fields(GameSpec)})


def channels_of(method: Method, settings: Settings) -> players.Channels:
    """How the colours of a map become one number.

    The channels of a gradient say the same thing three times, so the paper keeps one of them; the others are sums by
    their nature.
    """
    if settings.one_colour == "all" or method.values == "derivative":
        return settings.channels
    return "sum"


def unable(name: str, panel: Panel) -> str:
    """Why method and panel cannot meet; empty where they can."""
    if name == SHAPLEY:
        return ""
    method = plugins.method(name, METHODS)
    if panel.player == "units":
        return unable_on_units(method)
    if method.units and not planning.unable(method, models.architecture(panel.net), "image"):
        return f"{name} is judged on the units of its layer, as in the paper"
    return planning.unable(method, models.architecture(panel.net), data.entry_for(panel.source.name).kind)


def unable_on_units(method: Method) -> str:
    """Why a method says nothing of the units of a layer: they are no image, and no input of the network."""
    if method.units:
        return ""
    looks = method.null and not method.blind
    if looks or "layer" in method.needs or "table" not in method.inputs:
        return f"{method.name} reads an image, and units of a layer are none"
    return ""


def metrics(settings: Settings) -> tuple[Metric, ...]:
    return scores.metrics(METRIC_NAMES)


def facts(settings: Settings, choice: Choice) -> list[str]:
    """What a reader of the results must know, in facts.jinja."""
    here = data.datasets_in(choice.data)
    idle = [name for name in here if not set(data.entry_for(name).models) & set(settings.models)]
    return paragraphs(__package__, "facts.jinja", settings=settings, idle=idle, seen=SEEN, choice=choice)
