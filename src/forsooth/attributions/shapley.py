"""Shapley values by permutations and by least squares; inputs share coalitions of roles, and draw who plays which."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from forsooth.games.chains import prepared
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


def coalitions(count: int, samples: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """At most `samples` coalitions in complementary pairs, with weights that stand for the Shapley kernel.

    returns  (m, count) bool; (m,) float64

    From the outside in, a layer of one size is taken whole while it is no larger than twice its even share of
    the samples. The others share what is left evenly, with the sizes stratified.
    """
    low, left = inner_layers(count, samples)
    masks: list[Tensor] = []
    for size in range(1, low):
        masks.extend(whole_layer(count, size))
    pairs = left // 2
    sizes = count + 1 - 2 * low
    if sizes > 0 and pairs > 0:
        place = (torch.arange(pairs) + torch.rand(pairs, generator=generator)) / pairs
        drawn = subsets(count, (low + (place * sizes).long()).clamp(max=count - low), generator)
        masks.extend((drawn, ~drawn))
    mask = torch.cat(masks)
    return mask, kernel_weights(mask)


def kernel_weights(masks: Tensor) -> Tensor:
    """The weights (m,) float64 with which masks (m, players) stand for the Shapley kernel."""
    count = masks.shape[1]
    members = masks.sum(dim=1)  # (m,)
    alike = torch.bincount(members, minlength=count)[members]  # how many stand for the layer
    return 1 / (members * (count - members) * alike).double()


def inner_layers(count: int, samples: int) -> tuple[int, int]:
    """The least size of a coalition whose layer is not taken whole, and how many samples are left from there on."""
    low = 1
    left = samples
    while low <= count // 2:
        size = math.comb(count, low)
        layer = 2 * size
        if 2 * low == count:  # its complements are in the layer
            layer = size
        if layer > left or size * (count + 1 - 2 * low) > 2 * left:
            break
        left -= layer
        low += 1
    return low, left


def subsets(count: int, sizes: Tensor, generator: torch.Generator) -> Tensor:
    """One uniform subset of `count` players for each of `sizes` (m,). Returns (m, count) bool."""
    ranks = torch.rand(len(sizes), count, generator=generator).argsort(dim=1).argsort(dim=1)
    return ranks < sizes[:, None]


def whole_layer(count: int, size: int) -> Iterator[Tensor]:
    """All coalitions of `size` players, then their complements where these are others. Each (m, count) bool."""
    members = torch.tensor(list(itertools.combinations(range(count), size)))
    layer = torch.zeros(len(members), count, dtype=torch.bool).scatter_(1, members, True)
    yield layer
    if 2 * size != count:
        yield ~layer


def constrained_least_squares(masks: Tensor, weights: Tensor, values: Tensor, total: Tensor) -> Tensor:
    """The phi with Σ phi = total that minimises Σ_S w(S) (v(S) - Σ_{i in S} phi_i)², for all samples at once.

    masks    (m, players) bool
    weights  (m,) float64
    values   (n, m) float64, v(S) less the value of the empty coalition
    total    (n,) float64, value of the full coalition less that of the empty one
    returns  (n, players) float64

    An even share of the total is taken off first; what is left sums to zero. With fewer coalitions than players
    the small ridge picks the solution nearest to the even share.
    """
    count = masks.shape[1]
    design = masks.double() - masks.double().mean(dim=1, keepdim=True)  # a shift of phi by a constant is not seen
    share = masks.double().mean(dim=1)  # (m,)
    weighted = design * weights[:, None]
    gram = design.T @ weighted  # (players, players)
    ridge = 1e-10 * gram.diagonal().mean().clamp(min=torch.finfo(torch.float64).tiny)
    gram.diagonal().add_(ridge)
    rest = (values - total[:, None] * share) @ weighted  # (n, players)
    phi = torch.cholesky_solve(rest.T, torch.linalg.cholesky(gram)).T
    return phi - phi.mean(dim=1, keepdim=True) + total[:, None] / count


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
