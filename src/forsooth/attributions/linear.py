"""Linear classifiers that tell two sets of activations apart."""

import math

import torch
from torch import Tensor


def labelled(concept: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides in one (k + m, d), and their labels (k + m,): 1 for the concept, -1 for the others."""
    y = torch.ones(len(concept) + len(other), dtype=torch.float64, device=concept.device)
    y[len(concept) :] = -1
    return torch.cat([concept, other]), y


def ridge(x: Tensor, y: Tensor, *, strength: float) -> tuple[Tensor, Tensor]:
    """The weight (d,) and shift () that minimise Σ (x·w + b - y)² + λ ‖w‖², λ = strength · mean ‖x - x̄‖².

    x  (n, d), y (n,)

    Solved among the n examples, since a layer has far more units than there are examples.
    """
    mean = x.mean(0)
    centred = (x - mean).to(torch.float64)
    gram = centred @ centred.T  # (n, n)
    penalty = strength * gram.diagonal().mean()
    if penalty == 0:
        return torch.zeros_like(centred[0]), y.mean()
    share = torch.linalg.solve(gram + penalty * torch.eye(len(gram)).to(gram), y - y.mean())
    weight = centred.T @ share
    return weight, y.mean() - mean.to(weight) @ weight


def sgd(x: Tensor, y: Tensor, *, strength: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weight (d,) and shift () of scikit-learn's linear classifier by stochastic gradient descent."""
    from sklearn.linear_model import SGDClassifier  # takes most of a second, and the closed form does without

    seed = int(torch.randint(2**31, (), generator=generator))
    fitted = SGDClassifier(alpha=strength, max_iter=1000, tol=1e-3, random_state=seed)
    fitted.fit(x.double().cpu().numpy(), y.cpu().numpy())
    return torch.from_numpy(fitted.coef_[0]).to(x.device), torch.tensor(fitted.intercept_[0]).to(x.device)


def accuracy(x: Tensor, y: Tensor, weight: Tensor, shift: Tensor) -> float:
    """The share of x (n, d) on the side that its label y (n,) says; nan of nothing."""
    right = (x.to(weight) @ weight + shift > 0) == (y > 0)
    if not len(right):
        return math.nan
    return right.double().mean().item()
