"""Attr% of every model, its slopes, and how often it lies in the Shapley range: what the page draws and claims read."""

import numpy as np
from pandas import DataFrame

from forsooth import scores
from forsooth.counted import counted
from forsooth.frames import only, without
from forsooth.records import NO_MODEL
from forsooth.scores.planted import shapley_range
from forsooth.stats import Interval, share_interval
from forsooth.stats.correlations import mean_slopes

MODEL = ["manipulation", "model", "model_seed"]
TRAINED = [*MODEL, "kind", "level", "r"]  # one training; its images, presences and checkpoints are no repetitions of it


def model_means(rows: DataFrame, metric: str = "attr") -> DataFrame:
    """Mean of a metric over the images of each model (and checkpoint), method and presence.

    An image without a usable map counts as 0, as it does on the board: `failed` is the share of those, and `defined`
    the mean without them. `er` is the share of the scored region.
    """
    own = without(only(rows, metric=metric), model=NO_MODEL)
    own = counted(own, scores.metric(metric))
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
