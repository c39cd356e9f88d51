"""What methods that do harm come to, and what they do to others: python benchmarks/hostile.py.

Each is asked in a run of its own before `saliency`, whose rows must be those of a run without it; the table shows what
the page of the run says of it.
"""

import html
import json
import sys
import tempfile
from pathlib import Path

import pandas as pd

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
    "deletes files": "hostile_methods:deletes_files",
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
            print(f"{deed:<30} saliency's {len(alone)} rows: {'the same' if same else 'CHANGED'}")
            for line in told(beside, method):
                print(f"    {line[:160]}")
        print(f"{len(METHODS)} methods, {changed} of which change the rows of another")


if __name__ == "__main__":
    main()
