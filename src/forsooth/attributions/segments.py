"""XRAI: regions of an image, ranked by the integrated gradients that lie in them."""

import torch
from skimage import morphology, segmentation
from torch import Tensor

from forsooth.attributions.paths import integrated_gradients
from forsooth.games.players import unit_range
from forsooth.games.values import Model
from forsooth.records import Method, UsageError

SCALES = (50, 100, 150, 250, 500, 1200)  # of Felzenszwalb's segmentation, as published
SIDE = 224  # of the images that the published sizes are for
LEAST = 150  # pixels of a region
FRESH = 50  # pixels that a region must add
BORDER = 5  # pixels by which a region is widened


def xrai(model: Model, x: Tensor, target: Tensor, *, steps: int = 50) -> Tensor:
    """Regions in the order of their mean attribution: a pixel has the mean of the region that brought it.

    x        (n, channels, h, w)
    target   (n,) int64, the explained class
    steps    of integrated gradients from each of two baselines, the least and the largest value of the image
    returns  (n, channels, h, w), the same in each channel

    [kapishnikov2019xrai]. Departure: its sizes in pixels are for images of 224×224, and are scaled to others.
    """
    if x.ndim != 4:
        raise UsageError(f"`x` must be images (n, channels, h, w), got {tuple(x.shape)}")
    dark = x.flatten(1).amin(1).view(-1, 1, 1, 1).expand_as(x)
    bright = x.flatten(1).amax(1).view(-1, 1, 1, 1).expand_as(x)
    maps = [integrated_gradients(model, x, target, steps=steps, baseline=end) for end in (dark, bright)]
    density = (torch.stack(maps).sum(0) / 2).sum(1)  # (n, h, w)
    result = torch.empty_like(x)
    for row, image in enumerate(x.detach().cpu()):
        masks = regions(image).to(x)
        ranked = ranks(masks.flatten(1), density[row].flatten(), scaled(FRESH, image))
        result[row] = ranked.view(x.shape[2:])
    return result


def scaled(area: int, image: Tensor) -> int:
    """An area in pixels of a published image, for an image (channels, h, w)."""
    return max(1, round(area * image[0].numel() / SIDE**2))


def regions(image: Tensor) -> Tensor:
    """Masks (m, h, w) bool of the regions of an image (channels, h, w) at all scales, each a little widened."""
    pixels = unit_range(image).permute(1, 2, 0).numpy()
    radius = round(BORDER * max(image.shape[1:]) / SIDE)
    found = []
    for scale in SCALES:
        labels = segmentation.felzenszwalb(
            pixels, scale=scale, sigma=0.8, min_size=scaled(LEAST, image), channel_axis=2
        )
        for label in range(labels.max() + 1):
            found.append(torch.from_numpy(morphology.dilation(labels == label, morphology.disk(radius))))
    return torch.stack(found)


def ranks(masks: Tensor, density: Tensor, fresh: int) -> Tensor:
    """For each pixel the mean density of the pixels that came with it, as the densest region is added each time.

    masks    (m, pixels) 0 or 1
    density  (pixels,)
    fresh    pixels that a region must add at least; what no region brings gets the mean of all that are left
    returns  (pixels,)
    """
    left = torch.ones_like(density)
    result = torch.zeros_like(density)
    while True:
        areas = masks @ left
        means = (masks @ (density * left)) / areas.clamp(min=1)
        best = int(means.masked_fill(areas < fresh, -torch.inf).argmax())
        if areas[best] < fresh:
            break
        added = (masks[best] * left).bool()
        result[added] = means[best]
        left[added] = 0
    rest = left.bool()
    if bool(rest.any()):
        result[rest] = density[rest].mean()
    return result


XRAI = Method(
    name="xrai",
    function=xrai,
    needs=("gradient",),
    random=False,
    signed=True,
    cite="kapishnikov2019xrai",
    version=1,
    settings={"steps": 50},
    inputs=("image",),
)
SEGMENTS = (XRAI,)
