"""A network as a chain of layers, and the same network made ready for many forwards on a processor.

Whoever hides players asks one network millions of times. Four changes leave what it says the same but for the order of
sums: a convolution on a tiny image is a matrix (`forsooth.dense`), batch normalisation is a part of the convolution
before it, convolutions are faster where the channels of a pixel lie together, and some layers have a quicker way of
their own (`forsooth.quick`).
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from forsooth.dense import as_matrices
from forsooth.games.values import Game, convolves
from forsooth.quick import as_quick

MANY = 2**11  # forwards from which on it pays to make a network ready
CACHED = 2**19  # numbers of one map of all rows
OURS = ("torch", "forsooth")  # where classes come from whose forwards do nothing but compute
RANDOM = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)  # of which training mode changes the outputs


def prepared(played: Game, forwards: int) -> Game:
    """The game with its network made ready for so many forwards; the same game where that cannot be or is not asked."""
    if forwards < MANY or played.x.device.type != "cpu" or not may_rewrite(played):
        return played
    assert isinstance(played.model, nn.Module)
    model = made_ready(played.model, tuple(played.x.shape[1:]))
    return replace(played, model=model, room=played.room[: best_rows(model, played)])


def best_rows(model: Callable[[Tensor], Tensor], played: Game) -> int:
    """How many rows of the room go into one forward of a network that is ready.

    Where the channels lie together fewer are best, and where maps are wide still fewer, so that they stay in the cache.
    """
    rows = len(played.room)
    most = 2 * rows // 3
    if isinstance(model, nn.Module):
        most = min(most, CACHED // widest(model, played.x[:1]))
    return max(min(32, rows), most)


@torch.no_grad()
def widest(module: nn.Module, x: Tensor) -> int:
    """The most numbers that a convolution gives for one input x (1, *shape); 1 where there is none."""
    sizes = [1]
    seen = [
        part.register_forward_hook(lambda _, __, given: sizes.append(given.numel()))
        for part in module.modules()
        if convolves(part)
    ]
    try:
        if len(x):
            module(x)
    finally:
        for handle in seen:
            handle.remove()
    return max(sizes)


def may_rewrite(played: Game) -> bool:
    """Whether the model of a game may be asked in another way, and is known so well that it can be."""
    return played.rewrite_model and known(played.model)


def made_ready(module: nn.Module, shape: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    """A function of x (n, *shape) that says what the module says, faster where it has convolutions."""
    if len(shape) != 3 or not any(map(convolves, module.modules())):
        return module
    small = as_matrices(nn.Sequential(*layers_of(module)), shape, frozen=True)
    if small is not None:
        return small
    if type(module) is nn.Sequential and not any(map(normalises, module.modules())):
        ready = last(copy.deepcopy(module))  # a chain still, whose layers can be read
        return as_quick(nn.Sequential(*layers_of(ready))) or ready
    return last(folded(module))


def last(module: nn.Module) -> nn.Module:
    """The module, its convolutions with the channels of a pixel together."""
    return module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def folded(module: nn.Module) -> nn.Module:
    """A copy in which batch normalisation is a part of the convolution before it, where the network can be traced."""
    try:
        traced = fx.symbolic_trace(copy.deepcopy(module))
    except Exception:  # whatever a forward says to a proxy; a fault of the module itself comes again when it runs
        return copy.deepcopy(module)
    for node in list(traced.graph.nodes):
        before = convolution_before(node, traced)
        if before is None:
            continue
        conv = traced.get_submodule(str(before.target))
        norm = traced.get_submodule(str(node.target))
        traced.set_submodule(str(before.target), fuse_conv_bn_eval(conv, norm))  # type: ignore[type-var,arg-type]
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.recompile()
    return traced


def convolution_before(node: fx.Node, traced: fx.GraphModule) -> fx.Node | None:
    """The convolution that a batch normalisation alone reads, where each of the two runs once; None elsewhere."""
    before = node.args[0] if node.args else None
    if not isinstance(before, fx.Node) or len(before.users) > 1:
        return None
    for one, fits in ((before, convolves), (node, normalises)):
        calls = [other for other in traced.graph.nodes if other.target == one.target]
        if one.op != "call_module" or len(calls) > 1 or not fits(traced.get_submodule(str(one.target))):
            return None
    return before


def normalises(module: nn.Module) -> bool:
    """Whether a module is a batch normalisation."""
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


def known(model: object) -> bool:
    """Whether a model is a network whose layers do nothing but compute, always the same, without hooks."""
    if not isinstance(model, nn.Module):
        return False
    return all(pure(module) for module in model.modules())


def pure(module: nn.Module) -> bool:
    """Whether one module computes, always the same, and nobody listens."""
    hooked = bool(module._forward_hooks or module._forward_pre_hooks or module._backward_hooks)
    ours = type(module).__module__.partition(".")[0] in OURS
    return ours and not hooked and not (module.training and isinstance(module, RANDOM))


def layers_of(module: nn.Module) -> list[nn.Module]:
    """The layers of a chain in the order of the forward, chains in chains unrolled; others are one layer."""
    if type(module) is not nn.Sequential:
        return [module]
    return [layer for part in module for layer in layers_of(part)]


def overwriting(layers: Sequence[nn.Module]) -> nn.Sequential:
    """Layers as one that may overwrite what it is given: no ReLU takes fresh memory, which is slow."""
    return nn.Sequential(*(nn.ReLU(inplace=True) if type(layer) is nn.ReLU else layer for layer in layers))
