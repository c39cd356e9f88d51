"""Players and coalitions: who takes part, and what the model says when some stay away."""

from forsooth.games.players import patches, pixels
from forsooth.games.values import coalition_values

__all__ = ["coalition_values", "patches", "pixels"]
