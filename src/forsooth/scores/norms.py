"""Norms and group means of sampled Shapley values, with all permutations and without each group of them."""

from dataclasses import replace

import torch
from torch import Tensor

from forsooth.games.shapley import Estimate

LARGE = 2.0**300  # squares of values from here on come near the end of the numbers, and those of 1 / LARGE to zero
SHIFT = 2.0**600  # a power of two, by which one multiplies without rounding


def scaled(shapley: Estimate) -> Estimate:
    """The same Shapley values in another unit wherever their squares would overflow or vanish, game by game.

    M_bias knows no unit; the values of ordinary games, and all that is made of them, stay as they are to the bit.
    """
    factor = unit_of(shapley)
    if bool((factor == 1).all()):
        return shapley
    return replace(
        shapley,
        values=shapley.values * factor[:, None],
        error=shapley.error * factor[:, None],
        groups=shapley.groups * factor[:, None, None],
    )


def unit_of(shapley: Estimate) -> Tensor:
    """By what power of two the Shapley values of each game are multiplied before they are squared. (n,)

    Means of groups are no larger than values and errors allow; of a single permutation the error is nan.
    """
    largest = torch.fmax(shapley.values.abs(), shapley.error.abs()).amax(1)
    factor = torch.ones_like(largest)
    factor[largest > LARGE] = 1 / SHIFT
    factor[(largest > 0) & (largest < 1 / LARGE)] = SHIFT
    return factor


def squared_norms(shapley: Estimate, norm: str) -> tuple[Tensor, Tensor]:
    """‖A‖² of every sample, and what it is without each group of permutations.

    returns  (n,) and (n, groups); may be negative with norm "split"

    The mean Â of m gains g_1 … g_m has E‖Â‖² = ‖A‖² + noise: the plain norm is too long, which pulls β_S to zero. Gains
    of different permutations are independent, so the mean of ⟨g_k, g_l⟩ over all pairs k ≠ l has no noise in it. It
    needs no second pass: Σ_{k≠l} ⟨g_k, g_l⟩ = m²‖Â‖² - Σ‖g_k‖², and the squared standard errors add up to
    (Σ‖g_k‖² - m‖Â‖²) / (m (m - 1)), hence the mean over pairs is ‖Â‖² - Σ error². Bring values of any size into a
    unit in which they can be squared first, see `scaled`.
    """
    square = shapley.values.square().sum(1)
    squares = squares_without(shapley, square)
    if norm == "plain":
        return square, squares
    noise = shapley.error.square().sum(1)
    total = shapley.sizes.sum()
    more = noise[:, None] * total / (total - shapley.sizes)  # fewer permutations, more noise
    return square - noise, squares - more


def squares_without(shapley: Estimate, square: Tensor) -> Tensor:
    """The plain ‖A‖² without each group of permutations, (n, groups), where it is `square` (n,) with all."""
    sizes = shapley.sizes
    total = sizes.sum()
    cross = torch.einsum("np,ngp->ng", shapley.values, shapley.groups)
    own = torch.einsum("ngp,ngp->ng", shapley.groups, shapley.groups)
    # ‖total Â - size g‖², written out so that no second tensor of the size of `groups` is made
    return (total**2 * square[:, None] - 2 * total * sizes * cross + sizes**2 * own) / (total - sizes) ** 2


def means_over(s: Tensor, shapley: Estimate) -> tuple[Tensor, Tensor]:
    """The mean Shapley value over S, given as s (n, players): of all permutations (n,), without each group (n, g)."""
    size = s.sum(1)
    sizes = shapley.sizes
    total = sizes.sum()
    mean = (s * shapley.values).sum(1) / size
    parts = torch.einsum("np,ngp->ng", s, shapley.groups) / size[:, None]
    return mean, (total * mean[:, None] - sizes * parts) / (total - sizes)


def over_root(numerator: Tensor, square: Tensor) -> Tensor:
    """numerator / √square, nan where the square is not positive."""
    return numerator / square.masked_fill(~(square > 0), torch.nan).sqrt()
