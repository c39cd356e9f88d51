"""What a piece of code shares with all other code of its process: saved, compared and restored around it.

A user's method may leave an open autocast, another default dtype or a hook behind, and the numbers of the methods after
it would be wrong without a word.
"""

import copy
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from forsooth.importing import staying

TENSORS = {  # what a method is given beside the model, and what a reader calls it
    "x": "the inputs",
    "target": "the targets",
    "background": "the background",
    "fit": "the inputs to fit on",
    "truth": "the truth",
}
DEVICES = ("cpu", "cuda")  # each has an autocast of its own


@dataclass(frozen=True)
class Part:
    """Something that code can leave changed.

    name     as a reader of the page knows it
    read     what it is now
    restore  takes what `read` gave
    """

    name: str
    read: Callable[[], Any]
    restore: Callable[[Any], None]


@contextmanager
def restored() -> Iterator[list[str]]:
    """All parts are as before at the end, whatever the code inside does; the list then names those it left changed.

    Generators of numpy and `random` are restored, too, but to draw from them is no fault.
    """
    before = [part.read() for part in PARTS]
    numpys = np.random.get_state()  # noqa: NPY002 (the old generator is the global one)
    randoms = random.getstate()
    gradients = torch.is_grad_enabled()
    changed: list[str] = []
    try:
        # A guard of torch's restores what it found, whatever guards were left open inside of it.
        with torch.inference_mode(torch.is_inference_mode_enabled()), torch.set_grad_enabled(gradients):
            try:
                yield changed
            finally:
                after = [part.read() for part in PARTS]
    finally:
        torch.set_grad_enabled(gradients)
        for part, old, new in zip(PARTS, before, after, strict=True):
            if old != new:
                changed.append(part.name)
                part.restore(old)
        np.random.set_state(numpys)  # noqa: NPY002
        random.setstate(randoms)


@contextmanager
def apart(seed: int) -> Iterator[list[str]]:
    """For other people's code that must be called in this process: it draws from seeded generators, and cannot end us.

    All is as before at the end, and the list names what it left changed.
    """
    with staying(), lent_randomness(seed), restored() as changed:
        seed_others(seed)
        yield changed


@contextmanager
def watched(foreign: bool, question: Any, left: list[str]) -> Iterator[Any]:
    """The question for code that may change what it is handed: copies of all in it, and all else `restored` behind it.

    foreign   no: code of ours, which is asked as it stands
    question  a record with `model`, `seed`, `game` and the fields of `TENSORS`
    left      comes to hold names of all that the code inside left changed
    """
    if not foreign:
        yield question
        return
    tensors = {name: copy.deepcopy(getattr(question, name)) for name in TENSORS if getattr(question, name) is not None}
    model = _copied(question.model)
    before = {**_values(tensors), **model_state(model)}
    changed: list[str] = []
    try:
        with restored() as changed:
            seed_others(torch.initial_seed())
            yield replace(question, model=model, game=copy.deepcopy(question.game), **tensors)
    finally:
        left += [*changed, *differences(before, {**_values(tensors), **model_state(model)})]
        if model is question.model:
            restore_model(model, before)


def _copied(model: Any) -> Any:
    """A copy of the model; itself where that cannot be, and then its values are put back."""
    try:
        return copy.deepcopy(model)
    except Exception:  # a lock, an open file, a tensor amid a graph: whatever a model of the user's holds
        return model


@contextmanager
def lent_randomness(seed: int) -> Iterator[None]:
    """A seeded global generator for code that draws from it (dropout, users' methods), and the old one back after.

    An accelerator that nobody has used so far is not asked: work on the processor goes on where it has no memory left.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
    if not devices:
        torch.cuda.manual_seed_all(torch.initial_seed())  # one that was begun inside, or will be: the caller's seed


def _values(tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return {TENSORS[name]: tensor.detach().clone() for name, tensor in tensors.items()}


def facts(name: str, left: Sequence[str]) -> dict[str, list[str]]:
    """A sentence for the page on what the code of that name left changed; none if it left all as it was."""
    if not left:
        return {}
    names = ", ".join(dict.fromkeys(left))
    return {"said": [f"{name} left {names} changed. It was put back before anything else ran."]}


def seed_others(seed: int) -> None:
    """Seed the global generators of numpy and `random`."""
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)


def model_state(model: Any) -> dict[str, Any]:
    """All that a method must leave as it is in a model, by what it is called; nothing of what is no module."""
    if not isinstance(model, nn.Module):
        return {}
    modules = list(model.named_modules())
    weights = [*model.named_parameters(), *model.named_buffers()]
    return {
        "the model's weights": {name: tensor.detach().clone() for name, tensor in weights},
        "requires_grad of the model's weights": {name: tensor.requires_grad for name, tensor in weights},
        "the model's mode": {name: module.training for name, module in modules},
        "the model's layers": {name: type(module) for name, module in modules},
        "hooks of the model": {name: _hooks(module) for name, module in modules},
    }


def restore_model(model: Any, state: dict[str, Any]) -> None:
    """Values, requires_grad and modes of a model as `model_state` had them."""
    if not isinstance(model, nn.Module):
        return
    modes = state["the model's mode"]
    for name, module in model.named_modules():
        module.training = modes.get(name, module.training)
    values = state["the model's weights"]
    gradients = state["requires_grad of the model's weights"]
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name in values:
            tensor.requires_grad_(gradients[name])
            tensor.data.copy_(values[name])


def _hooks(module: nn.Module) -> list[int]:
    kinds = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return [len(kind) for kind in kinds]


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of what is not the same in two states, tensors to the bit."""
    return [name for name in before if not _same(before[name], after[name])]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return same_tensor(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    return bool(one == other)


def same_tensor(one: Tensor, other: Tensor) -> bool:
    """Equal in shape, type and every value; nan equals nan."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(torch.allclose(one, other.to(one.device), rtol=0, atol=0, equal_nan=True))


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # the folder is gone
        return ""


def _read_autocast() -> list[tuple[bool, torch.dtype]]:
    return [(torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in DEVICES]


def _restore_autocast(states: list[tuple[bool, torch.dtype]]) -> None:
    for device, (enabled, dtype) in zip(DEVICES, states, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
    torch.clear_autocast_cache()


def _read_hooks() -> dict[str, Any]:
    hooks = {name: value for name, value in vars(torch_modules).items() if name.startswith("_global_")}
    return {name: dict(value) for name, value in hooks.items() if isinstance(value, dict)}


def _restore_hooks(state: dict[str, Any]) -> None:
    for name, hooks in state.items():
        live = getattr(torch_modules, name)
        live.clear()
        live.update(hooks)
    if not state["_global_backward_hooks"]:
        torch_modules._global_is_full_backward_hook = None


def _read_cudnn() -> list[bool]:
    cudnn = torch.backends.cudnn
    return [cudnn.enabled, cudnn.benchmark, cudnn.deterministic]


def _restore_cudnn(state: list[bool]) -> None:
    cudnn = torch.backends.cudnn
    cudnn.enabled, cudnn.benchmark, cudnn.deterministic = state


def _restore_device(device: torch.device) -> None:
    if device.type == "cpu":
        torch.set_default_device(None)
    else:
        torch.set_default_device(device)


def _restore_environment(state: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(state)


def _restore_folder(folder: str) -> None:
    if folder:
        os.chdir(folder)


def _restore_warnings(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _restore_streams(state: list[Any]) -> None:
    sys.stdout, sys.stderr = state


def _nothing(state: Any) -> None:
    """Restored by the guard in `restored`."""


PARTS = (
    Part("torch's inference mode", torch.is_inference_mode_enabled, _nothing),
    Part("torch's grad mode", torch.is_grad_enabled, _nothing),
    Part("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Part("torch's default device", torch.get_default_device, _restore_device),
    Part("autocast", _read_autocast, _restore_autocast),
    Part(
        "torch's deterministic algorithms",
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda state: torch.use_deterministic_algorithms(state[0], warn_only=state[1]),
    ),
    Part("flags of cuDNN", _read_cudnn, _restore_cudnn),
    Part("the precision of matrix products", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    Part("the number of threads", torch.get_num_threads, torch.set_num_threads),
    Part("hooks on all modules", _read_hooks, _restore_hooks),
    Part("environment variables", lambda: dict(os.environ), _restore_environment),
    Part("the working folder", _folder, _restore_folder),
    Part("filters of warnings", lambda: list(warnings.filters), _restore_warnings),
    Part("sys.stdout or sys.stderr", lambda: [sys.stdout, sys.stderr], _restore_streams),
)
