"""Who is explained, and what it does to the scores.

python benchmarks/classes.py effect          XOR with the MLP: scores with the first rows, as version 0.1 took them, and
                                             with rows drawn evenly (about a minute on one core)
python benchmarks/classes.py presets         kinds among explained, background and fit images in every preset of
                                             XAI-TRIS, were all test images predicted correctly; trains nothing
python benchmarks/classes.py FOLDER…         classes that took part in finished runs, of any suite
"""

import sys
import tempfile
from pathlib import Path
from unittest import mock

import pandas as pd
import torch
from torch import Tensor

from forsooth import api
from forsooth.datasets import tetromino_settings
from forsooth.datasets.tetromino import KINDS, PIECES, draw_kinds, labels, split_of
from forsooth.records import Choice, Dataset
from forsooth.report import read
from forsooth.report.classes import classes
from forsooth.suites import choose
from forsooth.suites.xaitris import data
from forsooth.suites.xaitris.plan import chosen_data, sampling_seed
from forsooth.suites.xaitris.settings import PRESETS

METHODS = ("pattern_net", "pattern_attribution", "pfi", "deep_shap", "gradient_shap", "rectified_input", "laplace")
SETTINGS = {"trainings": 2, "samples": 200, "sweep": ()}
ONLY = {"scenario": "XOR", "background": ("WHITE", "CORR"), "model": "mlp"}


def first_rows(dataset: Dataset, rows: Tensor, count: int | None, *, seed: int, role: str) -> Tensor:
    """How version 0.1 chose: the first rows, which are of one class where labels come in blocks."""
    return rows[:count]


def scores(folder: Path) -> pd.Series:
    """Median IMA of every background and method over images and trainings."""
    run = api.run("xaitris", methods=METHODS, only=ONLY, settings=SETTINGS, out=folder, page=False)
    rows = run.rows[run.rows["metric"].eq("ima") & run.rows["part"].eq("scores")]
    return rows.groupby(["background", "method"])["value"].median()


def effect() -> None:
    with tempfile.TemporaryDirectory() as folder:
        with mock.patch.object(choose, "rows_of", first_rows):
            before = scores(Path(folder) / "first")
            counts_before = shown(Path(folder) / "first")
        after = scores(Path(folder) / "even")
        counts_after = shown(Path(folder) / "even")
    table = pd.DataFrame({"first rows": before, "drawn evenly": after})
    print("XOR, MLP, median IMA:\n")
    print(table.round(2).sort_values(["background", "drawn evenly"], ascending=False).to_string())
    print(f"\nFirst rows:\n{counts_before}\n\nDrawn evenly:\n{counts_after}")


def shown(folder: Path) -> str:
    """The classes that took part in a run, as its page shows them."""
    return str(classes(read(folder)).to_string(index=False))


def presets() -> None:
    """The kinds that are drawn, without making an image."""
    lines = []
    for preset, settings in PRESETS.items():
        for spec in chosen_data(settings, Choice()):
            dataset = without_images(tetromino_settings.resolve(spec.setting), seed=spec.seed)
            seed = sampling_seed(Choice())
            test = dataset.splits["test"]
            rows = {"explained": choose.rows_of(dataset, test, settings.samples, seed=seed, role="explained")}
            rows |= data.references(dataset, seed=seed)
            about = {"preset": preset, **data.panel(spec).factors}
            for role, chosen in rows.items():
                lines += data.counts(dataset, {role: chosen}, where=about)
    table = pd.DataFrame(lines)
    where = ["preset", "size", "scenario", "background"]
    words = table["count"].astype(str) + " " + table["class"]
    print(words.groupby([*(table[name] for name in where), table["role"]], sort=False).agg(", ".join).unstack())


def without_images(recipe: tetromino_settings.ResolvedSetting, *, seed: int) -> Dataset:
    """Labels, kinds and splits of a tetromino dataset."""
    kinds = draw_kinds(recipe, seed=seed)
    names = list(KINDS.get(recipe.scenario, PIECES))
    splits = split_of(kinds, recipe, seed=seed)
    return Dataset("", torch.empty(0), labels(kinds, recipe), None, splits, {"kinds": names}, strata=kinds)


if __name__ == "__main__":
    for option in ("width", "max_rows", "max_columns", "max_colwidth"):
        pd.set_option(f"display.{option}", None)
    if sys.argv[1:] == ["effect"]:
        effect()
    elif sys.argv[1:] == ["presets"]:
        presets()
    elif sys.argv[1:]:
        for name in sys.argv[1:]:
            print(f"{name}\n{shown(Path(name))}\n")
    else:
        print(__doc__)
