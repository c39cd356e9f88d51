"""A card without the memory that eight workers want: python benchmarks/full_card.py [SHARE …] [--workers 8].

A panel of XAI-TRIS is explained by many methods at once, first with the whole card, whose peak is measured; then from
the same trained network with only a share of that peak left free (0.5, unless others are named), the rest being held
by this process. Printed are seconds, the exit code, what the run said of too little memory, and how far its rows are
from those of the whole card. `--keep FOLDER` writes down all that is printed, and `--seconds` ends what takes longer.

Without an accelerator one is pretended (`benchmarks/small_card`), and images are of 8×8.
"""

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch

METHODS = (
    "saliency,gradient_x_input,integrated_gradients,smooth_grad,smooth_grad_squared,var_grad,gradient_shap,deep_shap,"
    "deep_lift,lrp,deep_taylor,guided_backprop,deconvolution,guided_grad_cam,grad_cam,expected_gradients,lime_25,"
    "kernel_shap_25,pattern_net,random,oracle,constant"
)
SETTINGS = ("models=cnn", "metrics=ima,precision", "trainings=1", "gate=0", "restarts=0", "sweep=")
LARGE = ("sizes=64", "network=paper", "n=6000", "samples=256")  # the printed network has the larger maps
SMALL = ("sizes=8", "network=released", "n=600", "samples=60")
PANEL = ("scenario=LIN", "background=WHITE")
BLOCK = 2**28  # bytes held at a time
AGAIN = ("explain", "score")  # what is done with every share of the card; the rest is taken over
CLOSE = 1e-3
PRESSURE = re.compile(
    r"cut in halves (?P<halved>\d+) times, (?P<waited>\d+) tries put off.*, (?P<moved>\d+) tasks moved to the processor"
)


class Told(io.TextIOBase):
    """Standard output, of which a copy is kept in a file."""

    def __init__(self, path: Path) -> None:
        self.places = (sys.stdout, path.open("w"))

    def write(self, words: str) -> int:
        for place in self.places:
            place.write(words)
            place.flush()
        return len(words)


class RealCard:
    """The accelerator of this machine, whose free memory is asked while a run lasts."""

    words = LARGE
    unit = 2**30

    def __init__(self) -> None:
        self.name = f"{torch.cuda.get_device_name()}, memory in GiB"
        self.environment = {"NVIDIA_TF32_OVERRIDE": "0"}  # so that sums differ by their order alone
        self.held: list[torch.Tensor] = []
        self.least = self.free()

    def free(self) -> int:
        return torch.cuda.mem_get_info()[0]

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Notes the least free memory of the time inside."""
        self.least = self.free()
        over = threading.Event()
        looks = threading.Thread(target=self._look, args=(over,))
        looks.start()
        try:
            yield
        finally:
            over.set()
            looks.join()

    def _look(self, over: threading.Event) -> None:
        while not over.wait(0.05):
            self.least = min(self.least, self.free())

    @contextmanager
    def leaving(self, wanted: int) -> Iterator[None]:
        """So much is free inside, and no more."""
        while self.free() > wanted + BLOCK:
            self.held.append(torch.empty(BLOCK, dtype=torch.uint8, device="cuda"))
        try:
            yield
        finally:
            self.held.clear()
            torch.cuda.empty_cache()


class PretendedCard:
    """One that counts inputs: see `benchmarks/small_card`."""

    words = SMALL
    unit = 1
    name = "a pretended accelerator, memory in inputs"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="card-"))
        here = str(Path(__file__).parent / "small_card")
        path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        self.environment = {"PYTHONPATH": path, "SMALL_CARD": str(self.folder), "SMALL_CARD_HOLDS": str(10**9)}

    @property
    def least(self) -> int:
        return self.free() - int((self.folder / "peak").read_text())

    def free(self) -> int:
        return int(self.environment["SMALL_CARD_HOLDS"])

    @contextmanager
    def watched(self) -> Iterator[None]:
        (self.folder / "peak").unlink(missing_ok=True)
        yield

    @contextmanager
    def leaving(self, wanted: int) -> Iterator[None]:
        self.environment["SMALL_CARD_HOLDS"] = str(wanted)
        yield


@dataclass
class Ended:
    """How a run ended.

    said  lines on too little memory
    """

    code: int
    seconds: float
    used: int
    said: dict[str, str]
    rows: pd.DataFrame


def run(card: RealCard | PretendedCard, out: Path, workers: int, until: float) -> Ended:
    """One run, whose lines are printed as they come; ended by SIGTERM where it is not over by then (monotonic s)."""
    words = ["forsooth", "run", "xaitris", "--preset=quick", "--device=cuda", f"--workers={workers}", f"--out={out}"]
    words += [f"--set={word}" for word in (*SETTINGS, *card.words)] + [f"--only={word}" for word in PANEL]
    begun, before = time.monotonic(), card.free()
    print(f"{out.name}: {before / card.unit:.1f} free", flush=True)
    with card.watched():
        process = subprocess.Popen(
            [sys.executable, "-m", *words, f"--methods={METHODS}"],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", **card.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        late = threading.Timer(until - begun, process.terminate)
        late.start()
        output = "".join(echoed(process, begun))
        code = process.wait()
        late.cancel()
    rows = pd.DataFrame()
    if (out / "scores.parquet").exists():
        rows = pd.read_parquet(out / "scores.parquet")
    return Ended(code, time.monotonic() - begun, before - card.least, pressure(output), rows)


def echoed(process: subprocess.Popen[str], begun: float) -> Iterator[str]:
    """The lines of a process, each printed behind its second."""
    assert process.stdout is not None
    for said in process.stdout:
        print(f"{time.monotonic() - begun:6.1f} s  {said}", end="", flush=True)
        yield said


def pressure(output: str) -> dict[str, str]:
    """What a run said of too little memory."""
    found = PRESSURE.search(output)
    return found.groupdict() if found else dict.fromkeys(("halved", "waited", "moved"), "0")


def begun_from(whole: Path, out: Path) -> Path:
    """A folder with the trained network of another run, and none of its maps and scores."""
    shutil.copytree(whole / "store", out / "store")
    for meta in list(out.glob("store/cells/*/*/meta.json")):
        if json.loads(meta.read_text())["function"].rpartition(":")[2] in AGAIN:
            shutil.rmtree(meta.parent)
    return out


def differences(whole: pd.DataFrame, rows: pd.DataFrame) -> dict[str, str]:
    """How far rows are from those of the whole card."""
    if len(whole) != len(rows):
        return {"rows": f"{len(rows)} and not {len(whole)}"}
    same = whole["status"].eq(rows["status"]) & whole["method"].eq(rows["method"]) & whole["sample"].eq(rows["sample"])
    scores = whole["metric"].ne("gap")  # what is left of a promise is rounding itself
    away = (whole["value"] - rows["value"]).abs()[scores]
    return {
        "rows": f"{len(rows):,}",
        "other status": f"{int((~same).sum())}",
        "same value": f"{(away.eq(0) | away.isna()).mean():.1%}",
        f"by > {CLOSE:g}": f"{int(away.gt(CLOSE).sum())}",
        "largest": f"{away.max():.1e}",
    }


def line(name: str, ended: Ended, card: RealCard | PretendedCard, far: dict[str, str]) -> dict[str, str]:
    used = f"{ended.used / card.unit:.1f}"
    return {"card": name, "exit": str(ended.code), "s": f"{ended.seconds:.0f}", "used": used, **ended.said, **far}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shares", nargs="*", type=float, default=[0.5])
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    if given.keep is None:
        measure(given.shares, given.workers, time.monotonic() + given.seconds)
        return
    given.keep.mkdir(parents=True, exist_ok=True)
    with redirect_stdout(Told(given.keep / "full_card.txt")):
        measure(given.shares, given.workers, time.monotonic() + given.seconds)


def measure(shares: Sequence[float], workers: int, until: float) -> None:
    """Print what becomes of a run on the whole card, and on each of these shares of what it used."""
    card = RealCard() if torch.cuda.is_available() else PretendedCard()
    print(f"torch {torch.__version__}, {card.name}, {workers} workers", flush=True)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        whole = run(card, folder / "whole", workers, until)
        table = [line("whole", whole, card, {"rows": f"{len(whole.rows):,}"})]
        for share in shares:
            out = begun_from(folder / "whole", folder / f"share-{share:g}")
            with card.leaving(int(share * whole.used)):
                ended = run(card, out, workers, until)
            table.append(line(f"{share:g} of what was used", ended, card, differences(whole.rows, ended.rows)))
            print(pd.DataFrame(table).fillna("").to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
