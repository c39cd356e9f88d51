"""PatternLocal where suppressors act: python studies/pattern_local.py FOLDER, two minutes on two cores.

Its authors report that it is ahead of all others on XAI-TRIS. FOLDER keeps the run of all methods of quick and of it on
correlated backgrounds. Written under `studies/xaitris/`:

pattern-local-panels.csv  a board for each panel
pattern-local.csv         PatternLocal beside the best other method of each panel
pattern-local-linear.csv  the same maps of a linear model that is no network: the exact discriminant of the data
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from xaitris import METRICS, PANEL, ROOT, panel_boards

import forsooth
from forsooth import report
from forsooth.attributions.local_patterns import pattern_local
from forsooth.engine import typed
from forsooth.progress import Lines
from forsooth.records import Choice, Dataset
from forsooth.scores.localisation import ima
from forsooth.seeds import derive, generator
from forsooth.settings import configured
from forsooth.suites import SUITES
from forsooth.suites.choose import evenly
from forsooth.suites.xaitris import data
from forsooth.suites.xaitris.plan import plan

NAME = "pattern_local"
SUITE = next(suite for suite in SUITES if suite.name == "xaitris")
SAMPLES = 100


def suppressors_run(folder: Path) -> forsooth.Run:
    return forsooth.run(
        "xaitris",
        methods=[*configured(SUITE, "quick", {}).methods, NAME],
        only={"background": "CORR"},
        settings={"sweep": ()},
        out=folder,
        workers=2,
        progress=Lines(),
    )


def beside_the_best(panels: pd.DataFrame, name: str) -> pd.DataFrame:
    """For each panel a method, its place among methods, and the best other one.

    verdict  ahead, behind: the intervals of both lie apart; tied: they do not
    """
    lines = []
    own = panels[~panels["null"] & panels["rank"].notna()]
    for key, board in own.groupby(["metric", *PANEL], sort=False):
        ordered = board.sort_values("rank").reset_index(drop=True)
        mine = ordered[ordered["method"].eq(name)].iloc[0]
        other = ordered[ordered["method"].ne(name)].iloc[0]
        line = dict(zip(["metric", *PANEL], key, strict=True))
        line |= {"place": int(mine.name) + 1, "methods": len(ordered)}
        line |= {column: mine[column] for column in ("score", "low", "high")}
        line |= {"other": other["method"]}
        line |= {f"other_{column}": other[column] for column in ("score", "low", "high")}
        lines.append({**line, "verdict": verdict_of(mine, other)})
    return pd.DataFrame(lines)


def verdict_of(mine: pd.Series, other: pd.Series) -> str:
    if mine["low"] > other["high"]:
        return "ahead"
    if mine["high"] < other["low"]:
        return "behind"
    return "tied"


def lin_corr() -> Dataset:
    only = {"scenario": ("LIN",), "background": ("CORR",), "model": ("llr",)}
    planned = plan(configured(SUITE, "quick", {"sweep": ()}), Choice(only=only, methods=("saliency",)))
    trained = next(task for task in planned.tasks if task.id == "xaitris.train")
    return data.dataset(typed(trained.function, trained.arguments)["spec"])


def discriminant(x: Tensor, y: Tensor) -> Tensor:
    """Fisher's weights (features,) of two classes: the inverse of the covariance within them times their difference."""
    groups = [x[y == label].numpy() for label in (0, 1)]
    within = sum(np.cov(group, rowvar=False) for group in groups) / 2
    return torch.from_numpy(np.linalg.solve(within, groups[1].mean(0) - groups[0].mean(0)))


def linear() -> pd.DataFrame:
    """Median IMA of three maps of the discriminant: its weights, all data's covariance times them, and PatternLocal."""
    dataset = lin_corr()
    train = dataset.splits["train"]
    fit = dataset.x[train].double()
    weight = discriminant(fit.flatten(1), dataset.y[train])
    height = -fit.flatten(1).mean(0) @ weight

    def model(x: Tensor) -> Tensor:
        output = x.flatten(1).double() @ weight + height
        return torch.stack([-output, output], 1)

    test = dataset.splits["test"]
    chosen = test[evenly(dataset.y[test], SAMPLES, seed=0, role="explained")]
    x = dataset.x[chosen].double()
    y = dataset.y[chosen]
    sources = [generator(derive(0, str(place)), NAME) for place in range(len(chosen))]
    maps = {
        "weights": weight.expand(len(x), -1).view_as(x),
        "covariance of all": (torch.cov(fit.flatten(1).T) @ weight).expand(len(x), -1).view_as(x),
        NAME: pattern_local(model, x, y, fit=fit, generators=sources),
    }
    accuracy = (model(dataset.x[test]).argmax(1) == dataset.y[test]).double().mean().item()
    truth = dataset.truth[chosen]
    found = {name: ima(one.abs().sum(1), truth).median().item() for name, one in maps.items()}
    return pd.DataFrame([{"map": name, "ima": score, "accuracy": accuracy} for name, score in found.items()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    tables = ROOT / "studies" / "xaitris"
    results = report.read(suppressors_run(folder).folder)
    panels = pd.concat([panel_boards(results, metric) for metric in METRICS])
    panels.to_csv(tables / "pattern-local-panels.csv", index=False)
    beside_the_best(panels, NAME).to_csv(tables / "pattern-local.csv", index=False)
    linear().round(3).to_csv(tables / "pattern-local-linear.csv", index=False)


if __name__ == "__main__":
    main()
