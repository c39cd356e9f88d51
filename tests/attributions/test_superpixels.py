import math

import numpy
import pytest
import torch
from attributions import nets
from pytest import approx, mark, raises
from sklearn.linear_model import Ridge
from sklearn.metrics import pairwise_distances
from torch import Tensor
from torch.nn import functional as F

from forsooth.attributions import superpixels as room
from forsooth.attributions.superpixels import lime_superpixels, mean_colours, proximity, random_masks
from forsooth.games.players import superpixels
from forsooth.records import UsageError
from forsooth.seeds import generator

TARGET = torch.tensor([0, 1, 1])
WEIGHT = nets.inputs(3 * 64 * 64, 2, seed=3)
HALVES = (torch.arange(4) // 2).expand(4, 4).contiguous()  # left is 0, right is 1


def tiles(channels: int = 3) -> Tensor:
    """Grainy images of 2, 4 and 8 tiles a side: their numbers of superpixels differ. (3, channels, 64, 64)"""
    drawn = [torch.rand(1, channels, side, side, generator=generator(side)).double() for side in (2, 4, 8)]
    even = torch.cat([F.interpolate(image, size=(64, 64), mode="nearest") for image in drawn])
    return (even + 0.03 * nets.inputs(3, channels, 64, 64, seed=5)).clamp(0, 1)


def curved(x: Tensor) -> Tensor:
    return torch.sin(x.flatten(1) @ WEIGHT[: x[0].numel()] / 9)


def by_the_package(x: Tensor, target: int, labels: Tensor, masks: Tensor, *, black: bool) -> numpy.ndarray:
    """The coefficients (superpixels,) as the authors' package gets them, one masked image after the other."""
    image, segments = x.numpy().transpose(1, 2, 0), labels.numpy()
    fudged = numpy.zeros_like(image)
    if not black:
        for one in numpy.unique(segments):
            fudged[segments == one] = image[segments == one].mean(axis=0)
    answers = []
    for row in masks.numpy():
        hidden = numpy.isin(segments, numpy.flatnonzero(row == 0))
        shown = numpy.where(hidden[..., None], fudged, image)
        answers.append(float(curved(torch.from_numpy(shown.transpose(2, 0, 1).copy())[None])[0, target]))
    data = masks.double().numpy()
    distances = pairwise_distances(data, data[:1], metric="cosine").ravel()
    weights = numpy.sqrt(numpy.exp(-(distances**2) / 0.25**2))
    return Ridge(alpha=1, fit_intercept=True).fit(data, numpy.array(answers), sample_weight=weights).coef_


@mark.parametrize("hide", ["mean", "black"])
@mark.parametrize("channels", [1, 3])
def test_equals_the_package_written_out(hide: str, channels: int) -> None:
    x = tiles(channels)
    segments = [superpixels(image) for image in x]
    counts = [int(labels.max()) + 1 for labels in segments]
    assert len(set(counts)) > 1 and min(counts) > 1, counts
    ours = lime_superpixels(curved, x, TARGET, generators=nets.own(4, 3), samples=50, hide=hide)
    for i, (labels, count, source) in enumerate(zip(segments, counts, nets.own(4, 3), strict=True)):
        masks = torch.rand(50, count, generator=source) < 0.5
        masks[0] = True
        fit = by_the_package(x[i], int(TARGET[i]), labels, masks, black=hide == "black")
        assert numpy.abs(fit).max() > 1e-3
        numpy.testing.assert_allclose(ours[i].sum(dim=0), fit[labels], atol=1e-10)
        assert all(torch.equal(channel, ours[i, 0]) for channel in ours[i])


def test_a_map_does_not_depend_on_neighbours_with_more_superpixels() -> None:
    x = tiles()
    ours = lime_superpixels(curved, x, TARGET, generators=nets.own(0, 3), samples=30)
    for i in range(3):
        one = slice(i, i + 1)
        alone = lime_superpixels(curved, x[one], TARGET[one], generators=nets.own(0, 3)[one], samples=30)
        torch.testing.assert_close(alone, ours[one], rtol=0, atol=1e-12)


def test_two_halves_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """f sums 3 x on the left and -x on the right; 16 entries of 1 in each half are worth 48 and -16."""
    monkeypatch.setattr(room, "superpixels", lambda image: HALVES)
    signs = torch.where(HALVES == 0, 3.0, -1.0).double()

    def halves(x: Tensor) -> Tensor:
        return (x * signs).flatten(1).sum(dim=1, keepdim=True)

    x, target = torch.ones(1, 2, 4, 4, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    ours = lime_superpixels(halves, x, target, generators=nets.own(0, 1), samples=20_000, hide="black", width=100)
    expected = torch.where(HALVES == 0, 48.0, -16.0).double()
    torch.testing.assert_close(ours[0].sum(dim=0), expected, rtol=2e-3, atol=0)
    # the mean colour of an even half is its own: nothing changes, so nothing matters
    painted = lime_superpixels(halves, x, target, generators=nets.own(0, 1), samples=100)
    assert painted.abs().max() < 1e-12


def test_mean_colours_by_hand() -> None:
    image = torch.tensor([[[1.0, 3.0], [5.0, 7.0]], [[0.0, 2.0], [9.0, 9.0]]])
    expected = torch.tensor([[[2.0, 2.0], [6.0, 6.0]], [[1.0, 1.0], [9.0, 9.0]]])
    assert torch.equal(mean_colours(image, torch.tensor([[0, 0], [1, 1]])), expected)


def test_proximity_by_hand() -> None:
    """Distances to the full mask are 0, 1 - √½ and, for the empty mask, 1."""
    masks = torch.tensor([[True, True], [True, False], [False, False]])
    expected = [1.0, math.sqrt(math.exp(-((1 - math.sqrt(0.5)) ** 2) / 0.0625)), math.exp(-8)]
    assert proximity(masks, 0.25).tolist() == approx(expected)


def test_masks_begin_full_and_show_half() -> None:
    masks = random_masks(400, 9, generator(1))
    assert masks.shape == (400, 9) and masks[0].all()
    assert masks[1:].double().mean(dim=0).tolist() == approx([0.5] * 9, abs=0.1)


def test_one_segmentation_and_all_masks_of_one_image_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    asked: list[Tensor] = []

    def segment(image: Tensor) -> Tensor:
        asked.append(image)
        return (torch.arange(16) // 4).view(4, 4)

    def watched(x: Tensor) -> Tensor:
        seen.append(x.clone())
        return x.flatten(1)[:, :2]

    monkeypatch.setattr(room, "superpixels", segment)
    x = nets.inputs(3, 1, 4, 4)
    lime_superpixels(watched, x, TARGET, generators=nets.own(0, 3), samples=40, hide="black")
    assert len(asked) == 3 and [len(part) for part in seen] == [40, 40, 40]
    for image, part in zip(x, seen, strict=True):
        assert torch.equal(part[0], image)
        assert ((part == 0) | (part == image)).all()


def test_an_even_image_and_no_image() -> None:
    x = torch.full((1, 3, 16, 16), 0.5, dtype=torch.float64)
    ours = lime_superpixels(curved, x, TARGET[:1], generators=nets.own(0, 1), samples=20, hide="black")
    assert ours.isfinite().all() and ours.abs().max() > 0
    none = lime_superpixels(curved, x[:0], TARGET[:0], generators=[], samples=20)
    assert none.shape == (0, 3, 16, 16)


def test_bad_input_is_named() -> None:
    with raises(UsageError, match=r"`x` must be images \(n, channels, h, w\), got \(3, 6\)"):
        lime_superpixels(curved, nets.inputs(3, 6), TARGET, generators=nets.own(0, 3))
    with raises(UsageError, match=r"`samples` must be at least 2 and `width` above 0, got 1 and 0\.25"):
        lime_superpixels(curved, tiles(), TARGET, generators=nets.own(0, 3), samples=1)
    with raises(UsageError, match="`width` above 0, got 1000 and nan"):
        lime_superpixels(curved, tiles(), TARGET, generators=nets.own(0, 3), width=math.nan)
    with raises(UsageError, match="`hide` must be mean or black, got 'grey'"):
        lime_superpixels(curved, tiles(), TARGET, generators=nets.own(0, 3), hide="grey")
