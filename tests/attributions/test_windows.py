import pytest
import torch
from attributions import nets
from captum.attr import Occlusion
from torch import nn

from forsooth.attributions.windows import along, occlusion_windows
from forsooth.records import UsageError

TARGET = torch.tensor([0, 1, 1, 0])
X = nets.inputs(4, 2, 8, 8)
MODEL = nets.drawn(nn.Sequential(nn.Flatten(), *nets.mlp(128, 2)))


@pytest.mark.parametrize(("window", "stride"), [(2, 1), (3, 2), (4, 4), (5, 2)])
def test_equals_captum(window: int, stride: int) -> None:
    theirs = Occlusion(MODEL).attribute(
        X, sliding_window_shapes=(2, window, window), strides=(2, stride, stride), target=TARGET, baselines=0.3
    )
    ours = occlusion_windows(MODEL, X, TARGET, window=window, stride=stride, baseline=0.3)
    torch.testing.assert_close(ours.float(), theirs.detach())


def test_windows_cover_an_axis() -> None:
    assert along(5, 2, 2).tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 0, 1]]


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match=r"`window` must fit the image .* got 9 and 4"):
        occlusion_windows(MODEL, X, TARGET, window=9)
    with pytest.raises(UsageError, match=r"`x` must be images .* got \(4, 6\)"):
        occlusion_windows(MODEL, nets.inputs(4, 6), TARGET)
