"""What every plan does: find methods, metrics and networks by name, and ask a method of all who can answer it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forsooth import models, names, plugins, scores, seeds
from forsooth.attributions import METHODS
from forsooth.records import Architecture, Choice, Method, Metric, Plan, Row, Task
from forsooth.suites import explain

KINDS = {"image": "an image", "table": "a table", "words": "words"}
Work = Task | Row  # what is to be done, or the row of those who cannot meet


@dataclass(frozen=True)
class Round:
    """What all tasks of a plan, or of a part of it, are made from."""

    settings: Any
    choice: Choice

    def seed(self, *names: str | int) -> int:
        """The seed that goes by these names."""
        return seeds.derive(self.choice.seed, *names)


def methods(choice: Choice, wanted: Sequence[str]) -> list[Method]:
    """The methods that the user chose, else those that the settings want."""
    return [plugins.method(name, METHODS) for name in choice.methods or wanted]


def metrics(settings: Any) -> tuple[Metric, ...]:
    """The metrics on which the settings rank methods."""
    return scores.metrics(settings.metrics)


def check_metrics(settings: Any, given: Collection[str]) -> None:
    """UsageError where a metric of the settings reads more than the suite gives it beside the map."""
    scores.check_reads(metrics(settings), given)


def versions(metrics: Iterable[str]) -> dict[str, int]:
    """Name -> version: what stands in a task's key changes with a metric's code."""
    return {metric.name: metric.version for metric in scores.metrics(metrics)}


def networks(settings: Any, choice: Choice) -> list[Architecture]:
    """The networks of the settings that were not left out."""
    return [models.architecture(name) for name in names.kept(settings.models, choice.only, "model")]


def unable(method: Method, net: Architecture, kind: str) -> str:
    """Why a method cannot be asked of a network whose inputs are of that kind; empty where it can."""
    if "layer" in method.needs and net.layer is None:
        return f"{method.name} reads a convolutional layer, and {net.name} has none"
    if kind not in method.inputs:
        reads = " or ".join(KINDS[other] for other in method.inputs)
        return f"{method.name} reads {reads}, and this is {KINDS[kind]}"
    if method.belongs_to and net.name not in method.belongs_to:
        return f"{method.name} is asked of {' and '.join(method.belongs_to)} only: {net.name} has none"
    if method.attends and not net.attends:
        return f"{method.name} reads the attention of a transformer, and {net.name} has none"
    return ""


def asked(
    methods: Iterable[Method],
    nets: Sequence[Row],
    ask: Callable[[Method, int], Iterable[Task]],
    *,
    kind: str,
) -> Iterator[Work]:
    """Tasks of every method on all networks of a panel, and rows for those who cannot meet.

    nets  the row of each network that its scores begin as
    ask   (method, place of the network) -> its tasks; -1 of a null, which ignores all networks and is asked once
    kind  of their inputs
    """
    for method in methods:
        if method.null and kind in method.inputs:
            yield from ask(method, -1)
            continue
        for index, net in enumerate(nets):
            reason = unable(method, models.architecture(str(net.model)), kind)
            if reason:
                yield explain.skipped(net.having(method=method.name), reason)
            else:
                yield from ask(method, index)


def planned(work: Sequence[Work], facts: Sequence[str] = ()) -> Plan:
    """The plan of all work, each task once."""
    tasks = {part.key: part for part in work if isinstance(part, Task)}
    skips = tuple(part for part in work if isinstance(part, Row))
    return Plan(tuple(tasks.values()), skips, tuple(facts))
