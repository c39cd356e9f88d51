"""Kills at random: python benchmarks/kills.py [KILLS] [SEED].

Runs on two processes and on a Dask cluster of three workers are disturbed at random moments: the driver is killed, one
of its processes, a worker of the cluster, a whole node of it, or its scheduler, which then starts again. After some
kills the driver dies as well, and the same command goes on; after others it must end by itself. Whenever a run is
through, its scores must have the bytes of one that nobody disturbed, and the next begins in a new folder. At the end no
process may be left, and no litter in the folders or in the place of temporary files.
"""

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import psutil
from distributed import Client

ONLY = ("scenario=LIN", "background=WHITE", "model=llr,mlp")
CHANGES = ("n=600", "alpha=0.6", "samples=6", "sweep=", "trainings=3")
MARK = "FORSOOTH_KILLS"  # in the environment of all that is started here, by which orphans are found
MINE = "def doubled(model, x, target):\n    return x * 2\n"  # asked in a process of its own
NODES = 3
STOP = Path("stop")  # where this file appears the attack ends before its time
POOL = ("driver", "process", "process", "process")  # whom to strike, each as likely
DASK = ("driver", "worker", "worker", "node", "scheduler")
LONGEST = 600.0  # seconds that a run may take to end by itself


def environment(folder: Path) -> dict[str, str]:
    mark = {MARK: str(folder), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    return {**os.environ, **mark, "OMP_NUM_THREADS": "1", "DASK_LOGGING__DISTRIBUTED": "critical"}


def started(words: list[str], folder: Path) -> psutil.Popen:
    errors = "errors.txt" if words[0] == "forsooth" else "cluster.txt"  # Dask tells its ends at length
    quiet = {"stdout": subprocess.DEVNULL, "stderr": (folder / errors).open("a")}
    return psutil.Popen([sys.executable, "-m", *words], cwd=folder, env=environment(folder), **quiet)


def command(out: Path, means: str) -> list[str]:
    words = [f"--only={word}" for word in ONLY] + [f"--set={word}" for word in CHANGES]
    words += ["--methods=saliency,lime_25,random,oracle,mine:doubled", means, "--quiet", f"--out={out}"]
    return ["forsooth", "run", "xaitris", *words]


@dataclass
class Cluster:
    """A scheduler and its nodes, each a process that starts a worker again where one dies; as a supervisor has them."""

    folder: Path
    port: int
    scheduler: psutil.Popen | None = None
    nodes: list[psutil.Popen] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Start again what has ended."""
        if self.scheduler is None or self.scheduler.poll() is not None:
            words = [
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--no-dashboard",
            ]
            self.scheduler = started(words, self.folder)
        self.nodes = [node for node in self.nodes if node.poll() is None]
        place = ["--local-directory", str(self.folder / "tmp")]
        for _ in range(NODES - len(self.nodes)):
            words = ["distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-dashboard", *place]
            self.nodes.append(started(words, self.folder))

    def await_worker(self) -> None:
        """Until there is a cluster: a run is begun on one that answers, and may lose it then."""
        with Client(self.address, timeout=LONGEST, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=LONGEST)

    def strike(self, whom: str, dice: random.Random) -> bool:
        """Kill a worker, a node with its worker, or the scheduler; whether there was one."""
        if whom == "scheduler":
            assert self.scheduler is not None
            self.scheduler.kill()
            self.scheduler.wait()
            return True
        node = dice.choice(self.nodes)
        family = node.children(recursive=True) if node.is_running() else []
        victims = [one for one in family if "spawn_main" in words_of(one)]
        if whom == "node":
            victims.insert(0, node)
        for one in victims:
            struck(one)
        return bool(victims)

    def end(self) -> None:
        for one in [*self.nodes, self.scheduler]:
            if one is not None and one.poll() is None:
                one.send_signal(signal.SIGTERM)
        for one in [*self.nodes, self.scheduler]:
            if one is not None:
                one.wait(60)


def struck(process: psutil.Process) -> bool:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return False
    return True


def words_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def processes_of(folder: Path) -> list[psutil.Process]:
    """All processes that were started here, also those whose parents are gone."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue  # another user's, or over by now
    return found


def cells(folder: Path) -> set[str]:
    """The finished work of a run; a cell that records a failure is none, and the next run makes it anew."""
    found = set()
    for path in folder.glob("store/cells/*/*/meta.json"):
        with suppress(OSError):  # taken away while we look: a failure, or it is counted as lost
            if not json.loads(path.read_bytes())["facts"].get("failed"):
                found.add(path.parent.name)
    return found


def oddities(scores: Path) -> dict[str, int]:
    """What rows without a score say, and how many of them."""
    rows = pd.read_parquet(scores)
    odd = rows[rows["status"].ne("ok")]
    return (odd["method"] + ": " + odd["message"]).value_counts().to_dict()


@dataclass
class Attack:
    """All that is counted.

    kills   by whom they hit
    rounds  of commands that were begun
    """

    folder: Path
    dice: random.Random
    cluster: Cluster
    expected: bytes
    kills: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    finished: int = 0
    other_bytes: int = 0
    lost: int = 0
    hung: int = 0
    wrong_ends: list[int] = field(default_factory=list)

    def disturb(self, out: Path) -> None:
        """One command with kills in it; where its driver lives it must end by itself."""
        self.rounds += 1
        before = cells(out)
        on_cluster = self.dice.random() < 0.5
        self.cluster.mend()
        means = "--workers=2"
        if on_cluster:
            self.cluster.await_worker()
            means = f"--on={self.cluster.address}"
        driver = started(command(out, means), self.folder)
        self.await_work(out, driver, before)
        time.sleep(self.dice.uniform(0.0, 4.0))
        for _ in range(self.dice.randrange(2, 7)):
            whom = self.dice.choice(DASK if on_cluster else POOL)
            if driver.poll() is None and self.hit(whom, driver):
                self.kills[whom] += 1
            time.sleep(self.dice.uniform(0.3, 5.0))
            self.cluster.mend()
        if driver.poll() is None and self.dice.random() < 0.25 and struck(driver):
            self.kills["driver"] += 1
        self.close(out, driver)
        self.lost += len(before - cells(out))
        sys.stderr.write(f"{self.rounds}: {dict(self.kills)} {means}, ended with {driver.returncode}\n")

    def await_work(self, out: Path, driver: psutil.Popen, before: set[str]) -> None:
        """Until there is something new to lose; sometimes not as long."""
        until = time.monotonic() + self.dice.choice((3.0, LONGEST, LONGEST, LONGEST))
        while cells(out) == before and driver.poll() is None and time.monotonic() < until:
            time.sleep(0.1)

    def hit(self, whom: str, driver: psutil.Popen) -> bool:
        if whom == "driver":
            return struck(driver)
        if whom == "process":
            children = driver.children(recursive=True)
            return bool(children) and struck(self.dice.choice(children))
        return self.cluster.strike(whom, self.dice)

    def close(self, out: Path, driver: psutil.Popen) -> None:
        """Wait for the end, and look at what a run that is through has left."""
        try:
            code = driver.wait(LONGEST)
        except psutil.TimeoutExpired:
            self.hung += 1
            code = -signal.SIGKILL
            driver.kill()
            driver.wait()
        if code == 0:
            self.finished += 1
            if (out / "scores.parquet").read_bytes() != self.expected:
                self.other_bytes += 1
                sys.stderr.write(f"other bytes: {oddities(out / 'scores.parquet')}\n")
        elif code != -signal.SIGKILL:
            self.wrong_ends.append(code)
            sys.stderr.write(f"ended with {code}: {(self.folder / 'errors.txt').read_text()[-500:]}\n")


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


def left(folder: Path) -> list[psutil.Process]:
    """Who is still there after half a minute."""
    for _ in range(60):
        if not processes_of(folder):
            break
        time.sleep(0.5)
    return processes_of(folder)


def litter(folder: Path) -> list[str]:
    places = [*folder.glob("run-*/store/unfinished/*"), *folder.glob("run-*/.*"), *folder.glob("tmp/*")]
    return [path.name for path in places if not path.name.startswith("dask")]


def whole(folder: Path) -> bytes:
    """The scores of a run that nobody disturbs."""
    process = started(command(folder / "whole", "--workers=1"), folder)
    assert process.wait() == 0, (folder / "errors.txt").read_text()
    return (folder / "whole" / "scores.parquet").read_bytes()


def attack(folder: Path, wanted: int, dice: random.Random) -> Attack:
    made = Attack(folder, dice, Cluster(folder, free_port()), whole(folder))
    number = 0
    try:
        while made.kills.total() < wanted and not STOP.exists():
            before = made.finished
            made.disturb(folder / f"run-{number}")
            number += made.finished - before
        made.close(folder / f"run-{number}", started(command(folder / f"run-{number}", "--workers=2"), folder))
    finally:
        made.cluster.end()
    return made


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    dice = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    folder = Path(tempfile.mkdtemp(prefix="kills-")).resolve()
    (folder / "tmp").mkdir()
    (folder / "mine.py").write_text(MINE)
    begun = time.monotonic()
    try:
        made = attack(folder, wanted, dice)
        print(f"{made.kills.total()} kills in {made.rounds} commands, {time.monotonic() - begun:.0f} s:")
        print(", ".join(f"{whom} {count}" for whom, count in sorted(made.kills.items())))
        print(f"runs that came to their end: {made.finished}, of which with other bytes: {made.other_bytes}")
        print(f"cells lost: {made.lost}; ends with another exit code than 0: {made.wrong_ends}; hung: {made.hung}")
        print(f"processes left: {len(left(folder))}; litter: {len(litter(folder))} {litter(folder)[:5]}")
        print((folder / "errors.txt").read_text()[-2000:])
    finally:
        for process in processes_of(folder):
            struck(process)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
