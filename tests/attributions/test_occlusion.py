"""Occlusion beside Captum's FeatureAblation, and what it is on models worked out by hand."""

import pytest
import torch
from attributions import nets
from captum.attr import FeatureAblation
from torch import nn

from forsooth.attributions import METHODS
from forsooth.attributions.intrinsic import attention, rationale
from forsooth.attributions.occlusion import OCCLUSION_ONE, occlusion
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1])


@pytest.mark.parametrize(
    "shape, players",
    [
        ((6,), None),
        ((6,), torch.tensor([0, 1, 1, 0, 2, 2])),
        ((5, 4), torch.arange(5)[:, None].expand(5, 4)),  # words of a document
        ((1, 4, 4), torch.arange(16).reshape(4, 4) // 4),
    ],
    ids=["features", "groups", "words", "rows of pixels"],
)
@pytest.mark.parametrize("own", [False, True], ids=["zeros", "baseline"])
def test_it_is_captums_feature_ablation(shape, players, own):
    x = nets.inputs(3, *shape)
    model = nets.drawn(nn.Sequential(nn.Flatten(), *nets.mlp(x[0].numel(), 2)))
    baseline = nets.inputs(1, *shape, seed=5)[0] if own else None
    masks = torch.arange(6) if players is None else players
    theirs = FeatureAblation(model).attribute(
        x,
        baselines=0 if baseline is None else baseline[None],
        target=TARGET,
        feature_mask=masks.expand(x.shape[1:])[None],
    )
    ours = occlusion(model, x, TARGET, players=players, baseline=baseline)
    sizes = torch.bincount(masks.expand(x.shape[1:]).flatten())[masks.expand(x.shape[1:])]  # ours is shared evenly
    torch.testing.assert_close(ours * sizes, theirs, rtol=1e-9, atol=1e-12)


def test_the_drop_by_hand():
    def model(x):
        return torch.stack([x[:, 0] * x[:, 1], x.sum(1)], dim=1)

    x = torch.tensor([[2.0, 3.0, 5.0]])
    assert occlusion(model, x, torch.tensor([0])).tolist() == [[6.0, 6.0, 0.0]]  # both lose the whole product
    assert occlusion(model, x, torch.tensor([1])).tolist() == [[2.0, 3.0, 5.0]]


def test_many_players_are_hidden_in_several_slices_with_the_same_result(monkeypatch):
    x = nets.inputs(3, 1, 8, 8)
    model = nets.drawn(nets.cnn())
    whole = occlusion(model, x, TARGET)
    monkeypatch.setattr("forsooth.games.values.CHUNKS", {"cpu": (10, 10)})
    torch.testing.assert_close(occlusion(model, x, TARGET), whole, rtol=1e-9, atol=1e-12)


def test_bad_players_and_bad_models_are_refused():
    x = nets.inputs(3, 6)
    with pytest.raises(UsageError, match=r"`players` must have shape \(6,\) or \(6,\), got \(5,\)"):
        occlusion(nets.drawn(nets.mlp(6, 2)), x, TARGET, players=torch.arange(5))
    with pytest.raises(UsageError, match="`model` must give finite numbers"):
        occlusion(lambda x: x[:, :2] / 0, x, TARGET)


def test_it_is_in_the_catalogue():
    assert OCCLUSION_ONE in METHODS and OCCLUSION_ONE.promise is None


class Says(nn.Module):
    """A model that tells the weights it was given."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def forward(self, x):
        return x.sum(2)[:, :2]

    def attention_of(self, x):
        return self.weights

    def selection_of(self, x):
        return self.weights


@pytest.mark.parametrize("method", [attention, rationale])
def test_what_a_model_says_of_itself_is_shared_by_the_dimensions_of_a_word(method):
    weights, x = torch.tensor([[0.25, 0.0, 0.75]]), nets.inputs(1, 3, 5)
    found = method(Says(weights), x, torch.tensor([0]))
    assert found.shape == x.shape
    torch.testing.assert_close(found.sum(2), weights)
    assert (found[0, 1] == 0).all()


@pytest.mark.parametrize("method, word", [(attention, "attention_of"), (rationale, "selection_of")])
def test_a_model_that_says_nothing_of_itself_is_refused(method, word):
    with pytest.raises(UsageError, match=rf"`{word}`.*got Linear"):
        method(nn.Linear(3, 2), nets.inputs(1, 3), torch.tensor([0]))
