"""Shapley values by permutations and by least squares; inputs share coalitions of roles, and draw who plays which."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from forsooth.games.chains import prepared
from forsooth.games.coalitions import coalitions, constrained_least_squares, subsets
from forsooth.games.draws import shuffled
from forsooth.games.shapley import permutation
from forsooth.games.values import Model, ends, game, values_of
from forsooth.records import Method, UsageError


def shapley_value_sampling(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generator: torch.Generator,
    generators: Sequence[torch.Generator] | None = None,
    permutations: int = 25,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    rewrite_model: bool = True,
) -> Tensor:
    """Mean gain of the target's output when a player joins, over random orders of joining.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs walk the same permutations
    players     (*spatial) or (*shape) integer labels; None: each pixel
    baseline    (*shape), what stands for an absent player; None: zeros
    rewrite_model  the network may be asked in a faster way, which says the same but for the order of sums
    returns     (n, *shape), summing to f(x) - f(baseline)

    [castro2009polynomial]. Departure: `generator` draws permutations of roles, which all inputs walk, and each input
    draws who plays which role: so every input walks uniform permutations of its own. Cost: permutations ·
    (players - 1) + 2 forwards; memory does not grow with `permutations`.
    """
    played = game(model, x, target, players=players, baseline=baseline, rewrite_model=rewrite_model)
    played = shuffled(played, generators)
    return played.map(permutation(played, permutations=permutations, generator=generator).values)


def kernel_shap(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generator: torch.Generator,
    generators: Sequence[torch.Generator] | None = None,
    samples: int | None = None,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    rewrite_model: bool = True,
) -> Tensor:
    """Shapley values as the solution of a weighted least squares over coalitions, summing to f(x) - f(baseline).

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same coalitions
    samples     coalitions beside the empty and the full one; None: 2 · players + 2048, as in the authors' package
    players     (*spatial) or (*shape) integer labels; None: each pixel
    baseline    (*shape), what stands for an absent player; None: zeros
    rewrite_model  the network may be asked in a faster way, which says the same but for the order of sums
    returns     (n, *shape)

    [lundberg2017unified]. Departures: `generator` draws coalitions of roles, which makes it one system with many
    right-hand sides, and each input draws who plays which role; coalitions come in complementary pairs
    [covert2021improving], with sizes spread evenly and re-weighted to the Shapley kernel [musco2025provably]; small
    layers are taken whole, so that with enough samples the values are exact.
    """
    played = game(model, x, target, players=players, baseline=baseline, rewrite_model=rewrite_model)
    if samples is None:
        samples = 2 * played.count + 2048
    if samples < 2:
        raise UsageError(f"`samples` must be at least 2, got {samples}")
    played = prepared(played, len(x) * samples)
    first, last = (v.double() for v in ends(played))  # (n,)
    if played.count == 1:
        return played.map((last - first)[:, None])
    masks, weights = (t.to(x.device) for t in coalitions(played.count, samples, generator))
    if len(masks) < 2**played.count - 2:  # else nothing is left to chance
        played = shuffled(played, generators)
    gains = values_of(played, masks).double() - first[:, None]  # (n, m)
    return played.map(constrained_least_squares(masks, weights, gains, last - first))


def kernel_shap_unconstrained(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generator: torch.Generator,
    generators: Sequence[torch.Generator] | None = None,
    samples: int = 25,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    rewrite_model: bool = True,
) -> Tensor:
    """Kernel SHAP as Captum computes it: a plain linear fit, the ends held by a large weight.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same coalitions
    samples     coalitions, the full and the empty one among them
    returns     (n, *shape)

    [kokhlikyan2020captum]. With fewer samples than players the fit is under-determined, and the solution of least
    norm is taken: this is how [clark2024xaitris] ran it, with 25 samples for 4,096 pixels. Departure: the
    coalitions are of roles, and each input draws who plays which.
    """
    played = game(model, x, target, players=players, baseline=baseline, rewrite_model=rewrite_model)
    played = prepared(shuffled(played, generators), len(x) * samples)
    masks = kernel_masks(played.count, samples, generator).to(x.device)
    weights = torch.ones(samples, dtype=torch.float64, device=x.device)
    weights[:2] = 1e6
    return played.map(least_norm_fit(masks, weights, values_of(played, masks).double()))


def kernel_masks(count: int, samples: int, generator: torch.Generator) -> Tensor:
    """The full and the empty coalition, then random ones with sizes by the Shapley kernel. (samples, count) bool"""
    if samples < 3 or count < 2:
        raise UsageError(f"`samples` must be at least 3 and players at least 2, got {samples} and {count}")
    size = torch.arange(1, count)
    kernel = 1 / (size * (count - size)).double()
    drawn = torch.multinomial(kernel, samples - 2, replacement=True, generator=generator) + 1
    both = torch.tensor([[True], [False]]).expand(2, count)
    return torch.cat([both, subsets(count, drawn, generator)])


def least_norm_fit(masks: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    """Coefficients of the weighted linear fit with intercept; of many equal ones those of least norm.

    masks    (m, players) bool
    weights  (m,) float64
    values   (n, m) float64
    returns  (n, players) float64
    """
    share = weights / weights.sum()
    root = weights.sqrt()
    design = (masks.double() - share @ masks.double()) * root[:, None]  # (m, players)
    return ((values - (values @ share)[:, None]) * root) @ torch.linalg.pinv(design).T


SHAPLEY_SAMPLING = Method(
    name="shapley_sampling",
    function=shapley_value_sampling,
    needs=("generator", "generators"),
    random=True,
    signed=True,
    cite="castro2009polynomial",
    version=2,
    settings={"permutations": 25},
    promise="complete",
    cost="forwards",
    hides=True,
)
KERNEL_SHAP = Method(
    name="kernel_shap",
    function=kernel_shap,
    needs=("generator", "generators"),
    random=True,
    signed=True,
    cite="lundberg2017unified",
    version=2,
    promise="complete",
    cost="forwards",
    hides=True,
    quadratic=True,
)
KERNEL_SHAP_25 = replace(
    KERNEL_SHAP,
    name="kernel_shap_25",
    function=kernel_shap_unconstrained,
    cite="kokhlikyan2020captum",
    settings={"samples": 25},
    promise=None,
    variant_of=KERNEL_SHAP.name,
)
SHAPLEY = (SHAPLEY_SAMPLING, KERNEL_SHAP, KERNEL_SHAP_25)
