"""Would an explanation of my model point at something that has no function? IIR on the user's own model and inputs."""

from forsooth.user.independence.request import IndependenceRequest
from forsooth.user.independence.result import IndependenceResult
from forsooth.user.independence.work import answer

__all__ = ["IndependenceRequest", "IndependenceResult", "answer"]
