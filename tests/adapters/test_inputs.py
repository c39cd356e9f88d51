"""The user's numbers, in memory and in files."""

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch

from forsooth.adapters import inputs
from forsooth.records import UsageError

NUMBERS = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors", "array", "tensor", "frame", "list", "big endian"])
def test_numbers_come_alike_from_everywhere(kind, tmp_path):
    np.save(tmp_path / "x.npy", NUMBERS)
    np.savez(tmp_path / "x.npz", NUMBERS)
    safetensors.numpy.save_file({"any": NUMBERS}, tmp_path / "x.safetensors")
    sources = {
        "array": NUMBERS,
        "tensor": torch.from_numpy(NUMBERS),
        "frame": pd.DataFrame(NUMBERS),
        "list": NUMBERS.tolist(),
        "big endian": NUMBERS.astype(">f8"),
    }
    value, array = inputs.numbers(sources.get(kind, tmp_path / f"x.{kind}"), "inputs")
    assert torch.equal(value, torch.from_numpy(NUMBERS))
    assert array == (kind not in ("tensor", "safetensors"))


def test_a_file_is_known_by_its_end():
    assert inputs.is_file("x.npy") and not inputs.is_file("pixels") and not inputs.is_file(NUMBERS)


@pytest.mark.parametrize(
    "given, dtype",
    [(np.float16, torch.float32), (np.float32, torch.float32), (np.int64, torch.float64), (bool, torch.float64)],
)
def test_a_batch_is_floating_point_and_halves_are_widened(given, dtype):
    x, _ = inputs.batch(NUMBERS.astype(given), "inputs")
    assert x.dtype == dtype and x.shape == (3, 2)


@pytest.mark.parametrize(
    "value, message",
    [
        (np.arange(3.0), r"`data` must have shape \(n, \*shape\) and not be empty, got \(3,\)"),
        (torch.zeros(2, 2, dtype=torch.complex64), "`data` must be real numbers, got torch.complex64"),
        (np.array([[1.0, np.inf], [0, 0]]), "`data` must be finite numbers, got nan or infinity in 1 of 2 inputs"),
        (np.array([["a"]]), "`data` must hold numbers, got entries of type"),
    ],
)
def test_a_batch_that_is_none(value, message):
    with pytest.raises(UsageError, match=message):
        inputs.batch(value, "data")


def test_other_inputs_must_be_alike():
    x = torch.zeros(4, 3)
    assert inputs.like(np.ones((2, 3)), "data", x).dtype == x.dtype
    with pytest.raises(UsageError, match=r"`data` must have shape \('k', 3\), got \(2, 2\)"):
        inputs.like(np.ones((2, 2)), "data", x)


def test_columns_are_put_in_order_by_name():
    frame = pd.DataFrame(NUMBERS, columns=["b", "a"])
    assert list(inputs.in_order(frame, "data", ["a", "b"]).columns) == ["a", "b"]
    assert inputs.in_order(NUMBERS, "data", ["a", "b"]) is NUMBERS
    unnamed = pd.DataFrame(NUMBERS)
    assert inputs.in_order(unnamed, "data", ["a", "b"]) is unnamed
    assert inputs.columns_of([1, 2]) is None and inputs.columns_of(frame.iloc[0]) == ["b", "a"]
    with pytest.raises(UsageError, match="must have the columns of `inputs`, in any order; c is missing in b, a"):
        inputs.in_order(frame, "data", ["a", "c"])


def test_many_columns_are_shown_in_part():
    class Fitted:
        feature_names_in_ = np.array([f"c{k}" for k in range(20)])

    with pytest.raises(UsageError, match=r"c11 … \(20\); got c19"):
        inputs.check_columns(Fitted(), [f"c{k}" for k in reversed(range(20))])
    inputs.check_columns(Fitted(), None)
    inputs.check_columns(object(), ["a"])


OUTPUTS = torch.tensor([[0.1, 0.9, 0.0], [0.5, 0.2, 0.3]])


@pytest.mark.parametrize(
    "value, expected",
    [(None, [1, 0]), (2, [2, 2]), ("2", [2, 2]), ([0, 1], [0, 1]), (np.array([1.0, 2.0]), [1, 2])],
)
def test_targets(value, expected):
    target = inputs.targets(value, OUTPUTS)
    assert target.tolist() == expected and target.dtype == torch.int64


@pytest.mark.parametrize(
    "value, message",
    [
        ([0, 3], r"`target` must lie in \[0, 2\], as the model has 3 outputs, got 3"),
        ([5, -2], r"got -2"),
        ([0.5, 1], "`target` must be whole numbers"),
        ([0, 1, 2], r"one for each of 2 inputs, got shape \(3,\)"),
        (True, r"got shape \(1,\)"),
    ],
)
def test_targets_that_are_none(value, message):
    with pytest.raises(UsageError, match=message):
        inputs.targets(value, OUTPUTS)
