"""Explanations from what a model says of images seen through random soft masks: RISE, and total Sobol indices."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from forsooth.games.draws import one_for_each
from forsooth.games.players import patches
from forsooth.games.values import Model, rows_at_once, target_outputs
from forsooth.records import Method, UsageError


def rise(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int = 1000,
    grid: int = 7,
    share: float = 0.5,
) -> Tensor:
    """The mean of random masks, weighed by what the model says of the image under each.

    x           (n, channels, h, w)
    target      (n,) int64, the explained class
    generators  one for each image, for its masks
    samples     masks of an image
    grid        cells of a mask along each axis; at most half of the pixels
    share       of the cells that are shown
    returns     (n, channels, h, w), the same in each channel

    [petsiuk2018rise]. Masks are coarse grids of zeros and ones, enlarged bilinearly and shifted by less than a cell.
    The paper has 4,000 or 8,000 masks and explains probabilities: here the model decides.
    """
    check_images(x)
    if samples < 1 or grid < 1 or not 0 < share < 1:
        came = f"{samples}, {grid} and {share}"
        raise UsageError(f"`samples` and `grid` must be at least 1 and `share` in (0, 1), got {came}")
    one_for_each(generators, x)
    result = torch.empty_like(x)
    for row, generator in enumerate(generators):
        masks = soft_masks(samples, x, grid, share, generator).to(x)
        values = seen(model, x[row], target[row], masks)
        result[row] = torch.tensordot(values.to(x), masks, dims=1) / (samples * share)
    return result


def check_images(x: Tensor) -> None:
    """UsageError unless x is (n, channels, h, w)."""
    if x.ndim != 4:
        raise UsageError(f"`x` must be images (n, channels, h, w), got {tuple(x.shape)}")


def soft_masks(samples: int, x: Tensor, grid: int, share: float, generator: torch.Generator) -> Tensor:
    """Masks (samples, h, w) in [0, 1] for images x (n, channels, h, w)."""
    sides = tuple(x.shape[2:])
    cells = [min(grid, max(1, side // 2)) for side in sides]
    steps = [-(-side // count) for side, count in zip(sides, cells, strict=True)]
    large = [(count + 1) * step for count, step in zip(cells, steps, strict=True)]
    shown = (torch.rand(samples, 1, *cells, generator=generator) < share).double()
    wide = F.interpolate(shown, size=large, mode="bilinear")[:, 0]
    shifts = [torch.randint(step, (samples,), generator=generator) for step in steps]
    rows = shifts[0][:, None, None] + torch.arange(sides[0])[:, None]  # (samples, h, 1)
    columns = shifts[1][:, None, None] + torch.arange(sides[1])  # (samples, 1, w)
    return wide[torch.arange(samples)[:, None, None], rows, columns]


def seen(model: Model, image: Tensor, target: Tensor, masks: Tensor) -> Tensor:
    """The target's output (m,) for an image (channels, h, w) times each mask (m, h, w)."""
    parts = []
    for some in masks.split(rows_at_once(image[None], model)):
        parts.append(target_outputs(model, image * some[:, None], target.expand(len(some))))
    return torch.cat(parts)


def sobol_indices(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int = 32,
    grid: int = 8,
) -> Tensor:
    """The share of the output's variance under random masks in which each patch of the image has a part.

    x           (n, channels, h, w)
    target      (n,) int64, the explained class
    generators  one for each image, for its masks
    samples     masks A and B each; every patch asks for as many again
    grid        patches along each axis; at most the pixels
    returns     (n, channels, h, w), never negative, the same in each pixel of a patch; zeros where nothing varies

    [fel2021look]: total Sobol indices by Jansen's estimator, masks from a scrambled Sobol sequence, hidden in black.
    Departure: patches are enlarged to the nearest value, not smoothly. Cost: samples · (patches + 1) forwards.
    """
    check_images(x)
    if samples < 2 or grid < 1:
        raise UsageError(f"`samples` must be at least 2 and `grid` at least 1, got {samples} and {grid}")
    one_for_each(generators, x)
    labels = patches(tuple(x.shape[1:]), min(grid, *x.shape[2:])).to(x.device)
    result = torch.empty_like(x)
    for row, generator in enumerate(generators):
        first, second = sobol_masks(samples, int(labels.max()) + 1, generator).to(x)
        result[row] = total_indices(model, x[row], target[row], (first, second), labels)[labels]
    return result


def sobol_masks(samples: int, count: int, generator: torch.Generator) -> Tensor:
    """Two designs (2, samples, count) in [0, 1) from one scrambled Sobol sequence."""
    seed = int(torch.randint(2**31, (), generator=generator))
    drawn = torch.quasirandom.SobolEngine(2 * count, scramble=True, seed=seed).draw(samples, dtype=torch.float64)
    return drawn.view(samples, 2, count).transpose(0, 1)


def total_indices(model: Model, image: Tensor, target: Tensor, masks: tuple[Tensor, Tensor], labels: Tensor) -> Tensor:
    """Jansen's Σ (f(A) - f(A with B's column i))² / 2 m Var f(A) for each patch i of labels (h, w). (patches,)"""
    first, second = masks
    before = seen(model, image, target, first[:, labels])
    spread = before.var(correction=0)
    moved = []
    for patch in range(first.shape[1]):
        other = first.clone()
        other[:, patch] = second[:, patch]
        moved.append(((before - seen(model, image, target, other[:, labels])) ** 2).mean() / 2)
    return torch.stack(moved) / torch.where(spread > 0, spread, 1.0)


RISE = Method(
    name="rise",
    function=rise,
    needs=("generators",),
    random=True,
    signed=True,
    cite="petsiuk2018rise",
    version=1,
    settings={"samples": 1000, "grid": 7},
    inputs=("image",),
    cost="forwards",
    hides=True,
)
SOBOL_INDICES = Method(
    name="sobol_indices",
    function=sobol_indices,
    needs=("generators",),
    random=True,
    signed=False,
    cite="fel2021look",
    version=1,
    settings={"samples": 32, "grid": 8},
    inputs=("image",),
    cost="forwards",
    hides=True,
)
MASKED = (RISE, SOBOL_INDICES)
