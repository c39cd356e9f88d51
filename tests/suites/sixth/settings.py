"""What the suite asks."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    columnss   numbers of columns of the table
    models     networks that are trained and explained
    methods    that are asked
    trainings  of each network
    samples    test rows explained
    """

    columnss: tuple[int, ...] = (4, 8)
    models: tuple[str, ...] = ("linear",)
    methods: tuple[str, ...] = ("gradient_x_input", "saliency", "random", "oracle")
    trainings: int = 2
    samples: int = 12


PRESETS = {"quick": Settings()}
