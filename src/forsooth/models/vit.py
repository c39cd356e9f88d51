"""A small vision transformer: patches as tokens, attention between them, their mean to the head.

Tokens keep the order of the patches, row by row; there is no class token.
"""

from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forsooth.models import few_tokens
from forsooth.models.builders import of_images
from forsooth.records import Architecture, UsageError

WIDTH = 32
HEADS = 4
DEPTH = 2
SIDE = 8  # patches along an axis, of images that are larger than 16 pixels; smaller ones have patches of 2×2


class Attention(nn.Module):
    """Self-attention over tokens (n, tokens, width)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """mask: (n, 1, 1, tokens) bool, true of those that may be attended to; None: all."""
        query = self.split(self.query(tokens))
        key = self.split(self.key(tokens))
        value = self.split(self.value(tokens))
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)  # (n, heads, tokens, width / heads)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def quickly(self, tokens: Tensor) -> Tensor:
        """As `forward` without a mask, for few tokens."""
        scale = (self.query.out_features // self.heads) ** -0.5
        weight = torch.cat([scale * self.query.weight, self.key.weight, self.value.weight])
        bias = torch.cat([scale * self.query.bias, self.key.bias, self.value.bias])
        joined = few_tokens.linear(tokens, weight, bias)
        return few_tokens.of(self.out, few_tokens.attended(joined, self.heads))

    def split(self, tokens: Tensor) -> Tensor:
        """Tokens (n, tokens, width) as (n, heads, tokens, width / heads)."""
        return tokens.unflatten(2, (self.heads, -1)).transpose(1, 2)


class Block(nn.Module):
    """Attention, then two linear layers with GELU between them, each on normalised tokens and added to them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.gelu = nn.GELU()
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        tokens = tokens + self.attention(self.norm1(tokens), mask)
        return tokens + self.narrow(self.gelu(self.wide(self.norm2(tokens))))

    def quickly(self, tokens: Tensor) -> Tensor:
        """As `forward` without a mask; of few tokens on a processor quicker, and the same but for the order of sums."""
        if not few_tokens.pays(tokens):
            return self(tokens)
        tokens = tokens.contiguous()  # else every operation that follows would have to copy them
        tokens = tokens + self.attention.quickly(self.norm1(tokens))
        wide = self.gelu(few_tokens.of(self.wide, self.norm2(tokens)))
        return tokens + few_tokens.of(self.narrow, wide)


class Positions(nn.Module):
    """Patches (n, width, rows, columns) as tokens (n, tokens, width), to each of which its place is added."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(tokens, width))

    def forward(self, patches: Tensor) -> Tensor:
        return patches.flatten(2).transpose(1, 2) + self.weight


class Grid(nn.Module):
    """Tokens (n, tokens, width) back in the places of their patches: (n, width, rows, columns)."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens.transpose(1, 2).unflatten(2, (self.side, self.side))


def vit(*, size: int, variant: str = "paper", channels_in: int = 1, classes: int = 2) -> nn.Module:
    """Vision transformer of two blocks with four heads and 32 channels; patches of 2×2, or an eighth of the side.

    x        (n, channels_in, size, size)
    returns  logits (n, classes)

    [dosovitskiy2021image], far smaller, and the mean of all tokens instead of a class token. `variant` is for the
    suites that have several of a network: there is one of this.
    """
    if variant not in ("paper", "released"):
        raise UsageError(f"`variant` must be 'paper' or 'released', got {variant!r}")
    patch = 2
    if size > 16:
        patch = size // SIDE
    if size < 2 or size % patch:
        raise UsageError(f"`size` must be a multiple of {patch} for patches of {patch}×{patch}, got {size}")
    side = size // patch
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["patches"] = nn.Conv2d(channels_in, WIDTH, patch, stride=patch)
    layers["positions"] = Positions(side**2, WIDTH)
    for i in range(1, DEPTH + 1):
        layers[f"block{i}"] = Block(WIDTH, HEADS)
    layers["norm"] = nn.LayerNorm(WIDTH)
    layers["grid"] = Grid(side)
    layers["pool"] = nn.AdaptiveAvgPool2d(1)
    layers["flatten"] = nn.Flatten()
    layers["head"] = nn.Linear(WIDTH, classes)
    return nn.Sequential(layers)


VIT = Architecture(name="vit", function=vit, layer="grid", cite="dosovitskiy2021image", version=2, attends=True)
BUILDERS = {"vit": of_images(vit)}
