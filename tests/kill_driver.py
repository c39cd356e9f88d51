"""Runs the tiny suite in child processes that are killed without warning, then to its end, in the folder argv[1].

Modules are imported once and children are forked, so that ten kills cost seconds. Kills land at random: after a random
number of finished cells and a few random milliseconds more, so often in the middle of a write.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

import tiny

from forsooth import api


def run(folder: Path) -> None:
    api.run("xaitris", methods=tiny.METHODS, only=tiny.ONLY, settings=tiny.SETTINGS, out=folder)


def cells(folder: Path) -> int:
    return sum(1 for _ in folder.glob("store/cells/*/*"))


def killed_run(folder: Path, dice: random.Random) -> bool:
    """Whether the child was killed before it ended by itself."""
    enough = cells(folder) + dice.randrange(3)
    child = os.fork()
    if child == 0:
        run(folder)
        os._exit(0)
    while cells(folder) < enough and os.waitpid(child, os.WNOHANG) == (0, 0):
        time.sleep(0.001)
    time.sleep(dice.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main() -> None:
    folder, dice = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    kills = sum(killed_run(folder, dice) for _ in range(10))
    sys.stdout.write(f"{kills} kills, {cells(folder)} cells\n")
    run(folder)


main()
