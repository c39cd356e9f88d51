import torch
from pytest import mark, raises

from forsooth.games.players import patches, pixels, seats, spread
from forsooth.records import UsageError


def test_pixels_leave_out_the_channels() -> None:
    assert torch.equal(pixels((3, 2, 2)), torch.tensor([[0, 1], [2, 3]]))
    assert torch.equal(pixels((2, 3)), torch.tensor([[0, 1, 2], [3, 4, 5]]))
    assert torch.equal(pixels((4,)), torch.tensor([0, 1, 2, 3]))


def test_patches_by_hand() -> None:
    expected = torch.tensor([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 3, 3], [2, 2, 3, 3]])
    assert torch.equal(patches((1, 4, 4), 2), expected)
    assert torch.equal(patches((5,), 2), torch.tensor([0, 0, 0, 1, 1]))
    assert torch.equal(patches((3, 4, 4), 4), pixels((3, 4, 4)))


@mark.parametrize("grid", [0, 5])
def test_a_grid_must_fit(grid: int) -> None:
    with raises(UsageError, match=rf"`grid` must lie in \[1, 4\] for inputs of shape \(1, 4, 6\), got {grid}"):
        patches((1, 4, 6), grid)


def test_players_must_fit_the_input() -> None:
    x = torch.zeros(2, 3, 4, 4)
    with raises(UsageError, match=r"`players` must have shape \(4, 4\) or \(3, 4, 4\), got \(4,\)"):
        seats(x, torch.arange(4))
    with raises(UsageError, match="`players` must be labels 0, 1, … without gaps, got labels from 0 to 2"):
        seats(x, torch.tensor([0, 2]).repeat(8).view(4, 4))
    with raises(UsageError, match="without gaps, got labels from -1 to 14"):
        seats(x, torch.arange(-1, 15).view(4, 4))
    with raises(UsageError, match=r"`players` must be integer labels, got torch\.float32"):
        seats(x, torch.arange(16.0).view(4, 4))


def test_spread_shares_evenly_and_keeps_the_sum() -> None:
    x = torch.zeros(1, 2, 1, 3, dtype=torch.float64)
    labels, count = seats(x, torch.tensor([[0, 1, 1]]))
    values = torch.tensor([[6.0, 8.0]], dtype=torch.float64)
    assert count == 2
    expected = torch.tensor([3.0, 2.0, 2.0], dtype=torch.float64).expand(1, 2, 1, 3)
    assert torch.equal(spread(values, labels, x), expected)


def test_channels_may_play_by_themselves() -> None:
    x = torch.zeros(1, 2, 1, 2)
    labels, count = seats(x, torch.arange(4).view(2, 1, 2))
    assert count == 4
    assert torch.equal(spread(torch.arange(4.0)[None], labels, x).flatten(), torch.arange(4.0))
