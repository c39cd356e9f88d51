"""The user's numbers: arrays in memory or in files, as tensors, after a look at what came. Nothing is unpickled."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from torch import Tensor

from forsooth.records import UsageError

FILES = (".npy", ".npz", ".safetensors")


def is_file(given: Any) -> bool:
    """Whether this names a file of numbers, as far as one can tell from its end."""
    return isinstance(given, str | Path) and Path(given).suffix in FILES


def numbers(given: Any, argument: str) -> tuple[Tensor, bool]:
    """A tensor from a tensor, an array, a table, a list, or the path of a file; and whether it came as an array."""
    if isinstance(given, str | Path):
        given = from_file(Path(given), argument)
    if isinstance(given, Tensor):
        return given.detach(), False
    array = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
    if array.dtype.kind not in "biuf":
        raise UsageError(f"`{argument}` must hold numbers, got entries of type {array.dtype}")
    return torch.from_numpy(np.ascontiguousarray(array.astype(array.dtype.newbyteorder("=")))), True


def columns_of(given: Any) -> list[Any] | None:
    """The names of a table's columns, or of a single row's entries; None where nothing has a name."""
    names = getattr(given, "columns", None)
    if names is None and not callable(getattr(given, "index", None)):  # a list has a method of that name
        names = getattr(given, "index", None)
    return None if names is None else list(names)


def in_order(given: Any, argument: str, columns: list[Any] | None) -> Any:
    """The same table or row with its columns in the order of `columns`; as it is where either has no names.

    A number has no name of its own, so columns in another order would be taken for one another without a word.
    """
    names = columns_of(given)
    if names is None or columns is None or names == columns or len(names) != len(columns):
        return given  # another number of columns is refused by its shape
    if names == list(range(len(names))):  # pandas' own numbers, where nobody gave names
        return given
    if sorted(map(str, names)) != sorted(map(str, columns)) or len(set(names)) < len(names):
        lost = [str(name) for name in columns if name not in names]
        expected = f"`{argument}` must have the columns of `inputs`, in any order"
        raise UsageError(f"{expected}; {', '.join(lost) or 'one name for each column'} is missing in {_listed(names)}")
    return given[columns]


def of_model(thing: Any, columns: list[Any] | None) -> None:
    """An error where a model knows the names of its columns and the inputs have them in another order."""
    fitted = getattr(thing, "feature_names_in_", None)
    if fitted is None or columns is None or list(fitted) == columns:
        return
    if not all(isinstance(name, str) for name in columns):
        return
    expected = f"`inputs` must have the columns that the model was fitted on, in that order: {_listed(fitted)}"
    raise UsageError(f"{expected}; got {_listed(columns)}")


def _listed(names: Iterable[Any]) -> str:
    shown = [str(name) for name in names]
    return ", ".join(shown[:12]) + (f" … ({len(shown)})" if len(shown) > 12 else "")


def from_file(path: Path, argument: str) -> Any:
    """The one array in a .npy, .npz or .safetensors file."""
    if path.suffix not in FILES:
        raise UsageError(f"`{argument}` must be a {', '.join(FILES[:-1])} or {FILES[-1]} file, got {path}")
    if not path.is_file():
        raise UsageError(f"`{argument}` must be a file that is there, got {path}")
    try:
        if path.suffix == ".safetensors":
            with safetensors.safe_open(path, framework="pt") as opened:
                return only({name: opened.get_tensor(name) for name in opened.keys()}, path, argument)  # noqa: SIM118
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as opened:
                return only(dict(opened), path, argument)
        return np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError, safetensors.SafetensorError) as error:
        raise UsageError(f"`{argument}` must be a file of plain numbers, got {path}: {error}") from error


def only(named: dict[str, Any], path: Path, argument: str) -> Any:
    """The single entry of a file that may hold several."""
    if len(named) != 1:
        raise UsageError(f"`{argument}` must be a file with one array, got {path} with {len(named)}: {sorted(named)}")
    return next(iter(named.values()))


def batch(given: Any, argument: str) -> tuple[Tensor, bool]:
    """Inputs (n, *shape) of real, finite numbers, as floating point, and whether they came as an array."""
    x, array = numbers(given, argument)
    if x.ndim < 2 or x.numel() == 0:
        raise UsageError(f"`{argument}` must have shape (n, *shape) and not be empty, got {tuple(x.shape)}")
    if x.is_complex():
        raise UsageError(f"`{argument}` must be real numbers, got {x.dtype}")
    if x.dtype not in (torch.float32, torch.float64):
        x = x.float() if x.is_floating_point() else x.double()  # halves are too coarse to add up in
    bad = int((~x.isfinite()).flatten(1).any(1).sum())
    if bad:
        raise UsageError(f"`{argument}` must be finite numbers, got nan or infinity in {bad} of {len(x)} inputs")
    return x, array


def like(given: Any, argument: str, x: Tensor) -> Tensor:
    """Other inputs (k, *shape) like x (n, *shape), on its device."""
    other, _ = batch(given, argument)
    if other.shape[1:] != x.shape[1:]:
        raise UsageError(f"`{argument}` must have shape {('k', *x.shape[1:])}, got {tuple(other.shape)}")
    return other.to(x)


def targets(given: Any, outputs: Tensor) -> Tensor:
    """The explained class of every input: (n,) int64.

    given    None: the predicted class; a whole number for all inputs; one for each input, as an array or a file
    outputs  (n, classes)
    """
    n, classes = outputs.shape
    if given is None:
        return outputs.argmax(1)
    if isinstance(given, str) and given.lstrip("-").isdecimal():
        given = int(given)
    whole = isinstance(given, int) and not isinstance(given, bool)
    target = torch.full((n,), given) if whole else numbers(given, "target")[0]
    if target.shape != (n,):
        raise UsageError(f"`target` must be one class or one for each of {n} inputs, got shape {tuple(target.shape)}")
    if target.is_complex() or bool((target != target.long()).any()):
        raise UsageError(f"`target` must be whole numbers, the classes' places in the outputs, got {target.dtype}")
    low, high = int(target.min()), int(target.max())
    if low < 0 or high >= classes:
        came = low if low < 0 else high
        raise UsageError(f"`target` must lie in [0, {classes - 1}], as the model has {classes} outputs, got {came}")
    return target.long().to(outputs.device)
