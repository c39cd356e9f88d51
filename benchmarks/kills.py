"""Kills at random: python benchmarks/kills.py [KILLS] [SEED].

A run on two processes is killed again and again, its driver or one of its workers, until so many kills are done; then
it ends by itself. Its scores must have the bytes of a run that nobody disturbed, with no process and no litter left.
"""

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ONLY = ("scenario=LIN", "background=WHITE", "model=llr,mlp")
CHANGES = ("n=600", "alpha=0.6", "samples=6", "sweep=", "trainings=3")


def command(folder: Path, workers: int) -> list[str]:
    words = [f"--only={word}" for word in ONLY] + [f"--set={word}" for word in CHANGES]
    words += ["--methods=saliency,lime_25,random,oracle", f"--workers={workers}", "--quiet", f"--out={folder}"]
    return [sys.executable, "-m", "forsooth", "run", "xaitris", *words]


def cells(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("store/cells/*/*")}


def disturbed(folder: Path, dice: random.Random) -> tuple[str, list[psutil.Process]]:
    """Begin the run and kill somebody; who it was (empty: it ended before), and all processes that there were."""
    process = psutil.Popen(command(folder, 2), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(dice.uniform(0.5, 6.0))
    try:
        family = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        family = [process]
    victim = dice.choice(family)
    who = "driver" if victim is process else "worker"
    if process.poll() is not None:
        return "", family
    victim.kill()
    if who == "worker":
        time.sleep(dice.uniform(0.0, 2.0))
        process.kill()  # so that the next round begins in the middle as well
    process.wait()
    return who, family


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    counts = {"driver": 0, "worker": 0, "": 0}
    lost = orphans = 0
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "killed"
        for _ in range(wanted):
            before = cells(folder)
            who, family = disturbed(folder, dice)
            counts[who] += 1
            orphans += len(psutil.wait_procs(family, timeout=20)[1])
            lost += len(before - cells(folder))
        subprocess.run(command(folder, 2), check=True, stdout=subprocess.DEVNULL)
        subprocess.run(command(Path(made) / "whole", 1), check=True, stdout=subprocess.DEVNULL)
        same = (folder / "scores.parquet").read_bytes() == (Path(made) / "whole" / "scores.parquet").read_bytes()
        litter = [*folder.glob("store/unfinished/*"), *folder.glob(".*")]
        print(f"kills: driver {counts['driver']}, worker {counts['worker']}; too late: {counts['']}")
        print(f"cells lost: {lost}; same bytes: {same}; processes left: {orphans}; litter: {len(litter)}")


if __name__ == "__main__":
    main()
