"""What the user gave, as tensors: maps by method, and the samples that they are scored against."""

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from forsooth.adapters import inputs
from forsooth.datasets.folders import SUFFIXES, check_pixels, read_plain
from forsooth.records import Dataset, Facts, Names, UsageError
from forsooth.user.export import FILE, Samples, read_export

IDS = "sample"  # an array of this name in a file of maps says which sample each map is of
UNNAMED = "arr_0"  # what numpy calls an array that nobody named
READABLE = (*inputs.FILES, *SUFFIXES)


@dataclass(frozen=True)
class Maps:
    """Maps of one method.

    values  (k, *shape)
    ids     (k,) of which samples they are; None: of all, in their order
    """

    values: Tensor
    ids: Names | None = None


def maps_from(value: Any, known: Collection[str]) -> dict[str, Maps]:
    """method -> its maps.

    value  a file or a folder, an array, or arrays by name
    known  ids of the samples
    """
    if isinstance(value, Mapping):
        return maps_by_name(dict(value), "maps")
    if not isinstance(value, str | Path):
        return {"maps": Maps(numbers(value, "maps"))}
    path = there(value, "maps")
    if path.is_dir():
        return maps_in_folder(path, known)
    return maps_by_name(inputs.arrays_in(path, "maps"), path.stem)


def there(value: str | Path, argument: str) -> Path:
    """The path, if there is a file or a folder."""
    if not Path(value).exists():
        raise UsageError(f"`{argument}` must be a file or a folder that is there, got {value}")
    return Path(value)


def maps_by_name(arrays: Facts, stem: str) -> dict[str, Maps]:
    """Maps from arrays by the names of methods, beside which one may say of which samples they are."""
    ids = None
    if IDS in arrays:
        ids = tuple(map(str, np.asarray(arrays.pop(IDS)).tolist()))
    if set(arrays) == {UNNAMED}:
        arrays = {stem: arrays[UNNAMED]}
    return {str(name): Maps(numbers(array, "maps"), ids) for name, array in arrays.items()}


def maps_in_folder(folder: Path, known: Collection[str]) -> dict[str, Maps]:
    """Files named by their samples are maps of one method; else a file, or a folder of such files, is a method."""
    files = files_in(folder)
    if files and {file.stem for file in files} <= set(known):
        return {folder.resolve().name: single_maps(files)}
    found: dict[str, Maps] = {}
    for file in files:
        if file.suffix in inputs.FILES:
            found |= maps_by_name(inputs.arrays_in(file, "maps"), file.stem)
    for inner in sorted(path for path in folder.iterdir() if path.is_dir()):
        own = files_in(inner)
        if own:
            found[inner.name] = single_maps(own)
    if not found:
        raise UsageError(
            f"`maps` must be a folder with files of maps ({', '.join(inputs.FILES)}), got none in {folder}"
        )
    return found


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in READABLE and path.is_file())


def single_maps(files: Sequence[Path]) -> Maps:
    """One map from each file, named by its sample."""
    return Maps(from_files(files, "maps"), tuple(file.stem for file in files))


def from_files(files: Sequence[Path], argument: str) -> Tensor:
    """The numbers or the picture in each file, all of one shape."""
    return stacked([from_file(file, argument) for file in files], files, argument)


def from_file(file: Path, argument: str) -> Tensor:
    """The array in a file of numbers, or the picture (h, w) or (c, h, w) in another."""
    if file.suffix in inputs.FILES:
        return numbers(file, argument)
    try:
        with Image.open(io.BytesIO(read_plain(file))) as image:
            check_pixels(image)
            shown = image if image.mode in ("L", "RGB", "1") else image.convert("L")
            pixels = torch.from_numpy(np.array(shown, dtype=np.float32))
    except Exception as error:  # a damaged image can raise anything in its decoder
        raise UsageError(f"`{argument}` must be images that can be read, got {file}: {error}") from error
    if pixels.ndim == 3:
        return pixels.movedim(2, 0)
    return pixels


def stacked(values: Sequence[Tensor], files: Sequence[Path], argument: str) -> Tensor:
    for value, file in zip(values, files, strict=True):
        if value.shape != values[0].shape:
            first = f"{files[0].name} has {tuple(values[0].shape)}"
            raise UsageError(f"`{argument}` must all have one shape; {first}, {file.name} has {tuple(value.shape)}")
    return torch.stack(list(values))


def numbers(value: Any, argument: str) -> Tensor:
    found, _ = inputs.numbers(value, argument)
    if found.is_complex():
        raise UsageError(f"`{argument}` must be real numbers, got {found.dtype}")
    return found.cpu()


def samples_from(truth: Any, images: Any) -> Samples:
    """The samples, with their inputs where these are known."""
    samples = known_truth(truth)
    if images is not None:
        samples = replace(samples, x=known_images(images, samples.ids))
    check_samples(samples)
    if samples.x is not None and channel_axis(samples.x, samples.truth) == -1:
        return replace(samples, x=samples.x.movedim(-1, 1))
    return samples


def known_truth(truth: Any) -> Samples:
    """The samples, from an export, a folder of masks, a file, an array or a dataset."""
    if isinstance(truth, Dataset):
        if truth.truth is None:
            raise UsageError(f"`truth` must be a dataset whose truth is known, got {truth.name!r}")
        return Samples(truth.name, counted_ids(truth.truth), truth.truth, truth.x)
    if isinstance(truth, str | Path) and there(truth, "truth").is_dir():
        folder = Path(truth)
        if (folder / FILE).is_file():
            return read_export(folder)
        return masks_in(folder)
    mask = numbers(truth, "truth") != 0
    if mask.ndim > 3 and mask.shape[1] == 1:
        mask = mask.squeeze(1)
    return Samples("your samples", counted_ids(mask), mask)


def counted_ids(values: Tensor) -> Names:
    return tuple(map(str, range(len(values))))


def masks_in(folder: Path) -> Samples:
    """Masks named by their samples; what is not black is true."""
    files = files_in(folder)
    if not files:
        inner = sorted(str(path.parent) for path in folder.glob(f"*/{FILE}"))
        meant = f"; did you mean {' or '.join(inner[:3])}?" if inner else ""
        raise UsageError(
            f"`truth` must be a folder of masks or one of `forsooth export-data`, got no mask in {folder}{meant}"
        )
    masks = [from_file(file, "truth") != 0 for file in files]
    flat = [mask.any(0) if mask.ndim == 3 else mask for mask in masks]
    return Samples(folder.resolve().name, tuple(file.stem for file in files), stacked(flat, files, "truth"))


def known_images(images: Any, ids: Sequence[str]) -> Tensor:
    """The inputs (n, *shape) of the samples: files are found by their names."""
    if not isinstance(images, str | Path) or not Path(images).is_dir():
        return numbers(images, "images")
    by_name = {file.stem: file for file in files_in(Path(images))}
    lost = [name for name in ids if name not in by_name]
    if lost:
        raise UsageError(f"`images` must have a file for each sample of `truth`; {lost[0]} is missing in {images}")
    return from_files([by_name[name] for name in ids], "images")


def check_samples(samples: Samples) -> None:
    if samples.truth.ndim < 2 or not samples.truth.numel():
        raise UsageError(f"`truth` must have shape (n, *map) and not be empty, got {tuple(samples.truth.shape)}")
    if len(set(samples.ids)) != len(samples.ids):
        raise UsageError("`truth` must have each sample once, got two of one name")
    if samples.x is None:
        return
    size = tuple(samples.truth.shape)
    came = tuple(samples.x.shape)
    if len(came) < 2:
        raise UsageError(f"`images` must have shape (n, *shape), got {came}")
    if came[0] != size[0] or channel_axis(samples.x, samples.truth) is None:
        raise UsageError(f"`images` must fit the masks {size}, with or without channels, got {came}")


def channel_axis(values: Tensor, truth: Tensor) -> int | None:
    """Where values (n, *shape) have channels beside the truth (n, *map): 1 or -1; 0: nowhere; None: they do not fit."""
    size = truth.shape[1:]
    shape = values.shape[1:]
    fits = {0: shape, 1: shape[1:], -1: shape[:-1]}
    return next((axis for axis, left in fits.items() if left == size), None)


def places(maps: Maps, samples: Samples, method: str) -> Tensor:
    """Which sample each map is of. (k,)"""
    if maps.ids is None:
        if len(maps.values) != len(samples.ids):
            expected = f"one for each of {len(samples.ids)} samples, or have their numbers in an array `{IDS}`"
            raise UsageError(f"`maps` must be {expected}; {method} has {len(maps.values)}")
        return torch.arange(len(samples.ids))
    order = {name: place for place, name in enumerate(samples.ids)}
    unknown = [name for name in maps.ids if name not in order]
    distinct = len(set(maps.ids))
    if unknown or not distinct == len(maps.ids) == len(maps.values):
        wrong = f"a sample {unknown[0]}" if unknown else f"{len(maps.values)} maps for {distinct} samples"
        raise UsageError(
            f"`maps` must have one map for each sample that it names, all of `truth`; {method} has {wrong}"
        )
    return torch.tensor([order[name] for name in maps.ids])


def reduced(values: Tensor, truth: Tensor, method: str) -> Tensor:
    """The sum of |map| over channels, first or last, where there are any. (k, *map) float32"""
    axis = channel_axis(values, truth)
    if axis is None:
        size = tuple(truth.shape[1:])
        came = tuple(values.shape[1:])
        raise UsageError(
            f"`maps` must have the shape of the truth {size}, with or without channels; {method} has {came}"
        )
    values = values.float().abs()
    if axis == 0:
        return values
    return values.sum(axis)
