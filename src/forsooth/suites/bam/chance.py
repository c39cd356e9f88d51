"""Chance in the BAM figures: bootstraps over images and trainings, and TCAV's two sources. [yang2019benchmarking]

Values are arrays (trainings, images, columns), nan where an image is not in X_corr. A draw is a count for each training
and each image. An image counts once, with its mean over the drawn trainings that have it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from forsooth.suites.verdicts import Interval, crossed, mean_of

Floats = NDArray[np.float64]
DRAWS = 2000
FLAT = 1e-12  # what varies less is rounding


class Draws(NamedTuple):
    """How often each image (draws, images) and each training (draws, trainings) is drawn."""

    images: Floats
    trainings: Floats


def tally(n: int, *names: int) -> Floats:
    """How often each of n is drawn when n are: (DRAWS, n). Other names, other draws."""
    rng = np.random.default_rng([0, *names])
    picked = rng.integers(0, n, (DRAWS, n))
    return np.stack([np.bincount(one, minlength=n) for one in picked]).astype(float)


def draw(images: int, trainings: int, *, pool: int = 0) -> Draws:
    """Draws of trainings, the same for every pool; and of the images of one pool."""
    return Draws(tally(images, 1, pool), tally(trainings, 2))


def whole(values: Floats) -> Draws:
    """Every image and training once."""
    return Draws(np.ones((1, values.shape[1])), np.ones((1, values.shape[0])))


def means(values: Floats, draws: Draws) -> Floats:
    """Mean over images of the mean over trainings, for every draw: (draws, columns); nan where a draw has no value."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    found = np.full((len(draws.images), values.shape[2]), np.nan)
    kinds, kind = np.unique(draws.trainings, axis=0, return_inverse=True)
    for number, counts in enumerate(kinds):  # draws of the same trainings at once: one product of matrices
        own = kind.ravel() == number
        seen = np.einsum("t,tic->ic", counts, known)
        each = np.einsum("t,tic->ic", counts, filled) / np.maximum(seen, 1)  # (images, columns)
        weight = draws.images[own] @ (seen > 0).astype(float)
        total = draws.images[own] @ each
        found[own] = np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)
    return found


def values_of(
    rows: pd.DataFrame,
    columns: Sequence[str],
    *,
    trainings: Sequence[int] | None = None,
    samples: Sequence[int] | None = None,
    value: str = "value",
) -> tuple[Floats, list[tuple[Any, ...]]]:
    """The rows as (trainings, images, columns), and the columns: what the named ones of the rows say."""
    wide = rows.pivot_table(index=["model_seed", "sample"], columns=list(columns), values=value)
    known = wide.index.get_level_values
    trainings = sorted(known(0).unique()) if trainings is None else trainings
    samples = list(known(1).unique()) if samples is None else samples
    every = pd.MultiIndex.from_product([trainings, samples])
    shape = (len(trainings), len(samples), wide.shape[1])
    names = [name if isinstance(name, tuple) else (name,) for name in wide.columns]
    return wide.reindex(every).to_numpy(float).reshape(shape), names


def per_image(rows: pd.DataFrame, value: str = "value") -> pd.Series:
    """Each image once, with its mean over trainings."""
    return rows.groupby("sample", sort=False)[value].mean()


def interval(point: float, draws: Floats, n: int) -> Interval:
    """The point with the middle 95 % of the draws that have a value; nan where one image says nothing of the spread."""
    known = draws[np.isfinite(draws)]
    low, high = np.quantile(known, [0.025, 0.975]) if len(known) and n > 1 else (np.nan, np.nan)
    return Interval(float(point), float(low), float(high), n)


def over_both(rows: pd.DataFrame, *, bounds: tuple[float, float], rate: bool = False) -> Interval:
    """The mean over images, with an interval over them; over the trainings, too, where there are several.

    rows  columns model_seed, sample and value
    rate  whether values of one training are 0 or 1: then their interval is Wilson's
    """
    images = per_image(rows.dropna(subset="value"))
    if rows["model_seed"].nunique() < 2:
        return rate_of(images) if rate else mean_of(images)
    trainings = rows.groupby("model_seed", sort=False)["value"].mean().dropna()
    return crossed(images, trainings, bounds=bounds)


def share_over_trainings(values: pd.Series, n: pd.Series) -> Interval:
    """A share of images that each training has once, from the shares and numbers of images of the trainings.

    One training: Wilson's interval. Several: the variance between trainings and that of as many images as one has add
    up, since all trainings are asked about the same images.
    """
    share = float((values * n).sum() / n.sum())
    if len(values) < 2:
        return rate_of(pd.Series([1.0] * round(share * n.iloc[0]) + [0.0] * round((1 - share) * n.iloc[0])))
    error = np.sqrt(values.var(ddof=1) / len(values) + share * (1 - share) / n.mean())
    half = float(stats.t.ppf(0.975, len(values) - 1) * error)
    return Interval(share, max(share - half, 0.0), min(share + half, 1.0), int(n.sum()))


def rate_of(values: pd.Series) -> Interval:
    """A share with Wilson's interval; an image counts once, also where it is a hit in some trainings only."""
    share, n = float(values.mean()), len(values)
    if not n:
        return Interval(np.nan, np.nan, np.nan, 0)
    z = float(stats.norm.ppf(0.975))
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return Interval(share, float(max(middle - half, 0)), float(min(middle + half, 1)), n)


def concept_means(values: Floats, sets: Floats, draws: Draws) -> Floats:
    """Draws of TCAV's MCS from values by input and by random set: the shifts of both from their common mean.

    values  (trainings, inputs, columns)
    sets    (trainings, sets, columns)
    """
    own = Draws(tally(sets.shape[1], 3), draws.trainings)
    neither = Draws(np.ones_like(draws.images), draws.trainings)
    return means(values, draws) + means(sets, own) - means(values, neither)


def correlations(one: Floats, two: Floats) -> Floats:
    """Pearson's ρ of each line of one (draws, m) with that of two; nan where a line is flat or has nan."""
    both = [side - side.mean(1, keepdims=True) for side in (one, two)]
    flat = (np.ptp(one, axis=1) < FLAT) | (np.ptp(two, axis=1) < FLAT)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = (both[0] * both[1]).sum(1) / np.sqrt((both[0] ** 2).sum(1) * (both[1] ** 2).sum(1))
    return np.where(flat, np.nan, found)


def rank_correlations(one: Floats, two: Floats) -> Floats:
    """Spearman's ρ of each line; nan where one has nan."""
    found = correlations(stats.rankdata(one, axis=1), stats.rankdata(two, axis=1))
    return np.where(np.isnan(one).any(1) | np.isnan(two).any(1), np.nan, found)


def order_interval(rows: pd.DataFrame, kinds: tuple[str, str], methods: Sequence[str], rho: float) -> Interval:
    """Spearman's ρ between the orders of methods in two kinds of rows, with a bootstrap over the images of both.

    rows  with a column `kind`; an image that both kinds have is drawn for both
    """
    rows = rows[rows["kind"].isin(kinds) & rows["method"].isin(methods)]
    values, names = values_of(rows, ["kind", "method"])
    made = means(values, draw(values.shape[1], len(values)))
    sides = [made[:, [names.index((kind, method)) for method in methods]] for kind in kinds]
    return interval(rho, rank_correlations(*sides), int(rows.groupby("kind")["sample"].nunique().min()))


def drops(images: int, accuracy: Floats, n: int) -> tuple[Draws, Floats]:
    """Draws of images and trainings, and of the accuracy drop (draws, ks).

    accuracy  (trainings, 2, ks) with the common feature and without, over n images each; a drop of few points is
              mostly their chance
    """
    rng, made = np.random.default_rng(0), []
    for _ in range(DRAWS):
        picked = np.bincount(rng.integers(0, images, images), minlength=images)
        right = rng.binomial(n, accuracy) / n
        again = rng.integers(0, len(accuracy), len(accuracy)) if len(accuracy) > 1 else np.zeros(1, dtype=int)
        with_, without = right[again].mean(0)
        made.append((picked, np.bincount(again, minlength=len(accuracy)), with_ - without))
    images_drawn, trainings_drawn, drop = (np.array(part, dtype=float) for part in zip(*made, strict=True))
    return Draws(images_drawn, trainings_drawn), drop


def rho_interval(values: Floats, accuracy: Floats, n: int, *, sets: Floats | None = None) -> Interval:
    """Pearson's ρ of the mean of values (trainings, images, ks) with the drop, with a bootstrap over both.

    sets  (trainings, sets, ks) TCAV's values by random set, which are drawn too
    """
    draws, drop = drops(values.shape[1], accuracy, n)
    series = means(values, draws) if sets is None else concept_means(values, sets, draws)
    right = accuracy.mean(0)
    point = correlations(means(values, whole(values)), (right[0] - right[1])[None])
    return interval(float(point[0]), correlations(series, drop), values.shape[1])


class Series(NamedTuple):
    """MCS over k of one method: values (trainings, images, ks), and TCAV's by random set (trainings, sets, ks)."""

    ks: list[float]
    values: Floats
    sets: Floats | None = None


def series_draws(
    known: Mapping[str, Series], accuracy: Floats, ks: Sequence[float], n: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draws of ρ with the drop, and of the range over k: one column per method, the same draws for all.

    known     of the same images each
    accuracy  (trainings, 2, ks)
    """
    images = next(iter(known.values())).values.shape[1]
    draws, drop = drops(images, accuracy, n)
    rhos, widths = {}, {}
    for method, (own, values, sets) in known.items():
        made = means(values, draws) if sets is None else concept_means(values, sets, draws)
        rhos[method] = correlations(made, drop[:, [list(ks).index(k) for k in own]])
        widths[method] = np.ptp(made, axis=1)
    return pd.DataFrame(rhos), pd.DataFrame(widths)


def ranks(made: Floats, place: int) -> Floats:
    """The rank of one column of made (draws, columns) in every draw: 1 is the highest, equals share the better one."""
    return np.where(np.isnan(made).any(1), np.nan, 1.0 + (made > made[:, [place]]).sum(1))


def rank_draws(rows: pd.DataFrame, method: str, methods: Sequence[str], metrics: Sequence[str]) -> dict[str, Floats]:
    """Draws of a method's rank in each metric; nan where one of the methods has a single image.

    MCS and IDR have the same images; those of IIR are others.
    """
    trainings = sorted(rows["model_seed"].unique())
    rows = rows[rows["part"].eq("samples") & rows["mask"].eq("object") & rows["method"].isin(methods)]
    found = {}
    for pool, of in enumerate((rows["metric"].ne("iir"), rows["metric"].eq("iir"))):
        values, names = values_of(rows[of], ["metric", "method"], trainings=trainings)
        made = means(values, draw(values.shape[1], len(values), pool=pool))
        made[:, np.isfinite(values).any(0).sum(0) < 2] = np.nan
        for metric in [name for name in metrics if (name, method) in names]:
            found[metric] = ranks(made[:, [names.index((metric, one)) for one in methods]], list(methods).index(method))
    return found
