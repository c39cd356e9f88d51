"""Attention and linear layers for few tokens on a processor: what torch's give, but for the order of sums, and sooner.

Fused attention is made for long sequences: with 16 tokens its backward pass alone is a third of a training step. And a
matrix of 32 columns is too narrow for the library of matrix products. Here attention is one product for all heads and
images, and a linear layer a convolution over single places. See `benchmarks/training.py`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

MOST = 16  # tokens up to which all this pays; with 64 forwards take longer


def pays(tokens: Tensor) -> bool:
    """Whether tokens (n, tokens, width) are few and on a processor."""
    return tokens.device.type == "cpu" and tokens.shape[1] <= MOST


def linear(tokens: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Tokens (n, tokens, width) times a weight (out, width), plus a bias (out,): (n, tokens, out)."""
    places = tokens[:, :, None].permute(0, 3, 1, 2)  # (n, width, tokens, 1), where they lie in memory
    return F.conv2d(places, weight[:, :, None, None], bias).permute(0, 2, 3, 1).flatten(1, 2)


def of(layer: nn.Linear, tokens: Tensor) -> Tensor:
    """What a linear layer gives for tokens (n, tokens, width)."""
    return linear(tokens, layer.weight, layer.bias)


def attended(joined: Tensor, heads: int) -> Tensor:
    """softmax(q kᵀ) v of all heads, (n, tokens, width).

    joined  (n, tokens, 3 · width), the queries, already scaled, the keys and the values

    Tokens come last: products with the few numbers of a head last take twice the time, also in the backward pass.
    """
    n, tokens, _ = joined.shape
    parts = joined.view(n, tokens, 3, heads, -1).permute(2, 0, 3, 4, 1)
    query, key, value = parts.flatten(1, 2)  # (n · heads, width / heads, tokens) each
    weights = torch.bmm(key.transpose(1, 2), query).softmax(1)  # (n · heads, keys, queries)
    return torch.bmm(value, weights).view(n, -1, tokens).transpose(1, 2).contiguous()
