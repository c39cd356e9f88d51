"""What every plan does: find methods, metrics and networks by name, and ask a method of all who can answer it."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from forsooth import models, names, plugins, scores, seeds
from forsooth.attributions import METHODS
from forsooth.records import Architecture, Choice, Method, Metric, Plan, Row, Task, UsageError
from forsooth.suites import explain

Work = Task | Row  # what is to be done, or the row of those who cannot meet


@dataclass(frozen=True)
class Round:
    """What all tasks of a plan, or of a part of it, are made from."""

    settings: Any
    choice: Choice

    def seed(self, *names: str | int) -> int:
        """The seed that goes by these names."""
        return seeds.derive(self.choice.seed, *names)


def methods(settings: Any, choice: Choice) -> list[Method]:
    """The methods that the user chose, else those of the settings."""
    return [plugins.method(name, METHODS) for name in choice.methods or settings.methods]


def metrics(settings: Any) -> tuple[Metric, ...]:
    """The metrics on which the settings rank methods."""
    return scores.metrics(settings.metrics)


def check_metrics(settings: Any, given: Collection[str]) -> None:
    """UsageError where a metric of the settings reads more than the suite gives it beside the map."""
    for metric in metrics(settings):
        lost = [name for name in metric.reads if name not in given]
        if lost:
            known = f"`metrics` must read no more than {' and '.join(given)} beside the map"
            raise UsageError(f"{known}; {metric.name} reads {', '.join(lost)}, too")


def versions(metrics: Iterable[str]) -> dict[str, int]:
    """Name -> version: what stands in a task's key changes with a metric's code."""
    return {metric.name: metric.version for metric in scores.metrics(metrics)}


def networks(settings: Any, choice: Choice) -> list[Architecture]:
    """The networks of the settings that were not left out."""
    return [models.architecture(name) for name in names.kept(settings.models, choice.only, "model")]


def asked(
    method: Method,
    templates: Sequence[Row],
    *,
    unable: Callable[[Method, Architecture], str],
    ask: Callable[[int], Sequence[Task]],
) -> list[Work]:
    """Tasks of one method on all networks of a panel, and rows for those it cannot meet.

    templates  of the score rows of each network
    unable     why a method and a network cannot meet; empty where they can
    ask        the tasks of a network, by its place; -1: of a null, which ignores them all and is asked once
    """
    if method.null:
        return [*ask(-1)]
    work: list[Work] = []
    for index, template in enumerate(templates):
        reason = unable(method, models.architecture(str(template.model)))
        if reason:
            work.append(explain.skipped(template.having(method=method.name), reason))
        else:
            work += ask(index)
    return work


def planned(work: Sequence[Work], facts: Sequence[str] = ()) -> Plan:
    """The plan of all work, each task once."""
    tasks = {part.key: part for part in work if isinstance(part, Task)}
    skips = [part for part in work if isinstance(part, Row)]
    return Plan(tasks=tuple(tasks.values()), skips=tuple(skips), facts=tuple(facts))
