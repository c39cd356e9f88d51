"""One way to ask a method, for suites and for the user's own model."""

import dataclasses

import leaky_methods
import pytest
import torch
from torch import nn

from forsooth import chunks
from forsooth.records import Method
from forsooth.suites import explain

X = torch.arange(12.0).reshape(4, 3)


def record(function, **fields):
    plain = {"needs": (), "random": False, "signed": True, "cite": "me", "version": 1}
    return Method(name=function.__name__, function=function, **{**plain, **fields})


def question(**changes):
    known = {"model": lambda x: x, "x": X, "target": torch.tensor([0, 1, 2, 0]), "background": X, "fit": X}
    return explain.Question(**{**known, "truth": None, "layer": None, "seed": 0, **changes})


@pytest.fixture
def one_at_a_time(monkeypatch):
    monkeypatch.setattr(explain, "VALUES_AT_ONCE", 3)


def test_each_input_has_its_own_baseline_in_every_slice(one_at_a_time):
    seen = []

    def less(model, x, target, *, baseline):
        seen.append(len(x))
        return x - baseline

    each = explain.maps_of(record(less), question(game={"baseline": X - 1, "players": "not taken"}))
    assert torch.equal(each, torch.ones(4, 3)) and seen == [1, 1, 1, 1]
    shared = explain.maps_of(record(less), question(game={"baseline": X[0]}))
    assert torch.equal(shared, X - X[0])


def test_whoever_must_see_all_inputs_sees_them_at_once(one_at_a_time):
    def sums(model, x, target):
        return x.cumsum(0)

    fitted = record(lambda model, x, target, *, fit: x.cumsum(0), needs=("fit",))
    assert torch.equal(explain.maps_of(record(sums), question()), X)  # each for itself
    assert torch.equal(explain.maps_of(record(sums), question(whole=True)), X.cumsum(0))
    for method in (record(sums, null=True), fitted):
        assert torch.equal(explain.maps_of(method, question()), X.cumsum(0))


def test_a_method_may_write_into_what_it_is_handed():
    def writes(model, x, target):
        target.zero_()
        return x.zero_()

    asked = question()
    explain.maps_of(record(writes), asked)
    assert torch.equal(asked.x, torch.arange(12.0).reshape(4, 3)) and asked.target.tolist() == [0, 1, 2, 0]


def test_draws_go_by_the_input_and_by_the_stream(one_at_a_time):
    def draws(model, x, target, *, generators):
        return torch.stack([torch.rand(3, generator=own) for own in generators])

    method = record(draws, needs=("generators",))
    all_four = explain.maps_of(method, question())
    last = explain.maps_of(method, question(x=X[3:], target=torch.tensor([0]), samples=torch.tensor([3])))
    assert torch.equal(all_four[3:], last)
    assert not torch.equal(all_four, explain.maps_of(method, question(), stream="another"))


def test_refusals_say_what_came():
    with pytest.raises(explain.WrongShape, match=r"the map must have the shape of x \(4, 3\), got \(4,\)") as shape:
        explain.maps_of(record(lambda model, x, target: x[:, 0]), question())
    assert explain.refusal(shape.value) == {"failed": True, "status": "wrong shape", "message": str(shape.value)}
    with pytest.raises(explain.WrongShape, match=r"the map must be real numbers, got torch.complex64"):
        explain.maps_of(record(lambda model, x, target: x.to(torch.complex64)), question())
    facts = explain.attribute(record(lambda model, x, target: 1 / 0), question()).facts
    assert facts["status"] == "error" and facts["message"].startswith("ZeroDivisionError")


def test_a_promise_is_checked_in_slices_that_fit_the_memory():
    """A device that holds two inputs at once, as a card that is too small for all."""

    def small(x):
        if len(x) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return x * 2

    keeps = record(lambda model, x, target: model(x), promise="complete to background", inputs=("table",))
    asked = question(model=small, background=X[:3])
    expected = explain.promised(keeps, lambda x: x * 2, X, asked.target, background=X[:3])
    assert torch.equal(explain.promised_of(keeps, asked), expected)


@pytest.mark.parametrize("live", [False, True])
def test_what_a_method_says_it_retains_is_asked_apart_like_its_maps(live):
    """A record of the user's is asked in a process of its own, and one that lives here on copies."""
    asked = question(model=nn.Linear(3, 3))
    before = asked.model.weight.clone()
    method = dataclasses.replace(leaky_methods.RETAINED) if live else "leaky_methods:RETAINED"
    facts = explain.attribute(method, asked).facts
    assert facts["status"] == "error" and facts["message"].startswith("ValueError: nothing retained today")
    assert torch.equal(asked.model.weight, before) and torch.get_default_dtype() == torch.float32


def full(model, x, target):
    raise torch.OutOfMemoryError("CUDA out of memory")


def test_a_method_without_memory_is_tried_again_where_somebody_will():
    facts = explain.attribute(record(full), question()).facts
    assert set(facts) == {"failed", "status", "message"} and facts["status"] == "error"
    assert facts["message"].startswith("OutOfMemoryError: CUDA out of memory")
    with chunks.tried_again(), pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        explain.attribute(record(full), question())


def test_a_method_without_memory_in_its_own_process_is_tried_again_as_well():
    with chunks.tried_again(), pytest.raises(torch.OutOfMemoryError, match="CUDA out of memory"):
        explain.attribute("hostile_methods:fills_the_card", question())


def test_who_sees_all_inputs_at_once_is_never_asked_about_some():
    """What they draw or fit would be another for halves."""
    asked = []

    def fits(model, x, target):
        asked.append(len(x))
        raise torch.OutOfMemoryError("CUDA out of memory")

    explain.attribute(record(fits, null=True), question())
    assert asked == [4]
