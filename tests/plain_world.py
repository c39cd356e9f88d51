"""Scenes and objects of a user whose classes are colours: networks learn them in seconds, and a look tells them.

The scenes are grey and the objects are not.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

SIDE = 16  # px of a scene
COUNT = 20  # of each class
NOISE = 15  # of 255, at most
GREYS = (30, 90, 150, 210)
COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0))


def paint(folder: Path) -> Path:
    """The folders `scenes` and `objects`, with a folder of images for each class."""
    draw = np.random.default_rng(0)
    for number, grey in enumerate(GREYS):
        write(folder / f"scenes/grey_{number}", noisy(grey, SIDE, draw))
    for number, colour in enumerate(COLOURS):
        images = noisy(np.array(colour), SIDE // 2, draw)
        write(folder / f"objects/colour_{number}", np.insert(images, 3, 255, axis=3))
    return folder


def noisy(colour, side: int, draw: np.random.Generator) -> np.ndarray:
    """(COUNT, side, side, 3) uint8"""
    noise = draw.integers(-NOISE, NOISE + 1, (COUNT, side, side, 3))
    return np.clip(colour + noise, 0, 255).astype(np.uint8)


def write(folder: Path, images: np.ndarray) -> None:
    folder.mkdir(parents=True)
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number}.png")


def classes_seen(x: Tensor) -> dict[str, Tensor]:
    """The class of the scene and of the object that images x (n, 3, h, w) with both show. label -> (n,)"""
    coloured = x.amax(1, keepdim=True) - x.amin(1, keepdim=True) > 0.5
    greys = torch.tensor(GREYS)[:, None].expand(-1, 3)
    return {"scene": nearest(x, ~coloured, greys), "object": nearest(x, coloured, torch.tensor(COLOURS))}


def nearest(x: Tensor, where: Tensor, colours: Tensor) -> Tensor:
    """The colour (k, 3) that is nearest to the mean of each image over some of its pixels (n, 1, h, w). (n,)"""
    mean = (x * where).sum((2, 3)) / where.sum((2, 3))
    return torch.cdist(mean, colours / 255).argmin(1)
