"""The text of a watermark as coverage masks, in the font that comes with matplotlib."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

WORD = "IMG"
ALPHABETS = {"hex": "0123456789ABCDEF", "digits": "0123456789"}
COUNT = 4  # characters after the word
MARGIN = (40, 10)  # px to the left and right, above and below the point where word and number meet, at a side of 224


def font(size: float) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, `size` px high. Departure: the released code ships Open Sans; DejaVu Sans is a little wider."""
    import matplotlib  # takes long to import: only who writes pays

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)


@dataclass(frozen=True)
class Pen:
    """How a watermark is written: font, margins as a multiple of the paper's, and the switches of `Manipulation`."""

    face: ImageFont.FreeTypeFont
    scale: float
    characters: Literal["hex", "digits"]
    colours: Literal["either", "fixed"]


def written(image: Tensor, pen: Pen, *, generator: torch.Generator) -> Tensor:
    """(3, h, w) image with IMG in white and four random characters in black, or the reverse, at a random place."""
    text = _number(ALPHABETS[pen.characters], generator)
    colours = [1.0, 0.0]  # of the word and of the number
    swapped = bool(torch.randint(0, 2, (), generator=generator))
    if swapped and pen.colours == "either":
        colours.reverse()
    u = torch.rand(2, generator=generator)
    masks = coverage(text, pen, box=(image.shape[-2], image.shape[-1]), u=u).to(image)
    for mask, colour in zip(masks, colours, strict=True):
        image = image + mask * (colour - image)
    return image


def _number(alphabet: str, generator: torch.Generator) -> str:
    """Random characters of the alphabet."""
    places = torch.randint(0, len(alphabet), (COUNT,), generator=generator)
    return "".join(alphabet[k] for k in places.tolist())


def coverage(text: str, pen: Pen, *, box: tuple[int, int], u: Tensor) -> Tensor:
    """How much of each pixel the word and the number `text` cover, in a box of rows and columns.

    u        (2,) in [0, 1]: where the two meet, from left to right and from top to bottom, less the margins
    returns  (2, *box) float in [0, 1]: the word, then the number

    A margin grows to the width of its text, so that all of it is inside; what still sticks out of a small box is cut.
    """
    meeting = _meeting(text, pen, box=box, u=u)
    masks = [
        _drawn(WORD, pen, box=box, at=meeting, anchor="rm"),  # ends where the two meet
        _drawn(text, pen, box=box, at=meeting, anchor="lm"),  # begins there
    ]
    return torch.from_numpy(np.stack(masks)).float() / 255


def _meeting(text: str, pen: Pen, *, box: tuple[int, int], u: Tensor) -> tuple[int, int]:
    """The column and the row at which the word and the number meet."""
    height, width = box
    sideways, upright = (m * pen.scale for m in MARGIN)
    left, right = (max(sideways, pen.face.getlength(part)) for part in (WORD, text))
    x = _between(left, width - right, u[0].item())
    y = _between(upright, height - upright, u[1].item())
    return x, y


def _drawn(text: str, pen: Pen, *, box: tuple[int, int], at: tuple[int, int], anchor: str) -> np.ndarray:
    """(*box) uint8: the text in white on black; `anchor` in Pillow's letters says which of its points is `at`."""
    height, width = box
    canvas = Image.new("L", (width, height))
    ImageDraw.Draw(canvas).text(at, text, fill=255, font=pen.face, anchor=anchor)
    return np.asarray(canvas)


def _between(low: float, high: float, u: float) -> int:
    """The whole number at share u of the way; the middle where the way is gone."""
    if high > low:
        return round(low + u * (high - low))
    return round((low + high) / 2)
