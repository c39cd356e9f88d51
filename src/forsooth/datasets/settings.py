"""The former place of `tetromino_settings`, for callers that still import from here."""

from forsooth.datasets.tetromino_settings import (
    ALPHAS,
    BACKGROUNDS,
    CORR_SIGMA,
    HELD,
    PAPER,
    RELEASED,
    SAMPLES,
    SCENARIOS,
    VARIANTS,
    ResolvedSetting,
    Setting,
    Variant,
    resolve,
)

__all__ = [
    "ALPHAS",
    "BACKGROUNDS",
    "CORR_SIGMA",
    "HELD",
    "PAPER",
    "RELEASED",
    "SAMPLES",
    "SCENARIOS",
    "VARIANTS",
    "ResolvedSetting",
    "Setting",
    "Variant",
    "resolve",
]
