"""A command whose tasks hang: python hanging_run.py FOLDER WORKERS. They swallow interrupts."""

import sys
from pathlib import Path

import arithmetic

from forsooth import cli
from forsooth.engine import execute, make_task
from forsooth.progress import Silent
from forsooth.store import Store


@cli.app.command()
def hang(folder: Path, workers: int) -> None:
    """Two tasks that never end."""
    tasks = [make_task(arithmetic.hangs, {"marker": str(folder / "marker"), "value": v}, name="h") for v in (1.0, 2.0)]
    execute(tasks, Store(folder / "store"), workers=workers, progress=Silent())


if __name__ == "__main__":
    sys.argv.insert(1, "hang")
    cli.main()
