"""One network on one dataset: what experiments on the bias metric itself ask for, beside the runs of the suite."""

from collections.abc import Sequence
from dataclasses import dataclass

from pandas import DataFrame

from forsooth.frames import only
from forsooth.records import Choice, Outcome
from forsooth.suites.bias import data
from forsooth.suites.bias.plan import Experiment, experiment_on
from forsooth.suites.bias.settings import Settings

PHOTOGRAPHS = "cifar10"
GENERATED = "leaves"


@dataclass(frozen=True)
class ExperimentSettings(Settings):
    """Those of an experiment: its rows are no scores of methods, so that its page has no board."""


ON_LENET = ExperimentSettings(datasets=(GENERATED,), models=("lenet",), players=("input",), trainings=1)


def experiment_on_images(settings: Settings, choice: Choice) -> Experiment:
    """The first network of the settings that can be played on the data: CIFAR-10 from `--data`, else leaves."""
    return experiment_on(photographs_or_leaves(choice), settings, choice)


def photographs_or_leaves(choice: Choice) -> str:
    """CIFAR-10 where it is at hand, else the generated leaves."""
    if PHOTOGRAPHS in data.datasets_in(choice.data):
        return PHOTOGRAPHS
    return GENERATED


def part_rows(outcome: Outcome, part: str, *, value: str = "value", counts: Sequence[str] = ()) -> DataFrame:
    """The rows of one part of a run.

    value   what the column of values is called
    counts  columns that are whole numbers, which they no longer are beside rows that have none
    """
    rows = only(outcome.rows, part=part).reset_index(drop=True)
    return rows.astype(dict.fromkeys(counts, int)).rename(columns={"value": value})


def title_of(rows: DataFrame) -> str:
    """Dataset and network of rows that have one of each."""
    return f"{rows['dataset'].iloc[0]}, {rows['model'].iloc[0]}"
