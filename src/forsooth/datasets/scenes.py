"""Scenes made by chance with the statistics of photographs, for when no photographs are at hand."""

import math

import torch
from torch import Tensor

COVER = 6.0  # discs over each pixel on average; exp(-6) = 0.2 % of the pixels show the ground
LEAST = 2.0  # px; with 1 px the scenes are much rougher than photographs
GROUP = 32  # images painted at once, to bound the memory


def dead_leaves(n: int, *, size: int, generator: torch.Generator) -> Tensor:
    """Grey images of discs that hide one another, in [0, 1].

    returns  (n, size, size) float

    [lee2001occlusion]: discs at uniform places, of uniform grey, with density r^-3 of the radius r between 2 px and
    a quarter of the side (at least 4 px). Objects of all sizes that occlude one another give what photographs have:
    power that falls about as 1/f^2, and gradients that are mostly small and rarely huge.
    Departure: the image is a torus, so that no disc is lost at the border.
    """
    groups = range(0, n, GROUP)
    return torch.cat([_painted(min(GROUP, n - start), size, generator) for start in groups])


def _painted(n: int, size: int, generator: torch.Generator) -> Tensor:
    """(n, size, size): every pixel takes the grey of the highest disc over it."""
    least, largest = LEAST, max(size / 4, 2 * LEAST)
    area = 2 * math.pi * math.log(largest / least) / (least**-2 - largest**-2)  # mean area of a disc
    discs = n * math.ceil(COVER * size**2 / area)
    u = torch.rand(discs, generator=generator)
    radius = (least**-2 - u * (least**-2 - largest**-2)) ** -0.5  # inverse of the distribution function
    centre = torch.rand(discs, 2, generator=generator) * size
    grey = torch.rand(discs + n, generator=generator)
    top = torch.arange(-n, 0).repeat_interleave(size * size)  # a disc is as high as its number, the ground below 0
    image = torch.arange(discs) % n
    for low in (least * 2 ** (k / 2) for k in range(math.ceil(2 * math.log2(largest / least)))):
        chosen = ((radius >= low) & (radius < low * math.sqrt(2))).nonzero().squeeze(1)
        pixel, height = _pixels(chosen, radius, centre, reach=math.ceil(low * math.sqrt(2)), size=size)
        top.scatter_reduce_(0, pixel + image[height] * size * size, height, "amax")
    return grey[top].reshape(n, size, size)  # below 0: the last n greys


def _pixels(chosen: Tensor, radius: Tensor, centre: Tensor, *, reach: int, size: int) -> tuple[Tensor, Tensor]:
    """Pixels (m,) under the chosen discs, and for each the number of its disc (m,); `reach` bounds the radii."""
    offset = torch.arange(-reach, reach + 1)
    corner = centre[chosen].floor().long()  # (discs, 2)
    row, column = (corner[:, axis, None] + offset for axis in (0, 1))  # (discs, 2 reach + 1)
    up = (row + 0.5 - centre[chosen, 0, None]) ** 2
    along = (column + 0.5 - centre[chosen, 1, None]) ** 2
    inside = up[:, :, None] + along[:, None, :] < radius[chosen, None, None] ** 2
    place = (row % size * size)[:, :, None] + (column % size)[:, None, :]
    which = chosen[:, None, None].expand_as(place)
    return place[inside], which[inside]
