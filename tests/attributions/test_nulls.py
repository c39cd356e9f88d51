import numpy
import scipy.ndimage
import torch
from attributions import nets
from pytest import mark, raises

from forsooth.attributions.nulls import NULLS, laplace, oracle, sobel, sobel_last_axis
from forsooth.records import UsageError

X = nets.inputs(3, 2, 5, 7)
TARGET = torch.tensor([0, 1, 1])
RECORDS = {method.name: method for method in NULLS}


def unasked(x: torch.Tensor) -> torch.Tensor:
    raise AssertionError("a null asked the model")


def test_filters_equal_scipy() -> None:
    for image, edges, last, second in zip(
        X.flatten(0, 1),
        sobel(unasked, X, TARGET).flatten(0, 1),
        sobel_last_axis(unasked, X, TARGET).flatten(0, 1),
        laplace(unasked, X, TARGET).flatten(0, 1),
        strict=True,
    ):
        across, down = (scipy.ndimage.sobel(image.numpy(), axis=axis) for axis in (-1, 0))
        numpy.testing.assert_allclose(edges, numpy.hypot(across, down), atol=1e-12)
        numpy.testing.assert_allclose(last, scipy.ndimage.sobel(image.numpy()), atol=1e-12)
        numpy.testing.assert_allclose(second, scipy.ndimage.laplace(image.numpy()), atol=1e-12)


def test_filters_take_images_without_channels() -> None:
    assert torch.equal(sobel(unasked, X[:, 0], TARGET), sobel(unasked, X, TARGET)[:, 0])


@mark.parametrize("name", ["sobel", "sobel_released", "laplace"])
def test_filters_refuse_tables(name: str) -> None:
    with raises(UsageError, match=r"`x` must be images with two spatial axes, \(n, …, h, w\), got shape \(3, 4\)"):
        RECORDS[name](unasked, torch.zeros(3, 4), TARGET)


def test_random_is_uniform_and_follows_its_generators() -> None:
    x = torch.zeros(40, 1, 16, 16)
    ours = RECORDS["random"](unasked, x, x, generators=nets.own(1, 40))
    assert ours.dtype == x.dtype
    assert -1 <= ours.min() < -0.99 and 0.99 < ours.max() < 1
    assert abs(ours.mean()) < 0.03 and abs(ours.square().mean() - 1 / 3) < 0.02
    assert torch.equal(ours, RECORDS["random"](unasked, x, x, generators=nets.own(1, 40)))
    assert not torch.equal(ours, RECORDS["random"](unasked, x, x, generators=nets.own(2, 40)))


def test_the_simple_ones_by_hand() -> None:
    x = torch.tensor([[-2.0, 0.0, 3.0]])
    for name, expected in (
        ("constant", [[1.0, 1.0, 1.0]]),
        ("rectified_input", [[0.0, 0.0, 3.0]]),
        ("absolute_input", [[2.0, 0.0, 3.0]]),
    ):
        assert torch.equal(RECORDS[name](unasked, x, TARGET[:1]), torch.tensor(expected))


def test_oracle_is_the_truth_in_every_channel() -> None:
    truth = X[:, 0] > 0
    ours = oracle(unasked, X, TARGET, truth=truth)
    assert ours.dtype == X.dtype and ours.shape == X.shape
    assert torch.equal(ours[:, 0], truth.double()) and torch.equal(ours[:, 1], truth.double())
    assert torch.equal(oracle(unasked, X, TARGET, truth=X > 0), (X > 0).double())
    with raises(UsageError, match=r"`truth` must have shape \(3, 2, 5, 7\) or \(3, 5, 7\), got \(3, 7\)"):
        oracle(unasked, X, TARGET, truth=truth[:, 0])


def test_all_declare_that_they_ignore_the_model() -> None:
    assert all(method.null for method in NULLS)
