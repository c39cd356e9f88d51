"""Anchors on disk and in rows: Shapley values as the tensors of a cell, and what maps are worth beside them.

The suite `bias` and `forsooth.user.bias` share this, so that a number means the same in both.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from forsooth.games import shapley
from forsooth.games.shapley import Estimate
from forsooth.records import Cell, Row, Status
from forsooth.scores import bias, convergence, norms
from forsooth.suites import explain

# metric -> norm of the Shapley values, and power of the number of players that M_bias is multiplied with
NORMS_AND_POWERS = {"relative_bias": ("plain", 0.5), "m_bias": ("plain", 0.0), "m_bias_split": ("split", 0.0)}
METRIC_NAMES = tuple(NORMS_AND_POWERS)
MESSAGES: Mapping[str, str] = {
    **explain.MAP_MESSAGES,
    # nobody can be judged on such an input, so it is no failure of a method
    "no anchor": "the Shapley values are all zero, or all noise",
}


class Anchor(NamedTuple):
    """The Shapley values of all samples, their numbers in the dataset, and the share of noise in each."""

    estimate: Estimate
    samples: list[int]
    noise: list[float]


def packed(estimate: Estimate, samples: Tensor) -> dict[str, Tensor]:
    """The tensors of a cell that `joined` reads; samples (n,) are the numbers of the inputs."""
    tensors = {
        "values": estimate.values,
        "error": estimate.error,
        "groups": estimate.groups.float(),  # only differences of the groups matter, and they are noise
        "sizes": estimate.sizes,
        "samples": samples,
        "noise": convergence.noise_share(estimate),
    }
    return {name: value.cpu() for name, value in tensors.items()}


def joined(anchors: Sequence[Cell]) -> Anchor:
    """The anchor of all samples from its parts."""
    parts = [cell for cell in anchors if "values" in cell.tensors]
    samples = torch.cat([cell.tensors["samples"] for cell in parts])
    noise = torch.cat([cell.tensors["noise"] for cell in parts])
    return Anchor(shapley.joined([estimate_of(cell) for cell in parts]), samples.tolist(), noise.tolist())


def estimate_of(cell: Cell) -> Estimate:
    """The Shapley values that a cell keeps."""
    named = {name: cell.tensors[name] for name in ("values", "error", "sizes")}
    groups = cell.tensors["groups"].double()
    return Estimate(**named, groups=groups, permutations=cell.facts["permutations"])


def players_of(cells: Sequence[Cell]) -> Tensor:
    """What a method says of the players, or the Shapley values where these are judged. (n, players)"""
    if "players" in cells[0].tensors:
        return cells[0].tensors["players"]
    return joined(cells).estimate.values


def biases(
    template: Row,
    attribution: Tensor,
    anchor: Estimate,
    *,
    ends: Sequence[str],
    fractions: Sequence[float],
    ties: str,
) -> list[Row]:
    """One row per end, fraction, metric and sample, numbered from 0. attribution (n, players)."""
    count = attribution.shape[1]
    anchor = norms.scaled(anchor)
    pairs = list(itertools.product(ends, fractions))
    scores = {norm: bias.all_biases(attribution, anchor, pairs=pairs, norm=norm, ties=ties) for norm in bias.NORMS}
    status = {norm: states(attribution, norms.squared_norms(anchor, norm)[0]) for norm in bias.NORMS}
    rows: list[Row] = []
    for end, fraction in pairs:
        own = template.having(end=end, fraction=fraction, players=count)
        few = bias.too_few(count, fraction)
        for metric, (norm, power) in NORMS_AND_POWERS.items():
            score = scores[norm][end, fraction]
            scored = sample_rows(own.having(metric=metric), score, status[norm], scale=count**power)
            if few:
                scored = [row.having(status="too few players", message=few) for row in scored]
            rows += scored
    return rows


def sample_rows(template: Row, score: bias.Bias, status: Sequence[Status], *, scale: float) -> list[Row]:
    """A row for the score of each sample and its sampling error."""
    return explain.rows_by_sample(
        template,
        range(len(status)),
        value=scale * score.value,
        error=scale * score.error,
        status=status,
        message=[MESSAGES.get(state, "") for state in status],
    )


def states(attribution: Tensor, square: Tensor) -> list[Status]:
    """The status of every map (n, players), given the squared norm of its anchor (n,)."""
    anchored = (square > 0).tolist()  # asked first, so that a map of zeros is no failure where zeros are right
    return [explain.state_of(one) if known else "no anchor" for one, known in zip(attribution, anchored, strict=True)]
