"""Anchors on disk and in rows: Shapley values as the tensors of a cell, and what maps are worth beside them.

The suite `bias` and the user's door share this, so that a number means the same in both.
"""

from typing import Any

import torch
from torch import Tensor

from forsooth.games.shapley import Estimate
from forsooth.records import Cell
from forsooth.scores import bias, convergence

METRIC_NAMES = ("relative_bias", "m_bias", "m_bias_split")


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


def joined(anchors: list[Cell]) -> tuple[Estimate, list[int], list[float]]:
    """The anchor of all samples from its parts, their numbers in the dataset, and the share of noise."""
    parts = [cell for cell in anchors if "values" in cell.tensors]
    values, error, groups, samples, noise = (
        torch.cat([cell.tensors[name] for cell in parts]) for name in ("values", "error", "groups", "samples", "noise")
    )
    estimate = Estimate(values, error, groups.double(), parts[0].tensors["sizes"], parts[0].facts["permutations"])
    return estimate, samples.tolist(), noise.tolist()


def biases(
    attribution: Tensor, anchor: Estimate, *, ends: list[str], fractions: list[float], ties: str
) -> list[dict[str, Any]]:
    """One row per sample, end, fraction and metric. attribution (n, players)."""
    count, rows = attribution.shape[1], []
    finite, zero = attribution.isfinite().all(1), (attribution == 0).all(1)
    state = ["not finite" if not f else "zero map" if z else "ok" for f, z in zip(finite, zero, strict=True)]
    pairs = [(end, fraction) for end in ends for fraction in fractions]
    plain, split = (bias.all_biases(attribution, anchor, pairs=pairs, norm=norm, ties=ties) for norm in bias.NORMS)
    for end, fraction in pairs:
        own, other = plain[end, fraction], split[end, fraction]
        found = {
            "relative_bias": (count**0.5 * own.value, count**0.5 * own.error),
            "m_bias": (own.value, own.error),
            "m_bias_split": (other.value, other.error),
        }
        for metric, (values, errors) in found.items():
            for k, (value, error) in enumerate(zip(values.tolist(), errors.tolist(), strict=True)):
                status, message = _status(state[k], value, bias.too_few(count, fraction))
                row = {"metric": metric, "sample": k, "value": value, "status": status, "message": message}
                rows.append({**row, "error": error, "end": end, "fraction": fraction, "players": count})
    return rows


def _status(state: str, value: float, few: str) -> tuple[str, str]:
    if few:
        return "too few players", few
    told = {"not finite": "the map holds nan or infinity", "zero map": "the map is zero everywhere"}
    if state != "ok":
        return state, told[state]
    return ("ok", "") if value == value else ("undefined", "the Shapley values are all zero, or all noise")
