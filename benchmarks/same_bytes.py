"""Same words, same bytes, whoever runs the tasks: python benchmarks/same_bytes.py [WORD …].

One run of XAI-TRIS, each time in a new folder: in one process, in two, and on a Dask cluster of three workers that is
started here. Prints the hash of each `scores.parquet`. Words are those of `forsooth run`: without any, `xaitris
--preset quick`, which takes some seven minutes of processor time each.
"""

import hashlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

WORDS = ("xaitris", "--preset", "quick")
WORKERS = 3


def module(*words: str) -> list[str]:
    return [sys.executable, "-m", *words]


def free_port() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of a scheduler and its workers, which end with the block."""
    port = str(free_port())
    address = f"tcp://127.0.0.1:{port}"
    lines = [module("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")]
    place = ["--local-directory", str(folder)]
    for _ in range(WORKERS):
        lines.append(module("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard", *place))
    with (folder / "cluster.txt").open("w") as said:
        started = [subprocess.Popen(line, stdout=said, stderr=said) for line in lines]
    try:
        yield address
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)


def scores(words: list[str], means: str, out: Path) -> bytes:
    line = module("forsooth", "run", *words, means, "--quiet", f"--out={out}")
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return (out / "scores.parquet").read_bytes()


def main() -> None:
    words = sys.argv[1:] or list(WORDS)
    print(f"forsooth run {' '.join(words)}", flush=True)
    found = set()
    with tempfile.TemporaryDirectory() as made, cluster(Path(made)) as address:
        for number, means in enumerate(("--workers=1", "--workers=2", f"--on={address}")):
            begun = time.perf_counter()
            content = scores(words, means, Path(made) / f"run-{number}")
            found.add(content)
            seconds = time.perf_counter() - begun
            name = "--on=CLUSTER" if means.startswith("--on") else means
            hashed = hashlib.sha256(content).hexdigest()
            print(f"{name:14}{hashed}{len(content):>10} bytes{seconds:>7.0f} s", flush=True)
    print("the same bytes" if len(found) == 1 else "NOT the same bytes")
    sys.exit(len(found) != 1)


if __name__ == "__main__":
    main()
