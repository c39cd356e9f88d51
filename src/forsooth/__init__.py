"""Measures whether feature-attribution methods tell the truth."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers; at run time names are fetched when first used, see `__getattr__`
    from forsooth.analysis.compare import Comparison, compare
    from forsooth.analysis.health import Health, doctor
    from forsooth.analysis.pictures import Picture, show
    from forsooth.api import bias, check, dryrun, export_data, independence, reproduce, run, score
    from forsooth.errors import UsageError
    from forsooth.records import Dataset, Method, Metric
    from forsooth.runs import Run
    from forsooth.user.bias import BiasResult
    from forsooth.user.check import CheckResult
    from forsooth.user.dryrun import DryRun
    from forsooth.user.export import Samples, read_export
    from forsooth.user.independence import IndependenceResult

__version__ = "0.2.0"
__all__ = [
    "BiasResult",
    "CheckResult",
    "Comparison",
    "Dataset",
    "DryRun",
    "Health",
    "IndependenceResult",
    "Method",
    "Metric",
    "Picture",
    "Run",
    "Samples",
    "UsageError",
    "bias",
    "check",
    "compare",
    "doctor",
    "dryrun",
    "export_data",
    "independence",
    "read_export",
    "reproduce",
    "run",
    "score",
    "show",
]

_HOMES = {
    "Dataset": "forsooth.records",
    "Method": "forsooth.records",
    "Metric": "forsooth.records",
    "UsageError": "forsooth.errors",
    "BiasResult": "forsooth.user.bias",
    "CheckResult": "forsooth.user.check",
    "DryRun": "forsooth.user.dryrun",
    "IndependenceResult": "forsooth.user.independence",
    "Run": "forsooth.runs",
    "Samples": "forsooth.user.export",
    "read_export": "forsooth.user.export",
    "Comparison": "forsooth.analysis.compare",
    "compare": "forsooth.analysis.compare",
    "Health": "forsooth.analysis.health",
    "doctor": "forsooth.analysis.health",
    "Picture": "forsooth.analysis.pictures",
    "show": "forsooth.analysis.pictures",
    "bias": "forsooth.api",
    "check": "forsooth.api",
    "dryrun": "forsooth.api",
    "export_data": "forsooth.api",
    "independence": "forsooth.api",
    "reproduce": "forsooth.api",
    "run": "forsooth.api",
    "score": "forsooth.api",
}


if not TYPE_CHECKING:  # a type checker that saw this would take any name for a public one

    def __getattr__(name: str) -> Any:
        """Public names are fetched when first used, so that one room can be imported without the whole house."""
        if name in _HOMES:
            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(f"module 'forsooth' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
