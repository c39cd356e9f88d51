"""The user's numbers: arrays in memory or in files, as tensors, after a look at what came. Nothing is unpickled."""

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from forsooth import strangers
from forsooth.records import UsageError

FILES = (".npy", ".npz", ".safetensors")
TABLES = (".csv", ".tsv", ".csv.gz")  # read as pandas reads them, with a line of names
MOST_NAMES = 12  # of columns that an error shows
CURES = {  # what people have instead
    ".pt": "; in Python give torch.load(…), for the terminal numpy.save its numbers",
}


def is_file(value: Any) -> bool:
    """Whether this names a file of numbers, as far as one can tell from its end."""
    return isinstance(value, str | Path) and (Path(value).suffix in FILES or is_table(value))


def word(value: Any) -> str:
    """The value where it is a word; empty where it is numbers, in memory or in a file."""
    if isinstance(value, str) and not is_file(value):
        return value
    return ""


def is_table(value: Any) -> bool:
    """Whether this names a table with a line of names, as far as one can tell from its end."""
    return isinstance(value, str | Path) and str(value).lower().endswith(TABLES)


def read_table(path: Path, argument: str) -> pd.DataFrame:
    """The data frame in a .csv, .tsv or .csv.gz file: what is text stays text, what is empty is a gap."""
    if not path.is_file():
        raise UsageError(f"`{argument}` must be a file that is there, got {path}")
    separator = ","
    if ".tsv" in path.suffixes:
        separator = "\t"
    try:
        text = io.BytesIO(strangers.unpacked(path, strangers.LARGEST))
        return pd.read_csv(text, sep=separator, low_memory=False)
    except (ValueError, OSError, pd.errors.ParserWarning) as error:  # what the parser raises
        raise UsageError(f"`{argument}` must be a table, but {path} cannot be read as one: {error}") from error


def numbers(value: Any, argument: str) -> tuple[Tensor, bool]:
    """A tensor from a tensor, an array, a table, a list, or the path of a file; and whether it came as an array."""
    if isinstance(value, str | Path):
        value = from_file(Path(value), argument)
    if isinstance(value, Tensor):
        return value.detach(), False
    if hasattr(value, "to_numpy"):
        value = of_frame(value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:  # rows of several lengths, or whatever holds no numbers
        raise UsageError(f"`{argument}` must be an array of numbers, got {type(value).__name__}: {error}") from error
    if array.dtype.kind not in "biuf":
        raise UsageError(f"`{argument}` must hold numbers, got entries of type {array.dtype}")
    known = np.dtype(
        f"{array.dtype.kind}{min(8, array.dtype.itemsize)}"
    )  # torch has neither long doubles nor other bytes
    return torch.from_numpy(np.ascontiguousarray(array.astype(known))), True


def of_frame(value: Any) -> np.ndarray:
    """The values of a data frame or a series; whole numbers, yes and no, and others beside each other are floats."""
    array: np.ndarray = value.to_numpy()
    mixed = array.dtype.kind == "O" and isinstance(value, pd.DataFrame)
    if mixed and all(map(pd.api.types.is_numeric_dtype, value.dtypes)):
        return np.asarray(value.to_numpy(dtype=np.float64, na_value=np.nan))
    return array


def columns_of(value: Any) -> list[Any] | None:
    """The names of a table's columns, or of a single row's entries; None where nothing has a name."""
    names = getattr(value, "columns", None)
    if names is None and not callable(getattr(value, "index", None)):  # a list has a method of that name
        names = getattr(value, "index", None)
    if names is None:
        return None
    return list(names)


def in_order(value: Any, argument: str, columns: list[Any] | None) -> Any:
    """The same table or row with its columns in the order of `columns`; as it is where either has no names.

    A number has no name of its own, so columns in another order would be taken for one another without a word.
    """
    names = columns_of(value)
    if names is None or columns is None or names == columns or len(names) != len(columns):
        return value  # another number of columns is refused by its shape
    if names == list(range(len(names))):  # pandas' own numbers, where nobody gave names
        return value
    check_names(names, columns, argument)
    return value[columns]


def check_names(names: list[Any], columns: list[Any], argument: str) -> None:
    """UsageError unless these are the names of the columns, each once, in whatever order."""
    if sorted(map(str, names)) == sorted(map(str, columns)) and len(set(names)) == len(names):
        return
    lost = [str(name) for name in columns if name not in names]
    expected = f"`{argument}` must have the columns of `inputs`, in any order"
    raise UsageError(f"{expected}; {', '.join(lost) or 'one name for each column'} is missing in {_shown(names)}")


def check_columns(model: Any, columns: list[Any] | None) -> None:
    """UsageError where a model knows the names of its columns and the inputs have them in another order."""
    fitted = getattr(model, "feature_names_in_", None)
    if fitted is None or columns is None or list(fitted) == columns:
        return
    if not all(isinstance(name, str) for name in columns):
        return
    expected = f"`inputs` must have the columns that the model was fitted on, in that order: {_shown(fitted)}"
    raise UsageError(f"{expected}; got {_shown(columns)}")


def _shown(names: Iterable[Any]) -> str:
    words = [str(name) for name in names]
    if len(words) > MOST_NAMES:
        return f"{', '.join(words[:MOST_NAMES])} … ({len(words)})"
    return ", ".join(words)


def from_file(path: Path, argument: str) -> Any:
    """The one array in a .npy, .npz or .safetensors file, or a table."""
    if is_table(path):
        return read_table(path, argument)
    return only(arrays_in(path, argument), path, argument)


def arrays_in(path: Path, argument: str) -> dict[str, Any]:
    """All arrays in a .npy, .npz or .safetensors file by name; that of a .npy file has the file's."""
    if path.suffix not in FILES:
        cure = CURES.get(path.suffix, "")
        raise UsageError(f"`{argument}` must be a {', '.join(FILES[:-1])} or {FILES[-1]} file, got {path}{cure}")
    if not path.is_file():
        raise UsageError(f"`{argument}` must be a file that is there, got {path}")
    try:
        return strangers.arrays(path)
    except ValueError as error:
        raise UsageError(f"`{argument}` must be a file of plain numbers, got {path}: {error}") from error


def only(arrays: dict[str, Any], path: Path, argument: str) -> Any:
    """The single entry of a file that may hold several."""
    if len(arrays) != 1:
        names = sorted(arrays)
        raise UsageError(f"`{argument}` must be a file with one array, got {path} with {len(names)}: {names}")
    return next(iter(arrays.values()))


def batch(value: Any, argument: str) -> tuple[Tensor, bool]:
    """Inputs (n, *shape) of real, finite numbers, as floating point, and whether they came as an array."""
    x, array = numbers(value, argument)
    if x.ndim < 2 or x.numel() == 0:
        raise UsageError(f"`{argument}` must have shape (n, *shape) and not be empty, got {tuple(x.shape)}")
    if x.is_complex():
        raise UsageError(f"`{argument}` must be real numbers, got {x.dtype}")
    if not x.is_floating_point():
        x = x.double()
    elif x.dtype not in (torch.float32, torch.float64):
        x = x.float()  # halves are too coarse to add up in
    bad = int((~x.isfinite()).flatten(1).any(1).sum())
    if bad:
        raise UsageError(f"`{argument}` must be finite numbers, got nan or infinity in {bad} of {len(x)} inputs")
    return x, array


def like(value: Any, argument: str, x: Tensor) -> Tensor:
    """Other inputs (k, *shape) like x (n, *shape), on its device."""
    other, _ = batch(value, argument)
    if other.shape[1:] != x.shape[1:]:
        raise UsageError(f"`{argument}` must have shape {('k', *x.shape[1:])}, got {tuple(other.shape)}")
    return other.to(x)


def targets(value: Any, outputs: Tensor) -> Tensor:
    """The explained class of every input: (n,) int64.

    value    None: the predicted class; a whole number for all inputs; one for each input, as an array or a file
    outputs  (n, classes)
    """
    n, classes = outputs.shape
    if value is None:
        return outputs.argmax(1)
    target = class_numbers(value, n)
    if target.shape != (n,):
        raise UsageError(f"`target` must be one class or one for each of {n} inputs, got shape {tuple(target.shape)}")
    if target.is_complex() or bool((target != target.long()).any()):
        raise UsageError(f"`target` must be whole numbers, the classes' places in the outputs, got {target.dtype}")
    beyond = target[(target < 0) | (target >= classes)]
    if len(beyond):
        came = int(beyond.min().clamp(max=0)) or int(beyond.max())  # one below 0 is named first
        raise UsageError(f"`target` must lie in [0, {classes - 1}], as the model has {classes} outputs, got {came}")
    return target.long().to(outputs.device)


def class_numbers(value: Any, n: int) -> Tensor:
    """The numbers that the user gave for n inputs: one for all of them, or those in an array or a file."""
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return torch.full((n,), value)
    return numbers(value, "target")[0]
