"""Reassigned labels against their bound, and planted datasets against what they promise."""

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.datasets.manipulations import FIXED, Manipulation, draw, joint_region, region
from forsooth.datasets.planted import (
    Border,
    border_region,
    bordered,
    bound,
    carries,
    keep,
    p_value,
    plant,
    reachable,
    reassign,
    stochastic,
)
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

BLUR, BRIGHTNESS, HUE, NOISE, WATERMARK = FIXED
SIZE = (64, 56)


def base(n=60, classes=2, size=SIZE):
    x = torch.randint(0, 256, (n, 3, *size), generator=generator(0, "base")).float() / 255
    splits = {"train": torch.arange(n // 2), "test": torch.arange(n // 2, n)}
    return Dataset("made-up", x, torch.arange(n) % classes, None, splits, {"source": "chance"})


@st.composite
def matrices(drawing):
    classes = drawing(st.integers(2, 5))
    rows = [drawing(st.lists(st.integers(0, 9), min_size=classes, max_size=classes)) for _ in range(classes)]
    rows = [row if any(row) else [1, *row[1:]] for row in rows]
    return torch.tensor([[v / sum(row) for v in row] for row in rows], dtype=torch.float64)


@settings(deadline=None, max_examples=60)
@given(matrices(), st.integers(0, 10**6))
def test_no_reader_of_original_labels_beats_the_bound(matrix, seed):
    """The best guess for each original label is right with the largest entry of its row, at most p*."""
    n, classes = 2000, len(matrix)
    y = torch.randint(0, classes, (n,), generator=generator(seed))
    new = reassign(y, stochastic(matrix, classes), seed=seed)
    assert (matrix[y, new] > 0).all()
    p_star = bound(matrix)
    accuracy = (matrix.argmax(1)[y] == new).double().mean().item()
    assert accuracy <= p_star + 5 * (p_star * (1 - p_star) / n) ** 0.5 + 1e-12
    assert p_value(accuracy, n, p_star) > 1e-7
    sharp = reachable(matrix, [None] * classes, prior=torch.bincount(y, minlength=classes) / n)
    assert sharp <= p_star + 1e-6
    assert accuracy == pytest.approx(sharp, abs=5 * 0.5 / n**0.5)


@settings(deadline=None, max_examples=30)
@given(st.floats(0, 1), st.integers(0, 10**6))
def test_two_classes(r, seed):
    n, matrix = 2000, keep(r, 2)
    assert bound(matrix) == max(r, 1 - r)
    y = torch.arange(n) % 2
    kept = (reassign(y, matrix, seed=seed) == y).double().mean().item()
    assert kept == pytest.approx(r, abs=5 * (r * (1 - r) / n) ** 0.5 + 10 / n)


def test_reassignment_follows_the_matrix():
    matrix = torch.tensor([[0.2, 0.8, 0.0], [0.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3]], dtype=torch.float64)
    y = torch.arange(30_000) % 3
    new = reassign(y, matrix, seed=0)
    for k in range(3):
        shares = torch.bincount(new[y == k], minlength=3).double() / 10_000
        torch.testing.assert_close(shares, matrix[k], rtol=0, atol=0.02)
    assert torch.equal(reassign(y, matrix, seed=0), new) and not torch.equal(reassign(y, matrix, seed=1), new)
    assert new.dtype == y.dtype and reassign(y.int(), matrix, seed=0).dtype == torch.int32


def test_rounding_never_reaches_a_class_of_probability_zero(monkeypatch):
    matrix = torch.tensor([[0.1] * 10 + [0.0]] + [[0.0] * 10 + [1.0]] * 10, dtype=torch.float64)
    assert matrix[0].cumsum(0)[9] < 1  # the trap
    monkeypatch.setattr("torch.rand", lambda *size, generator, dtype: torch.full(size, 1 - 2**-53, dtype=dtype))
    assert reassign(torch.zeros(3, dtype=torch.long), stochastic(matrix, 11), seed=0).tolist() == [9, 9, 9]


def test_many_classes_keep_and_spread():
    matrix = keep(0.4, 4)
    torch.testing.assert_close(matrix.sum(1), torch.ones(4, dtype=torch.float64))
    assert matrix.diagonal().tolist() == [0.4] * 4 and matrix[0, 1].item() == pytest.approx(0.2)
    assert bound(keep(0.1, 4)) == pytest.approx(0.3)


def test_reachable_by_hand():
    prior = torch.full((3,), 1 / 3)
    third, one, none = keep(1 / 3, 3), [WATERMARK, None, None], [None] * 3
    assert reachable(third, one, prior=prior) == pytest.approx(2 / 3)  # without it, two classes look the same
    assert reachable(third, [WATERMARK, HUE, None], prior=prior) == pytest.approx(1)
    assert reachable(third, none, prior=prior) == pytest.approx(1 / 3) == pytest.approx(bound(third))
    lopsided = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
    assert bound(lopsided) == 1 and reachable(lopsided, [None, None], prior=torch.tensor([0.25, 0.75])) == 0.625


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.floats(0, 1), st.data())
def test_the_p_value_is_the_tail_of_the_binomial(n, p, data):
    right = data.draw(st.integers(0, n))
    tail = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(right, n + 1))
    assert p_value(right / n, n, p) == pytest.approx(tail, abs=1e-9)


def test_the_p_value_counts_from_the_floor():
    assert p_value(0.57, 100, 0.5) == p_value(0.5799, 100, 0.5) > p_value(0.58, 100, 0.5)
    assert p_value(0.95, 200, 0.5) < 1e-40 and p_value(0, 10, 0.3) == 1


@pytest.mark.parametrize("manipulations", [(WATERMARK, None), (None, HUE), (BLUR, BRIGHTNESS)])
def test_planted_pictures(manipulations):
    old = base()
    new = plant(old, manipulations, r=0.5, seed=3)
    joint = joint_region(manipulations, size=SIZE)
    assert new.truth.shape == (60, *SIZE) and (new.truth == joint).all() and new.splits is old.splits
    assert torch.equal(new.x[..., ~joint], old.x[..., ~joint])
    assert torch.equal(new.y, reassign(old.y, keep(0.5, 2), seed=3))
    for k in range(60):
        m, changed = manipulations[new.y[k]], (new.x[k] != old.x[k]).any(0)
        assert not changed.any() if m is None else (changed.any() and not (changed & ~region(m, size=SIZE)).any())
    assert torch.equal(carries(new.y, manipulations), (new.x != old.x).flatten(1).any(1))


def test_the_recipe_makes_it_again_and_is_plain():
    old, manipulations = base(), (draw("watermark", 1, seed=1), draw("striped_noise", 3, seed=1, level=4))
    new = plant(old, manipulations, r=0.7, seed=5, border=Border(share=0.3))
    facts = json.loads(json.dumps(new.facts))
    again = plant(
        old,
        [Manipulation(**m) for m in facts["manipulations"]],
        r=facts["r"],
        seed=facts["seed"],
        border=Border(**facts["border"]),
    )
    assert torch.equal(again.x, new.x) and torch.equal(again.y, new.y) and again.facts == new.facts
    assert facts["p_star"] == 0.7 and facts["reachable"] == pytest.approx(1)
    assert facts["er"] == joint_region(manipulations, size=SIZE).double().mean().item()
    assert facts["kept"] == (new.y == old.y).double().mean().item()
    assert facts["base"] == "made-up" and facts["base_facts"] == {"source": "chance"}
    assert new.name == "planted-made-up-watermark-striped_noise"


def test_visibility_alone_changes_no_label_and_no_other_picture():
    faint, plain = (plant(base(), (None, replace(NOISE, visibility=v)), r=0.5, seed=0) for v in (0.02, 0.2))
    assert torch.equal(faint.y, plain.y) and torch.equal(faint.x[faint.y == 0], plain.x[faint.y == 0])
    assert not torch.equal(faint.x, plain.x) and torch.equal(faint.truth, plain.truth)


def test_many_classes():
    old, manipulations = base(n=90, classes=3), (WATERMARK, HUE, None)
    matrix = [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [0.4, 0.4, 0.2]]
    new = plant(old, manipulations, r=matrix, seed=0)
    assert (new.y[old.y == 1] == 1).all() and new.facts["r"] == matrix and new.facts["p_star"] == 1
    assert torch.equal(carries(new.y, manipulations), new.y != 2)


def test_the_border_is_white_random_and_knows_no_label():
    old, border = base(n=400, size=(48, 60)), Border(share=0.4, width=14)
    frame, chosen = border_region(border, size=(48, 60)), bordered(400, border, seed=2)
    assert frame.sum() == 48 * 60 - 42 * 54  # 14 / 224 * 48 = 3 px
    new, without = (plant(old, (None, WATERMARK), r=0.5, seed=2, border=b) for b in (border, None))
    assert (new.x[chosen][..., frame] == 1).all()
    assert torch.equal(new.x[~chosen], without.x[~chosen])
    assert torch.equal(new.x[chosen][..., ~frame], without.x[chosen][..., ~frame])
    assert chosen.double().mean() == pytest.approx(0.4, abs=0.1)
    first, second = (chosen[new.y == k].double().mean() for k in (0, 1))
    assert first == pytest.approx(second, abs=5 * 0.5 / 100**0.5)


@pytest.mark.parametrize(
    "r, message",
    [
        ([[0.5, 0.5], [0.5, 0.4]], "`r` must have rows that sum to 1, got 0.9 in row 1"),
        ([[1.5, -0.5], [0.5, 0.5]], r"`r` must hold probabilities, got \[1.5, -0.5\] in row 0"),
        ([[1.0, 0.0]], r"`r` must be a square matrix, got 1 rows of length \[2\]"),
        ([[1.0, 0.0], [1.0]], r"`r` must be a square matrix, got 2 rows of length \[1, 2\]"),
        ([[float("nan"), 1.0], [0.5, 0.5]], "`r` must hold probabilities, .* in row 0"),
        (torch.eye(3), r"`r` must have shape \(2, 2\), one row for each class, got \(3, 3\)"),
        (1.2, r"`r` must lie in \[0, 1\], got 1.2"),
    ],
)
def test_other_matrices_are_refused(r, message):
    with pytest.raises(UsageError, match=message):
        plant(base(4), (None, WATERMARK), r=r, seed=0)


@settings(deadline=None, max_examples=40)
@given(matrices(), st.integers(0, 4), st.floats(-0.5, 0.5))
def test_row_stochastic_or_refused(matrix, row, error):
    classes = len(matrix)
    assert torch.equal(stochastic(matrix.tolist(), classes), matrix)
    matrix[row % classes, 0] += error
    if abs(error) > 1e-5:
        with pytest.raises(UsageError, match=f"in row {row % classes}"):
            stochastic(matrix, classes)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: plant(base(4), (None, None), r=0.5, seed=0), "`manipulations` must differ .* got the same for all"),
        (lambda: plant(base(9, classes=3), (None, HUE), r=0.5, seed=0), r"`y` must be .* 0 .. 1, got .*\[0, 1, 2\]"),
        (lambda: reassign(torch.zeros(2), keep(0.5, 2), seed=0), "`y` must be whole numbers .* got torch.float32"),
        (lambda: keep(0.5, 1), "`classes` must be at least 2, got 1"),
        (lambda: p_value(1.1, 5, 0.5), r"`accuracy` must lie in \[0, 1\], got 1.1"),
        (lambda: p_value(0.5, 5, -0.1), r"`p_star` must lie in \[0, 1\], got -0.1"),
        (lambda: p_value(0.5, 0, 0.5), "`n` must be at least 1, got 0"),
        (lambda: border_region(Border(width=0), size=(9, 9)), "`width` must be positive"),
        (lambda: border_region(Border(width=112), size=(8, 8)), "`width` must .* leave a picture inside, got 112"),
        (lambda: bordered(3, Border(share=2), seed=0), r"`share` must lie in \[0, 1\], got 2"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(UsageError, match=message):
        call()
