"""What the attention of a transformer of images or words says: rollout, gradient × attention, and LeGrad.

Attention is seen where it is computed, as a softmax over tokens, whichever module it is in.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from forsooth.attributions.calls import read
from forsooth.attributions.cam import activations_of, grad_cam_of
from forsooth.attributions.cams import check_images, enlarged
from forsooth.attributions.composed import ATTENTIONS
from forsooth.attributions.intercept import rows_at_once
from forsooth.attributions.intrinsic import shared
from forsooth.chunks import over
from forsooth.records import Method, UsageError

Summary = Callable[[list[Tensor], list[Tensor]], Tensor]  # attentions, their gradients (n, heads, t, t) -> (n, t, t)


class Attentions(TorchFunctionMode):
    """While active, keeps every softmax (n, heads, tokens, tokens) over tokens, also of fused attention."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.inputs = inputs
        self.kept: list[Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        call = read(function, args, dict(given))
        if call.name in ATTENTIONS:
            with self:
                return ATTENTIONS[call.name](call)
        result = function(*args, **given)
        if call.name == "softmax" and self.attends(result):
            self.kept.append(result)
        return result

    def attends(self, weights: Tensor) -> bool:
        """Whether a softmax is one of tokens over tokens."""
        square = weights.ndim == 4 and weights.shape[-1] == weights.shape[-2]
        return square and len(weights) == self.inputs and weights.requires_grad


def attends(model: nn.Module, x: Tensor) -> bool:
    """Whether a model weighs tokens by attention when it is asked about x (n, *shape)."""
    mode = Attentions(len(x))
    with torch.enable_grad(), mode:
        model(x.detach().clone().requires_grad_())
    return bool(mode.kept)


def attentions(model: nn.Module, x: Tensor, target: Tensor, method: str) -> tuple[list[Tensor], list[Tensor]]:
    """All attention weights (n, heads, tokens, tokens), layer after layer, and the outputs' gradients by them."""
    mode = Attentions(len(x))
    frozen = {name: parameter.detach() for name, parameter in model.named_parameters()}
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        with mode:
            output = functional_call(model, frozen, (leaf,))
        if not mode.kept:
            raise UsageError(
                f"`{method}` needs a transformer, but this model computes no attention, a softmax (n, heads, tokens, "
                "tokens) over tokens"
            )
        score = output.gather(1, target[:, None]).sum()
        slopes = torch.autograd.grad(score, mode.kept, materialize_grads=True)
    return [weights.detach() for weights in mode.kept], list(slopes)


def of_tokens(model: nn.Module, x: Tensor, target: Tensor, *, method: str, summary: Summary) -> Tensor:
    """The map of what all tokens take from each, by `summary`, for images x (n, channels, h, w) or words.

    Vectors of words x (n, length, dims) share what their word gets, as everywhere in the house.
    """
    if x.ndim == 3:

        def by_word(x: Tensor, target: Tensor) -> Tensor:
            return shared(of_words(model, x, target, method=method, summary=summary), x)

        return over(by_word, x, target, size=rows_at_once(x))

    def part(x: Tensor, target: Tensor) -> Tensor:
        weights, slopes = attentions(model, x, target, method)
        taken = summary(weights, slopes)  # (n, tokens, tokens)
        rows, columns = grid_of(taken.shape[-1], x, method)
        places = rows * columns
        pooled = taken.mean(1)  # a mean over all tokens, since all of them go to the head
        if taken.shape[-1] > places:
            pooled = taken[:, 0, 1:]  # the class token, which comes first
        return pooled.unflatten(1, (rows, columns))

    return enlarged(over(part, x, target, size=rows_at_once(x)), x)


def of_words(model: nn.Module, x: Tensor, target: Tensor, *, method: str, summary: Summary) -> Tensor:
    """What those tokens that the head reads take from each word of x (n, length, dims), their mean: (n, length).

    Which these are, the class token, the last word or all that are no padding, is said by the gradient by the last
    layer's attention: that of all others is zero.
    """
    weights, slopes = attentions(model, x, target, method)
    if weights[0].shape[-1] != x.shape[1]:
        came = f"{x.shape[1]} words, but the model has {weights[0].shape[-1]} tokens"
        raise UsageError(f"`{method}` needs tokens that are the words of x {tuple(x.shape)}, got {came}")
    taken = summary(weights, slopes)  # (n, length, length)
    read = (slopes[-1] != 0).any(-1).any(1).to(taken)  # (n, length)
    read[read.sum(1) == 0] = 1
    return (read[:, :, None] * taken).sum(1) / read.sum(1, keepdim=True)


def grid_of(tokens: int, x: Tensor, method: str) -> tuple[int, int]:
    """Rows and columns of patches of x (n, channels, h, w), for tokens with or without a class token before them."""
    if x.ndim != 4:
        expected = "images (n, channels, h, w), whose patches are tokens, or words (n, length, dims)"
        raise UsageError(f"`{method}` needs {expected}, got {tuple(x.shape)}")
    height, width = x.shape[2:]
    for places in (tokens, tokens - 1):
        rows = max(1, round(math.sqrt(places * height / width)))
        if places > 0 and rows * (places // rows) == places and rows * width == places // rows * height:
            return rows, places // rows
    raise UsageError(f"`{method}` needs tokens that are patches of x {tuple(x.shape)}, but the model has {tokens}")


def attention_rollout(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """Attention, averaged over heads and half mixed with what a token keeps, multiplied through all layers.

    x        (n, channels, h, w), or vectors of words (n, length, dims)
    returns  shaped like x, never negative, whatever the target

    [abnar2020quantifying]
    """
    return of_tokens(model, x, target, method="attention_rollout", summary=rolled_out)


def rolled_out(weights: list[Tensor], slopes: list[Tensor]) -> Tensor:
    """The product (n, tokens, tokens) of (A + 1) / 2 over the layers, the last one first."""
    one = torch.eye(weights[0].shape[-1]).to(weights[0])
    total = one.expand(len(weights[0]), -1, -1)
    for layer in weights:
        total = (layer.mean(1) + one) / 2 @ total
    return total


def gradient_attention(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """The positive part of gradient × attention, averaged over heads, gathered through all layers.

    x        (n, channels, h, w), or vectors of words (n, length, dims)
    target   (n,) int64
    returns  shaped like x, never negative

    [chefer2021generic], for self-attention. Without a class token the mean over tokens is taken, and what a token had
    of itself to begin with, the same for all, is taken off.
    """
    return of_tokens(model, x, target, method="gradient_attention", summary=gathered)


def gathered(weights: list[Tensor], slopes: list[Tensor]) -> Tensor:
    """R - 1 (n, tokens, tokens), where R begins as 1 and each layer adds mean((A ∇A)⁺) R."""
    one = torch.eye(weights[0].shape[-1]).to(weights[0])
    total = one.expand(len(weights[0]), -1, -1)
    for layer, slope in zip(weights, slopes, strict=True):
        total = total + (layer * slope).relu().mean(1) @ total
    return total - one


def legrad(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """The positive gradient by the attention, averaged over heads and tokens, summed over layers.

    x        (n, channels, h, w), or vectors of words (n, length, dims)
    target   (n,) int64
    returns  shaped like x, never negative

    [bousselham2024legrad]. Departures: the output whose gradient is taken is the model's own in all layers, since where
    a layer's tokens would enter the head only its authors know; maps are not brought to [0, 1].
    """
    return of_tokens(model, x, target, method="legrad", summary=sensitivity)


def sensitivity(weights: list[Tensor], slopes: list[Tensor]) -> Tensor:
    """Σ over layers of mean((∇A)⁺) over heads and asking tokens, the same for all of these: (n, tokens, tokens)."""
    layers = [slope.relu().mean((1, 2)) for slope in slopes]
    asked = torch.stack(layers).sum(0)  # (n, tokens)
    return asked[:, None].expand(-1, asked.shape[1], -1)


def token_grad_cam(model: nn.Module, x: Tensor, target: Tensor, *, layer: str) -> Tensor:
    """Grad-CAM on a layer of tokens, put back in the places of their patches.

    x        (n, channels, h, w)
    target   (n,) int64
    layer    dotted name of a module whose output is (n, tokens, c) or (n, c, rows, columns)
    returns  (n, channels, h, w), never negative

    [selvaraju2017grad]. A class token that comes first is left out.
    """
    check_images(x)

    def part(x: Tensor, target: Tensor) -> Tensor:
        output, gradient = (on_grid(values, x) for values in activations_of(model, x, target, layer))
        return grad_cam_of(output, gradient)

    return enlarged(over(part, x, target, size=rows_at_once(x)), x)


def on_grid(values: Tensor, x: Tensor) -> Tensor:
    """Values of tokens (n, tokens, c) as (n, c, rows, columns); those that have places stay."""
    if values.ndim == 4:
        return values
    if values.ndim != 3 or len(values) != len(x):
        raise UsageError(f"`layer` must be a module that gives (n, tokens, c), got the shape {tuple(values.shape)}")
    rows, columns = grid_of(values.shape[1], x, "token_grad_cam")
    return values[:, -rows * columns :].transpose(1, 2).unflatten(2, (rows, columns))


ATTENTION_ROLLOUT = Method(
    name="attention_rollout",
    function=attention_rollout,
    needs=("module",),
    random=False,
    signed=False,
    cite="abnar2020quantifying",
    version=1,
    inputs=("image", "words"),
    attends=True,
)
GRADIENT_ATTENTION = Method(
    name="gradient_attention",
    function=gradient_attention,
    needs=("module",),
    random=False,
    signed=False,
    cite="chefer2021generic",
    version=1,
    inputs=("image", "words"),
    attends=True,
)
LEGRAD = Method(
    name="legrad",
    function=legrad,
    needs=("module",),
    random=False,
    signed=False,
    cite="bousselham2024legrad",
    version=1,
    inputs=("image", "words"),
    attends=True,
)
TOKEN_GRAD_CAM = Method(
    name="token_grad_cam",
    function=token_grad_cam,
    needs=("module", "layer"),
    random=False,
    signed=False,
    cite="selvaraju2017grad",
    version=1,
    inputs=("image",),
    attends=True,
)
ATTENDING = (ATTENTION_ROLLOUT, GRADIENT_ATTENTION, LEGRAD)  # of transformers alone
