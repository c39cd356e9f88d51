"""The generated table: its label follows the coefficients it tells, and nothing else."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from forsooth.datasets.tabular import DECAY, interactions
from forsooth.records import UsageError


def logit_by_hand(dataset):
    """The logit of every row, term by term, from what the facts say."""
    facts, x = dataset.facts, dataset.x.double()
    total = torch.full((len(x),), facts["intercept"], dtype=torch.float64)
    for group, coefficient in zip(facts["groups"], facts["coefficients"], strict=True):
        term = torch.full((len(x),), coefficient, dtype=torch.float64)
        for name in group:
            term = term * x[:, facts["features"].index(name)]
        total += term
    return total


def test_labels_follow_the_model_that_the_facts_tell():
    dataset = interactions(n=40_000, seed=1)
    chance = logit_by_hand(dataset).sigmoid()
    order = chance.argsort()
    for part in order.chunk(20):  # calibrated in every twentieth: the share of ones is the mean chance
        expected, variance = chance[part].mean(), (chance[part] * (1 - chance[part])).mean()
        assert abs(dataset.y[part].double().mean() - expected) < 4 * (variance / len(part)).sqrt() + 1e-3
    assert dataset.facts["best_accuracy"] == pytest.approx(float(torch.maximum(chance, 1 - chance).mean()), abs=1e-6)


def test_features_are_standardised_and_correlate():
    x = interactions(n=20_000, seed=3).x.double()
    assert x.mean(0).abs().max() < 1e-5 and (x.std(0) - 1).abs().max() < 1e-5
    correlation = torch.corrcoef(x.T) - torch.eye(10)
    assert correlation.amax(1).min() > DECAY - 0.05  # every feature has a neighbour in the chain


@pytest.mark.parametrize("features", [5, 6, 10, 13, 20])
def test_groups_cover_the_truth_and_leave_idle_features(features):
    for seed in range(5):
        dataset = interactions(n=100, features=features, seed=seed)
        names = dataset.facts["features"]
        named = {name for group in dataset.facts["groups"] for name in group}
        assert {len(group) for group in dataset.facts["groups"]} == {1, 2, 3}
        assert len({tuple(group) for group in dataset.facts["groups"]}) == len(dataset.facts["groups"])
        assert all(len(set(group)) == len(group) for group in dataset.facts["groups"])
        assert dataset.truth.shape == (100, features)
        assert dataset.truth[0].tolist() == dataset.truth[99].tolist() == [name in named for name in names]
        assert set(dataset.facts["irrelevant"]) == set(names) - named != set()
        alone = {group[0] for group in dataset.facts["groups"] if len(group) == 1}
        assert named - alone  # some act in products only


def test_same_seed_same_table():
    one, two, other = (interactions(n=500, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(one.x, two.x) and torch.equal(one.y, two.y) and one.facts == two.facts
    assert not torch.equal(one.x, other.x) and one.facts["coefficients"] != other.facts["coefficients"]


def test_splits_share_out_every_row_once():
    dataset = interactions(n=1000, seed=0)
    rows = torch.cat(list(dataset.splits.values()))
    assert sorted(rows.tolist()) == list(range(1000))
    assert len(dataset.splits["test"]) == pytest.approx(100, abs=2)
    assert len(dataset.splits["val"]) == pytest.approx(90, abs=2)


def test_a_plain_network_learns_it_and_a_linear_model_less():
    dataset = interactions(seed=0)
    (train, test), x, y = (dataset.splits[name] for name in ("train", "test")), dataset.x.numpy(), dataset.y.numpy()
    network = MLPClassifier((64, 64), early_stopping=True, alpha=0.01, random_state=0).fit(x[train], y[train])
    linear = LogisticRegression().fit(x[train], y[train])
    assert network.score(x[test], y[test]) > 0.82
    assert network.score(x[test], y[test]) > linear.score(x[test], y[test]) + 0.03


def test_too_few_features_or_rows_are_refused():
    with pytest.raises(UsageError, match=r"`features` must be at least 5 .* got 4"):
        interactions(features=4, seed=0)
    with pytest.raises(UsageError, match="`n` must be at least 100, got 20"):
        interactions(n=20, seed=0)
