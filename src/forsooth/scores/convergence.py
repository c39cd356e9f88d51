"""How sure are the Shapley values that a bias is measured against? Noise, instability, and what a group gains.

[anonymous2023evaluation], Lemma 1, Proposition 1 and Exp. 1.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.games.shapley import Estimate
from forsooth.records import UsageError
from forsooth.scores.bias import PAIRS, chosen, same_shape
from forsooth.scores.jackknife import jackknife
from forsooth.scores.norms import means_over, scaled

UNCONVERGED = 0.1  # share of noise in ‖Â‖² from which a warning is due: there the norm is too long by 5 %


def noise_share(shapley: Estimate) -> Tensor:
    """Σ error² / ‖Â‖²: the share of the squared norm of the Shapley values that is noise. (n,); 0 where exact."""
    shapley = scaled(shapley)
    noise = shapley.error.square().sum(1)
    return torch.where(noise == 0, 0.0, noise / shapley.values.square().sum(1))


def warning(shapley: Estimate) -> list[str]:
    """One sentence for each sample: what is wrong where the noise share is not below `UNCONVERGED`, "" elsewhere."""
    return [not_converged(share, shapley.permutations) for share in noise_share(shapley).tolist()]


def not_converged(share: float, permutations: int) -> str:
    """What to tell the user about a share of noise. Noise falls as 1 / permutations, the rest of ‖Â‖² stays."""
    if share < UNCONVERGED:
        return ""
    if math.isnan(share):
        return "Shapley values not converged: their error is not known; at least two permutations needed"
    text = f"Shapley values not converged: noise is {100 * share:.0f} % of the squared norm"
    if share >= 1:  # nothing is left to extrapolate from
        return f"{text}; many more than {permutations} permutations needed"
    needed = permutations * share / (1 - share) * (1 - UNCONVERGED) / UNCONVERGED
    step = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    return f"{text}; about {math.ceil(needed / step) * step} permutations needed instead of {permutations}"


def instability(draws: Tensor) -> Tensor:
    """Exp. 1 and Fig. 5: E_{u≠v} |α(u) - α(v)| / E_w |α(w)| over repeated estimates of one thing.

    draws    (r, n, …) estimate by estimate: β (r, n), or α = `unit` of the Shapley values (r, n, players)
    returns  (n,) means over all pairs and entries, one over the other; nan where all draws are zero
    """
    if draws.ndim < 2 or len(draws) < 2:
        raise UsageError(f"`draws` must have shape (r, n, …) with at least two draws, got {tuple(draws.shape)}")
    r = len(draws)
    ordered = draws.detach().to(torch.float64)[..., None].flatten(2).sort(dim=0).values  # (r, n, entries)
    # the k-th of r sorted numbers is the larger one in k pairs and the smaller one in r - 1 - k
    weight = 2 * torch.arange(r, dtype=torch.float64, device=draws.device) - (r - 1)
    differences = torch.einsum("r,rnp->np", weight, ordered) / (r * (r - 1) / 2)
    return differences.mean(1) / ordered.abs().mean((0, 2))


def anchor_instability(values: Tensor, maps: Sequence[Tensor]) -> float:
    """The instability of the mean value over the groups S that maps choose, a mean over all ends and fractions.

    values  (r, n, players), draws of the Shapley values
    maps    (n, players) each; E is over their groups
    """
    instabilities = []
    for end, fraction in PAIRS:
        groups = [chosen(players, fraction=fraction, end=end) for players in maps]
        anchor = torch.stack([(values * s).sum(2) / s.sum(1) for s in groups]).nanmean(0)  # (r, n)
        instabilities.append(instability(anchor))
    return torch.stack(instabilities).nanmean().item()


def variance_ratio(attribution: Tensor, shapley: Estimate, *, fraction: float, end: str) -> Tensor:
    """Proposition 1 measured: the mean of Var[Â_i] over S, divided by Var[mean of Â over S]; (n,), nan where exact.

    The paper finds |S|, since it takes the players' errors to be independent. They are not: the gains of
    one permutation sum to F(Ω) - F(∅), so that the errors of all players together are zero.
    """
    same_shape(attribution, shapley.values, "the Shapley values")
    shapley = scaled(shapley)
    s = chosen(attribution, fraction=fraction, end=end)
    error = jackknife(*means_over(s, shapley), shapley.sizes)
    return (s * shapley.error.square()).sum(1) / s.sum(1) / error.square()
