"""What the user's requests have in common: words that a task can carry, and a folder for the answer."""

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from torch import Tensor, nn

from forsooth import store
from forsooth.adapters import inputs, models
from forsooth.attributions.attending import attends
from forsooth.records import Facts

BLIND = ("random", "constant")  # maps that say nothing, beside which every method is judged
OF_TRANSFORMERS = {"lrp": "attn_lrp"}  # method -> the same with rules for attention
NULLS = (*BLIND, "sobel", "laplace", "rectified_input", "oracle")  # the same where the truth is known


def suited(names: Sequence[str], model: nn.Module, x: Tensor) -> list[str]:
    """The names of methods, those in `OF_TRANSFORMERS` changed where the model is one for x (n, *shape)."""
    if not set(names) & set(OF_TRANSFORMERS) or not attends(model, x[:1]):
        return list(names)
    return [OF_TRANSFORMERS.get(name, name) for name in names]


class HasDigest(Protocol):
    """What is fixed before the work begins."""

    @property
    def digest(self) -> str: ...


Prepared = TypeVar("Prepared", bound=HasDigest)


def plain_words(request: Any, *, without: Collection[str] = ()) -> Facts | None:
    """The fields of a request as plain values, files by their full path; None where something lives in memory."""
    words: Facts = {}
    for field in fields(request):
        if field.name in without:
            continue
        value = getattr(request, field.name)
        if isinstance(value, Path) or (field.name != "model" and inputs.is_file(value)):
            value = str(Path(value).resolve())
        elif not isinstance(value, str | int | None):
            return None
        words[field.name] = value
    if not isinstance(request.model, str):
        return None
    return words


def rebuilt(prepare: Callable[[Any, Any], Prepared], request: Any, digest: str) -> Prepared:
    """What `prepare` makes of a request in another process: the same as where the work began, or a UsageError."""
    model = models.load_model(request.model)
    if isinstance(model, nn.Module):
        model.eval()
    prepared = prepare(model, request)
    models.check_same(prepared.digest, digest, request.model)
    return prepared


def answer_folder(out: Path | None, name: str) -> Path | None:
    """The folder, if it is new, empty or an earlier answer of that name."""
    if out is None:
        return None
    return store.free_folder(out, ("store", f"{name}.csv"), "answer")


def command(door: str, request: Any) -> str:
    """The words at the terminal that ask it again; empty where something lives in memory."""
    options = {}
    for one in fields(request):
        value = getattr(request, one.name)
        if not can_be_typed(value):
            return ""
        if value != one.default:
            options[one.name] = value
    return typed(door, options)


def can_be_typed(value: Any) -> bool:
    """Whether a value, or each of several, is a word or a number."""
    parts = value if isinstance(value, tuple) else (value,)
    return all(isinstance(part, str | Path | int | float | None) for part in parts)


def typed(door: str, options: Facts, *words: Any) -> str:
    """The line at the terminal; of several values with commas between them, of None and of no values nothing."""
    line = ["forsooth", door, *map(str, words)]
    for name, value in options.items():
        if isinstance(value, tuple):
            value = ",".join(map(str, value)) or None
        if value is not None:
            line += [f"--{name.replace('_', '-')}", str(value)]
    return shlex.join(line)
