"""Failures count as the worse of the nulls, and nobody is judged where a null has no score."""

import numpy as np
import pytest

from forsooth.stats.failures import filled

NAN = float("nan")
# two nulls and two methods on four inputs; on the last a null has no score
VALUES = np.array([[1.0, 4.0, 2.0, NAN], [3.0, 2.0, 2.0, 1.0], [0.5, NAN, 0.5, 0.5], [NAN, NAN, NAN, NAN]])
LEFT = np.stack([VALUES, VALUES + 1], axis=2)


def test_a_failure_is_the_worse_of_the_nulls() -> None:
    scores = filled(VALUES, LEFT, nulls=[0, 1])
    assert scores.values[2].tolist() == [0.5, 4.0, 0.5] and scores.values[3].tolist() == [3.0, 4.0, 2.0]
    assert scores.left[2, :, 1].tolist() == [1.5, 5.0, 1.5]
    assert scores.failed.tolist() == [0, 0, pytest.approx(1 / 3), 1]
    assert scores.mean[:3].tolist() == pytest.approx([7 / 3, 7 / 3, 5 / 3]) and np.isnan(scores.mean[3])


def test_where_nobody_can_be_judged_all_have_failed() -> None:
    scores = filled(np.full((2, 3), NAN), np.full((2, 3, 2), NAN), nulls=[0])
    assert scores.values.shape == (2, 0) and scores.failed.tolist() == [1, 1] and np.isnan(scores.mean).all()
    assert scores.sampling_parts(np.array([5.0, 5.0])) is None


def test_one_group_of_permutations_says_nothing_of_their_sampling() -> None:
    assert filled(VALUES, LEFT[:, :, :1], nulls=[0, 1]).sampling_parts(np.array([9.0])) is None
    parts = filled(VALUES, LEFT, nulls=[0, 1]).sampling_parts(np.array([5.0, 5.0]))
    assert parts is not None and parts.shape == (4, 2)
