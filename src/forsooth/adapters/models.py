"""The user's model: a torch module, an estimator or any function becomes one callable on tensors."""

import copy
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from forsooth import chunks, plugins, surroundings
from forsooth.adapters import inputs, tables, texts
from forsooth.adapters.outputs import Logits, as_tensor, unwrapped
from forsooth.engine import one_thread
from forsooth.games.values import Model, rows_at_once
from forsooth.records import UsageError

SEED = 0  # of what builds a model without a seed of its own: it is built again by every process that needs it
WRAP = "give each input a row of outputs: for one number per input, lambda x: f(x)[:, None] or x -> (n, 1)"


@dataclass(frozen=True)
class Adapted:
    """A model as it is asked here.

    model   (n, *shape) -> (n, classes), tensors in and out
    module  the same as a torch module, whose layers may be opened; None for a black box
    kind    what the user gave, in words
    inner   name of the user's module inside `module`, with a dot at its end; empty where they are one
    framed  what must be told which text is asked about; None of anything but texts, and of those that need it not
    embed   the embeddings (k, length, dims) of other texts; None of anything but texts
    token   the embedding (dims,) of a token; None of anything but texts
    """

    model: Model
    module: nn.Module | None
    kind: str
    inner: str = ""
    framed: texts.Framed | None = None
    embed: Callable[[Any], Tensor] | None = None
    token: Callable[[int], Tensor] | None = None


def load_model(model: Any) -> Any:
    """The model itself, or what is found and built at `package.module:name`."""
    if not isinstance(model, str):
        return model
    if ":" not in model:
        raise UsageError(f"`model` must be package.module:name, got {model!r}")
    thing = plugins.load(model, argument="model")
    if is_model(thing) or not callable(thing) or wants_input(thing, model):
        return thing
    try:
        # Tasks build it on one thread; a build that trains would differ in the last bits with more.
        with surroundings.apart(SEED), one_thread():
            return thing()
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"`model` must be built without an error, but {model} raised {plugins.describe_error(error)}"
        ) from error


def check_same(rebuilt: str, digest: str, model: Any) -> None:
    """UsageError where what a task builds again has another digest than what the work began with."""
    if rebuilt != digest:
        why = "gave another model, or its files changed: fix its seed, or save the model and load it"
        raise UsageError(f"`model` must be the same whenever it is built, but {model} {why}")


def is_model(thing: Any) -> bool:
    """Whether this is a module or an estimator, and no class or function to be called first."""
    return not inspect.isclass(thing) and (isinstance(thing, nn.Module) or hasattr(thing, "predict_proba"))


def wants_input(thing: Callable[..., Any], path: str) -> bool:
    """Whether the callable must be given something: then it is the model; else it is a function that builds one."""
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:  # some built-in functions do not say
        return True
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]
    if needed and inspect.isclass(thing):
        wanted = ", ".join(needed)
        raise UsageError(f"`model` must be buildable without arguments, got the class {path}, which needs {wanted}")
    return bool(needed)


@contextmanager
def in_eval(thing: Any) -> Iterator[None]:
    """Eval mode for a module while the work goes on, and every part in its own mode after it."""
    parts: list[nn.Module] = []
    if isinstance(thing, nn.Module):
        parts = list(thing.modules())
    before = [part.training for part in parts]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part, training in zip(parts, before, strict=True):
            part.training = training


def adapt(thing: Any, x: Tensor, *, arrays: bool, device: str, output: str) -> tuple[Adapted, Tensor]:
    """The model ready to be asked, and the inputs (n, *shape) as it takes them.

    arrays  the inputs came as numpy arrays: a function is tried with arrays first, and with tensors if it refuses
    device  auto: where a module is; the processor for anything else
    output  logits: the outputs as they are; probabilities: their softmax, unless they are probabilities already
    """
    if isinstance(thing, nn.Module):
        return adapt_module(thing, x, device=device, output=output)
    if hasattr(thing, "predict_proba"):
        return Adapted(of_estimator(thing), None, f"an estimator ({type(thing).__name__})"), x.double().cpu()
    if device != "auto":
        x = x.to(device)
    if hasattr(thing, "predict") and not inspect.isfunction(thing):
        return Adapted(of_regressor(thing), None, f"a regressor ({type(thing).__name__})"), x.double().cpu()
    if not callable(thing):
        expected = "a torch module, an estimator with predict_proba or a function x -> (n, classes)"
        raise UsageError(f"`model` must be {expected}, got {type(thing).__name__}")
    model = of_function(thing, x, arrays=arrays)
    if output == "probabilities" and not are_probabilities(outputs(model, x)):
        return Adapted(lambda part: model(part).softmax(1), None, "a function"), x
    return Adapted(model, None, "a function"), x


def asked_inputs(thing: Any, values: Any, *, device: str, output: str) -> tuple[Adapted, Tensor, Tensor]:
    """The model ready to be asked, the user's inputs (n, *shape) as it takes them, and its outputs (n, classes)."""
    if isinstance(thing, nn.Module):
        opened = texts.opened(moved(thing, device), values)
        if opened is not None:
            return of_texts(opened, output=output), opened.x, softened(opened.outputs, output)
    batch, arrays = inputs.batch(values, "inputs")
    adapted, x = adapt(thing, batch, arrays=arrays, device=device, output=output)
    with one_thread():  # the outputs go into a digest, which must not depend on the number of threads
        return adapted, x, outputs(adapted.model, x)


def asked_table(thing: Any, table: tables.Table, *, output: str) -> tuple[Adapted, Tensor, Tensor]:
    """`asked_inputs` for a table of values that are no numbers."""
    model, kind = tables.opened(thing, table)
    try:
        answers = outputs(model, table.x)
    except UsageError as error:
        raise UsageError(f"{error}; the table has {table.odd or 'numbers alone'}") from error
    if output == "probabilities" and kind == "a function" and not are_probabilities(answers):
        model = replace(model, softmax=True)
    return Adapted(model, None, kind), table.x, softened(answers, output)


def of_texts(opened: texts.Read, *, output: str) -> Adapted:
    """A classifier of texts, asked about embeddings."""

    def embed(values: Any) -> Tensor:
        other = texts.read(values, "data")
        if other is None or other.ids.shape[1] != opened.x.shape[1] or opened.framed is not None:
            raise UsageError(
                f"`data` must be token ids (k, {opened.x.shape[1]}) of texts without padding, or be left out where the "
                "texts are padded or the model reads no embeddings"
            )
        return texts.embedded(opened.table, other.ids)

    module = opened.module
    inner = "inner."
    if output == "probabilities" and not are_probabilities(opened.outputs):
        module = nn.Sequential(module, nn.Softmax(1))
        module.training = module[1].training = False
        inner = "0.inner."

    def token(number: int) -> Tensor:
        if number >= opened.table.num_embeddings:
            raise UsageError(f"`baseline` must be a token below {opened.table.num_embeddings}, got token:{number}")
        return texts.embedded(opened.table, torch.tensor(number))

    return Adapted(module, module, "a torch module of texts", inner, opened.framed, embed, token)


def softened(outputs: Tensor, output: str) -> Tensor:
    """Outputs (n, classes) as they are, or their softmax where probabilities are asked and these are none."""
    if output == "probabilities" and not are_probabilities(outputs):
        return outputs.softmax(1)
    return outputs


def moved(module: nn.Module, device: str) -> nn.Module:
    """The module on a device; one that must move is copied."""
    place = next(iter(module.parameters()), torch.empty(0)).device
    if device == "auto" or torch.device(device).type == place.type:
        return module
    return copy.deepcopy(module).to(device)


def adapt_module(module: nn.Module, x: Tensor, *, device: str, output: str) -> tuple[Adapted, Tensor]:
    """`adapt` for a torch module."""
    module, x = placed(module, x, device)
    module = with_logits(module, x)
    inner = "inner." if isinstance(module, Logits) else ""
    check_untouched(module, x)
    if output == "probabilities" and not are_probabilities(outputs(module, x)):
        both = nn.Sequential(module, nn.Softmax(1))
        both.training = both[1].training = False  # and not eval(), which would reach into the user's module
        return Adapted(both, both, "a torch module", inner=f"0.{inner}"), x
    return Adapted(module, module, "a torch module", inner=inner), x


def with_logits(module: nn.Module, x: Tensor) -> nn.Module:
    """The module, or one around it that gives the logits out of its record, dict or tuple."""
    try:
        return unwrapped(module, x.clone())
    except Exception:  # the user's model may raise anything: `ask_model` tells what, in words
        return module


def placed(module: nn.Module, x: Tensor, device: str) -> tuple[nn.Module, Tensor]:
    """The module and the inputs on one device, in the module's precision. A module that must move is copied."""
    own = [tensor for tensor in (*module.parameters(), *module.buffers()) if tensor.is_floating_point()]
    like = next(iter(own), x)
    place = like.device
    if device != "auto":
        module = moved(module, device)
        place = torch.device(device)
    return module, x.to(device=place, dtype=like.dtype)


def check_untouched(module: nn.Module, x: Tensor) -> None:
    """UsageError if the module writes into its input: the next method would be asked about another one."""
    tried = x[:2].clone()
    ask_model(module, tried)
    if not torch.equal(tried, x[:2]):
        raise UsageError("`model` must leave its input as it is, but it writes into x: x = x - 1 instead of x -= 1")


def last_map(module: nn.Module, x: Tensor) -> str | None:
    """Dotted name of the module that is done last of those that give a map of x (n, channels, *space), each run once.

    A map has as many axes as x and is larger than one in each of space. That is where Grad-CAM looks: a block of
    convolutions, before the average over all places. None where there is no map; an input (n, length, dims) has one
    only in a network that convolves along it. None also where tokens (n, tokens, c) come after the last map of an
    image, as in a transformer: there the map is the embedding of the patches, in which nothing was understood yet.
    """
    parts = [(name, part) for name, part in module.named_modules() if name]
    if x.ndim < 3 or (x.ndim == 3 and not any(isinstance(part, nn.Conv1d) for _, part in parts)):
        return None
    done: list[str] = []

    def noting(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            if not isinstance(output, Tensor):
                return
            if output.ndim == x.ndim and min(output.shape[2:]) > 1:
                done.append(name)
            elif x.ndim == 4 and output.ndim == 3 and output.shape[1] > 1:
                done.clear()

        return hook

    handles = [part.register_forward_hook(noting(name)) for name, part in parts]
    try:
        with torch.no_grad():
            module(x)
    finally:
        for handle in handles:
            handle.remove()
    return next((name for name in reversed(done) if done.count(name) == 1), None)


def of_estimator(estimator: Any) -> Model:
    """predict_proba on rows of features."""
    return lambda x: as_tensor(estimator.predict_proba(rows_for(estimator, x)), x)


def of_regressor(estimator: Any) -> Model:
    """predict on rows of features: one number for each input is one output, several are several."""

    def model(x: Tensor) -> Tensor:
        answer = as_tensor(estimator.predict(rows_for(estimator, x)), x)
        if answer.ndim == 1:
            return answer[:, None]
        return answer

    return model


def rows_for(estimator: Any, x: Tensor) -> Any:
    """Rows of features (n, features); an estimator that knows the names of its columns is given them."""
    names = getattr(estimator, "feature_names_in_", None)
    rows = x.detach().flatten(1).cpu().numpy().copy()
    if names is not None and len(names) == rows.shape[1]:
        return pd.DataFrame(rows, columns=names)
    return rows


def of_function(function: Callable[..., Any], x: Tensor, *, arrays: bool) -> Model:
    """A function on arrays or on tensors: which of the two is tried out on two inputs."""
    kinds = [("a numpy array", of_arrays(function)), ("a tensor", of_tensors(function))]
    if not arrays:
        kinds.reverse()
    refused = []
    for kind, model in kinds:
        try:
            model(x[:2])
        except UsageError:
            raise
        except Exception as error:
            refused.append(f"{kind} it raised {plugins.describe_error(error)}")
        else:
            return model
    raise UsageError(f"`model` must take inputs of shape {('n', *x.shape[1:])}, but with {', and with '.join(refused)}")


def of_arrays(function: Callable[..., Any]) -> Model:
    return lambda x: as_tensor(function(x.detach().cpu().numpy().copy()), x)


def of_tensors(function: Callable[..., Any]) -> Model:
    return lambda x: as_tensor(function(x.detach().clone()), x)


def ask_model(model: Model, x: Tensor) -> Tensor:
    """The model's answer (n, classes) to x (n, *shape), without gradients; any other answer is an error."""
    try:
        with torch.no_grad():
            answer = model(x)
    except UsageError:
        raise
    except Exception as error:  # the user's model may raise anything at inputs it was not made for
        raise UsageError(
            f"`model` must take inputs of shape {tuple(x.shape)}, but it raised {plugins.describe_error(error)}"
        ) from error
    if not isinstance(answer, Tensor):
        came = type(answer).__name__
        raise UsageError(f"`model` must give a tensor of shape (n, classes), got {came}: wrap it to give the logits")
    if answer.ndim != 2 or len(answer) != len(x):
        came = f"{tuple(answer.shape)} for n = {len(x)}"
        raise UsageError(f"`model` must give outputs of shape (n, classes), got {came}; {WRAP}")
    return answer


def outputs(model: Model, x: Tensor) -> Tensor:
    """The model's outputs (n, classes) for all x (n, *shape): finite, or an error."""
    answers = chunks.over(lambda part: ask_model(model, part), x, size=rows_at_once(x))
    bad = int((~answers.isfinite()).any(1).sum())
    if bad:
        raise UsageError(f"`model` must give finite numbers, got nan or infinity for {bad} of {len(x)} inputs")
    return answers


def are_probabilities(outputs: Tensor) -> bool:
    """Whether outputs (n, classes) are probabilities: not negative, and every row sums to one."""
    sums = outputs.double().sum(1)
    return bool((outputs >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-3)


def digest(thing: Any, path: str, outputs: Tensor) -> str:
    """What tells one model from another: the weights of a module, the outputs (n, classes) of a black box, the code."""
    total = hashlib.sha256(source(sys.modules.get(path.partition(":")[0])).encode())
    if isinstance(thing, nn.Module):
        total.update(f"{source(type(thing))} {thing!r}".encode())
        for name, value in sorted(thing.state_dict().items()):
            total.update(name.encode() + raw(value))
    else:
        # threads inside an estimator add up in any order, so the last bits do not count
        scale = outputs.double().abs().max().clamp(min=1e-300)
        total.update((outputs.double() / scale * 1e5).round().long().cpu().numpy().tobytes())
    return total.hexdigest()[:32]


def raw(tensor: Tensor) -> bytes:
    """The bytes of a tensor of any type."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def source(thing: Any) -> str:
    """The text of the file where this was written; its name where there is none."""
    try:
        return inspect.getsource(inspect.getmodule(thing) or thing)
    except (OSError, TypeError):
        return str(thing)
