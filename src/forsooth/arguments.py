"""The user's words made fit for a plan: methods by name, factors, a device that is here, a folder that is free."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from forsooth import names, plugins, store
from forsooth.attributions import METHODS
from forsooth.records import Method, UsageError

ACCELERATORS = ("gpu", "rocm", "hip", "nvidia")  # what people type; spelling alone would offer them cpu


ALL = "all"  # what stands for every method of the catalogue


def chosen_methods(given: Any, *, truth: bool = True) -> tuple[Any, ...]:
    """The methods that a user gave; `all` are those of the catalogue, beside which there may be others.

    truth  whether those that need a ground truth are among them
    """
    chosen = several(given)
    if not any(isinstance(one, str) and one == ALL for one in chosen):
        return chosen
    catalogue = [method.name for method in METHODS if truth or "truth" not in method.needs]
    own = [one for one in chosen if not (isinstance(one, str) and one in (ALL, *catalogue))]
    return (*catalogue, *own)


def several(given: Any) -> tuple[Any, ...]:
    """What a user gave where several may be: names with commas between them, one thing, or a list.

    >>> several("lime, lrp"), several(["lime"]), several(len)
    (('lime', 'lrp'), ('lime',), (<built-in function len>,))
    """
    if isinstance(given, str):
        return tuple(name.strip() for name in given.split(",") if name.strip())
    if callable(given):
        return (given,)
    return tuple(given)


def method_path(method: str | Method | Callable[..., torch.Tensor]) -> str:
    """The name under which a task can find the method again, in this process or another."""
    if isinstance(method, str):
        return plugins.method(method, METHODS).name
    if not isinstance(method, Method):
        return plugins.path_of(method)
    if method in METHODS:
        return method.name
    return plugins.record_path(method)


def usable_workers(workers: int, methods: Sequence[str], say: Callable[[str], None]) -> int:
    """So many processes, or this one alone where a method lives in it."""
    live = [name for name in methods if plugins.is_live(name)]
    if not live or workers < 2:
        return workers
    say(
        f"{', '.join(live)} lives in this process alone, so the work is not shared by {workers}: a function at the top "
        "of a module that can be imported could be"
    )
    return 1


def check_models(only: Mapping[str, tuple[str, ...]], chosen: Sequence[str]) -> None:
    """UsageError where `only` asks for a model that is not among those the user has set."""
    known = [name.lower() for name in chosen]
    for model in only.get("model", ()):
        if model.lower() not in known:
            raise UsageError(
                f"`model` must be among the models that are set, got {model!r} beside models={','.join(chosen)}"
            )


def usable_device(device: str) -> str:
    """The device, if it is here."""
    if device == "auto":
        return {True: "cuda", False: "cpu"}[torch.cuda.is_available()]
    if device == "gpu":
        raise UsageError("`device` must be auto, cpu or cuda, got 'gpu'; did you mean cuda?")
    if device not in ("cpu", "cuda"):
        if device.lower() in ACCELERATORS:
            raise UsageError(
                f"`device` must be auto, cpu or cuda, got {device!r}; an accelerator of NVIDIA or AMD is cuda"
            )
        raise names.unknown(device, ("auto", "cpu", "cuda"), argument="device")
    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError("`device` must be one that is here, got 'cuda', and torch sees no accelerator")
    return device


def outside(folder: Path, data: str | Path | None) -> Path:
    """The folder of a run, which must not lie in the user's data: they would be others with it."""
    if data is not None and folder.resolve().is_relative_to(Path(data).resolve()):
        raise UsageError(f"`out` must lie outside of `data`, where nothing is written, got {folder} inside {data}")
    return folder


def run_folder(folder: Path) -> Path:
    """The folder, if it is new, empty or an earlier run."""
    return store.free_folder(folder, ("run.json", "store"), "run")
