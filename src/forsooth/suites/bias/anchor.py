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
MESSAGES = {
    "ok": "",
    "not finite": "the map holds nan or infinity",
    "zero map": "the map is zero everywhere",
    # nobody can be judged on such an input, so it is no failure of a method
    "no anchor": "the Shapley values are all zero, or all noise",
}


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
    count = attribution.shape[1]
    rows = []
    pairs = [(end, fraction) for end in ends for fraction in fractions]
    status_of = {norm: states(attribution, bias.squared_norms(anchor, norm)[0]) for norm in bias.NORMS}
    plain, split = (bias.all_biases(attribution, anchor, pairs=pairs, norm=norm, ties=ties) for norm in bias.NORMS)
    for end, fraction in pairs:
        own, other = plain[end, fraction], split[end, fraction]
        found = {
            "relative_bias": (count**0.5 * own.value, count**0.5 * own.error),
            "m_bias": (own.value, own.error),
            "m_bias_split": (other.value, other.error),
        }
        few = bias.too_few(count, fraction)
        for metric, (values, errors) in found.items():
            known = status_of["split" if metric == "m_bias_split" else "plain"]
            for k, (value, error) in enumerate(zip(values.tolist(), errors.tolist(), strict=True)):
                status = "too few players" if few else known[k]
                row = {"metric": metric, "sample": k, "value": value, "status": status}
                row["message"] = few or MESSAGES[status]
                rows.append({**row, "error": error, "end": end, "fraction": fraction, "players": count})
    return rows


def states(attribution: Tensor, square: Tensor) -> list[str]:
    """The status of every map (n, players), given the squared norm of its anchor (n,)."""
    status = ["ok"] * len(attribution)
    for name, those in (
        ("zero map", (attribution == 0).all(1)),
        ("not finite", ~attribution.isfinite().all(1)),
        ("no anchor", ~(square > 0)),  # last, so that a map of zeros is no failure where zeros are right
    ):
        status = [name if hit else before for hit, before in zip(those.tolist(), status, strict=True)]
    return status
