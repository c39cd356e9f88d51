import torch
from pytest import mark, raises
from skimage.color import gray2rgb
from skimage.segmentation import quickshift
from torch import Tensor

from forsooth.games.players import Channels, collect, parse, patches, pixels, seats, spread, superpixels
from forsooth.records import UsageError
from forsooth.seeds import generator


def test_pixels_leave_out_the_channels() -> None:
    assert torch.equal(pixels((3, 2, 2)), torch.tensor([[0, 1], [2, 3]]))
    assert torch.equal(pixels((2, 3)), torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert torch.equal(pixels((4,)), torch.tensor([0, 1, 2, 3]))


def test_patches_by_hand() -> None:
    expected = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]])
    assert torch.equal(patches((1, 4, 4), 2), expected)
    assert torch.equal(patches((5,), 2), torch.tensor([0, 0, 0, 1, 1]))
    assert torch.equal(patches((3, 4, 4), 4), pixels((3, 4, 4)))


@mark.parametrize("grid", [0, 5])
def test_a_grid_must_fit(grid: int) -> None:
    with raises(UsageError, match=rf"`grid` must lie in \[1, 4\] for inputs of shape \(1, 4, 6\), got {grid}"):
        patches((1, 4, 6), grid)


def test_players_must_fit_the_input() -> None:
    x = torch.zeros(2, 3, 4, 4)
    with raises(UsageError, match=r"`players` must have shape \(4, 4\) or \(3, 4, 4\), got \(4,\)"):
        seats(x, torch.arange(4))
    with raises(UsageError, match="`players` must be labels 0, 1, … without gaps, got labels from 0 to 2"):
        seats(x, torch.tensor([0, 2]).repeat(8).view(4, 4))
    with raises(UsageError, match="without gaps, got labels from -1 to 14"):
        seats(x, torch.arange(-1, 15).view(4, 4))
    with raises(UsageError, match=r"`players` must be integer labels, got torch\.float32"):
        seats(x, torch.arange(16.0).view(4, 4))


def test_spread_shares_evenly_and_keeps_the_sum() -> None:
    x = torch.zeros(1, 2, 1, 3, dtype=torch.float64)
    labels, count = seats(x, torch.tensor([[0, 1, 1]]))
    values = torch.tensor([[6.0, 8.0]], dtype=torch.float64)
    assert count == 2
    expected = torch.tensor([3.0, 2.0, 2.0], dtype=torch.float64).expand(1, 2, 1, 3)
    assert torch.equal(spread(values, labels, x), expected)


def test_channels_may_play_by_themselves() -> None:
    x = torch.zeros(1, 2, 1, 2)
    labels, count = seats(x, torch.arange(4).view(2, 1, 2))
    assert count == 4
    assert torch.equal(spread(torch.arange(4.0)[None], labels, x).flatten(), torch.arange(4.0))


def blobs(channels: int, *, seed: int = 0) -> Tensor:
    """Four quarters of one colour each, with a little noise, in [0, 1]."""
    draw = generator(seed, "blobs")
    quarters = torch.rand(channels, 2, 2, generator=draw).repeat_interleave(20, dim=1).repeat_interleave(20, dim=2)
    return (0.9 * quarters + 0.05 * torch.rand(channels, 40, 40, generator=draw)).double()


def test_superpixels_equal_those_of_lime() -> None:
    """As the authors' package calls it, on an image that already spans [0, 1]."""
    image = blobs(3)
    image = (image - image.min()) / (image.max() - image.min())
    expected = quickshift(image.permute(1, 2, 0).numpy(), kernel_size=4, max_dist=200, ratio=0.2)
    labels = superpixels(image)
    assert labels.dtype == torch.int64 and labels.shape == (40, 40)
    assert same_parts(labels, torch.from_numpy(expected))
    grey = (blobs(1) - blobs(1).min()) / (blobs(1).max() - blobs(1).min())
    expected = quickshift(gray2rgb(grey[0].numpy()), kernel_size=4, max_dist=200, ratio=0.2)
    assert same_parts(superpixels(grey), torch.from_numpy(expected))


def same_parts(one: Tensor, other: Tensor) -> bool:
    """Whether two labellings cut the image in the same way."""
    pairs = torch.unique(torch.stack([one.flatten(), other.flatten().long()]), dim=1).shape[1]
    return pairs == len(one.unique()) == len(other.unique())


@mark.parametrize("channels", [1, 3, 4])
def test_superpixels_do_not_depend_on_the_range(channels: int) -> None:
    image = blobs(channels)
    labels = superpixels(image, kernel_size=2, max_dist=6)
    assert labels.unique().tolist() == list(range(int(labels.max()) + 1))
    assert labels.max() > 0
    assert torch.equal(superpixels(image * 256 - 128, kernel_size=2, max_dist=6), labels)
    seats(image[None], labels)


def test_superpixels_of_a_flat_image_and_of_no_image() -> None:
    assert superpixels(torch.full((3, 6, 6), 7.0)).unique().tolist() == [0]
    with raises(UsageError, match=r"`image` must have shape \(channels, h, w\), got \(6, 6\)"):
        superpixels(torch.zeros(6, 6))


def test_words_of_the_terminal() -> None:
    assert torch.equal(parse("pixels", (3, 4, 4)), pixels((3, 4, 4)))
    assert torch.equal(parse("grid:2", (3, 4, 4)), patches((3, 4, 4), 2))
    assert torch.equal(parse("features", (5,)), torch.arange(5))
    assert torch.equal(parse("features", (2, 2, 2)), torch.arange(8).view(2, 2, 2))


@mark.parametrize("text", ["", "grid", "grid:", "grid:x", "grid:-1", "pixel", "pixels:2", "GRID:8"])
def test_other_words_are_refused(text: str) -> None:
    with raises(
        UsageError, match="`players` must be pixels, features, words or grid:N with a number N, as in grid:8, got"
    ):
        parse(text, (1, 4, 4))


MAPS = torch.tensor([[[[1.0, -4.0], [2.0, 0.0]], [[-3.0, 4.0], [1.0, 0.0]]]])  # one image, two channels of 2x2


@mark.parametrize(
    ("channels", "expected"),
    [("sum", [-2 + 0, 3 + 0]), ("max_abs", [3 + 4, 2 + 0]), ("signed_max", [-3 - 4, 2 + 0])],
)
def test_collect_by_hand(channels: Channels, expected: list[float]) -> None:
    labels, count = seats(MAPS, torch.tensor([[0, 0], [1, 1]]))
    assert collect(MAPS, labels, count, channels=channels).tolist() == [expected]


def test_collect_without_channels() -> None:
    maps = torch.tensor([[1.0, -2.0, 4.0], [0.0, 1.0, -1.0]])
    labels, count = seats(maps, torch.tensor([1, 0, 1]))
    for channels in ("sum", "max_abs", "signed_max"):
        assert collect(maps, labels, count, channels=channels).tolist() == [[-2.0, 5.0], [1.0, -1.0]]


def test_channels_that_play_by_themselves_are_not_reduced() -> None:
    labels, count = seats(MAPS, torch.arange(8).view(2, 2, 2))
    assert torch.equal(collect(MAPS, labels, count, channels="max_abs"), MAPS.double().flatten(1))


def test_collect_undoes_spread() -> None:
    x = torch.zeros(4, 3, 7, 5)
    labels, count = seats(x, patches((3, 7, 5), 3))
    values = torch.randn(4, count, generator=generator(0), dtype=torch.float64)
    torch.testing.assert_close(collect(spread(values, labels, x.double()), labels, count), values)


def test_collect_names_what_is_wrong() -> None:
    labels, count = seats(MAPS, None)
    with raises(UsageError, match="`channels` must be sum, max_abs or signed_max, got 'mean'"):
        collect(MAPS, labels, count, channels="mean")
    with raises(UsageError, match=r"`maps` must fit labels of shape \(1, 2, 2\), got maps \(1, 2, 3, 3\)"):
        collect(torch.zeros(1, 2, 3, 3), labels, count)
