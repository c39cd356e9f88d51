"""A user's methods that do harm."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import torch


def exits(model, x, target):
    sys.exit(3)


def leaves_at_once(model, x, target):
    os._exit(0)


def hangs(model, x, target):
    time.sleep(1000)


def kills_itself(model, x, target):
    os.kill(os.getpid(), signal.SIGKILL)


def is_killed_once(model, x, target):
    """Like a method that somebody else kills, the first time."""
    marker = Path(os.environ["KILLED_ONCE"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x * 2


def loses_its_parent_once(model, x, target):
    marker = Path(os.environ["KILLED_ONCE"])
    if not marker.exists():
        marker.touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    return x * 2


def eats_memory(model, x, target):
    kept = [torch.ones(2**26) for _ in range(64)]
    return x + kept[0][0]


def fills_the_card(model, x, target):
    raise torch.OutOfMemoryError("CUDA out of memory")


def patches_torch(model, x, target):
    torch.autograd.grad = lambda *args, **keywords: None
    torch.Tensor.sum = lambda *args, **keywords: None
    return x * 2


def prints(model, x, target):
    for _ in range(100):
        print("x" * 10**6)  # noqa: T201
    return x * 2


def deletes_files(model, x, target):
    for path in Path().iterdir():
        path.unlink()
    return x * 2


def deletes_all_below(model, x, target):
    for path in sorted(Path().rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
    return x * 2


def counts_files(model, x, target):
    return x * sum(path.is_file() for path in Path().rglob("*"))


def reads_data(model, x, target):
    return x * float(Path("data/2.txt").read_text())


def reseeds(model, x, target):
    torch.manual_seed(5)
    torch.use_deterministic_algorithms(False)
    return x * 2


def leaves_threads(model, x, target):
    for _ in range(8):
        threading.Thread(target=time.sleep, args=(1000,)).start()
    return x * 2
