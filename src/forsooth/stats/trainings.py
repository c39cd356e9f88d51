"""What trainings do to scores: B of `forsooth.stats`, from few of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from forsooth.stats.panels import Floats, Panel, differences_of, groups_of


def by_themselves(panels: Sequence[Panel]) -> tuple[Floats, Floats]:
    """B of the mean over panels and Welch's degrees of freedom, both (methods + 1, methods + 1), for intervals.

    A network with one training has the mean variance of the others; where all have one, B is 0 with infinite degrees.
    """
    networks = networks_of(panels)
    degrees = degrees_of(networks)
    if not degrees.any():
        return _unknown(panels)
    own = variances(networks)
    several = degrees > 0
    parts = _shares(networks) * np.where(several[:, None, None], own, _pooled(own, degrees))
    df = _welch(parts[several], degrees[several])
    return parts.sum(axis=0), df


def _welch(parts: Floats, degrees: NDArray[np.int64]) -> Floats:
    """Degrees of freedom of a sum of variances (networks, …); infinite where all are 0."""
    squares = (parts**2 / (degrees[:, None, None] + 2)).sum(axis=0)
    df = _ratio(parts.sum(axis=0) ** 2, squares) - 2
    return np.where(squares > 0, np.clip(df, degrees.min(), degrees.sum()), np.inf)


def for_claims(panels: Sequence[Panel]) -> tuple[Floats, Floats]:
    """The same for claims about all methods at once, with Satterthwaite's degrees of freedom: see `steadied`."""
    networks = networks_of(panels)
    degrees = degrees_of(networks)
    if not degrees.any():
        return _unknown(panels)
    several = degrees > 0
    parts = _shares(networks) * steadied(variances(networks), degrees)
    squares = (parts[several] ** 2 / degrees[several][:, None, None]).sum(axis=0)
    df = _ratio(parts[several].sum(axis=0) ** 2, squares)
    return parts.sum(axis=0), np.where(squares > 0, df, np.inf)


def for_claims_in_each(panels: Sequence[Panel]) -> list[tuple[Floats, Floats]]:
    """B and its degrees of freedom for claims in each panel alone.

    Panels lend each other what they know: B is at least their mean, with the degrees of freedom of all. A panel that
    varies k times as much as the mean can learn k times less from the others.
    """
    degrees = degrees_of([[panel] for panel in panels])
    if not degrees.any():
        return [_unknown(panels) for _ in panels]
    own = variances([[panel] for panel in panels])
    pooled = _pooled(own, degrees)
    variance = np.fmax(steadied(own, degrees), pooled)
    df = np.where(pooled > 0, _ratio(_every_degree(panels) * pooled, variance), np.inf)
    trainings = [len(panel.seeds) for panel in panels]
    return [(here / count, own_df) for here, count, own_df in zip(variance, trainings, df, strict=True)]


def _every_degree(panels: Sequence[Panel]) -> int:
    """Degrees of freedom of the trainings of all networks."""
    by_network = {panel.network: len(panel.seeds) - 1 for panel in panels}
    return sum(by_network.values())


def _ratio(above: Floats, below: Floats) -> Floats:
    """above / below, and above itself where nothing is below."""
    return np.asarray(above / np.where(below > 0, below, 1.0))


def steadied(own: Floats, degrees: NDArray[np.int64]) -> Floats:
    """Variances between trainings (networks, …), each raised to what other methods and networks make likely.

    Two trainings agree by chance in one method, but rarely in all: a network's variance is at least the mean over
    networks, times how much more (or less) than the mean this network varies in the mean of all differences.
    """
    pooled = _pooled(own, degrees)
    ratio = np.where(pooled > 0, own / np.where(pooled > 0, pooled, 1.0), np.nan)
    known = np.isfinite(ratio)
    scale = np.where(known, ratio, 0.0).sum(axis=(1, 2)) / np.maximum(1, known.sum(axis=(1, 2)))
    scale = np.where(degrees > 0, scale, 1.0)
    return np.fmax(own, scale[:, None, None] * pooled)


def networks_of(panels: Sequence[Panel]) -> list[list[Panel]]:
    """The panels of each network."""
    return [[panels[k] for k in own] for own in groups_of([panel.network for panel in panels])]


def seeds_of(panels: Sequence[Panel]) -> NDArray[np.int64]:
    """The trainings of the panels of one network, in order."""
    return np.unique(np.concatenate([panel.seeds for panel in panels]))


def degrees_of(networks: Sequence[Sequence[Panel]]) -> NDArray[np.int64]:
    """Degrees of freedom of the trainings of each network: (networks,)."""
    return np.array([len(seeds_of(panels)) - 1 for panels in networks])


def variances(networks: Sequence[Sequence[Panel]]) -> Floats:
    """Variance between trainings of all differences, (networks, methods + 1, methods + 1); nan where it is unknown."""
    return np.stack([_variance(panels) for panels in networks])


def _variance(panels: Sequence[Panel]) -> Floats:
    """Variance between trainings of all differences, in the mean over the panels of one network."""
    seeds = seeds_of(panels)
    joined = np.zeros((len(panels[0].value), len(seeds)))
    for panel in panels:
        centred = panel.trainings - panel.trainings.mean(axis=1, keepdims=True)
        joined[:, np.searchsorted(seeds, panel.seeds)] += centred / len(panels)
    part = np.append(np.all([np.isfinite(panel.value) for panel in panels], axis=0), True)
    known = part[:, None] & part & (len(seeds) > 1)
    return np.where(known, differences_of(joined @ joined.T / max(1, len(seeds) - 1)), np.nan)


def _pooled(own: Floats, degrees: NDArray[np.int64]) -> Floats:
    """Mean over networks of variances (networks, …), by their degrees of freedom; 0 where none is known."""
    weight = np.where(np.isfinite(own), degrees[:, None, None], 0)
    return np.asarray((np.where(weight > 0, own, 0.0) * weight).sum(axis=0) / np.maximum(1, weight.sum(axis=0)))


def _shares(networks: Sequence[Sequence[Panel]]) -> Floats:
    """What the variance of a network counts in that of the mean over panels: (networks, 1, 1)."""
    panels = sum(len(own) for own in networks)
    shares = [(len(own) / panels) ** 2 / len(seeds_of(own)) for own in networks]
    return np.array(shares)[:, None, None]


def _unknown(panels: Sequence[Panel]) -> tuple[Floats, Floats]:
    """B of one training: nothing is known, and nothing is said of other trainings."""
    shape = (len(panels[0].value) + 1, len(panels[0].value) + 1)
    return np.zeros(shape), np.full(shape, np.inf)
