"""Maps made elsewhere, scored against a truth: a suite's own samples, or the user's masks."""

from forsooth.user.score.request import ScoreRequest
from forsooth.user.score.work import answer

__all__ = ["ScoreRequest", "answer"]
