"""How a network and its inputs lie in memory."""

import torch
from torch import nn


def channels_last(module: nn.Module) -> None:
    """Weights and inputs in the layout that an accelerator convolves fastest."""
    for weight in module.parameters():
        if weight.ndim == 4:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
    module.register_forward_pre_hook(lambda _, x: (x[0].contiguous(memory_format=torch.channels_last),))
