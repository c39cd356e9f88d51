"""Who is drawn: evenly, by seed, and never the first rows."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from forsooth.records import Dataset, UsageError
from forsooth.suites.choose import classes_of, crossed, evenly, rows_of

LABELS = st.lists(st.integers(0, 4), min_size=1, max_size=60).map(torch.tensor)


@given(LABELS, st.integers(0, 70), st.integers(0, 5))
def test_every_beginning_is_as_even_as_the_strata_allow(strata, count, seed):
    chosen = evenly(strata, count, seed=seed, role="explained")
    assert len(chosen) == min(count, len(strata)) == len(chosen.unique())
    had = torch.bincount(strata[chosen], minlength=5)
    there = torch.bincount(strata, minlength=5)
    open_ = had < there  # strata that did not run out
    if open_.any() and len(chosen):
        assert had.max() - had[open_].min() <= 1
    whole = evenly(strata, None, seed=seed, role="explained")
    assert torch.equal(whole[:count], chosen)
    assert torch.equal(whole.sort().values, torch.arange(len(strata)))


def test_blocks_of_classes_are_mixed():
    strata = torch.arange(1000) // 500  # as tetrominoes come: first all of one class, then all of the other
    assert torch.bincount(strata[evenly(strata, 100, seed=0, role="background")]).tolist() == [50, 50]


def test_another_seed_and_another_role_draw_others():
    strata = torch.zeros(1000, dtype=torch.int64)
    drawn = {
        (seed, role): tuple(evenly(strata, 20, seed=seed, role=role).tolist())
        for seed in (0, 1)
        for role in ("fit", "explained")
    }
    assert len(set(drawn.values())) == 4
    assert drawn[0, "fit"] == tuple(evenly(strata, 20, seed=0, role="fit").tolist())


def test_every_row_is_drawn_equally_often():
    strata = torch.tensor([0] * 30 + [1] * 10)
    hits = torch.zeros(40)
    for seed in range(2000):
        hits[evenly(strata, 10, seed=seed, role="explained")] += 1
    expected = torch.tensor([5 / 30] * 30 + [5 / 10] * 10) * 2000
    assert ((hits - expected).abs() < 4.5 * expected.sqrt()).all()


def test_bad_requests_name_the_argument():
    with pytest.raises(UsageError, match="`strata` must be one number"):
        evenly(torch.zeros(3, 2), 1, seed=0, role="fit")
    with pytest.raises(UsageError, match="`count` must be at least 0"):
        evenly(torch.zeros(3), -5, seed=0, role="fit")


def test_classes_are_counted_by_name():
    told = classes_of({"fit": torch.tensor([1, 0, 1])}, names=["T", "L"], where={"size": 8})
    assert told == [
        {"size": 8, "role": "fit", "class": "T", "count": 1},
        {"size": 8, "role": "fit", "class": "L", "count": 2},
    ]


def test_finer_kinds_are_drawn_evenly_where_a_dataset_names_them():
    kinds = torch.arange(4).repeat_interleave(25)
    data = Dataset("xor", torch.zeros(100, 1), kinds // 2, None, {}, strata=kinds)
    rows = torch.arange(0, 100, 2)
    chosen = rows_of(data, rows, 12, seed=0, role="explained")
    assert torch.bincount(kinds[chosen]).tolist() == [3, 3, 3, 3]
    assert bool((chosen % 2 == 0).all())


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 40), st.integers(0, 3))
def test_two_labels_are_each_drawn_evenly_at_every_length(scenes, objects, each, count, seed):
    grid = torch.cartesian_prod(torch.arange(scenes), torch.arange(objects), torch.arange(each))
    rows = crossed(grid[:, 0], grid[:, 1], count, seed=seed, role="explained")
    assert len(rows.unique()) == len(rows) == min(count, len(grid))
    if count <= scenes * objects:  # no pair of classes needs to be taken twice
        for label, classes in ((0, scenes), (1, objects)):
            counts = torch.bincount(grid[rows, label], minlength=classes)
            assert counts.max() - counts.min() <= 1
