"""Results of a few rows, written out in a test."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from report.made_up import row

from forsooth.report import Results
from forsooth.report.aggregate import DEFAULTS


def run_of(
    rows: Sequence[dict[str, Any]],
    *,
    factors: Sequence[str] = ("data", "model"),
    metric: dict[str, Any] | None = None,
    nulls: Sequence[str] = ("random", "sobel", "oracle"),
) -> Results:
    """A run with the one metric `m` and the methods of the rows, of which `nulls` ignore the model."""
    frame = pd.DataFrame(rows)
    names = [name for name in frame["method"].unique() if name]
    run = {
        **{"suite": "made up", "title": "By hand", "factors": list(factors)},
        "metrics": {"m": metric or {"better": "higher", "bounds": [0.0, 1.0]}},
        "methods": {name: {"null": name in nulls} for name in names},
    }
    return Results(Path(), {**DEFAULTS, **run}, frame, pd.DataFrame({"cell": [], "seconds": []}), {})


def scores(
    method: str, values: Sequence[float], *, model: str = "CNN", data: str = "a", seed: int = 0
) -> list[dict[str, Any]]:
    """One row per sample."""
    key = {"method": method, "metric": "m", "model": model, "data": data, "model_seed": seed}
    return [row("scores", **key, sample=sample, value=value) for sample, value in enumerate(values)]
