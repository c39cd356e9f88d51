import numpy as np
import pytest
from scipy import stats

from forsooth.stats.differences import differing, letters, ranks
from forsooth.stats.panels import Panel, panel_of
from forsooth.stats.spread import half_widths, least, pvalues, spread_of


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.5, 0.15, shape)


def test_the_three_parts_by_hand() -> None:
    """A second implementation of the formulas, cell by cell, for one method in one panel."""
    scores = drawn(0, 1, 20, 3)
    y = scores[0]
    median = np.median(y)
    u = np.sign(y - median) / 2
    by_sample = [u[s].mean() for s in range(20)]
    reach = 1.959964 * np.sqrt(np.var(by_sample) / 20)
    blocks = np.sort(y.ravel()).reshape(20, 3).mean(axis=1)
    places = (np.arange(20) + 0.5) / 20
    low, high = np.interp([0.5 - reach, 0.5 + reach], places, blocks)
    slope = (high - low) / (2 * reach)
    rest = [
        (u[s, t] - by_sample[s] - u[:, t].mean() + u.mean()) ** 2 for s in range(20) for t in range(3)
    ]  # fmt: skip
    coin = np.clip(-stats.kurtosis(by_sample, bias=False) / 2, 0, 1)
    a = slope**2 * np.var(by_sample) * (1 + (1 - coin) / 19) / 20
    e = slope**2 * sum(rest) / (19 * 2) / (20 * 3)
    b = np.var(np.median(y, axis=0), ddof=1) / 3
    spread = spread_of([panel_of(scores)])
    assert spread.samples[0, 1] == pytest.approx(max(0, a - e), rel=1e-6)
    assert spread.common[0, 1] == pytest.approx(b)
    assert spread.common_df[0, 1] == 2


@pytest.mark.parametrize("samples", [4, 5, 8, 9, 10])
def test_few_samples_have_a_degree_less_than_students(samples: int) -> None:
    """Signs that differ between trainings count as normal at least, and the slope comes from the same few samples."""
    scores = [drawn(seed, 1, samples, 10) + drawn(seed + 99, 1, samples, 1) for seed in range(50)]
    found = np.array([spread_of([panel_of(own)]).samples_df[0, 1] for own in scores])
    assert np.isclose(found, samples - 2).any() and (found < samples - 2.01).any()
    assert (found > samples - 1.99).mean() < 0.1  # of a few, means of signs look like signs by chance


def test_24_samples_have_a_degree_less_than_students_too() -> None:
    found = [spread_of([panel_of(drawn(seed, 1, 24, 10))]).samples_df[0, 1] for seed in range(20)]
    assert max(found) == pytest.approx(22)


def test_few_signs_that_trainings_agree_on_have_a_known_variance() -> None:
    """The kurtosis of two signs of each kind and a zero is 1.25, without bias 0, and counts as 1: 10 / (1 - 1 / 2)."""
    alike = np.repeat(drawn(0, 1, 5, 1), 3, axis=2)
    for scores in (alike, alike[:, :, :1]):
        assert spread_of([panel_of(scores)]).samples_df[0, 1] == pytest.approx(20)


def test_25_samples_are_asked_for_their_kurtosis() -> None:
    found = [spread_of([panel_of(drawn(seed, 1, 25, 10))]).samples_df[0, 1] for seed in range(50)]
    assert max(found) > 30


def test_one_training_is_the_interval_of_order_statistics() -> None:
    """Of 100 samples Woodruff's ends are the quantiles 0.5 ± 0.098: the ordered values 40 and 60, halves between."""
    values = drawn(1, 1, 100, 1)
    ends = np.interp([0.5 - 0.098, 0.5 + 0.098], (np.arange(100) + 0.5) / 100, np.sort(values.ravel()))
    half = half_widths(spread_of([panel_of(values)]))[0, 1]
    assert half == pytest.approx((ends[1] - ends[0]) / 2, rel=0.01)


def test_two_trainings_of_one_network_are_students_with_one_degree() -> None:
    """Samples do nothing here: the median of one training is 0.4, of the other 0.6."""
    scores = np.stack([np.full(30, 0.4), np.full(30, 0.6)], axis=1)[None]
    half = half_widths(spread_of([panel_of(scores)]))[0, 1]
    assert half == pytest.approx(stats.t.ppf(0.975, 1) * np.std([0.4, 0.6], ddof=1) / np.sqrt(2))


def test_networks_lend_each_other_degrees_of_freedom() -> None:
    panels = [panel_of(drawn(k, 1, 50, 2), dataset=k, network=k) for k in range(8)]
    assert 2 < spread_of(panels).common_df[0, 1] <= 8
    same = [panel_of(drawn(k, 1, 50, 2), dataset=k) for k in range(8)]  # of one network
    assert spread_of(same).common_df[0, 1] == 1


def test_a_network_with_one_training_spreads_as_the_others() -> None:
    two = panel_of(drawn(0, 1, 50, 2), dataset=0, network=0)
    one = panel_of(drawn(1, 1, 50, 1), dataset=1, network=1)
    own = two.trainings.var(ddof=1)
    assert spread_of([two, one]).common[0, 1] == pytest.approx((own / 2 + own) / 4)


def test_what_two_methods_share_is_no_difference() -> None:
    scores = drawn(0, 1, 40, 3)
    panel = panel_of(np.concatenate([scores, scores + 0.1]))
    spread = spread_of([panel])
    assert spread.variance[0, 1] == pytest.approx(0, abs=1e-12)
    assert spread.variance[0, 2] > 1e-4


def test_lost_scores_and_absent_methods_do_no_harm() -> None:
    scores = drawn(0, 3, 20, 2)
    scores[0, 3] = np.nan
    scores[1, :, 1] = np.nan
    scores[2] = np.nan
    panel = panel_of(scores)
    assert panel.value[:2] == pytest.approx([np.nanmedian(scores[0]), np.nanmedian(scores[1])])
    assert np.isnan(panel.value[2])
    found = pvalues(panel.value, spread_of([panel]))
    assert np.isfinite(found[0, 1]) and np.isnan(panel.take([2]).value).all()


def test_rounding_and_single_samples_are_no_difference() -> None:
    def compared(panel: Panel) -> float:
        return float(pvalues(panel.value, spread_of([panel]))[0, 1])

    assert compared(panel_of(np.stack([np.full((30, 1), 0.5), np.full((30, 1), 0.5 + 1e-9)]))) == 1
    assert compared(panel_of(np.stack([np.full((30, 1), 0.5), np.full((30, 1), 0.6)]))) == least(30)
    assert np.isnan(compared(panel_of(drawn(0, 2, 1, 1))))


def test_pairs_are_one_family() -> None:
    found = np.full((3, 3), 1.0)
    found[0, 1] = found[1, 0] = 0.01
    assert not differing(found).any()  # 3 × 0.01 > 0.025
    assert differing(found, level=0.03).sum() == 2


def test_letters_compare_with_the_first_of_the_group() -> None:
    """Neighbours cannot be told apart, second neighbours can."""
    apart = np.abs(np.subtract.outer(np.arange(4), np.arange(4))) >= 2
    assert letters(apart) == ["A", "A", "B", "B"]
    assert letters(np.zeros((3, 3), dtype=bool)) == ["A", "A", "A"]
    assert letters(~np.eye(28, dtype=bool))[25:] == ["Z", "AA", "BB"]


def test_ranks_by_hand() -> None:
    good = np.array([0.5, 0.9, 0.5 + 1e-9, 0.1])
    none = np.zeros((4, 4), dtype=bool)
    assert ranks(good, none).tolist() == [[2, 1, 2, 4], [1, 1, 1, 1], [4, 4, 4, 4]]
    assert ranks(good, ~none).tolist() == [[2, 1, 2, 4], [2, 1, 2, 4], [3, 1, 3, 4]]
