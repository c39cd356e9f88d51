"""Values that depend on the input though no gradient says so: comparisons, indices, what is made under `no_grad`.

Autograd takes them for constants. A method that replaces the chain rule would then explain another network, so we
remember them and what made them, and refuse where one meets a value that carries a gradient.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from forsooth.attributions.calls import Call, names, tensors
from forsooth.records import UsageError

# These read shape, type and place of a tensor, never its numbers.
SHAPE_ONLY = names(
    "empty_like full_like new_empty new_full new_ones new_tensor new_zeros ones_like rand_like randn_like zeros_like"
)
LIKE = names("expand_as reshape_as to type_as view_as")  # of their second argument they read no number either
NUMBERS = names("array complex float index int item numpy tolist")  # tensor in, plain numbers out


class Severed:
    """Remembers tensors that depend on the input without a gradient, by their memory: all views of it count."""

    def __init__(self, method: str) -> None:
        self.method = method
        self._cut: dict[int, tuple[Tensor, str]] = {}
        self._shared: set[int] = set()  # memory that a tensor with a gradient reads, too

    def cause(self, values: Iterable[Tensor]) -> str | None:
        """The operation that cut one of the values from the input; None where none is cut."""
        for value in values:
            if not value.requires_grad and _memory(value) in self._cut:
                return self._cut[_memory(value)][1]
        return None

    def follow(self, call: Call, result: Any, cause: str | None) -> None:
        """Look at what an operation made; UsageError where a severed value would pass for a constant.

        cause  what cut one of the arguments, None where all that depends on the input carries a gradient
        """
        self._refuse_overwriting(call)
        if call.name in SHAPE_ONLY and not self._depends(tensors((call.args[1:], dict(call.kwargs)))):
            return
        if call.name in LIKE and not self._depends(tensors(call.args[:1])):
            return  # a constant brought to the type and place of what depends on the input
        outputs = [*tensors(result), *tensors(call.kwargs.get("out"))]
        if call.inplace and isinstance(call.given, Tensor):
            outputs.append(call.given)
        if not outputs and call.name in NUMBERS:
            raise self._refusal(call, call.full)
        if cause is not None and call.name not in LIKE and any(value.requires_grad for value in outputs):
            raise self._refusal(call, cause)
        for value in outputs:
            if not value.requires_grad:
                self._remember(value, cause or call.full, call)

    def _depends(self, values: Iterable[Tensor]) -> bool:
        """Whether any of the values depends on the input, with or without a gradient."""
        return any(value.requires_grad or self.cause([value]) is not None for value in values)

    def _remember(self, value: Tensor, cause: str, call: Call) -> None:
        memory = _memory(value)
        # The tensor is kept as well, so that its memory is not given to another one.
        self._cut[memory] = (value, cause)
        carriers = [t for t in tensors((call.args, dict(call.kwargs))) if t.requires_grad]
        if memory in map(_memory, carriers):
            self._shared.add(memory)

    def _refuse_overwriting(self, call: Call) -> None:
        """Writing past autograd into a value that carries a gradient changes the network and leaves no trace."""
        target = call.given
        if not call.inplace or not isinstance(target, Tensor):
            return
        hidden = target.requires_grad and not torch.is_grad_enabled()
        if hidden or (not target.requires_grad and _memory(target) in self._shared):
            raise self._refusal(call, call.full)

    def _refusal(self, call: Call, cause: str) -> UsageError:
        return refuse_severed(self.method, call.full, cause)


def refuse_severed(method: str, operation: str, cause: str) -> UsageError:
    """What to say where a value enters `operation` that `cause` made from the input without a gradient."""
    return UsageError(
        f"`{method}` has no rule for the operation `{operation}` in this model: it uses a value that `{cause}` made "
        "from the input without a gradient (such as a mask, an index, or a part under no_grad), and taking that value "
        "for a constant would be silently wrong. Rewrite that part of the model, or take a method that needs "
        "predictions only (such as kernel_shap) or the plain gradient (such as integrated_gradients)"
    )


def _memory(value: Tensor) -> int:
    """What tells the memory of a tensor from that of others; itself where it has no plain memory."""
    if value.layout != torch.strided:
        return id(value)
    return value.untyped_storage()._cdata
