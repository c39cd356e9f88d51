"""Max-pooling as a tournament of pairs, so that a rule for ReLU is a rule for it as well."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from forsooth.attributions.calls import Call
from forsooth.records import UsageError


def windows(call: Call, axis: int, length: int, out: int) -> Tensor:
    """Places (out, k) along one axis that a max-pool's windows read; one in the padding repeats a real one."""
    if call.name.startswith("adaptive"):
        return adaptive_windows(length, out)
    first = torch.arange(out).unsqueeze(1)
    size = along(axis, call.argument(1, "kernel_size"))
    stride = along(axis, call.argument(2, "stride") or size)
    padding = along(axis, call.argument(3, "padding", 0))
    dilation = along(axis, call.argument(4, "dilation", 1))
    places = first * stride - padding + torch.arange(size) * dilation
    real = (places >= 0) & (places < length)
    if not real.any(1).all():
        raise UsageError(f"a window of `{call.full}` lies wholly in its padding, where the maximum is minus infinity")
    some = real.int().argmax(1, keepdim=True)
    return torch.where(real, places, places.gather(1, some))


def adaptive_windows(length: int, out: int) -> Tensor:
    """Places (out, k) of near-equal windows over a whole axis; the shorter ones repeat their last place."""
    first = torch.arange(out).unsqueeze(1)
    start = first * length // out
    stop = -(-(first + 1) * length // out)
    return torch.minimum(start + torch.arange(int((stop - start).max())), stop - 1)


def along(axis: int, option: Any) -> int:
    """An option of a max-pool for one axis: a number for all, or one for each."""
    if isinstance(option, int):
        return option
    return option[axis % len(option)]


def tournament(call: Call, rectify: Callable[[Tensor], Tensor]) -> Tensor:
    """The max-pool of `call` as max(a, b) = b + rectify(a - b), one axis after the other."""
    pooled = call.x
    dims = int(call.name[-2])
    shape = call(torch.empty_like(pooled, device="meta")).shape
    for axis in range(dims):
        place = axis - dims
        taken = windows(call, axis, pooled.shape[place], shape[place]).to(pooled.device)
        best = pooled.index_select(place, taken[:, 0])
        for other in taken[:, 1:].unbind(1):
            b = pooled.index_select(place, other)
            best = b + rectify(best - b)
        pooled = best
    return pooled
