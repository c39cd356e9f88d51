"""Permutation feature importance: what is lost when a player takes a value from elsewhere."""

from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.games.alone import alone_values
from forsooth.games.chains import prepared
from forsooth.games.draws import each
from forsooth.games.values import Game, Model, game, target_outputs
from forsooth.records import Method, UsageError


def permutation_feature_importance(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    background: Tensor,
    generators: Sequence[torch.Generator],
    repeats: int = 10,
    players: Tensor | None = None,
    rewrite_model: bool = True,
) -> Tensor:
    """Mean drop of the target's output when one player is replaced by its values in random background inputs.

    x           (n, *shape)
    target      (n,) int64, the explained class
    background  (k, *shape), where the replacing values come from
    generators  one for each input, for its draws from the background
    players     (*spatial) or (*shape) integer labels; None: each pixel
    rewrite_model  the network may be asked in a faster way, which says the same but for the order of sums
    returns     (n, *shape)

    [fisher2019models], per sample as in [clark2024xaitris]. Departure: values are drawn from `background` and not
    permuted within the batch. So a batch of one has importances, and they do not depend on its neighbours. Cost:
    players · repeats + 1 forwards.
    """
    if repeats < 1:
        raise UsageError(f"`repeats` must be at least 1, got {repeats}")
    check_background(background, x)
    played = game(model, x, target, players=players, rewrite_model=rewrite_model)
    played = prepared(played, len(x) * repeats * played.count)
    gone = donors(played, background.to(x), repeats, generators)  # (repeats, n, *shape)
    before = target_outputs(played.model, x, target)[:, None]  # (n, 1)
    drop = x.new_zeros(len(x), played.count, dtype=before.dtype)
    for donor in gone:
        drop += before - alone_values(played, donor)
    return played.map(drop / repeats)


def check_background(background: Tensor, x: Tensor) -> None:
    """UsageError unless the background is (k, *shape) with k > 0, for x (n, *shape)."""
    if len(background) == 0 or background.shape[1:] != x.shape[1:]:
        expected = ("k", *x.shape[1:])
        raise UsageError(f"`background` must have shape {expected} with k > 0, got {tuple(background.shape)}")


def donors(played: Game, background: Tensor, repeats: int, generators: Sequence[torch.Generator]) -> Tensor:
    """For each input, other inputs in which every player comes from a background row of its own.

    background  (k, *shape)
    returns     (repeats, n, *shape)
    """
    size = (repeats, played.count)
    rows = each(lambda drawn: torch.randint(len(background), size, generator=drawn), generators, played.x)
    rows = rows.transpose(0, 1).flatten(0, 1).to(background.device)  # (repeats · n, players)
    shape = background.shape[1:]
    chosen = rows.index_select(1, played.labels.expand(shape).flatten())  # (repeats · n, entries)
    return background.flatten(1).gather(0, chosen).view(repeats, -1, *shape)


PFI = Method(
    name="pfi",
    function=permutation_feature_importance,
    needs=("background", "generators"),
    random=True,
    signed=True,
    cite="fisher2019models",
    version=2,
    cost="forwards",
    hides=True,
)
PERMUTATION = (PFI,)
