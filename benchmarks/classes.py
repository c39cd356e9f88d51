"""Who is explained, and what it does to the scores.

python benchmarks/classes.py effect [SEEDS [TABLE]]   XOR with the MLP: scores with the first rows, as version 0.1 took
                                                      them, and with rows drawn evenly, for so many seeds of everything
                                                      (a quarter of a minute each on one core); TABLE: a csv file
python benchmarks/classes.py presets                  classes among explained and background samples in every preset of
                                                      every suite, were all networks right; trains nothing
python benchmarks/classes.py FOLDER…                  classes that took part in finished runs, of any suite
"""

import sys
import tempfile
from pathlib import Path
from unittest import mock

import pandas as pd
import participants
from torch import Tensor

from forsooth import api
from forsooth.engine import one_thread
from forsooth.records import Dataset
from forsooth.report import read
from forsooth.report.classes import classes
from forsooth.suites import choose

METHODS = ("pattern_net", "pattern_attribution", "pfi", "deep_shap", "gradient_shap", "rectified_input", "laplace")
SETTINGS = {"trainings": 2, "samples": 200, "sweep": ()}
ONLY = {"scenario": "XOR", "background": ("WHITE", "CORR"), "model": "mlp"}
WAYS = {"first_rows": "First rows", "drawn_evenly": "Drawn evenly"}


def first_rows(dataset: Dataset, rows: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
    """How version 0.1 chose: the first rows, which are of one class where labels come in blocks."""
    return rows[:count]


def scores(folder: Path, seed: int) -> pd.Series:
    """Median IMA of every background and method over images and trainings."""
    run = api.run("xaitris", methods=METHODS, only=ONLY, settings=SETTINGS, seed=seed, out=folder, page=False)
    rows = run.rows[run.rows["metric"].eq("ima") & run.rows["part"].eq("scores")]
    return rows.groupby(["background", "method"])["value"].median()


def both_ways(folder: Path, seed: int) -> pd.DataFrame:
    """The scores with the first rows and with rows drawn evenly, from runs in folders of these names."""
    with mock.patch.object(choose, "rows_of", first_rows):
        before = scores(folder / "first_rows", seed)
    return pd.DataFrame({"first_rows": before, "drawn_evenly": scores(folder / "drawn_evenly", seed)})


def effect(seeds: int, table: str | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = {seed: both_ways(Path(folder, str(seed)), seed) for seed in range(seeds)}
        counts = {words: shown(Path(folder, "0", way)) for way, words in WAYS.items()}
    found = pd.concat(runs, names=["seed"])
    if table:
        found.round(4).to_csv(table, lineterminator="\n")
    print("XOR, MLP, median IMA, seed 0:\n")
    print(runs[0].round(2).sort_values(["background", "drawn_evenly"], ascending=False).to_string())
    if seeds > 1:
        print(f"\nThe least and the most over {seeds} seeds of data, networks and draws:\n")
        parts = found.groupby(["background", "method"])
        print(parts.agg(["min", "max"]).round(2).to_string())
    for words, lines in counts.items():
        print(f"\n{words}:\n{lines}")


def shown(folder: Path) -> str:
    """The classes that took part in a run, as its page shows them."""
    return str(classes(read(folder)).to_string(index=False))


def presets() -> None:
    lines = participants.every_preset()
    print(participants.summary(lines).to_string(index=False))
    uneven = lines[lines["off"] > 1]
    by_design = uneven["why"].ne("")
    print(f"\n{len(lines)} counts; {len(uneven)} are farther than one from even, where")
    for why, count in uneven[by_design]["why"].value_counts().items():
        print(f"  {why}: {count}")
    print(f"  nothing excuses it: {(~by_design).sum()}")


if __name__ == "__main__":
    for option in ("width", "max_rows", "max_columns", "max_colwidth"):
        pd.set_option(f"display.{option}", None)
    if sys.argv[1:2] == ["effect"]:
        with one_thread():
            effect(int((*sys.argv[2:], 1)[0]), (*sys.argv[3:], None)[0])
    elif sys.argv[1:] == ["presets"]:
        with one_thread():
            presets()
    elif sys.argv[1:]:
        for name in sys.argv[1:]:
            print(f"{name}\n{shown(Path(name))}\n")
    else:
        print(__doc__)
