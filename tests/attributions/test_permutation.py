import torch
from attributions import nets
from captum.attr import FeaturePermutation
from pytest import raises
from torch import Tensor

from forsooth.attributions.permutation import donors, permutation_feature_importance
from forsooth.games.players import patches
from forsooth.games.values import game
from forsooth.records import UsageError

X = nets.inputs(4, 1, 4, 4)
TARGET = torch.tensor([0, 1, 1, 0])
BACKGROUND = nets.inputs(7, 1, 4, 4, seed=2)
MODEL = nets.drawn(nets.cnn(4))


def test_equals_a_loop() -> None:
    players = patches((1, 4, 4), 2)
    gone = donors(game(MODEL, X, TARGET, players=players), BACKGROUND, 3, nets.own(4))
    expected = torch.zeros_like(X)
    for donor in gone:
        for player in range(4):
            mine = players == player
            moved = torch.where(mine, donor, X)
            drop = nets.output(MODEL, X, TARGET) - nets.output(MODEL, moved, TARGET)
            expected += mine * drop.view(4, 1, 1, 1) / (3 * 4)  # three repeats, four pixels each
    ours = permutation_feature_importance(
        MODEL, X, TARGET, background=BACKGROUND, generators=nets.own(4), repeats=3, players=players
    )
    torch.testing.assert_close(ours, expected)


def test_equals_captum_given_the_same_values() -> None:
    donor = donors(game(MODEL, X, TARGET), BACKGROUND, 1, nets.own(4))[0]

    def replace(x: Tensor, feature: Tensor) -> Tensor:
        return torch.where(feature.bool(), donor, x)

    expected = FeaturePermutation(MODEL, perm_func=replace).attribute(X, target=TARGET).detach()
    ours = permutation_feature_importance(MODEL, X, TARGET, background=BACKGROUND, generators=nets.own(4), repeats=1)
    torch.testing.assert_close(ours, expected, check_dtype=False)


def test_donors_come_from_the_background_player_by_player() -> None:
    players = patches((1, 4, 4), 2)
    gone = donors(game(MODEL, X, TARGET, players=players), BACKGROUND, 200, nets.own(0))
    assert gone.shape == (200, 4, 1, 4, 4)
    found = torch.zeros(4, 4, 7)
    for player in range(4):
        mine = players == player
        same = (gone[:, :, None, 0][..., mine] == BACKGROUND[None, None, :, 0][..., mine]).all(dim=-1)  # (200, 4, 7)
        assert (same.sum(dim=2) == 1).all()
        found[player] = same.float().mean(dim=0)
    assert (found > 0.05).all()  # each of seven rows should give a seventh, to every player of every input
    assert not torch.equal(gone[:, 0], gone[:, 1])


def test_a_linear_model_loses_weight_times_difference() -> None:
    weight = nets.inputs(16, 2, seed=5)
    ours = permutation_feature_importance(
        lambda x: x.flatten(1) @ weight, X, TARGET, background=BACKGROUND, generators=nets.own(0), repeats=4000
    )
    expected = weight.T[TARGET].view_as(X) * (X - BACKGROUND.mean(dim=0))
    torch.testing.assert_close(ours, expected, rtol=0, atol=0.15)


def test_bad_input_is_named() -> None:
    with raises(UsageError, match="`repeats` must be at least 1, got 0"):
        permutation_feature_importance(MODEL, X, TARGET, background=BACKGROUND, generators=nets.own(0), repeats=0)
    with raises(UsageError, match=r"`background` must have shape \('k', 1, 4, 4\) with k > 0, got \(7, 4, 4\)"):
        permutation_feature_importance(MODEL, X, TARGET, background=BACKGROUND[:, 0], generators=nets.own(0))
