"""Draws of every input's own, so that no two inputs share a random number."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from forsooth.games.values import Game
from forsooth.records import UsageError


def each(draw: Callable[[torch.Generator], Tensor], generators: Sequence[torch.Generator], x: Tensor) -> Tensor:
    """What `draw` gives (…) for the generator of each input of x (n, *shape), stacked: (n, …).

    All draws of an input are made in one call, so that nothing hangs on how a batch is cut.
    """
    one_for_each(generators, x)
    if not len(x):
        return draw(torch.Generator())[None][:0]
    return torch.stack([draw(one) for one in generators])


def one_for_each(generators: Sequence[torch.Generator], x: Tensor) -> None:
    """An error unless there are as many generators as inputs in x (n, *shape)."""
    if len(generators) != len(x):
        raise UsageError(f"`generators` must be one for each of {len(x)} inputs, got {len(generators)}")


def shuffled(played: Game, generators: Sequence[torch.Generator] | None) -> Game:
    """The game with the roles of each input's players drawn uniformly from the input's own generator.

    generators  one for each input; None: every player keeps its own label, and all inputs play the same masks

    A design of masks is drawn without regard to who is who, so that with players in random roles it is a fresh draw
    of the same law for every input. The system to solve stays one, since it speaks of roles.
    """
    if generators is None:
        return played
    roles = each(lambda drawn: torch.randperm(played.count, generator=drawn), generators, played.x)
    return replace(played, roles=roles.to(played.x.device))
