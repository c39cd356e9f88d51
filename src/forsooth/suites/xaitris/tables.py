"""Scores by panel: images and trainings in rows, methods in columns. Claims are contrasts of these tables."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from pandas import DataFrame, Series, concat

from forsooth import scores
from forsooth.attributions import METHODS
from forsooth.counted import counted
from forsooth.frames import only, without
from forsooth.records import NO_MODEL
from forsooth.stats import Interval, mean_interval
from forsooth.stats.intervals import Estimate, crossed_interval, estimate_of, no_interval


class Place(NamedTuple):
    """The panel of one network."""

    scenario: str
    background: str
    model: str


Tables = Mapping[Place, DataFrame]
Pairs = Sequence[tuple[Place, Place]]
NULLS = frozenset(method.name for method in METHODS if method.null)
ENDS = ("oracle", "constant")  # of the scale: they are no rivals


def by_panel(rows: DataFrame, metric: str, *, column: str = "value") -> Tables:
    """The scores of every panel: rows (training, sample), columns methods and nulls.

    rows    of a run; a column `draw` tells datasets apart where there are several
    column  "failed": 1 where a map said nothing, else 0

    A map that says nothing has the worst value, as on a board. Nulls know no training: they stand at each.
    """
    own = marked(counted(only(rows, part="scores", metric=metric), scores.metric(metric)))
    networks = without(own, model=NO_MODEL)
    found = {}
    for (scenario, background, model), panel in networks.groupby(["scenario", "background", "model"], sort=False):
        table = panel.pivot_table(index=["training", "image"], columns="method", values=column)
        nulls = only(own, scenario=scenario, background=background, model=NO_MODEL)
        beside = nulls.pivot_table(index="image", columns="method", values=column)
        found[Place(scenario, background.partition(" ")[0], model)] = table.join(beside, on="image")
    return found


def marked(rows: DataFrame) -> DataFrame:
    """The rows with names for their image and training that hold over several datasets."""
    draw = "0-"
    if "draw" in rows:
        draw = rows["draw"].astype(str) + "-"
    return rows.assign(image=draw + rows["sample"].astype(str), training=draw + rows["model_seed"].astype(str))


def of_methods(table: DataFrame) -> list[str]:
    """The methods of a table that look at the network."""
    return [name for name in table.columns if name not in NULLS]


def rivals(table: DataFrame) -> list[str]:
    """The nulls that a method should beat."""
    return [name for name in table.columns if name in NULLS and name not in ENDS]


def medians(tables: Tables) -> Tables:
    """The median over images of every training (rows) and method (columns)."""
    return {place: table[of_methods(table)].groupby(level="training").median() for place, table in tables.items()}


def spreads(tables: Tables) -> Tables:
    """The length of the box, from lower to upper quartile, of every training (rows) and method (columns)."""
    found = {}
    for place, table in tables.items():
        grouped = table[of_methods(table)].groupby(level="training")
        found[place] = grouped.quantile(0.75) - grouped.quantile(0.25)
    return found


def differences(tables: Tables, pairs: Pairs) -> list[DataFrame]:
    """First less second of every pair of panels, for the trainings and methods that both have."""
    found = [tables[one] - tables[two] for one, two in pairs]
    return [table.dropna(axis=1, how="all").dropna(axis=0, how="all") for table in found]


def over_methods(found: Sequence[DataFrame]) -> Interval:
    """The mean of tables (trainings, methods), with its interval over methods and, of several trainings, over those."""
    whole = [table for table in found if table.size]
    if not whole:
        return no_interval()
    mean = concat(whole).groupby(level=0).mean()
    by_method = mean.mean(axis=0)
    if len(mean) < 2:
        return mean_interval(by_method)
    return crossed_interval(by_method, mean.mean(axis=1))


def paired(table: DataFrame, one: str, two: str) -> Estimate:
    """How far `one` is ahead of `two` in a panel, image by image, over images and trainings."""
    value = (table[one] - table[two]).rename("value").rename_axis(["model_seed", "sample"])
    return estimate_of(value.reset_index())


def pairs_of(tables: Tables, factor: str, ones: Collection[str], two: str) -> Pairs:
    """Panels that differ in one factor, first at one of `ones`, then at `two`."""
    pairs = [(place, place._replace(**{factor: two})) for place in tables if getattr(place, factor) in ones]
    return [pair for pair in pairs if pair[1] in tables]


def boxes(tables: Tables, failures: Tables, metric: str) -> DataFrame:
    """Quartiles over images and trainings of every panel and method, one line each.

    failures  of the same panels: whether a map failed. `failed` is their share, which counts as the worst value, and
              `median_defined` the median without them
    """
    lines = []
    for place, table in tables.items():
        where = {"metric": metric, **place._asdict()}
        trainings = table.index.get_level_values("training").nunique()
        for method, values in table.items():
            box = box_of(values.dropna(), failures[place][method])
            lines.append({**where, "method": method, **box, "trainings": trainings})
    return DataFrame(lines)


def box_of(values: Series, failed: Series) -> dict[str, float]:
    """The quartiles of values, of which some failed."""
    box = dict(zip(("lower", "median", "upper"), values.quantile([0.25, 0.5, 0.75]), strict=True))
    defined = values[failed.reindex(values.index).eq(0)]
    return {**box, "scores": len(values), "failed": failed.mean(), "median_defined": defined.median()}
