"""Softmax under DeepLIFT's Rescale rule: complete, and finite for any distance between input and reference.

softmax(z)_i = exp(z_i - L) with L = log Σ exp z_j. The exponentials and the logarithm are functions of one number and
take the slope of the difference from the reference; the sum and the subtraction keep their gradient. The slope of exp
between two numbers is the logarithmic mean of its two values, that of log its reciprocal, so

    ΔL = Σ w_j Δz_j,  w_j = M(e^z_j, e^z'_j) / M(e^L, e^L'),  M the logarithmic mean

and for z' -> z the weights are the probabilities, which is the plain gradient. [shrikumar2017learning]
"""

import torch
from torch import Tensor


def log_of_mean(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the logarithmic mean (e^a - e^b) / (a - b) of e^a and e^b, which is e^a where a = b."""
    # Two numbers at minus infinity, as a mask puts them there, are equal.
    distance = (a - b).abs().nan_to_num(nan=0.0, posinf=torch.inf)
    apart = torch.where(distance > 0, distance, 1.0)
    shrink = torch.where(distance > 0, -torch.expm1(-apart) / apart, 1.0)
    return torch.maximum(a, b) + shrink.log()


def multiplied(z: Tensor, reference: Tensor, multipliers: Tensor, *, dim: int, log: bool) -> Tensor:
    """Multipliers of the logits, given those of their softmax, or log-softmax, along `dim`; all broadcast to z."""
    total = z.logsumexp(dim, keepdim=True)
    total_there = reference.logsumexp(dim, keepdim=True)
    if not log:
        multipliers = multipliers * log_of_mean(z - total, reference - total_there).exp()
    weights = (log_of_mean(z, reference) - log_of_mean(total, total_there)).exp()
    return (multipliers - weights * multipliers.sum(dim, keepdim=True)).to(z)
