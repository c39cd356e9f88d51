"""Which test of the way catches which fault? Every fault is planted in small runs, and all checks are asked."""

import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import faults
import way

from forsooth.engine import one_thread


def main() -> None:
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        print(f"{'fault':<30}{'suite':<9}caught by")
        cases = [(fault, suite) for fault, suites in faults.CAUGHT.items() for suite in suites]
        for number, (fault, suite) in enumerate(cases):
            with pytest.MonkeyPatch.context() as patch:
                fault(patch, suite)
                told = way.failures(suite, faults.walk(suite, Path(folder) / str(number)))
            for place, (check, words) in enumerate(told.items()):
                name, where = ("", "") if place else (fault.__name__.replace("_", " "), suite)
                print(f"{name:<30}{where:<9}{check.replace('_', ' ')}: {words}")


if __name__ == "__main__":
    main()
