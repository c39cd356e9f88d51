"""Which known datasets lie in a folder of the user's."""

from pathlib import Path

from forsooth.datasets import cifar, tables, voc
from forsooth.records import UsageError


def datasets_in(path: str | None) -> dict[str, str]:
    """name -> file or folder of every dataset in the folder that `--data` names."""
    if path is None:
        return {}
    place = Path(path)
    if not place.exists():
        raise UsageError(f"`data` must be a folder or file of data, but there is nothing at {path}")
    here = tables_at(path)
    if holds_voc(place):
        here = {"voc": path, **here}
    if place.is_dir() and any(cifar.find(place, mark) for mark, _ in cifar.LAYOUTS.values()):
        here = {"cifar10": path, **here}
    if not here:
        raise UsageError(f"`data` must hold CIFAR-10, Pascal VOC or tables, but none of them is known in {path}")
    return here


def holds_voc(place: Path) -> bool:
    if place.name == voc.ZIP or (place / voc.ZIP).is_file():
        return True
    return any(map(voc.is_tree, (place, *place.glob("*/"))))


def tables_at(path: str) -> dict[str, str]:
    """name -> file of every table in a folder, or of the one that is named."""
    place = Path(path)
    if place.is_dir():
        return {tables.stem(place / name): str(place / name) for name in tables.tables_in(place)}
    if tables.suffix(place) in tables.READERS:
        return {tables.stem(place): path}
    return {}
