"""Trained weights from a file into a network, with every entry accounted for. Pickles are never opened."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar
from zipfile import BadZipFile, is_zipfile

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from forsooth.records import UsageError

Net = TypeVar("Net", bound=nn.Module)
NAMED = 5  # entries that a message names before it counts


def load(module: Net, path: str | Path, *, but_last: bool = False) -> Net:
    """The module itself, with the weights of a .npz or .safetensors file.

    The entries are those of the module's state dict. Values take the module's device and precision. Counts of batches
    (`num_batches_tracked`) may be absent: they play no part in a prediction. Nothing changes where the file does not
    fit.

    but_last  the last layer stays as it is, whatever the file has for it: a beginning for a network of other classes
    """
    found, expected = read(path), module.state_dict()
    if but_last:
        last = [name for name, _ in module.named_children()][-1] + "."
        found, expected = (
            {name: value for name, value in entries.items() if not name.startswith(last)}
            for entries in (found, expected)
        )
    missing = [name for name in expected if name not in found and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in found if name not in expected]
    both = [name for name in found if name in expected]
    shapes = [(name, tuple(found[name].shape), tuple(expected[name].shape)) for name in both]
    misshaped = [f"{name} {came} for {wanted}" for name, came, wanted in shapes if came != wanted]
    kinds = {"missing": missing, "unexpected": unexpected, "of another shape": misshaped}
    told = [f"{kind}: {_listed(entries)}" for kind, entries in kinds.items() if entries]
    if told:
        raise UsageError(f"`path` must hold the weights of this {type(module).__name__}, got {path}; {'; '.join(told)}")
    module.load_state_dict(found, strict=False)
    return module


def read(path: str | Path, *, argument: str = "path") -> dict[str, Tensor]:
    """Name -> tensor of a .npz or .safetensors file, on the CPU; a refusal names the user's argument."""
    path = Path(path)
    if path.suffix not in (".npz", ".safetensors"):
        raise UsageError(f"`{argument}` must end in .npz or .safetensors, got {path}{_advice(path)}")
    if not path.is_file():
        raise UsageError(f"`{argument}` must be a file, got {path}, which is not there")
    try:
        return load_file(path) if path.suffix == ".safetensors" else _read_npz(path)
    except (ValueError, TypeError, BadZipFile, EOFError, SafetensorError) as error:
        raise UsageError(f"`{argument}` must be a sound {path.suffix} file of numbers, got {path}: {error}") from error


def _read_npz(path: Path) -> dict[str, Tensor]:
    if not is_zipfile(path):  # numpy would take it for a pickle and say so
        raise BadZipFile("it is no zip archive")
    with np.load(path, allow_pickle=False) as entries:
        return {name: torch.from_numpy(entries[name]) for name in entries.files}


def _advice(path: Path) -> str:
    """How to convert a pickle, for whoever trusts it."""
    if path.suffix not in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"):
        return ""
    return (
        ". That is a pickle, which can run any code when it is opened. If you trust it, convert it once: "
        f'safetensors.torch.save_file(torch.load("{path.name}", weights_only=True), "{path.stem}.safetensors")'
    )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
