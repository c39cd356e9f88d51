"""On a processor large networks are explained with the channels of a pixel together, and say the same."""

import dataclasses

import pytest
import torch

from forsooth.attributions.gradients import gradient
from forsooth.datasets.tetromino_settings import Setting
from forsooth.models.small import cnn
from forsooth.records import Cell
from forsooth.seeds import generator
from forsooth.suites import networks
from forsooth.suites.networks import NetSpec
from forsooth.suites.xaitris.data import DataSpec, Photos
from forsooth.suites.xaitris.questions import Ask, explained_network

ASK = Ask("saliency", 1, "", None, "logits", "rule", seed=0, sampling_seed=0, device="cpu")


@pytest.mark.parametrize("size", [8, 64])
def test_the_layout_changes_nothing_but_the_order_of_sums(size):
    torch.manual_seed(0)
    net = cnn(size=size).eval()
    facts = {"net": dataclasses.asdict(NetSpec("cnn", 2, "paper")), "train_mode": False}
    cell = Cell(tensors=networks.weights_of(net, "net."), facts=facts)
    spec = DataSpec(Setting("LIN", "WHITE", size=size), Photos(None, None), seed=0)
    module, _ = explained_network(cell, spec, ASK)
    together = module.conv2.weight.is_contiguous(memory_format=torch.channels_last)
    assert together == (size > 8)
    x = torch.randn(3, 1, size, size, generator=generator(0), dtype=torch.float64)  # no kink between two roundings
    target = torch.tensor([0, 1, 0])
    net.double()
    module.double()
    torch.testing.assert_close(module(x), net(x))
    torch.testing.assert_close(gradient(module, x, target), gradient(net, x, target))
