"""Run an unmodified model while some of its operations are replaced, so that one backward pass follows a method's
rules instead of the chain rule.

Operations are caught where they are called (`torch.overrides.TorchFunctionMode`), not where modules are declared.
So functional and module ReLUs, in-place and reused modules, `nn.Flatten`, empty `nn.Sequential` shortcuts and
`y + z` are all seen, and the model carries neither hooks nor changed weights, even while it runs.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from forsooth.attributions.calls import Call, names, read, tensors
from forsooth.attributions.severed import SHAPE_ONLY, Severed, refuse_severed
from forsooth.records import UsageError

ELEMENTS_AT_ONCE = 2**17  # input numbers per pass, 32 images of 64x64: with more, the caches of a processor run over

# Operations that only move, copy or drop numbers: their gradient moves relevance, multipliers and signals alike.
STRUCTURAL = names(
    "T broadcast_to cat chunk clone concat concatenate contiguous double expand expand_as flatten flip float gather "
    "getitem hstack index_select mT masked_fill moveaxis movedim narrow pad permute ravel repeat "
    "repeat_interleave reshape reshape_as roll select setitem split split_with_sizes squeeze stack swapaxes swapdims t "
    "tensor_split tile to transpose type type_as unbind unflatten unsqueeze view view_as vstack where"
)
DROPOUT = names("alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout")
MAX_POOLS = frozenset(f"{kind}max_pool{d}d" for kind in ("", "adaptive_") for d in (1, 2, 3))
SOFTMAX = names("softmax log_softmax")

Rule = Callable[[Call], Any]


class Backward(torch.autograd.Function):
    """`compute(x)` on the way forward, `rule(x, gradient)` on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, compute: Callable[[Tensor], Tensor], rule: Callable[..., Tensor]) -> Tensor:
        ctx.save_for_backward(x)
        ctx.rule = rule
        return compute(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        return ctx.rule(x, gradient), None, None


class BackwardOfTwo(torch.autograd.Function):
    """`compute(a, b)` on the way forward, `rule(a, b, gradient)` on the way back, which gives one for each."""

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, compute: Callable[..., Tensor], rule: Callable[..., tuple[Tensor, Tensor]]
    ) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.rule = rule
        return compute(a, b)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        a, b = ctx.saved_tensors
        return (*ctx.rule(a, b, gradient), None, None)


OURS = (Backward, BackwardOfTwo)


class Intercept(TorchFunctionMode):
    """While active, every operation on something that depends on the input follows `rules`.

    rules  name of the operation -> function of the `Call` that gives the result; None runs it as it is. An operation
           without a rule raises UsageError, unless it gives no floating-point tensor (sizes, comparisons)
    written  name of an operation without a rule -> function of the `Call` that writes it out in others, which then
             follow theirs

    What depends on the input without a gradient (a comparison, say) may be made, but not used: see `severed`.
    """

    def __init__(
        self, method: str, rules: Mapping[str, Rule | None], written: Mapping[str, Rule] | None = None
    ) -> None:
        super().__init__()
        self.method = method
        self.rules = rules
        self.written = written or {}
        self.severed = Severed(method)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        arguments = list(tensors((args, kwargs)))
        carries = any(tensor.requires_grad for tensor in arguments)
        cause = self.severed.cause(arguments)
        if not carries and cause is None:
            return function(*args, **kwargs)
        call = read(function, args, dict(kwargs))  # a copy, since reading may take a first argument out of it
        if carries:
            result = self._run(call)
        else:
            result = function(*args, **kwargs)
        self.severed.follow(call, result, cause)
        return result

    def _run(self, call: Call) -> Any:
        if call.name in DROPOUT and call.argument(2, "training", True):
            raise UsageError(
                f"`{self.method}` needs a model in eval mode, but its dropout is active: call model.eval()"
            )
        rule = self.rules.get(call.name)
        if rule is not None:
            return follow(rule, call)
        if call.name in self.written:
            with self:
                return self.written[call.name](call)
        result = call.function(*call.args, **call.kwargs)
        passes = call.name in self.rules or call.name in DROPOUT or call.name in SHAPE_ONLY
        if not passes and any(tensor.is_floating_point() for tensor in tensors(result)):
            raise refusal(self.method, call)
        return result


OF_TRANSFORMERS = ("layer_norm", "rms_norm", "softmax", "scaled_dot_product_attention", "multi_head_attention_forward")


def follow(rule: Rule, call: Call) -> Any:
    """The result of the rule, written back where the operation overwrites: the model may read it from there."""
    if not call.inplace:
        return rule(call)
    # A copy goes to the rule, for what a rule keeps for the backward pass must not be overwritten.
    return call.x.copy_(rule(replace(call, args=(call.x.clone(), *call.args[1:]))))


def refusal(method: str, call: Call) -> UsageError:
    """What to say about an operation that the method cannot pass."""
    others = "gradients only (such as integrated_gradients) or predictions only (such as kernel_shap)"
    if call.full.rpartition(".")[2] in OF_TRANSFORMERS:
        others += ", or attn_lrp, whose rules are for transformers"
    return UsageError(
        f"`{method}` has no rule for the operation `{call.full}` in this model, and passing it by the plain gradient "
        f"would be silently wrong. Rewrite that part of the model, or take a method that needs {others}"
    )


def ancestry(tensor: Tensor) -> Iterator[Any]:
    """All nodes of the graph that made the tensor, nearest first along each branch."""
    waiting = [tensor.grad_fn]
    seen = set[Any]()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            waiting += [parent for parent, _ in node.next_functions]


def forward(model: nn.Module, x: Tensor, target: Tensor, mode: Intercept) -> tuple[Tensor, Tensor]:
    """The model's output for each target under `mode`.

    x        (n, *shape)
    target   (n,) int64
    returns  the leaf (n, *shape) to differentiate by, and the outputs (n,)
    """
    check_model(model, mode.method)
    leaf = x.detach().clone().requires_grad_()
    # Parameters without gradient: what still requires one then depends on the input, and `mode` can tell.
    frozen = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.enable_grad():
        start = leaf.clone()  # a model whose first operation works in place must not overwrite the leaf
        with mode:
            output = functional_call(model, frozen, (start,))
    check_output(output, len(x), mode)
    with torch.enable_grad():  # the caller may have switched it off
        return leaf, output.gather(1, target.unsqueeze(1)).squeeze(1)


def check_model(model: nn.Module, method: str) -> None:
    """UsageError where the operations of a model cannot be seen."""
    for module in model.modules():
        # By its name, because to import the compiler takes seconds.
        if isinstance(module, torch.jit.ScriptModule) or type(module).__name__ == "OptimizedModule":
            raise UsageError(f"`{method}` cannot see into a scripted or compiled model: give it the plain module")
        if isinstance(module, nn.DataParallel):
            raise UsageError(f"`{method}` cannot see into nn.DataParallel: give it the module inside, model.module")


def check_output(output: Tensor, inputs: int, mode: Intercept) -> None:
    """UsageError unless a model gave (n, classes) for n inputs, and the rules of the mode were followed all the way."""
    cause = mode.severed.cause([output])
    if cause is not None:
        raise refuse_severed(mode.method, "output", cause)
    if output.ndim != 2 or len(output) != inputs:
        raise UsageError(f"`model` must give (n, classes) for n = {inputs} inputs, got {tuple(output.shape)}")
    for node in ancestry(output):
        if getattr(node, "_forward_cls", Backward) not in OURS:
            name = node._forward_cls.__name__
            raise UsageError(f"`{mode.method}` cannot see into the model's own autograd function `{name}`")


def sample_axis(one: torch.Size, other: torch.Size, *, counts: tuple[int, int], method: str) -> int:
    """The axis of the samples in a value inside the model, by its shapes for two different numbers of samples."""
    pairs = list(zip(one, other, strict=False))
    axes = [axis for axis, (a, b) in enumerate(pairs) if a != b]
    if len(one) != len(other) or len(axes) != 1 or pairs[axes[0]] != counts:
        raise UsageError(
            f"`{method}` needs a model in which the samples keep an axis of their own; a value inside this one has the "
            f"shape {tuple(one)} for {counts[0]} samples and {tuple(other)} for {counts[1]}"
        )
    return axes[0]


def rows_at_once(x: Tensor) -> int:
    """How many samples of x (n, *shape) to run together."""
    limit = ELEMENTS_AT_ONCE
    if x.device.type != "cpu":
        limit *= 32
    return max(1, limit // max(1, x[:1].numel()))
