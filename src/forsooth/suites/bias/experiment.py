"""One network on one dataset: what experiments on the bias metric itself ask for, beside the runs of the suite."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from forsooth.records import Choice, Outcome, Task
from forsooth.suites.bias import data
from forsooth.suites.bias.plan import explaining_task, first_panel, playing_tasks, training_tasks
from forsooth.suites.bias.settings import Settings
from forsooth.suites.bias.stage import Panel, title

PHOTOGRAPHS = "cifar10"
GENERATED = "leaves"
ON_LENET = Settings(datasets=(GENERATED,), models=("lenet",), players=("input",))


@dataclass(frozen=True)
class ExperimentSettings:
    """What decides an experiment: settings of the suite, of which it plays one network.

    base  the network is the first of `models` that can be played on the data: CIFAR-10 from `--data`, else leaves
    """

    base: Settings = field(default=ON_LENET)


@dataclass(frozen=True)
class Experiment:
    """A network, its trainings, and the tasks that can be asked of them."""

    settings: Settings
    panel: Panel
    trained: Sequence[Task]
    choice: Choice

    @property
    def title(self) -> str:
        return title(self.panel)

    def play(self, role: str, **changes: Any) -> list[Task]:
        """Shapley values of the explained inputs, under changed settings; each role has permutations of its own."""
        settings = dataclasses.replace(self.settings, **changes)
        return playing_tasks(self.panel, self.trained, settings, self.choice, role)

    def explain(self, method: str, **changes: Any) -> Task:
        """What a method says of the players."""
        settings = dataclasses.replace(self.settings, **changes)
        return explaining_task(method, self.panel, self.trained, settings, self.choice)


def experiment_on(dataset: str, settings: Settings, choice: Choice) -> Experiment:
    panel = first_panel(settings, choice, dataset)
    return Experiment(settings, panel, training_tasks(panel, choice), choice)


def part_rows(outcome: Outcome, part: str, *, counts: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of one part of a run.

    counts  columns that are whole numbers, which they no longer are beside rows that have none
    """
    rows = outcome.rows[outcome.rows["part"].eq(part)].reset_index(drop=True)
    return rows.astype(dict.fromkeys(counts, int))


def title_of(rows: pd.DataFrame) -> str:
    """Dataset and network of rows that have one of each."""
    return f"{rows['dataset'].iloc[0]}, {rows['model'].iloc[0]}"


def photographs_or_leaves(choice: Choice) -> str:
    """CIFAR-10 where it is at hand, else the generated leaves."""
    if PHOTOGRAPHS in data.datasets_in(choice.data):
        return PHOTOGRAPHS
    return GENERATED
