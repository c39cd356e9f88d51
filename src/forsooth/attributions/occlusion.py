"""Occlusion: hide one part, watch the output."""

import torch
from torch import Tensor

from forsooth.games.values import Model, evenly, game, target_outputs, values_of
from forsooth.records import Method


def occlusion(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
) -> Tensor:
    """Drop of the target's output when one player is replaced by the baseline.

    x         (n, *shape)
    target    (n,) int64, the explained class
    players   (*spatial) or (*shape) integer labels; None: each pixel
    baseline  (*shape), what stands for an absent player; None: zeros
    returns   (n, *shape); the entries of a player share its drop evenly

    [zeiler2014visualizing], with players instead of a sliding square, so that no two patches overlap. Cost: players + 1
    forwards.
    """
    played = game(model, x, target, players=players, baseline=baseline)
    before = target_outputs(model, x, target)[:, None]  # (n, 1)
    everyone = torch.arange(played.count, device=x.device)
    drops = [
        before - values_of(played, hidden[:, None] != everyone)  # (n, some players)
        for hidden in everyone.split(evenly(played.count, played.masks_at_once()))
    ]
    return played.map(torch.cat(drops, dim=1))


OCCLUSION_ONE = Method(
    name="occlusion",
    function=occlusion,
    needs=(),
    random=False,
    signed=True,
    cite="zeiler2014visualizing",
    version=1,
    cost="forwards",
    hides=True,
)
OCCLUSION = (OCCLUSION_ONE,)
