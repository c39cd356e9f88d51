"""Scenes made by chance with the statistics of photographs, for when no photographs are at hand."""

import math
from collections.abc import Callable, Iterator
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


@dataclass(frozen=True)
class Radii:
    """Radii between `least` and `largest` px with density r^-3."""

    least: float
    largest: float

    def count(self, side: int) -> int:
        """How many discs cover a square of this side COVER times on average."""
        spread = self.least**-2 - self.largest**-2
        area = 2 * math.pi * math.log(self.largest / self.least) / spread  # mean area of a disc
        return math.ceil(COVER * side**2 / area)

    def at(self, u: Tensor) -> Tensor:
        """Radii (k,) from uniform draws u (k,), by the inverse of the distribution function."""
        return (self.least**-2 - u * (self.least**-2 - self.largest**-2)) ** -0.5

    def bands(self, radius: Tensor) -> Iterator[tuple[Tensor, float]]:
        """The discs (m,) of similar radius, and a bound of it: so that they can be painted in boxes of one size."""
        for k in range(math.ceil(2 * math.log2(self.largest / self.least))):
            low = self.least * 2 ** (k / 2)
            high = low * math.sqrt(2)
            yield ((radius >= low) & (radius < high)).nonzero().squeeze(1), high


def _painted(n: int, size: int, generator: torch.Generator) -> Tensor:
    """(n, size, size): every pixel takes the grey of the highest disc over it."""
    radii = Radii(LEAST, max(size / 4, 2 * LEAST))
    discs = n * radii.count(size)
    radius = radii.at(torch.rand(discs, generator=generator))
    centre = torch.rand(discs, 2, generator=generator) * size
    grey = torch.rand(discs + n, generator=generator)
    top = _ground(n, size)
    for chosen, bound in radii.bands(radius):
        pixel, disc = _pixels(chosen, radius, centre, reach=math.ceil(bound), size=size)
        image = disc % n
        top.scatter_reduce_(0, pixel + image * size * size, disc, "amax")
    return grey[top].reshape(n, size, size)  # below 0: the last n greys


def _ground(n: int, side: int) -> Tensor:
    """(n * side * side,) int: what is highest over each pixel before anything is painted, one number for each image.

    A disc is as high as its number, from 0; the ground is below.
    """
    return torch.arange(-n, 0).repeat_interleave(side * side)


def _pixels(chosen: Tensor, radius: Tensor, centre: Tensor, *, reach: int, size: int) -> tuple[Tensor, Tensor]:
    """Pixels (m,) under the chosen discs, and for each the number of its disc (m,); `reach` bounds the radii."""
    near = centre[chosen]
    rows, up = _line(near[:, :1], reach)
    columns, along = _line(near[:, 1:], reach)
    inside = up.square()[:, :, None] + along.square()[:, None, :] < radius[chosen, None, None] ** 2
    disc, row, column = inside.nonzero(as_tuple=True)
    pixel = rows[disc, row] % size * size + columns[disc, column] % size
    return pixel, chosen[disc]


def _line(centre: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """The pixels (discs, 2 reach + 1) of one axis around each centre (discs, 1), and how far their middles are away."""
    place = centre.floor().long() + torch.arange(-reach, reach + 1)
    return place, place + 0.5 - centre


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
    n = len(hue)
    radii = Radii(max(leaf.least * side, 1.2), max(leaf.largest * side, 2.4))
    leaves = n * radii.count(side)
    radius = radii.at(torch.rand(leaves, generator=generator))
    hue_off, angle_off = torch.randn(2, leaves + n, generator=generator)
    centre = torch.rand(leaves, 2, generator=generator) * side
    angle = leaf.angle + 0.1 * angle_off[:leaves]
    hues = hue[torch.arange(leaves + n) % n] + 0.06 * hue_off
    colour = _muted(hues, generator)  # (leaves + n, 3), the last n are those of the ground
    top = _ground(n, side)
    for chosen, _ in radii.bands(radius):
        pixel, which = _under(leaf, radius[chosen], centre[chosen], angle[chosen], side=side)
        image = chosen[which] % n
        top.scatter_reduce_(0, pixel + image * side * side, chosen[which], "amax")
    return colour[top].reshape(n, side, side, 3).permute(0, 3, 1, 2).contiguous()


def _muted(hue: Tensor, generator: torch.Generator) -> Tensor:
    """(k, 3): a colour of each hue (k,), not too vivid and not too dark."""
    saturation, value = torch.rand(2, len(hue), generator=generator)
    return rgb(hue, 0.1 + 0.5 * saturation, 0.15 + 0.8 * value)


def _under(leaf: Leaf, radius: Tensor, centre: Tensor, angle: Tensor, *, side: int) -> tuple[Tensor, Tensor]:
    """Pixels (m,) under leaves of about one radius (leaves,), and for each the place of its leaf among these (m,)."""
    length = radius * math.sqrt(leaf.stretch) * SAME_AREA[leaf.power]
    reach = _reach(leaf, length, angle)
    rows, down = _line(centre[:, :1], reach[0])  # (leaves, height)
    columns, right = _line(centre[:, 1:], reach[1])  # (leaves, width)
    along, across = _turned(leaf, down / length[:, None], right / length[:, None], angle[:, None])
    which, row, column = (_size(along, across, leaf.power) < 1).nonzero(as_tuple=True)
    return rows[which, row] % side * side + columns[which, column] % side, which


def _reach(leaf: Leaf, length: Tensor, angle: Tensor) -> list[int]:
    """Rows and columns from the centre within which all leaves of these lengths and angles (leaves,) lie."""
    cos = angle.cos().abs()
    sin = angle.sin().abs()
    sides = torch.stack([sin + cos / leaf.stretch, cos + sin / leaf.stretch])  # (2, leaves)
    return [math.ceil(far) for far in (length * sides).amax(1).tolist()]


def _turned(leaf: Leaf, down: Tensor, right: Tensor, angle: Tensor) -> tuple[Tensor, Tensor]:
    """Along and across each leaf (leaves, height, width), in units of its half-axes.

    down, right, angle  (leaves, height), (leaves, width) and (leaves, 1)
    """
    cos = angle.cos()
    sin = angle.sin()
    along = (right * cos)[:, None, :] + (down * sin)[:, :, None]
    across = (down * (cos * leaf.stretch))[:, :, None] - (right * (sin * leaf.stretch))[:, None, :]
    return along, across


def _size(u: Tensor, v: Tensor, power: float) -> Tensor:
    """|u|^power + |v|^power, and their maximum where power is inf; overwrites u and v."""
    if power == 2:
        return u.square_().add_(v.square_())
    u.abs_()
    v.abs_()
    if power == 1:
        return u.add_(v)
    return torch.maximum(u, v)


def stripes(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: slanted waves that rise to the right, four to eight across the scene."""
    angle, wave, phase = _waves(n, side, generator)
    down, right = _grid(side)
    slant = math.pi / 4 + 0.15 * angle
    along = right * slant.cos() + down * slant.sin()
    return torch.sigmoid(4 * torch.sin(2 * math.pi * (along / wave + phase[0])))


def checks(n: int, *, side: int, generator: torch.Generator) -> Tensor:
    """(n, side, side) in [0, 1]: a chequerboard, nearly upright, two to four pairs of fields across the scene."""
    angle, wave, phase = _waves(n, side, generator)
    down, right = _grid(side)
    cos = (0.1 * angle).cos()
    sin = (0.1 * angle).sin()
    along = (right * cos + down * sin) / wave
    across = (down * cos - right * sin) / wave
    u = torch.sin(math.pi * (along + 2 * phase[0]))
    v = torch.sin(math.pi * (across + 2 * phase[1]))
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
    values = torch.tensor([[0.15], [0.6]]) + 0.3 * value  # (2, n): dark, light
    dark, light = rgb(hue + off, 0.1 + 0.5 * saturation, values)  # (n, 3) each
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
