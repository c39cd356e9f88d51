"""Shapes, places and sizes of the tetrominoes, against pencil, scipy and the counts of the released data."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from forsooth.datasets.patterns import SIGMA, L, T, fixed, moved, piece, poses, rigid, signal, smoother, stamps
from forsooth.datasets.tetromino_settings import PAPER, RELEASED
from forsooth.seeds import generator


def drawn(text):
    return torch.tensor([[float(c == "#") for c in row] for row in text.split()])


def soft(scenario, size):
    kernel = smoother(size, SIGMA[size])
    return kernel @ fixed(scenario, size=size) @ kernel.T


@pytest.mark.parametrize("size, sigma", [(8, 3.0), (64, 10.0), (64, 1.5)])
def test_smoother_is_scipys_filter(size, sigma):
    image = torch.randn(size, size, generator=generator(0))
    kernel = smoother(size, sigma)
    np.testing.assert_allclose(kernel @ image @ kernel.T, gaussian_filter(image.double().numpy(), sigma), atol=1e-6)


def test_fixed_pieces_at_8_by_hand():
    both = drawn("........ .#...... .##..... .#...... .....#.. .....#.. .....##. ........")
    left, right = fixed("LIN", size=8)
    assert torch.equal(left + right, both)
    assert torch.equal(left, both * (torch.arange(8) < 4)[:, None])
    plus, minus, plus_minus, minus_plus = fixed("XOR", size=8)
    assert torch.equal(plus, both) and torch.equal(minus, -both)
    assert torch.equal(plus_minus, left - right) and torch.equal(minus_plus, right - left)


def test_fixed_pieces_at_64_are_those_at_8_in_blocks_of_8():
    small = fixed("LIN", size=8).repeat_interleave(8, 1).repeat_interleave(8, 2)
    assert torch.equal(fixed("LIN", size=64), small)


def test_quarter_turns_by_hand():
    turned_t = ["#.. ##. #..", ".#. ### ...", ".#. ##. .#.", "### .#. ..."]
    turned_l = ["#.. #.. ##.", "..# ### ...", "##. .#. .#.", "### #.. ..."]
    for kind, drawings in enumerate((turned_t, turned_l)):
        for turns, drawing in enumerate(drawings):
            assert torch.equal(stamps(size=8)[kind, turns], drawn(drawing)), (kind, turns)
            blocks = drawn(drawing).repeat_interleave(4, 0).repeat_interleave(4, 1)
            assert torch.equal(stamps(size=64)[kind, turns], blocks)
    assert piece(T, block=1).sum() == piece(L, block=1).sum() == 4


@pytest.mark.parametrize("variant", [PAPER, RELEASED])
@pytest.mark.parametrize("scenario", ["LIN", "XOR"])
def test_sizes_of_the_fixed_truth(scenario, variant):
    assert signal(soft(scenario, 64), variant)[1].any(0).sum() == 862
    assert signal(soft(scenario, 8), variant)[1].any(0).sum() == 8
    if scenario == "LIN":
        assert signal(soft("LIN", 64), variant)[1].sum((1, 2)).tolist() == [432, 430]


@pytest.mark.parametrize("order", ["smooth_then_move", "move_then_smooth"])
def test_sizes_of_the_rigid_truth_inside_the_image(order):
    kinds = torch.tensor([0] * 4 + [1] * 4)
    pose = torch.tensor([[turns, 20, 30] for turns in range(4)] * 2)
    interior = rigid(kinds, pose, size=64, order=order)
    assert signal(interior, RELEASED)[1].sum((1, 2)).tolist() == [156] * 4 + [157] * 4
    assert signal(interior, PAPER)[1].sum((1, 2)).tolist() == [156] * 4 + [162] * 4
    assert (signal(rigid(kinds, pose // 10, size=8, order=order), PAPER)[1].sum((1, 2)) == 4).all()


def test_rigid_at_the_border_reflects_or_is_cut():
    corner = torch.tensor([[0, 0, 0]])
    reflected = rigid(torch.tensor([0]), corner, size=64, order="move_then_smooth")
    assert signal(reflected, RELEASED)[1].sum() == 116
    sharp = torch.zeros(64, 64)
    sharp[:12, :8] = piece(T, block=4)
    np.testing.assert_allclose(reflected[0], gaussian_filter(sharp.numpy(), 1.5), atol=1e-6)
    cut = rigid(torch.tensor([0]), corner, size=64, order="smooth_then_move")
    interior = rigid(torch.tensor([0]), torch.tensor([[0, 20, 20]]), size=64, order="smooth_then_move")
    assert torch.equal(cut[0, :30, :30], interior[0, 20:50, 20:50])


def test_support_is_cut_or_full():
    pattern, truth = signal(soft("LIN", 64), PAPER)
    assert torch.equal(pattern != 0, truth)
    pattern, truth = signal(soft("LIN", 64), RELEASED)
    assert torch.equal(pattern, soft("LIN", 64)) and (pattern != 0).sum() == 1760 > truth.sum()


def test_moved_keeps_what_is_inside():
    squares = torch.arange(1.0, 10.0).reshape(1, 3, 3)
    laid = moved(squares, torch.tensor([[0, 2]]), size=4, margin=1)
    assert laid[0].tolist() == [[0, 4, 5, 6], [0, 7, 8, 9], [0] * 4, [0] * 4]


@pytest.mark.parametrize("size, block", [(8, 1), (64, 4)])
@pytest.mark.parametrize("positions, last", [("all", 0), ("but_last", 1)])
def test_every_pose_is_inside_and_every_inside_pose_comes(size, block, positions, last):
    turns, row, column = poses(60_000, size=size, positions=positions, generator=generator(1)).T
    for quarter in range(4):
        height, width = (3 * block, 2 * block) if quarter % 2 == 0 else (2 * block, 3 * block)
        here = turns == quarter
        assert set(row[here].tolist()) == set(range(size - height + 1 - last))
        assert set(column[here].tolist()) == set(range(size - width + 1 - last))


def test_poses_are_uniform():
    turns, row, column = poses(60_000, size=8, positions="all", generator=generator(2)).T
    counts = torch.bincount((turns * 8 + row) * 8 + column)
    counts = counts[counts > 0].double()
    assert len(counts) == 4 * 6 * 7
    expected = 60_000 / len(counts)
    chi_square = ((counts - expected) ** 2 / expected).sum()
    assert chi_square < len(counts) + 5 * (2 * len(counts)) ** 0.5


def test_no_rigid_piece_leaves_the_image():
    pose = poses(2_000, size=8, positions="all", generator=generator(3))
    kinds = torch.randint(0, 2, (2_000,), generator=generator(4))
    assert (rigid(kinds, pose, size=8, order="move_then_smooth").sum((1, 2)) == 4).all()
