"""Coalitions to ask about, drawn by their weight in the Shapley kernel, and the least squares that reads them."""

import itertools
import math
from collections.abc import Iterator

import torch
from torch import Tensor


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
    order = torch.rand(len(sizes), count, generator=generator).argsort(dim=1)
    first = torch.arange(count) < sizes[:, None]  # of each order, so many
    return torch.zeros_like(first).scatter_(1, order, first)


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
    return solved(*normal_equations(masks, weights, values, total), total)


def normal_equations(masks: Tensor, weights: Tensor, values: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of that least squares, (players, players) and (n, players); those of parts of the masks add up."""
    share = masks.double().mean(dim=1)  # (m,)
    design = masks.double() - share[:, None]  # a shift of phi by a constant is not seen
    weighted = design * weights[:, None]
    return design.T @ weighted, (values - total[:, None] * share) @ weighted


def solved(gram: Tensor, rest: Tensor, total: Tensor) -> Tensor:
    """The phi (n, players) of normal equations, which sums to the total (n,)."""
    gram = gram.clone()
    ridge = 1e-10 * gram.diagonal().mean().clamp(min=torch.finfo(torch.float64).tiny)
    gram.diagonal().add_(ridge)
    phi = torch.cholesky_solve(rest.T, torch.linalg.cholesky(gram)).T
    return phi - phi.mean(dim=1, keepdim=True) + total[:, None] / gram.shape[1]
