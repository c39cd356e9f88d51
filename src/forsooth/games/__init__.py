"""Players and coalitions: who takes part, and what the model says when some stay away."""

from forsooth.games.players import patches, pixels, superpixels
from forsooth.games.shapley import Estimate, exact, permutation
from forsooth.games.values import coalition_values, game

__all__ = ["Estimate", "coalition_values", "exact", "game", "patches", "permutation", "pixels", "superpixels"]
