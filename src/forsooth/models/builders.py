"""One signature for every network of images and tables, whatever arguments its own function takes.

A builder is `build(shape, classes, variant=None) -> module`. Each file of networks has a literal `BUILDERS`, name ->
builder, made by the adapters below; `forsooth.models.build` looks a name up in all of them.
"""

from collections.abc import Callable
from typing import Protocol

from torch import nn

from forsooth.records import UsageError

Network = Callable[..., nn.Module]


class Builder(Protocol):
    """An untrained network for inputs of `shape` (without n) that gives logits (n, classes)."""

    def __call__(self, shape: tuple[int, ...], classes: int, variant: str | None = None) -> nn.Module: ...


def of_images(network: Network) -> Builder:
    """Builder of `network(*, size, variant, channels_in, classes)`, for images (channels, side, side)."""

    def build(shape: tuple[int, ...], classes: int, variant: str | None = None) -> nn.Module:
        channels, side = square(shape)
        return network(size=side, variant=variant or "paper", channels_in=channels, classes=classes)

    return build


def of_fixed_images(network: Network, *, channels: int, classes: int, variant: str) -> Builder:
    """Builder of `network(*, size, variant)`, whose channels and classes cannot be chosen.

    variant  the one that is built where the caller names none
    """
    usual = variant
    expected = (channels, classes)

    def build(shape: tuple[int, ...], classes: int, variant: str | None = None) -> nn.Module:
        channels, side = square(shape)
        if (channels, classes) != expected:
            raise UsageError(
                f"`shape` and `classes` must have {expected[0]} channels and {expected[1]} classes for this network, "
                f"got {channels} and {classes}"
            )
        return network(size=side, variant=variant or usual)

    return build


def of_tables(network: Network) -> Builder:
    """Builder of `network(*, features, classes)`, for rows (features,) of a table."""

    def build(shape: tuple[int, ...], classes: int, variant: str | None = None) -> nn.Module:
        if len(shape) != 1:
            raise UsageError(f"`shape` must be (features,) for a network of tables, got {shape}")
        if variant not in (None, "paper"):
            raise UsageError(f"`variant` must be 'paper' for a network of tables, got {variant!r}")
        return network(features=shape[0], classes=classes)

    return build


def square(shape: tuple[int, ...]) -> tuple[int, int]:
    """Channels and side of images (channels, side, side)."""
    if len(shape) != 3 or shape[1] != shape[2]:
        raise UsageError(f"`shape` must be (channels, side, side) for a network of images, got {shape}")
    return shape[0], shape[1]
