"""Each check on evidence that was made up."""

import pytest
import torch

from forsooth.adapters.methods import NamedMethod
from forsooth.records import Method
from forsooth.surroundings import same_tensor
from forsooth.user.check import result, verdicts
from forsooth.user.check.evidence import NOT_MADE, Evidence, Trial, same_maps

X = torch.ones(3, 2)
MAP = Trial(X, "", "", 0.3)
OTHER = Trial(2 * X, "", "", 0.6)
LOST = Trial(None, "raised", "ValueError: no", 0.0)


def record(**fields):
    plain = {"needs": (), "random": False, "signed": True, "cite": "me", "version": 1}
    return Method(name="mine", function=lambda model, x, target: x, **{**plain, **fields})


def seen(**changes):
    trials = {
        "again": MAP,
        "reseeded": MAP,
        "retargeted": OTHER,
        "alone": ((0, Trial(X[:1], "", "", 0.1)),),
        "gap": 0.0,
    }
    return Evidence(**{"input": "table", "x": X, "first": MAP, **trials, **changes})


def test_identical_is_to_the_bit_and_nan_equals_nan():
    nan = torch.tensor([1.0, torch.nan])
    assert same_tensor(nan, nan.clone()) and not same_tensor(nan, torch.tensor([1.0, 2.0]))
    assert not same_tensor(X, X.double()) and not same_tensor(X, X[:1])
    assert not same_maps(MAP, LOST) and not same_maps(MAP, NOT_MADE) and same_maps(MAP, MAP)


@pytest.mark.parametrize(
    "check, changes, status",
    [
        (verdicts.same_seed, {}, "ok"),
        (verdicts.same_seed, {"again": LOST}, "wrong"),
        (verdicts.same_seed, {"again": OTHER}, "wrong"),
        (verdicts.randomness, {"again": OTHER}, "inconclusive"),
        (verdicts.randomness, {"reseeded": LOST}, "inconclusive"),
        (verdicts.target, {}, "ok"),
        (verdicts.target, {"retargeted": MAP}, "note"),
        (verdicts.target, {"retargeted": LOST}, "wrong"),
        (verdicts.target, {"again": OTHER}, "inconclusive"),
        (verdicts.batch, {"alone": ((0, LOST),)}, "wrong"),
        (verdicts.batch, {"alone": ((0, OTHER),), "reseeded": OTHER}, "inconclusive"),
        (verdicts.batch, {"alone": ((0, OTHER),)}, "wrong"),
        (verdicts.finite, {"first": Trial(0 * X, "", "", 0.0)}, "note"),
        (verdicts.finite, {"first": Trial(X / 0, "", "", 0.0)}, "wrong"),
        (verdicts.dtype, {"first": Trial(X.double(), "", "", 0.0)}, "wrong"),
        (verdicts.sign, {"first": Trial(-X, "", "", 0.0)}, "wrong"),
        (verdicts.sign, {}, "ok"),
    ],
)
def test_statuses(check, changes, status):
    assert check(seen(**changes)).status == status


def test_the_generator_that_nobody_seeds_is_named():
    drew = Trial(X, "", "", 0.0, drew=("torch", "numpy"))
    assert "numpy's global generator" in verdicts.same_seed(seen(first=drew, again=OTHER)).message
    assert verdicts.draws(seen(first=drew)).message.count("global generator") == 2


@pytest.mark.parametrize(
    "gap, promise, status, message",
    [
        (0.0001, "complete", "ok", "a map sums to f(x) - f(0)"),
        (0.05, "conserve", "ok", "the sum of a map is off f(x) by 5.0 %"),
        (
            0.5,
            "complete to background",
            "wrong",
            "off f(x) - mean f(background) by 50.0 %, though the record promises it",
        ),
        (3.0, None, "note", "by 100 % or more; nothing is promised"),
        (float("nan"), "complete", "inconclusive", "no map whose sum could be compared with f(x) - f(0)"),
    ],
)
def test_sums(gap, promise, status, message):
    verdict = verdicts.promised_sum(gap, promise)
    assert verdict.status == status and message in verdict.message


def test_every_change_is_a_line_of_its_own():
    changed = Trial(X, "", "", 0.0, changed=("hooks of the model", "x"))
    lines = verdicts.untouched(seen(retargeted=changed))
    assert [line.message.split(":")[0] for line in lines] == ["x was changed", "hooks were left on the model"]
    graded = Trial(X, "", "", 0.0, graded=True)
    assert verdicts.untouched(seen(first=graded))[0].status == "note"


def test_a_record_is_held_to_what_it_says_and_a_function_is_not():
    negative = seen(first=Trial(-X, "", "", 0.0), again=Trial(-X, "", "", 0.0))
    strict = dict(verdicts.verdicts(record(signed=False), False, negative))
    assert strict["sign"].status == "wrong" and "sign" not in dict(
        verdicts.verdicts(record(signed=False), True, negative)
    )
    random = seen(reseeded=OTHER)
    assert dict(verdicts.verdicts(record(), False, random))["randomness"].status == "wrong"
    assert dict(verdicts.verdicts(record(), True, random))["randomness"] == ("ok", "random")


def test_the_table_is_merged_and_the_verdict_follows():
    named = NamedMethod(record(), own=True, portable=False)
    kinds = [seen(), seen(input="image"), Evidence("words", X, LOST)]
    found = result.result_of(named, kinds, [])
    assert found.passed and found.words.startswith("mine keeps the contract on table and image. It is deterministic.")
    shown = found.shown()
    assert shown[shown["check"].eq("runs")][["input", "status"]].to_numpy().tolist() == [
        ["table, image", "ok"],
        ["words", "note"],
    ]
    assert shown[shown["check"].eq("dtype")]["input"].tolist() == ["all"]
    assert shown.iloc[-1]["message"] == "for one map: 0.1 (table), 0.1 (image)"  # three inputs in 0.3 s
    nothing = result.result_of(named, [Evidence("words", X, LOST)], [])
    assert not nothing.passed and nothing.words == "mine breaks the contract. To fix:\n- runs (words): ValueError: no."
