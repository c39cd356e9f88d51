"""Trained weights from a file into a network, with every entry accounted for. Pickles are never opened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from forsooth import strangers
from forsooth.digests import digest, require_same
from forsooth.records import UsageError

Net = TypeVar("Net", bound=nn.Module)
NAMED = 5  # entries that a message names before it counts
ENDS = (".safetensors", ".npz")


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights, and a hash that changes with it."""

    path: str
    digest: str


def load(module: Net, path: str | Path, *, but_last: bool = False) -> Net:
    """The module itself, with the weights of a .npz or .safetensors file.

    The entries are those of the module's state dict. Values take the module's device and precision. Counts of batches
    (`num_batches_tracked`) may be absent: they play no part in a prediction. Nothing changes where the file does not
    fit.

    but_last  the last layer stays as it is, whatever the file has for it: a beginning for a network of other classes
    """
    entries = read(path)
    expected = module.state_dict()
    if but_last:
        *_, (last, _) = module.named_children()
        entries = _without(entries, f"{last}.")
        expected = _without(expected, f"{last}.")
    problems = _problems(entries, expected)
    if problems:
        raise UsageError(
            f"`path` must hold the weights of this {type(module).__name__}, got {path}; {'; '.join(problems)}"
        )
    module.load_state_dict(entries, strict=False)
    return module


def load_same(module: Net, file: WeightsFile) -> Net:
    """The module in eval mode, with the weights of a file, which must be as it was."""
    load(module, file.path).eval()
    require_unchanged(file)
    return module


def require_unchanged(file: WeightsFile) -> None:
    """UsageError where the file is not the one that was planned with; asked after it was read."""
    require_same(digest(file.path), file.digest, file.path)


def _without(entries: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The entries whose name does not start so."""
    return {name: value for name, value in entries.items() if not name.startswith(prefix)}


def _problems(entries: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    """Why the entries of a file are not those of a state dict: one clause for each kind of trouble, empty if none."""
    absent = [name for name in expected if name not in entries]
    kinds = {
        "missing": [name for name in absent if not name.endswith("num_batches_tracked")],
        "unexpected": [name for name in entries if name not in expected],
        "of another shape": _misshaped(entries, expected),
    }
    return [f"{kind}: {_listed(names)}" for kind, names in kinds.items() if names]


def _misshaped(entries: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> list[str]:
    """Name and both shapes of the entries that are expected in another shape."""
    misshaped: list[str] = []
    for name, value in entries.items():
        if name in expected and value.shape != expected[name].shape:
            misshaped.append(f"{name} {tuple(value.shape)} for {tuple(expected[name].shape)}")
    return misshaped


def read(path: str | Path, *, argument: str = "path") -> dict[str, Tensor]:
    """Name -> tensor of a .npz or .safetensors file, on the CPU; a refusal names the user's argument."""
    path = Path(path)
    if path.suffix not in (".npz", ".safetensors"):
        raise UsageError(f"`{argument}` must end in .npz or .safetensors, got {path}{_advice(path)}")
    if not path.is_file():
        raise UsageError(f"`{argument}` must be a file, got {path}, which is not there")
    try:
        return {name: torch.as_tensor(value) for name, value in strangers.arrays(path).items()}
    except (ValueError, TypeError) as error:
        raise UsageError(f"`{argument}` must be a sound {path.suffix} file of numbers, got {path}: {error}") from error


def _advice(path: Path) -> str:
    """How to convert a pickle, for whoever trusts it."""
    if path.suffix not in (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle"):
        return ""
    return (
        ". That is a pickle, which can run any code when it is opened. If you trust it, convert it once: "
        f'safetensors.torch.save_file(torch.load("{path.name}", weights_only=True), "{path.stem}.safetensors")'
    )


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(names[:NAMED])
    if len(names) > NAMED:
        listed += f" and {len(names) - NAMED} more"
    return listed


def weights_in(folder: str | None, name: str) -> WeightsFile | None:
    """The file of a network's weights in the folder, by its name: f_o.safetensors, f_s_0.1.npz …"""
    if folder is None:
        return None
    for end in ENDS:
        file = Path(folder) / f"{name}{end}"
        if file.is_file():
            return weights_file(str(file), argument="weights")
    return None


def weights_file(path: str | None, *, argument: str) -> WeightsFile | None:
    """A file of weights that can be read; None: there is none."""
    if path is None:
        return None
    read(path, argument=argument)  # what cannot be read is refused before any work
    return WeightsFile(path, digest(path))
