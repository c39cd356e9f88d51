"""Maxima over places in which a number competes that is no place of its own.

A maximum over places sends the gradient to the winner, as max-pooling does. But `torch.stack([z, 0]).amax(0)` is a ReLU
in other words, and with 0.1 z in the place of the zero a leaky one. So constants that were put beside what depends on
the input are remembered, and so are multiples of what they stand beside: rivals. A maximum in which they compete is
refused, whoever wins, so that a model is not taken on some inputs and refused on others.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from forsooth.attributions.affine import SCALES, SUMS
from forsooth.attributions.calls import Call, names, tensors
from forsooth.attributions.intercept import DROPOUT, MAX_POOLS, STRUCTURAL, Intercept, Rule, refusal
from forsooth.seeds import generator

WINNERS = names("amax amin max min")  # over axes: the gradient goes to the winner, as in max-pooling
MOVES = STRUCTURAL | DROPOUT | MAX_POOLS | WINNERS | names("pixel_shuffle pixel_unshuffle unfold")
# Rivals stay rivals through these. The outputs of a layer are places of their own, also those that read padding only.
MARKED = MOVES | SUMS | SCALES | names("gelu relu sigmoid silu tanh")
JOINS = names("cat concat concatenate hstack stack vstack")
FILLS = names("masked_fill pad setitem unfold where")
SHAPES = names(  # every number stays where it was among the others
    "clone contiguous double expand expand_as flatten float ravel reshape reshape_as squeeze to type type_as unflatten "
    "unsqueeze view view_as"
)
POSITIVE = names("relu sigmoid softmax")  # never below zero
MASK = 1e4  # what lies this far out stands there so that it never wins

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Sources:
    """Remembers which tensors are multiples of one another, or shifted, number by number."""

    def __init__(self) -> None:
        self._of = WeakTensorKeyDictionary()

    def of(self, tensor: Tensor) -> object:
        """What stands for a tensor and all its multiples."""
        if tensor not in self._of:
            self._of[tensor] = object()
        return self._of[tensor]

    def follow(self, call: Call, outputs: list[Tensor]) -> None:
        """Look at what an operation made."""
        carried = carriers(call)
        if len(carried) == len(outputs) == 1 and outputs[0] is not carried[0] and keeps_places(call, outputs[0]):
            self._of[outputs[0]] = self.of(carried[0])


def keeps_places(call: Call, output: Tensor) -> bool:
    """Whether every number of the output is a multiple of the one in its place, or shifted."""
    if call.name == "getitem":  # z[None]
        return output.numel() == call.x.numel() and not list(tensors(call.args[1:]))
    return call.name in SCALES | SUMS | DROPOUT | SHAPES


class Signs:
    """Remembers which tensors are zero or above whatever the input is, but for rivals in them."""

    def __init__(self) -> None:
        self._versions = WeakTensorKeyDictionary()

    def positive(self, tensor: Tensor) -> bool:
        """Whether a tensor is known to be so, and was not overwritten since."""
        return self._versions.get(tensor) == tensor._version

    def kept(self, call: Call) -> bool:
        """Whether what an operation makes is so."""
        if call.name in POSITIVE:
            return True
        if not all(map(self.positive, carriers(call))):
            return False
        if call.name == "mul":
            return all(bool((value >= 0).all()) for value in constants(call))
        return call.name in MOVES

    def remember(self, tensor: Tensor) -> None:
        self._versions[tensor] = tensor._version


class Contests(Intercept):
    """An `Intercept` that refuses maxima and minima in which rivals compete."""

    def __init__(self, method: str, rules: Mapping[str, Rule | None]) -> None:
        super().__init__(method, rules)
        self.sources = Sources()
        self.signs = Signs()
        self._rivals = WeakTensorKeyDictionary()  # tensor -> where it holds some, bool of its shape

    def _run(self, call: Call) -> Any:
        # Asked before the operation runs, which may overwrite what it was given.
        positive = self.signs.kept(call)
        trials = self._trials(call)
        result = super()._run(call)
        self._refuse_contest(call)
        outputs = made(call, result)
        self.sources.follow(call, outputs)
        for output in outputs:
            self._rivals.pop(output, None)
            if positive:
                self.signs.remember(output)
        if trials:
            rivals = zip(outputs, unchanged(call, trials), strict=True)
            self._rivals.update((output, same) for output, same in rivals if same.any())
        return result

    def _trials(self, call: Call) -> list[Arguments]:
        """The arguments of a call with other numbers in place of what depends on the input, twice; rivals are held.

        What does not change between the two is a rival in the result. None where there can be no rival in it.
        """
        mixes = call.name in MARKED and (self._mixes(call) or any(tensor in self._rivals for tensor in carriers(call)))
        if not mixes:
            return []
        return [swapped((call.args, dict(call.kwargs)), self._redraw(call, scale)) for scale in (1, 2)]

    def _mixes(self, call: Call) -> bool:
        """Whether a call may put constants, or multiples of one thing, beside what depends on the input."""
        if call.name in JOINS:
            return len({self.sources.of(tensor) for tensor in carriers(call)}) < len(list(tensors(call.args)))
        if call.name == "mul":
            return not all(bool(value.all()) for value in constants(call))
        return call.name in FILLS

    def _redraw(self, call: Call, scale: int) -> Callable[[Tensor], Tensor]:
        """Gives `scale` times random numbers for what depends on the input, the same in every redraw of a call."""
        source = generator(0, "rivals")
        joined = set[object]()

        def redrawn(tensor: Tensor) -> Tensor:
            if not tensor.requires_grad:
                return tensor.clone()
            mine = self.sources.of(tensor)
            if call.name in JOINS and mine in joined:
                return tensor.detach()  # stands beside a multiple of itself
            joined.add(mine)
            draw = scale * (torch.rand(tensor.shape, generator=source) + 0.5).to(tensor)
            if tensor not in self._rivals:
                return draw
            return torch.where(self._rivals[tensor], tensor.detach(), draw)

        return redrawn

    def _refuse_contest(self, call: Call) -> None:
        """UsageError for a maximum that rivals may win against what depends on the input."""
        if call.name not in WINNERS | MAX_POOLS or call.x not in self._rivals:
            return
        rivals = self._rivals[call.x]
        if call.name in ("amin", "min"):
            strong = call.x < MASK
        elif self.signs.positive(call.x):
            strong = call.x > 0  # a zero behind a ReLU changes no maximum
        else:
            strong = call.x > -MASK
        if bool((highest(call, rivals & strong) > -highest(call, rivals, sign=-1)).any()):
            raise refusal(self.method, call)


def highest(call: Call, places: Tensor, sign: int = 1) -> Tensor:
    """The highest of `sign` times bool places (1 or 0) in each window of a maximum or minimum."""
    if call.name in ("amin", "min"):
        return -next(tensors(call(-sign * places.float())))
    return next(tensors(call(sign * places.float())))


def unchanged(call: Call, trials: list[Arguments]) -> list[Tensor]:
    """Where the results of a call are the same under both sets of arguments, for each of its outputs."""
    one, two = (made(replace(call, given=args[0]), call.function(*args, **kwargs)) for args, kwargs in trials)
    return [a == b for a, b in zip(one, two, strict=True)]


def made(call: Call, result: Any) -> list[Tensor]:
    """The tensors that a call gave, or that it wrote into."""
    if result is None:
        result = call.given
    return list(tensors(result))


def carriers(call: Call) -> list[Tensor]:
    """The arguments that depend on the input."""
    return [tensor for tensor in tensors((call.args, dict(call.kwargs))) if tensor.requires_grad]


def constants(call: Call) -> list[Tensor]:
    """The numbers and tensors among the arguments that do not depend on the input."""
    values = [value for value in (*call.args, *call.kwargs.values()) if isinstance(value, (int, float, Tensor))]
    return [value for value in map(torch.as_tensor, values) if not value.requires_grad]


def swapped(value: Any, swap: Callable[[Tensor], Tensor]) -> Any:
    """Nested tuples, lists and dictionaries with `swap` of each tensor in them."""
    if isinstance(value, Tensor):
        return swap(value)
    if isinstance(value, (tuple, list)):
        kind = list if isinstance(value, list) else tuple
        return kind(swapped(item, swap) for item in value)
    if isinstance(value, dict):
        return {name: swapped(item, swap) for name, item in value.items()}
    return value
