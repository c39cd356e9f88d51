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
    """Whether the child was killed before it ended by itself; one that failed raises."""
    enough = cells(folder) + dice.randrange(3)
    child = os.fork()
    if child == 0:
        run(folder)
        os._exit(0)
    while cells(folder) < enough and not has_ended(child):
        time.sleep(0.001)
    time.sleep(dice.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)  # one that has ended is not yet waited for, so that its number is still its own
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"a run went wrong by itself, with {os.WEXITSTATUS(status)}")
    return os.WIFSIGNALED(status)


def has_ended(child: int) -> bool:
    """Whether the child is over; it can still be waited for."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def main() -> None:
    folder, dice = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
    kills = 0
    while kills < 10:  # a run may be through before it is killed; then it is run once more
        kills += killed_run(folder, dice)
    sys.stdout.write(f"{kills} kills, {cells(folder)} cells\n")
    run(folder)


main()
