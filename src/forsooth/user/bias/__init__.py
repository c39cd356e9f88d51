"""Which explanation may I trust on my model? M_bias of every method on the user's own model and inputs."""

from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.result import BiasResult
from forsooth.user.bias.work import answer

__all__ = ["BiasRequest", "BiasResult", "answer"]
