"""What methods that do harm come to, and what they do to others: python benchmarks/hostile.py.

Each is asked in a run of its own before `saliency`, whose rows must be those of a run without it; the table shows what
the page of the run says of it. A training, what builds a model, and units of a layer come before a run of `saliency` in
the same process.
"""

import html
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

import forsooth
from forsooth.progress import Silent

TESTS = Path(__file__).parent.parent / "tests"
ONLY = {"scenario": "LIN", "background": "WHITE", "model": "llr"}
SETTINGS = {"n": 600, "alpha": 0.6, "samples": 6, "sweep": (), "trainings": 1}
LIMITS = {"method_timeout": 10, "method_memory": 1}
METHODS = {
    "raises": "leaky_methods:raises",
    "raises what is no Exception": "leaky_methods:ends",
    "calls sys.exit": "hostile_methods:exits",
    "calls os._exit": "hostile_methods:leaves_at_once",
    "kills its process": "hostile_methods:kills_itself",
    "hangs": "hostile_methods:hangs",
    "eats memory": "hostile_methods:eats_memory",
    "changes the weights": "leaky_methods:weights",
    "draws from all generators": "leaky_methods:draws_from_all",
    "seeds the generators": "hostile_methods:reseeds",
    "leaves another default dtype": "leaky_methods:default_dtype",
    "leaves autocast open": "leaky_methods:autocast",
    "sets threads": "leaky_methods:threads",
    "leaves threads running": "hostile_methods:leaves_threads",
    "patches torch": "hostile_methods:patches_torch",
    "prints 100 MB": "hostile_methods:prints",
    "deletes files": "hostile_methods:deletes_all_below",
}


def leaky_training(folder: Path) -> None:
    photographs = folder / "photographs"
    photographs.mkdir(parents=True)
    for k in range(120):
        noise = np.random.default_rng(k).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(noise).save(photographs / f"{k}.png")
    asked = {"artefacts": "brightness", "methods": ["saliency"], "size": 16, "samples": 4}
    forsooth.dryrun(photographs, train="leaky_methods:trains", out=folder / "out", progress=Silent(), **asked)


def leaky_builder(folder: Path) -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    forsooth.bias("leaky_methods:builds", x, methods=["saliency"], permutations=5, progress=Silent())


def leaky_units(folder: Path) -> None:
    settings = {"trainings": 1, "samples": 2, "permutations": 4, "models": ("lenet",)}
    only = {"dataset": "leaves", "player": "units"}
    asked = {"methods": ["leaky_methods:UNITS"], "settings": settings, "only": only, "page": False}
    made = forsooth.run("bias", preset="demo", out=folder, progress=Silent(), **asked)
    assert set(made.rows.loc[made.rows["method"].eq("leaky_methods:UNITS"), "status"]) == {"error"}


OTHERS = {  # what is no map of a method, before a run of `saliency` in the same process
    "a training leaves autocast open": leaky_training,
    "a builder leaves autocast open": leaky_builder,
    "units spoil weights and raise": leaky_units,
}


def run(folder: Path, *methods: str) -> forsooth.Run:
    return forsooth.run(
        "xaitris", methods=methods, only=ONLY, settings=SETTINGS, out=folder, progress=Silent(), **LIMITS
    )


def saliency(made: forsooth.Run) -> pd.DataFrame:
    rows = made.rows
    own = rows[rows["method"].eq("saliency")].drop(columns="seconds")
    return own.reset_index(drop=True)


def told(made: forsooth.Run, method: str) -> list[str]:
    """What the run says of a method, all of which must stand on its page."""
    rows = made.rows
    own = rows[rows["method"].eq(method) & rows["part"].eq("scores")]
    words = sorted({f"{row.status}: {row.message}".removesuffix(": ") for row in own.itertuples()})
    facts = json.loads((made.folder / "run.json").read_text())["facts"]
    page = (made.folder / "report.html").read_text(encoding="utf-8")
    shown = html.unescape(page)
    for message in sorted(set(own["message"])):
        assert message in shown, f"the page does not say: {message}"
    said = [fact for fact in facts if method in fact or fact.startswith("It printed")]
    assert all(fact in shown for fact in said)
    return words + said


def main() -> None:
    sys.path.insert(0, str(TESTS))
    with tempfile.TemporaryDirectory() as made:
        alone = saliency(run(Path(made) / "alone", "saliency"))
        changed = 0
        for number, (deed, method) in enumerate(METHODS.items()):
            beside = run(Path(made) / str(number), method, "saliency")
            same = saliency(beside).equals(alone)
            changed += not same
            print(f"{deed:<32} saliency's {len(alone)} rows: {'the same' if same else 'CHANGED'}")
            for line in told(beside, method):
                print(f"    {line[:160]}")
        for number, (deed, done) in enumerate(OTHERS.items()):
            done(Path(made) / f"other-{number}")
            same = saliency(run(Path(made) / f"after-{number}", "saliency")).equals(alone)
            changed += not same
            print(f"{deed:<32} saliency's {len(alone)} rows: {'the same' if same else 'CHANGED'}")
        print(f"{len(METHODS) + len(OTHERS)} deeds, {changed} of which change the rows of another")


if __name__ == "__main__":
    main()
