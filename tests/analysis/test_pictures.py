"""Maps as pictures: zero is white, signs have their colours, channels are summed."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

import forsooth


def middle(picture: forsooth.Picture, *, of: int = 1, place: int = 0) -> tuple[int, ...]:
    """The colour in the middle of a panel."""
    image = Image.open(io.BytesIO(picture.png)).convert("RGB")
    return image.getpixel((int((place + 0.48) * image.width / of), int(0.55 * image.height)))


def test_red_speaks_for_blue_against_and_zero_is_white():
    ends = np.zeros((3, 3))
    ends[0, 0] = 1.0
    red = middle(forsooth.show(np.ones((3, 3))))
    blue = middle(forsooth.show(-torch.ones(2, 3, 3, requires_grad=True)))
    assert red[0] > 2 * red[2] and blue[2] > 2 * blue[0]
    assert min(middle(forsooth.show(ends))) > 240


def test_the_image_comes_first_and_files_are_kept(tmp_path):
    both = forsooth.show(np.ones((3, 3)), image=np.eye(3), titles=["mine"])
    assert len(set(middle(both, of=2))) == 1 and middle(both, of=2, place=1)[0] > 90  # grey, then red
    assert both.save(tmp_path / "map.png").read_bytes() == both._repr_png_()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (((), {}), "`maps` must be at least one map, got none"),
        (((np.ones((1, 2, 3, 4)),), {}), r"`maps` must be .*, got \(1, 2, 3, 4\)"),
        ((("x",), {}), "`maps` must be arrays of numbers, got str"),
        ((([[1, 2], [3]],), {}), "`maps` must be arrays of numbers, got list"),
        (((np.ones(3),), {"titles": ["a", "b"]}), "`titles` must be one for each of 1 maps, got 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, message):
    maps, options = arguments
    with pytest.raises(forsooth.UsageError, match=message):
        forsooth.show(*maps, **options)


def test_at_a_prompt_no_bytes_are_printed():
    assert repr(forsooth.show(np.eye(3))).startswith("Picture of ")
