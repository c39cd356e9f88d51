"""The life of a process that runs tasks: it starts clean, ends with its parent, and has one thread."""

import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from forsooth.records import Trial
from forsooth.schedule import Attempt

SAFE_PATH = "PYTHONSAFEPATH"  # tells Python not to import from the working folder before all else
CARDS = "CUDA_VISIBLE_DEVICES"
READY = "ready"


@dataclass(frozen=True)
class Order:
    """What a process that waited is to run from now on, in the environment that a new one would have."""

    attempt: Attempt
    environment: dict[str, str]


def serve(pipe: Connection, attempt: Attempt, safe_path: str | None, card: str) -> None:
    """The life of a process: tasks come and trials go until the pipe is closed."""
    _begin(safe_path, card)
    with suppress(BrokenPipeError, ConnectionResetError):  # whoever asks may be killed at any moment
        pipe.send(READY)
        _work(pipe, attempt, card)


def _work(pipe: Connection, attempt: Attempt, card: str) -> None:
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # its function is in a module that cannot be imported here
            pipe.send(Trial("", "raised", f"no process can read the task: {type(error).__name__}: {error}"))
        else:
            if isinstance(task, Order):
                attempt = task.attempt
                _set_environment(task.environment, card)
            else:
                pipe.send(attempt(task))


def _set_environment(environment: dict[str, str], card: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if card:
        os.environ[CARDS] = card


def _begin(safe_path: str | None, card: str) -> None:
    """One thread, one accelerator, no tracebacks at Ctrl-C, and an end with the parent, also where that is killed."""
    set_safe_path(safe_path)
    if card:
        os.environ[CARDS] = card  # torch looks when it is first asked for an accelerator
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    torch.set_num_threads(1)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def follow() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def set_safe_path(value: str | None) -> None:
    os.environ.pop(SAFE_PATH, None)
    if value is not None:
        os.environ[SAFE_PATH] = value
