"""Checks of the arguments of networks for square images: all of them refuse in the same words."""

from collections.abc import Iterable, Mapping

from forsooth.records import UsageError


def check(name: str, *, size: int, least: int, variant: str, channels_in: int, classes: int) -> None:
    """UsageError where the network called `name` cannot be built for images of `size` × `size` pixels."""
    if size < least:
        raise UsageError(f"`size` must be at least {least} for {name}, got {size!r}")
    if variant != "paper":
        raise UsageError(f"`variant` must be 'paper' for {name}, got {variant!r}")
    positive({"channels_in": channels_in, "classes": classes})


def positive(arguments: Mapping[str, int]) -> None:
    """UsageError that names the first argument below 1."""
    for name, value in arguments.items():
        if value < 1:
            raise UsageError(f"`{name}` must be at least 1, got {value}")


def unknown(name: str, value: object, choices: Iterable[object]) -> UsageError:
    """The error for an argument that must be one of a few values."""
    return UsageError(f"`{name}` must be one of {', '.join(map(str, choices))}, got {value!r}")
