"""The working folder, where a user's modules lie, and what they may do while their code runs in our process."""

import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from forsooth.errors import UsageError

STANDARD = tuple(sysconfig.get_path("stdlib") + end for end in ("", "/lib-dynload"))
NEEDED = (  # packages that we import, here or in the processes that we begin
    *("torch", "numpy", "pandas", "pyarrow", "scipy", "sklearn", "skimage", "safetensors", "PIL", "matplotlib"),
    *("jinja2", "markupsafe", "rich", "typer", "distributed", "torchvision", "captum"),
)


def look_here() -> None:
    """Find modules in the working folder: a script beside the data is the usual place of a user's method.

    Behind the standard library: a file named `secrets.py` must not be taken for Python's own by other code. One named
    `torch.py` would be taken for the package by each process that we begin: UsageError.
    """
    here = Path.cwd()
    standard = max((place for place, entry in enumerate(sys.path) if entry in STANDARD), default=-1)
    if str(here) in sys.path[: standard + 2]:
        return
    for name in NEEDED:
        for file in (f"{name}.py", f"{name}/__init__.py"):
            if (here / file).is_file():
                raise UsageError(
                    f"the working folder must have no file {file} where methods of your own are looked for: Python "
                    f"would take it for the package {name}; rename it ({here})"
                )
    sys.path.insert(standard + 1, str(here))


@contextmanager
def staying() -> Iterator[None]:
    """Code inside that ends the process by `os._exit`, with any code and without a word, raises SystemExit instead."""
    mine = os.getpid(), threading.get_ident()
    leave = os._exit

    def stay(status: int) -> NoReturn:
        if (os.getpid(), threading.get_ident()) == mine:
            raise SystemExit(status)
        leave(status)  # a fork, and whoever ends us from another thread, mean it

    os._exit = stay
    try:
        yield
    finally:
        os._exit = leave
