"""Occlusion: hide one part, watch the output."""

from torch import Tensor

from forsooth.games.alone import alone_values
from forsooth.games.chains import prepared
from forsooth.games.values import Model, finite, game, target_outputs
from forsooth.records import Method


def occlusion(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    rewrite_model: bool = True,
) -> Tensor:
    """Drop of the target's output when one player is replaced by the baseline.

    x         (n, *shape)
    target    (n,) int64, the explained class
    players   (*spatial) or (*shape) integer labels; None: each pixel
    baseline  (*shape), what stands for an absent player; None: zeros
    rewrite_model  the network may be asked in a faster way, which says the same but for the order of sums
    returns   (n, *shape); the entries of a player share its drop evenly

    [zeiler2014visualizing], with players instead of a sliding square, so that no two patches overlap. Cost: players + 1
    forwards.
    """
    played = game(model, x, target, players=players, baseline=baseline, rewrite_model=rewrite_model)
    played = prepared(played, len(x) * played.count)
    before = target_outputs(played.model, x, target)[:, None]  # (n, 1)
    without = finite(alone_values(played, played.baseline.expand_as(x)))
    return played.map(before - without)


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
