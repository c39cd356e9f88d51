"""Scenes made by chance with the statistics of photographs, for when no photographs are at hand."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

COVER = 6.0  # discs over each pixel on average; exp(-6) = 0.2 % of the pixels show the ground
LEAST = 2.0  # px; with 1 px the scenes are much rougher than photographs
GROUP = 32  # images painted at once, to bound the memory
SAME_AREA = {1.0: math.sqrt(math.pi / 2), 2.0: 1.0, math.inf: math.sqrt(math.pi) / 2}  # half-axis of a leaf of radius 1


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


@dataclass(frozen=True)
class Leaf:
    """A kind of leaf to cover a scene with.

    power    of |u|^power + |v|^power < 1: 2 for ellipses, inf for rectangles, 1 for diamonds
    stretch  length over width
    angle    of the length against the rows, in radians; each leaf is off by about a tenth
    least, largest  radius of the disc of the same area, as shares of the side of the scene
    """

    power: float
    stretch: float = 1.0
    angle: float = 0.0
    least: float = 0.07
    largest: float = 0.25


def rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """(..., 3) from three tensors (...): the usual double hexcone. Hue is taken modulo 1, the others lie in [0, 1]."""
    k = (torch.tensor([5.0, 3.0, 1.0]) + hue[..., None] * 6) % 6
    return value[..., None] * (1 - saturation[..., None] * torch.minimum(k, 4 - k).clamp(0, 1))


def coloured_leaves(leaf: Leaf, hue: Tensor, *, side: int, generator: torch.Generator) -> Tensor:
    """Dead leaves of one kind, in muted colours around one hue for each scene.

    hue      (n,)
    returns  (n, 3, side, side) float in [0, 1]

    As in `dead_leaves`: uniform places on a torus, density r^-3 of the radius. Hue within about 0.06 of the scene's,
    saturation and value uniform.
    """
    return torch.cat([_covered(leaf, part, side, generator) for part in hue.split(GROUP)])


def _covered(leaf: Leaf, hue: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """(n, 3, side, side): every pixel takes the colour of the highest leaf over it."""
    n, least, largest = len(hue), max(leaf.least * side, 1.2), max(leaf.largest * side, 2.4)
    area = 2 * math.pi * math.log(largest / least) / (least**-2 - largest**-2)
    leaves = n * math.ceil(COVER * side**2 / area)
    u, hue_off, angle_off = torch.rand(leaves, generator=generator), *torch.randn(2, leaves + n, generator=generator)
    radius = (least**-2 - u * (least**-2 - largest**-2)) ** -0.5
    centre = torch.rand(leaves, 2, generator=generator) * side
    angle = leaf.angle + 0.1 * angle_off[:leaves]
    image = torch.arange(leaves + n) % n
    saturation, value = torch.rand(2, leaves + n, generator=generator)
    colour = rgb(hue[image] + 0.06 * hue_off, 0.1 + 0.5 * saturation, 0.15 + 0.8 * value)  # (leaves + n, 3)
    top = torch.arange(-n, 0).repeat_interleave(side * side)
    for low in (least * 2 ** (k / 2) for k in range(math.ceil(2 * math.log2(largest / least)))):
        chosen = ((radius >= low) & (radius < low * math.sqrt(2))).nonzero().squeeze(1)
        pixel, which = _under(leaf, radius[chosen], centre[chosen], angle[chosen], side=side)
        top.scatter_reduce_(0, pixel + image[chosen[which]] * side * side, chosen[which], "amax")
    return colour[top].reshape(n, side, side, 3).permute(0, 3, 1, 2).contiguous()


def _under(leaf: Leaf, radius: Tensor, centre: Tensor, angle: Tensor, *, side: int) -> tuple[Tensor, Tensor]:
    """Pixels (m,) under leaves of about one radius (leaves,), and for each the place of its leaf among these (m,)."""
    length = radius * math.sqrt(leaf.stretch) * SAME_AREA[leaf.power]
    cos, sin = angle.cos(), angle.sin()
    reach = (
        length * torch.stack([(sin.abs() + cos.abs() / leaf.stretch), (cos.abs() + sin.abs() / leaf.stretch)])
    ).amax(1)
    row, column = (
        centre[:, axis, None].floor().long() + torch.arange(-math.ceil(far), math.ceil(far) + 1)
        for axis, far in enumerate(reach.tolist())
    )  # (leaves, height), (leaves, width)
    down, right = (row + 0.5 - centre[:, :1]) / length[:, None], (column + 0.5 - centre[:, 1:]) / length[:, None]
    cos, sin = cos[:, None], sin[:, None]
    along = (right * cos)[:, None, :] + (down * sin)[:, :, None]
    across = (down * (cos * leaf.stretch))[:, :, None] - (right * (sin * leaf.stretch))[:, None, :]
    which, *place = (_size(along, across, leaf.power) < 1).nonzero(as_tuple=True)
    return row[which, place[0]] % side * side + column[which, place[1]] % side, which


def _size(u: Tensor, v: Tensor, power: float) -> Tensor:
    """|u|^power + |v|^power, and their maximum where power is inf; overwrites u and v."""
    if power == 2:
        return u.square_().add_(v.square_())
    u, v = u.abs_(), v.abs_()
    return u.add_(v) if power == 1 else torch.maximum(u, v)


def stripes(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: slanted waves that rise to the right, four to eight across the scene."""
    angle, wave, phase = _waves(n, side, generator)
    down, right = _grid(side)
    t = right * (math.pi / 4 + 0.15 * angle).cos() + down * (math.pi / 4 + 0.15 * angle).sin()
    return torch.sigmoid(4 * torch.sin(2 * math.pi * (t / wave + phase[0])))


def checks(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: a chequerboard, nearly upright, two to four pairs of fields across the scene."""
    angle, wave, phase = _waves(n, side, generator)
    down, right = _grid(side)
    c, s = (0.1 * angle).cos(), (0.1 * angle).sin()
    u, v = right * c + down * s, down * c - right * s
    u, v = (torch.sin(math.pi * (t / wave + 2 * p)) for t, p in zip((u, v), phase, strict=True))
    return torch.sigmoid(12 * u * v)


def clouds(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: smooth noise whose power falls as f^-3."""
    return torch.sigmoid(1.5 * _filtered(n, side, lambda f: f.clamp(min=1) ** -1.5 * (f > 0), generator))


def blobs(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: two colours that wind about each other, five turns across the scene."""
    return torch.sigmoid(6 * _filtered(n, side, lambda f: torch.exp(-((f - 5) ** 2) / 2), generator))


def two_coloured(field: Tensor, hue: Tensor, *, generator: torch.Generator) -> Tensor:
    """A dark and a light muted colour around each scene's hue, mixed by a field.

    field    (n, side, side) in [0, 1]
    hue      (n,)
    returns  (n, 3, side, side) float in [0, 1]
    """
    off = 0.06 * torch.randn(2, len(hue), generator=generator)
    saturation, value = torch.rand(2, 2, len(hue), generator=generator)
    dark, light = rgb(hue + off, 0.1 + 0.5 * saturation, torch.tensor([[0.15], [0.6]]) + 0.3 * value)  # (n, 3)
    mixed = dark[..., None, None] + (light - dark)[..., None, None] * field[:, None]
    return (mixed + 0.02 * torch.randn(mixed.shape, generator=generator)).clamp_(0, 1)


def _grid(side: int) -> tuple[Tensor, Tensor]:
    """Rows (side, 1) and columns (1, side) as shares of the side."""
    step = (torch.arange(side) + 0.5) / side
    return step[:, None], step[None, :]


def _waves(n: int, side: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """For each scene a standard normal, a wavelength as a share of the side (n, 1, 1), and two phases (2, n, 1, 1)."""
    u = torch.rand(3, n, 1, 1, generator=generator)
    wave = (0.125 + 0.125 * u[0]).clamp(min=4 / side)  # a wave needs four pixels to be seen
    return torch.randn(n, 1, 1, generator=generator), wave, u[1:]


def _filtered(n: int, side: int, gain: Callable[[Tensor], Tensor], generator: torch.Generator) -> Tensor:
    """(n, side, side) noise of mean 0 and variance 1, with `gain` at each frequency in waves per side."""
    f = torch.fft.fftfreq(side)[:, None].square() + torch.fft.rfftfreq(side).square()
    noise = torch.fft.rfft2(torch.randn(n, side, side, generator=generator)) * gain(f.sqrt() * side)
    field = torch.fft.irfft2(noise, s=(side, side))
    field = field - field.mean((1, 2), keepdim=True)
    return field / field.square().mean((1, 2), keepdim=True).sqrt()
