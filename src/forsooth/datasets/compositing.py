"""One picture laid over another by its alpha."""

from collections.abc import Sequence

import torch
from torch import Tensor

from forsooth.datasets.objects import FAINT


def paste(image: Tensor, mask: Tensor, cutout: Tensor, *, box: Sequence[int], seen: bool) -> None:
    """Lay a cut-out (4, h, w) over image (3, height, width) in the box (top, left, height, width), in place; write its
    alpha into mask (height, width). Unless `seen`, only the mask is written. What alpha does not touch is not written.
    """
    top, left, height, width = box
    rows = slice(top, top + height)
    columns = slice(left, left + width)
    colour, alpha = _resized(unit(cutout).to(image), (height, width))
    mask[rows, columns] = alpha
    if seen:
        part = image[:, rows, columns]
        over = (colour + (1 - alpha) * part).clamp(0, 1)
        part.copy_(torch.where(alpha > 0, over, part))


def _resized(cutout: Tensor, size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Colour (3, *size), multiplied by alpha, and alpha (*size) in [0, 1] of a cut-out (4, h, w)."""
    solid = torch.cat([cutout[:3] * cutout[3:], cutout[3:]])[None]  # else colours from outside the object bleed in
    solid = torch.nn.functional.interpolate(solid, size, mode="bilinear", antialias=True)[0]
    alpha = solid[3].clamp(0, 1)
    return solid[:3], torch.where(alpha < FAINT, 0, alpha)


def unit(pixels: Tensor) -> Tensor:
    """Floats in [0, 1] from bytes; floats as they are."""
    if pixels.dtype == torch.uint8:
        return pixels / 255
    return pixels


def plain(ground: float | Tensor, like: Tensor) -> Tensor:
    """Images of the shape of `like` (k, 3, height, width) in one grey or one colour (3,)."""
    colour = torch.as_tensor(ground, dtype=like.dtype, device=like.device).reshape(-1, 1, 1)
    return colour.expand_as(like).clone()
