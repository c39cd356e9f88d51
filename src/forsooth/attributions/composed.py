"""Operations of transformers, written out in the simpler ones that they are made of.

A method that has rules for products, softmax and sums has one for attention then, and it is the same one.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from forsooth.attributions.calls import Call
from forsooth.records import UsageError

Written = Callable[[Call], Any]


def attention(call: Call) -> Tensor:
    """softmax(q kᵀ · scale + mask) v for q, k, v (…, tokens, dims), as `scaled_dot_product_attention` has it."""
    query = call.args[0]
    key = call.argument(1, "key")
    value = call.argument(2, "value")
    if call.argument(4, "dropout_p", 0.0) or call.kwargs.get("enable_gqa", False):
        raise UsageError(f"`{call.full}` is seen into without dropout and grouped queries only: call model.eval()")
    scale = call.kwargs.get("scale") or 1 / math.sqrt(query.shape[-1])
    scores = torch.matmul(query, key.transpose(-2, -1)) * scale
    mask = call.argument(3, "attn_mask")
    if call.argument(5, "is_causal", False):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = scores + added(mask, scores)
    return torch.matmul(scores.softmax(-1), value)


def added(mask: Tensor, scores: Tensor) -> Tensor:
    """A mask as what is added to scores: 0 where a bool mask is true, else so low that nothing comes from there."""
    if mask.dtype != torch.bool:
        return mask
    low = torch.finfo(scores.dtype).min / 2
    return torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, low)


def multi_head_attention(call: Call) -> tuple[Tensor, None]:
    """What `nn.MultiheadAttention` computes for tokens (length, n, width): projections, attention, projection."""
    query = call.args[0]
    tokens = (query, call.argument(1, "key"), call.argument(2, "value"))
    check_heads(call)
    heads = call.argument(4, "num_heads")
    weight = call.argument(5, "in_proj_weight")
    bias = call.argument(6, "in_proj_bias")
    parts = []
    for place, given in enumerate(tokens):
        rows = slice(place * len(weight) // 3, (place + 1) * len(weight) // 3)
        own = None
        if bias is not None:
            own = bias[rows]
        projected = F.linear(given, weight[rows], own)  # (length, n, width)
        parts.append(projected.unflatten(2, (heads, -1)).permute(1, 2, 0, 3))  # (n, heads, length, dims)
    mask = call.kwargs.get("attn_mask")
    mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=mask)
    joined = mixed.permute(2, 0, 1, 3).flatten(2)
    return F.linear(joined, call.argument(11, "out_proj_weight"), call.argument(12, "out_proj_bias")), None


def check_heads(call: Call) -> None:
    """UsageError where an attention has parts that are not written out here."""
    query = call.args[0]
    odd = {
        "bias_k": call.argument(7, "bias_k") is not None,
        "bias_v": call.argument(8, "bias_v") is not None,
        "add_zero_attn": bool(call.argument(9, "add_zero_attn", False)),
        "key_padding_mask": call.kwargs.get("key_padding_mask") is not None,
        "use_separate_proj_weight": bool(call.kwargs.get("use_separate_proj_weight", False)),
        "tokens without samples": query.ndim != 3,
    }
    found = [name for name, there in odd.items() if there]
    if found:
        raise UsageError(f"`{call.full}` is not seen into with {', '.join(found)}")


def layer_norm(call: Call) -> Tensor:
    """(x - mean) · (variance + eps)^-½ · weight + bias over the last axes, as `layer_norm` has it."""
    axes = tuple(range(-len(call.argument(1, "normalized_shape")), 0))
    centred = call.x - call.x.mean(axes, keepdim=True)
    variance = centred.square().mean(axes, keepdim=True)
    result = centred * (variance + call.argument(4, "eps", 1e-5)).pow(-0.5)
    weight = call.argument(2, "weight")
    bias = call.argument(3, "bias")
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result


def rms_norm(call: Call) -> Tensor:
    """x · (mean square + eps)^-½ · weight over the last axes, as `rms_norm` has it."""
    axes = tuple(range(-len(call.argument(1, "normalized_shape")), 0))
    result = call.x * (call.x.square().mean(axes, keepdim=True) + epsilon_of(call)).pow(-0.5)
    weight = call.argument(2, "weight")
    if weight is not None:
        result = result * weight
    return result


def epsilon_of(call: Call) -> float:
    """What a call of `rms_norm` adds to the mean square; PyTorch takes the least step of its numbers by default."""
    given: float | None = call.argument(3, "eps")
    if given is None:
        return torch.finfo(call.x.dtype).eps
    return given


ATTENTIONS: dict[str, Written] = {
    "scaled_dot_product_attention": attention,
    "multi_head_attention_forward": multi_head_attention,
}
COMPOSED: dict[str, Written] = {**ATTENTIONS, "layer_norm": layer_norm, "rms_norm": rms_norm}
