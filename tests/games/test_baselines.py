import torch
from pytest import mark, raises
from scipy.ndimage import gaussian_filter

from forsooth.games.baselines import baseline, blurred
from forsooth.records import UsageError
from forsooth.seeds import generator

X = torch.randn(4, 3, 5, 6, generator=generator(0, "x"))
DATA = torch.randn(7, 3, 5, 6, generator=generator(0, "data"))


def test_means_by_hand() -> None:
    torch.testing.assert_close(baseline("mean", X, DATA), sum(DATA) / 7)
    found = baseline("channel_mean", X, DATA)
    assert found.shape == (3, 5, 6)
    for channel in range(3):
        values = DATA[:, channel].flatten()
        torch.testing.assert_close(found[channel], (values.sum() / len(values)).expand(5, 6))


def test_images_without_channels_have_one() -> None:
    torch.testing.assert_close(baseline("channel_mean", X[:, 0], DATA[:, 0]), DATA[:, 0].mean().expand(5, 6))


def test_zero_and_own() -> None:
    assert torch.equal(baseline("zero", X), torch.zeros(3, 5, 6))
    assert torch.equal(baseline(DATA[0].double(), X), DATA[0])
    assert torch.equal(baseline(DATA[:4], X), DATA[:4])


@mark.parametrize("sigma", [0.5, 2.0, 7.0])
def test_blur_equals_scipy(sigma: float) -> None:
    expected = gaussian_filter(X.double().numpy(), sigma, mode="nearest", axes=(2, 3), radius=-int(-3 * sigma // 1))
    torch.testing.assert_close(blurred(X.double(), sigma=sigma), torch.from_numpy(expected))
    grey = blurred(X.double()[:, 0], sigma=sigma)
    torch.testing.assert_close(grey, torch.from_numpy(expected)[:, 0])


def test_blur_is_for_each_image_and_goes_with_its_size() -> None:
    assert torch.equal(baseline("blur", X), blurred(X, sigma=6 * 10 / 224))
    torch.testing.assert_close(baseline("blur", X)[1:2], baseline("blur", X[1:2]))


def test_dtype_and_mean_of_many() -> None:
    """A float32 mean of many equal numbers must not drift."""
    data = torch.full((200_000, 1), 0.1)
    assert baseline("mean", data[:1].double(), data).item() == data[0].item()
    assert baseline("mean", X.double(), DATA).dtype == torch.float64


def test_bad_input_is_named() -> None:
    with raises(UsageError, match=r"`baseline` must have the shape of one input \(3, 5, 6\) or .*, got \(5, 6\)"):
        baseline(DATA[0, 0], X)
    with raises(UsageError, match=r"`baseline` must have .*, got \(7, 3, 5, 6\)"):
        baseline(DATA, X)
    with raises(UsageError, match="`baseline` must be a known name, got 'means'; did you mean mean"):
        baseline("means", X, DATA)
    with raises(UsageError, match=r"`data` must have shape \('k', 3, 5, 6\) with k > 0 for .* mean, got none"):
        baseline("mean", X)
    with raises(UsageError, match=r"for the baseline channel_mean, got \(7, 5, 6\)"):
        baseline("channel_mean", X, DATA[:, 0])
    with raises(UsageError, match=r"`data` must have shape .* got \(0, 3, 5, 6\)"):
        baseline("mean", X, DATA[:0])
    table = torch.zeros(4, 10)
    with raises(UsageError, match=r"`baseline` blur needs images, got inputs of shape \(10,\); take mean or zero"):
        baseline("blur", table)
    with raises(UsageError, match=r"`baseline` channel_mean needs images, got inputs of shape \(10,\); take mean"):
        baseline("channel_mean", table, table)
    with raises(UsageError, match="`sigma` must be positive, got 0"):
        blurred(X, sigma=0)
