"""LIME on superpixels, as its authors' package explains images: every image has players of its own."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from forsooth.attributions.surrogates import proximity, ridge
from forsooth.games.draws import one_for_each
from forsooth.games.players import superpixels
from forsooth.games.values import Game, Model, game, rows_at_once, values_of
from forsooth.records import Method, UsageError

Hide = Literal["mean", "black"]


def lime_superpixels(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generators: Sequence[torch.Generator],
    samples: int = 1000,
    hide: Hide = "mean",
    width: float = 0.25,
) -> Tensor:
    """Coefficients of a ridge regression of the target's output on which superpixels of the image are shown.

    x           (n, channels, h, w), images
    target      (n,) int64, the explained class
    generators  one for each image, for its masks
    samples     random masks, the full one first
    hide        a hidden superpixel is painted in its "mean" colour or "black", which is zero: normalise in the model
    width       masks weigh exp(-d² / 2 width²) by their cosine distance d to the full mask
    returns     (n, channels, h, w); summed over channels, every pixel carries the coefficient of its superpixel

    [ribeiro2016why], with quickshift superpixels [vedaldi2008quick] and the numbers of the authors' package for
    images: penalty 1, an intercept, all superpixels kept. So a map is no density: a superpixel counts as often as it
    has pixels, and its pixels are tied. Images of 32×32 are often one superpixel, and then the map is constant. The
    package explains probabilities: here the model decides. Departure: mean colours are not cut to whole bytes.
    """
    check(x, samples, hide, width)
    one_for_each(generators, x)
    images = x.detach().cpu()
    segments = [superpixels(image) for image in images]  # each (h, w)
    chunk = min(samples, rows_at_once(x))
    result = torch.empty_like(x)
    for i, (labels, generator) in enumerate(zip(segments, generators, strict=True)):
        one = slice(i, i + 1)
        painted = None
        if hide == "mean":
            painted = mean_colours(images[i], labels)
        played = game(model, x[one], target[one], players=labels, baseline=painted, chunk=chunk)
        fit = coefficients(played, random_masks(samples, played.count, generator), width)
        result[i] = (fit / x.shape[1])[labels.to(x.device)]
    return result


def coefficients(played: Game, shown: Tensor, width: float) -> Tensor:
    """The fit (superpixels,) to the values of one image under masks shown (samples, superpixels)."""
    shown = shown.to(played.x.device)
    return ridge(shown, proximity(shown, width), values_of(played, shown).double(), penalty=1.0)[0]


def check(x: Tensor, samples: int, hide: str, width: float) -> None:
    """UsageError where an argument of `lime_superpixels` cannot be."""
    if x.ndim != 4:
        raise UsageError(f"`x` must be images (n, channels, h, w), got {tuple(x.shape)}")
    if samples < 2 or not width > 0:
        raise UsageError(f"`samples` must be at least 2 and `width` above 0, got {samples} and {width}")
    if hide not in ("mean", "black"):
        raise UsageError(f"`hide` must be mean or black, got {hide!r}")


def random_masks(samples: int, count: int, generator: torch.Generator) -> Tensor:
    """Every player is shown in every mask but the first, which is full, with probability one half. (samples, count)"""
    masks = torch.rand(samples, count, generator=generator) < 0.5
    masks[0] = True
    return masks


def mean_colours(image: Tensor, labels: Tensor) -> Tensor:
    """The image (channels, h, w) with every superpixel of labels (h, w) in its mean colour."""
    flat = labels.flatten()
    sizes = torch.bincount(flat)  # (superpixels,)
    sums = torch.zeros(len(image), len(sizes), dtype=torch.float64)
    means = sums.index_add_(1, flat, image.flatten(1).double()) / sizes
    return means[:, labels].to(image.dtype)


LIME_SUPERPIXELS = Method(
    name="lime_superpixels",
    function=lime_superpixels,
    needs=("generators",),
    random=True,
    signed=True,
    cite="ribeiro2016why",
    version=2,
    settings={"samples": 1000, "hide": "mean"},
    inputs=("image",),
    cost="forwards",
    hides=True,
    output="probabilities",
    variant_of="lime",
)
LIME_QUICKSHIFT_200 = replace(
    LIME_SUPERPIXELS,
    name="lime_quickshift_200",
    cite="zhou2022feature",
    settings={"samples": 200, "hide": "black"},
)
SUPERPIXELS = (LIME_SUPERPIXELS, LIME_QUICKSHIFT_200)
