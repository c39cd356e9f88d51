"""What the model says when one player alone is replaced: the floor under occlusion and permutation importance."""

import torch
from torch import Tensor

from forsooth.games.crops import alone_by_crops, local
from forsooth.games.sums import alone_by_sums, opening
from forsooth.games.values import Game, evenly, masked_values


def alone_values(played: Game, stands: Tensor) -> Tensor:
    """The target's output when each player alone is replaced.

    played   a game in which every player goes by its own label
    stands   (n, *shape), the values that replace those of x
    returns  (n, players)

    Where the network allows it, only what a player reaches is computed again.
    """
    if not len(played.x):
        return played.x.new_empty(0, played.count)
    parts = opening(played)
    if parts is not None:
        return alone_by_sums(played, stands, parts)
    pieces = local(played)
    if pieces is not None:
        return alone_by_crops(played, stands, pieces)
    everyone = torch.arange(played.count, device=played.x.device)
    some = everyone.split(evenly(played.count, played.masks_at_once()))
    return torch.cat([masked_values(played, all_but(part, played), baseline=stands) for part in some], dim=1)


def all_but(players: Tensor, played: Game) -> Tensor:
    """For each of some players (p,) a mask with all entries but its own. (p, *shape of the labels), dtype of x

    A clamped difference is 0 where the entry is the player's: comparisons give bools, which are slow.
    """
    labels = played.labels.float()
    return (labels - players.view(-1, *[1] * labels.ndim)).abs_().clamp_(max=1).to(played.x.dtype)
