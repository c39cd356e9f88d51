"""Two features: one that tells the label, and a suppressor that tells nothing but helps to see the first."""

import math
from typing import Any

import torch
from torch import Tensor

from forsooth.datasets.splitting import arrange
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

CLASSES = ("-1", "1")  # z
PATTERN = (1.0, 0.0)  # what the label adds to the features: it is not in the second one


def suppressor(
    *, n: int = 4000, correlation: float = 0.8, spreads: tuple[float, float] = (1.0, 0.5), seed: int
) -> Dataset:
    """x = a z + noise with a = (1, 0), z = ±1, and Gaussian noise that both features share.

    n            samples, half of them of each class
    correlation  c of the noise in the two features
    spreads      s₁ and s₂, standard deviations of the noise
    x            (n, 2) float32
    y            (n,) int, 0 for z = -1 and 1 for z = 1
    truth        (n, 2) bool, the first feature alone: the second is independent of the label

    The best possible model is linear: with Σ = ((s₁², c s₁ s₂), (c s₁ s₂, s₂²)) the log-odds of the label are
    2 w·x with w = Σ⁻¹ a = (1, -c s₁ / s₂) / (s₁² (1 - c²)). It needs the second feature to take the noise off the
    first. `facts` hold w and Σ. [haufe2014interpretation], [wilming2023theoretical]
    """
    _check(n, correlation, spreads)
    covariance = _covariance(correlation, spreads)
    pattern = torch.tensor(PATTERN, dtype=torch.float64)
    y = torch.arange(n) % 2
    x = pattern * (2 * y - 1)[:, None] + _noise(n, covariance, seed=seed)
    splits, _ = arrange([None] * n, y, seed=seed, names=CLASSES)
    truth = (pattern != 0).expand(n, -1)
    return Dataset("suppressor", x.float(), y, truth, splits, _facts(covariance, pattern))


def _facts(covariance: Tensor, pattern: Tensor) -> dict[str, Any]:
    """The best model for noise of this covariance (2, 2) and this pattern (2,), and how often it is right."""
    weight = torch.linalg.solve(covariance, pattern)
    distance = float(pattern @ weight)  # of the two classes, squared, in units of the noise along w
    return {
        "features": ["signal", "suppressor"],
        "classes": list(CLASSES),
        "weight": weight.tolist(),
        "covariance": covariance.tolist(),
        "best_accuracy": 0.5 * (1 + math.erf(math.sqrt(distance / 2))),
    }


def _noise(n: int, covariance: Tensor, *, seed: int) -> Tensor:
    """(n, 2) float64 of Gaussians with this covariance (2, 2)."""
    independent = torch.randn(n, 2, generator=generator(seed, "noise"), dtype=torch.float64)
    return independent @ torch.linalg.cholesky(covariance).T


def _covariance(correlation: float, spreads: tuple[float, float]) -> Tensor:
    """Σ (2, 2) of the noise."""
    first, second = spreads
    shared = correlation * first * second
    return torch.tensor([[first**2, shared], [shared, second**2]], dtype=torch.float64)


def _check(n: int, correlation: float, spreads: tuple[float, float]) -> None:
    if not -1 < correlation < 1:
        raise UsageError(f"`correlation` must lie between -1 and 1, got {correlation}")
    if len(spreads) != 2 or min(spreads) <= 0:
        raise UsageError(f"`spreads` must be two positive numbers, got {spreads}")
    if n < 20:
        raise UsageError(f"`n` must be at least 20, got {n}")
