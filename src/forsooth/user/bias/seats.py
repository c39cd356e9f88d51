"""Who plays on the user's inputs, and whether they are few enough for all their coalitions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from forsooth.adapters import inputs
from forsooth.games import players
from forsooth.games.shapley import MOST_PLAYERS
from forsooth.records import UsageError
from forsooth.user.bias.request import BiasRequest

LARGE = 64  # pixels of an image from which patches play by default
MOST_OF_LEVERAGE = 256  # players up to which the least squares itself takes little beside the forwards that it saves
PERMUTATIONS = 1000
PERMUTATIONS_OF_IMAGES = 200  # that a least squares stands for by default, so that large images take minutes
NOUNS = {"words": "words", "grid": "patches", "pixels": "pixels"}  # what a player is called


@dataclass(frozen=True)
class Seats:
    """Who owns which entry of what is played on.

    labels  (*spatial) or (*played shape)
    count   number of players
    noun    what they are called
    """

    labels: Tensor
    count: int
    noun: str


def seated(given: Any, shown: Tensor) -> Seats:
    """The players of one input, of which the stage is given shown (1, *played shape)."""
    labels, noun = labels_of(given, tuple(shown.shape[1:]))
    count = players.seats(shown, labels)[1]
    if count < 2:
        raise UsageError(f"`players` must be at least 2, got {count}: there is nothing to rank")
    return Seats(labels, count, noun)


def labels_of(given: Any, shape: tuple[int, ...]) -> tuple[Tensor, str]:
    """The labels of the players of one input of this shape, and what a player is called."""
    if not inputs.word(given):
        return inputs.numbers(given, "players")[0], "players"
    if given.startswith("units:"):
        return players.pixels(shape), "units"
    labels = players.parse(given, shape)
    noun = NOUNS.get(given.partition(":")[0], "features")
    if given == "pixels" and len(shape) == 1:
        noun = "features"
    return labels, noun


def large_image(shape: Sequence[int]) -> bool:
    """Whether inputs of this shape are images of so many pixels that a forward is not cheap."""
    return len(shape) > 2 and torch.Size(players.spatial(tuple(shape))).numel() > LARGE


def with_anchor(request: BiasRequest, seats: Seats, shape: Sequence[int]) -> BiasRequest:
    """The request with the anchor and the permutations that `auto` stands for; inputs have this shape."""
    anchor = request.anchor
    count = request.permutations
    if anchor == "auto":
        anchor = "permutations"
        if count == "auto" and large_image(shape) and seats.count <= MOST_OF_LEVERAGE:
            anchor = "leverage"
            count = PERMUTATIONS_OF_IMAGES
    if count == "auto":
        count = PERMUTATIONS
    return replace(request, anchor=anchor, permutations=count)


def is_exact(permutations: int | str, count: int) -> bool:
    """Whether all coalitions are played: if asked, and where they cost no more than the random orders."""
    if permutations != "exact":
        return count <= MOST_PLAYERS and 2**count <= sampled_forwards(int(permutations), count)
    if count > MOST_PLAYERS:
        most = f"at most {MOST_PLAYERS} players to be exact"
        raise UsageError(
            f"`permutations` exact must have {most}, got {count}: take a number, or larger players (grid:4)"
        )
    return True


def sampled_forwards(permutations: int, players: int) -> int:
    """Calls of the model for one input when orders are drawn."""
    return permutations * (players - 1) + 2
