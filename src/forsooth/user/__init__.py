"""The user's own model and data: questions that need no ground truth."""

from forsooth.user.bias import Asked, BiasResult

__all__ = ["Asked", "BiasResult"]
