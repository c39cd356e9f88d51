"""Attr% of every model, its slopes, and how often it lies in the Shapley range: what the page draws and claims read."""

from functools import partial

import numpy as np
from pandas import DataFrame

from forsooth import scores
from forsooth.counted import counted
from forsooth.frames import lines_by, only, without
from forsooth.records import NO_MODEL, Line
from forsooth.scores.planted import shapley_range
from forsooth.stats import Interval, mean_interval, share_interval
from forsooth.stats.correlations import mean_slopes

MODEL = ["manipulation", "model", "model_seed"]
VARIED = {"5.2": "accuracy", "5.3": "level", "5.4": "r"}  # experiment -> the column that it varies
TRAINED = [*MODEL, "kind", "level", "r"]  # one training; its images, presences and checkpoints are no repetitions of it


def model_means(rows: DataFrame, metric: str = "attr") -> DataFrame:
    """Mean of a metric over the images of each model (and checkpoint), method and presence.

    An image without a usable map counts as 0, as it does on the board: `failed` is the share of those, and `defined`
    the mean without them. `er` is the share of the scored region.
    """
    own = counted(without(only(rows, metric=metric), model=NO_MODEL), scores.metric(metric))
    region = own.groupby(TRAINED, sort=False)["er"].transform("first")  # a method that raised has none of its own
    own = own.assign(er=region, defined=own["value"].mask(own["failed"]))
    key = [*TRAINED, "method", "presence", "epoch", "accuracy", "er"]
    return own.groupby(key, sort=False, as_index=False)[["value", "defined", "failed"]].mean()


def slopes(models: DataFrame, x: str) -> list[float]:
    """How much Attr% rises for each step of x by least squares, for every training or group; presences are averaged."""
    return mean_slopes(models, x, "value", units=[*MODEL, "kind"], lines=["method", "presence"])


def in_range(models: DataFrame) -> Interval:
    """The share of models whose Attr% lies in the range of Shapley values of the manipulated features."""
    least = np.array([shapley_range(r)[0] for r in models["r"]])
    return share_interval(models["value"].to_numpy() >= least)


def table_of(models: DataFrame, experiment: str) -> DataFrame:
    """Attr% with its interval over models; where something is varied, its slope; in 5.4 the share in the range."""
    models = models.assign(experiment=experiment)
    key = ["experiment", "method", "manipulation", "presence"]
    return lines_by(models, key, partial(line_of, experiment=experiment))


def line_of(models: DataFrame, experiment: str) -> Line:
    """The numbers of one line of the table."""
    models = models.rename(columns={"defined": "attr_defined"})
    by_model = models.groupby(TRAINED, sort=False)[["value", "er", "failed", "attr_defined"]].mean()  # of checkpoints
    line = mean_interval(by_model["value"]).columns("attr", "low", "high", "models")
    line |= by_model[["er", "failed", "attr_defined"]].mean().to_dict()
    if experiment in VARIED:
        slope = mean_interval(slopes(models, VARIED[experiment]))
        line |= slope.columns("slope", "slope_low", "slope_high")
    if experiment == "5.4":
        line["in_range"] = in_range(models).mean
    return line
