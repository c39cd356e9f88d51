"""The user's methods get names, and are asked alike whatever they were given as."""

import dataclasses
import inspect

import numpy as np
import own_methods
import pytest
import torch

from forsooth import plugins
from forsooth.adapters import methods
from forsooth.attributions import METHODS
from forsooth.records import UsageError

X = torch.arange(6.0).reshape(2, 3)
TARGET = torch.tensor([0, 1])


def in_numpy(model, x, target, *, baseline=None):
    return x.numpy().astype(np.int64)


def words(model, x, target):
    return np.array(["a", "b"])


@pytest.mark.parametrize(
    "given, name, own, portable",
    [
        ("gradient", "gradient", False, True),
        ("own_methods:gradient", "own_methods:gradient", True, True),
        ("own_methods:RECORD", "own_methods:RECORD", False, True),
        (own_methods.RECORD, own_methods.RECORD.name, False, False),
        (in_numpy, "in_numpy", True, False),
    ],
)
def test_every_kind_of_method_gets_a_name(given, name, own, portable):
    found = methods.named(given, METHODS)
    assert (found.name, found.own, found.portable) == (name, own, portable)


def test_the_identity_is_that_of_keys_where_others_can_find_the_method():
    by_path = methods.named("own_methods:gradient", METHODS)
    assert by_path.identity() == plugins.identity(by_path.method) and by_path.identity()["code"]
    live = methods.named(dataclasses.replace(own_methods.RECORD, name="no:where"), METHODS)
    assert live.identity() == {"method": "no:where", "version": own_methods.RECORD.version, "code": ""}


def test_nulls_come_last_and_once():
    found = methods.with_nulls(["constant", "gradient"], ("random", "constant"), METHODS)
    assert [one.name for one in found] == ["constant", "gradient", "random"]


@pytest.mark.parametrize("given", [["gradient", "gradient"], [in_numpy, "taken"]])
def test_names_must_differ(given):
    def taken(model, x, target):
        return x

    given = [taken if one == "taken" else one for one in given]
    with pytest.raises(UsageError, match="`methods` must have names of their own, other than taken, got"):
        methods.with_nulls(given, (), METHODS, reserved="taken")


def test_arrays_become_tensors_like_x_and_the_signature_stays():
    record = methods.named(in_numpy, METHODS).method
    ready = methods.accepting_arrays(record)
    maps = ready(None, X, TARGET)
    assert torch.equal(maps, X) and maps.dtype == X.dtype
    assert inspect.signature(ready.function) == inspect.signature(in_numpy)
    kept = methods.accepting_arrays(methods.named(words, METHODS).method)(None, X, TARGET)
    assert isinstance(kept, np.ndarray)  # for the caller to refuse
