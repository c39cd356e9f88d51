"""The user's training function: found by its path, called with data, and what it gives looked at."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import plugins
from forsooth.adapters import models
from forsooth.records import Dataset, UsageError

LABELS = 2  # without the artefact, with it


class FailedTraining(Exception):
    """A training that gave no model to explain; the message says why."""


def training_path(train: str | Callable[..., Any] | None) -> str | None:
    """The name under which any process can find the training function; an error where there is none."""
    if train is None:
        return None
    if isinstance(train, str):
        path = train
    elif hasattr(train, "__qualname__") and not isinstance(train, type):
        path = f"{train.__module__}:{train.__qualname__}"
    else:
        raise UsageError(f"`train` must be a function or package.module:function, got {type(train).__name__}")
    if "<" in path:
        raise UsageError(f"`train` must be a function with a name of its own, got {path}: use def at module level")
    if ":" not in path:
        raise UsageError(f"`train` must be package.module:function, got {path!r}")
    return path


def model_name(path: str) -> str:
    """The name of the model in rows and files, which a colon does not suit."""
    return path.replace(":", ".")


def load_training(path: str) -> Callable[[Dataset], Any]:
    """The function at `package.module:function`."""
    thing = plugins.load(path, argument="train")
    if callable(thing) and not isinstance(thing, nn.Module) and not inspect.isclass(thing):
        function: Callable[[Dataset], Any] = thing
        return function
    what = f"a {type(thing).__name__}"
    if inspect.isclass(thing):
        what = "a class"
    raise UsageError(f"`train` must name a function(dataset) that returns a torch module, got {path}, {what}")


def call_training(path: str, dataset: Dataset) -> nn.Module:
    """The module that the function at `path` makes of the data; FailedTraining where it makes none."""
    function = load_training(path)
    try:
        model = function(dataset)
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise FailedTraining(f"{path} raised {plugins.describe_error(error)}") from error
    if not isinstance(model, nn.Module):
        raise FailedTraining(f"{path} must return a torch module, got {type_name(model)}")
    return model


def ready_model(path: str, model: nn.Module, x: Tensor, *, device: str) -> nn.Module:
    """The model, ready to be asked, after trying it on x (n, 3, h, w): two finite logits for each image."""
    try:
        module = model.eval().requires_grad_(False).to(device, torch.float32)
        module = models.with_logits(module, x[:1].to(device))
        check_logits(module, x.to(device))
    except UsageError as error:
        raise FailedTraining(f"{path} gave a model that cannot be asked: {error}") from error
    return module


def check_logits(module: nn.Module, x: Tensor) -> None:
    models.check_untouched(module, x)
    width = models.ask_model(module, x[:2]).shape[1]
    if width != LABELS:
        meaning = "one for each label (0 without the artefact, 1 with it)"
        raise UsageError(f"`model` must give {LABELS} logits for an image, {meaning}, got {width}")
    models.outputs(module, x)


def type_name(thing: Any) -> str:
    if isinstance(thing, type):
        return f"the class {thing.__name__}"
    return type(thing).__name__
