"""Another layout in memory, the same numbers."""

import torch
from torch import nn

from forsooth.models import MODELS
from forsooth.models.layout import channels_last


def test_another_layout_gives_the_same_numbers() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.LazyLinear(2)).eval()
    x = torch.rand(2, 3, 8, 8)
    before = module(x)
    channels_last(module)
    assert torch.allclose(module(x), before, atol=1e-6)
    assert module[0].weight.is_contiguous(memory_format=torch.channels_last)


def test_records_say_who_is_faster_so() -> None:
    assert {net.name for net in MODELS if net.channels_last} == {"resnet20", "resnet32", "resnet44", "resnet56"}
