"""LIME and Kernel SHAP taken apart: the estimator, the number of masks and the draw, one changed at a time."""

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from forsooth import seeds
from forsooth.attributions import METHODS
from forsooth.counted import counted
from forsooth.engine import known_as, make_task
from forsooth.names import find
from forsooth.records import Cell, Choice, Method, Plan, Task
from forsooth.scores import METRICS
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites import explain
from forsooth.suites.xaitris import plan as xaitris
from forsooth.suites.xaitris import tasks as tetrominoes

# Methods of the catalogue that differ in how the values under the masks become a map.
ESTIMATORS = {
    "lime_25": "LIME, lasso",  # Captum's default, as published: penalty 0.01, masks unpaired
    "lime": "LIME, ridge",  # penalty 1, masks in complementary pairs
    "kernel_shap_25": "Kernel SHAP, least norm",  # Captum's, as published
    "kernel_shap": "Kernel SHAP, constrained",
}
MOST = {"kernel_shap_25": 4_096}  # masks; a fit with more masks than pixels has no least norm to choose, and is slow
RANDOM = "random"
SCORES = ("ima", "precision")


@dataclass(frozen=True)
class Settings:
    """What is varied, and on what.

    masks   numbers of masks; 8,192 and 10,240 are the defaults of `lime` and `kernel_shap` for 4,096 pixels
    draws   of the masks; the lowest and the highest of six enclose the median draw in 97 of 100 cases
    suite   one network and the images, as a run of the suite has them
    """

    estimators: tuple[str, ...] = tuple(ESTIMATORS)
    masks: tuple[int, ...] = (25, 100, 400, 1_600, 8_192, 10_240)
    draws: int = 6
    suite: xaitris.Settings = dataclasses.field(
        default_factory=lambda: xaitris.Settings(
            sizes=(64,),
            scenarios=("LIN",),
            backgrounds=("WHITE",),
            models=("llr",),
            trainings=1,
            samples=20,
            recipe="quick",
            output="probabilities",
        )
    )


def few_samples(
    choice: Choice, perform: Callable[[Plan], Store], changes: Mapping[str, Any]
) -> tuple[pd.DataFrame, str]:
    """Where each of 4,096 pixels plays: is 25 masks too few, or is it the estimator? Random maps beside them."""
    settings = changed(Settings(), changes)
    tasks = plan(settings, choice)
    store = perform(Plan(tasks=tuple(tasks)))
    rows = pd.DataFrame([row for task in tasks[1:] for row in store.read(task.key).rows])
    table = summary(rows)
    return table.round(3), verdict(table)


def plan(settings: Settings, choice: Choice) -> list[Task]:
    """One training, then one task for every estimator, number of masks and draw."""
    panel = next(iter(xaitris.chosen_panels(settings.suite, choice)))
    net = xaitris.chosen_nets(settings.suite, choice, panel)[0]
    trained = xaitris.training_task(panel, net, 0, settings.suite, choice)
    pairs = itertools.product(settings.estimators, settings.masks)
    cells = [*((name, masks) for name, masks in pairs if masks <= MOST.get(name, masks)), (RANDOM, None)]
    tasks = [trained]
    for (name, masks), draw in itertools.product(cells, range(settings.draws)):
        arguments = {
            "panel": panel,
            "method": name,
            "version": find(name, METHODS, argument="estimators").version,
            "masks": masks,
            "draw": draw,
            "samples": settings.suite.samples,
            "output": settings.suite.output,
            "seed": seeds.derive(choice.seed, "draw", draw),
            "sampling_seed": xaitris.sampling_seed(choice),
            "device": choice.device,
        }
        title = f"{name}, {masks or 'no'} masks, draw {draw}"
        tasks.append(make_task(measure, arguments, [trained], name=title, version=1))
    return tasks


@known_as("xaitris.few_samples")
def measure(
    trained: Cell,
    *,
    panel: dict[str, Any],
    method: str,
    version: int,
    masks: int | None,
    draw: int,
    samples: int | None,
    output: str,
    seed: int,
    sampling_seed: int,
    device: str,
) -> Cell:
    """Rows on the maps of one draw: their scores, their pixels that are not zero, and how many of those are right."""
    record = with_masks(find(method, METHODS, argument="estimators"), masks)
    dataset = tetrominoes.data(panel)
    chosen = tetrominoes.explained((trained,), dataset, samples, seed=sampling_seed)
    where = {"method": method, "masks": masks, "draw": draw}
    if not len(chosen):
        return _nothing(where, "no test image is predicted correctly by a network above its gate")
    question = tetrominoes.question(
        trained, panel, chosen, output=output, seed=seed, sampling_seed=sampling_seed, device=device
    )
    made = explain.attribute(record, question)
    if "maps" not in made.tensors:
        return _nothing(where, made.facts["message"])
    flat = made.tensors["maps"].abs().sum(1)
    truth = question.truth.cpu()
    scores = [find(name, METRICS, argument="metrics") for name in SCORES]
    rows = explain.score(flat, {"truth": truth}, scores, chosen.tolist())
    for name, values in pixels(flat, truth).items():
        rows += [
            {"metric": name, "sample": sample, "value": value, "status": "ok", "message": ""}
            for sample, value in zip(chosen.tolist(), values.tolist(), strict=True)
        ]
    return Cell(rows=tuple({**where, **row} for row in rows))


def _nothing(where: Mapping[str, Any], message: str) -> Cell:
    """One row that says why there are no maps; the task is tried again next time."""
    row = {**where, "metric": "", "sample": -1, "value": None, "status": "error", "message": message}
    return Cell(rows=(row,), facts={"failed": True})


def with_masks(method: Method, masks: int | None) -> Method:
    """The method with another number of masks; None: as it is."""
    if masks is None:
        return method
    return dataclasses.replace(method, settings={**method.settings, "samples": masks})


def pixels(maps: Tensor, truth: Tensor) -> dict[str, Tensor]:
    """Of maps (n, side, side): pixels that are not zero, and the share of them in the truth, nan where none is. (n,)"""
    named = maps.flatten(1) != 0
    count = named.sum(1).double()
    right = (named & truth.flatten(1)).sum(1).double()
    return {"nonzero": count, "own right": torch.where(count > 0, right / count, torch.nan)}


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One line for each estimator and number of masks.

    Columns: estimator, masks, draws, ima (the median over draws of the median over images), ima_low and ima_high (the
    lowest and the highest draw), precision (likewise), zero (share of maps that are zero, which score nothing),
    nonzero (pixels, mean over all maps), own_right (share of a map's own nonzero pixels that are right, mean over the
    maps that have any), status ("ok", or why there is nothing)
    """
    lines = []
    for (method, masks), group in rows.groupby(["method", "masks"], sort=False, dropna=False):
        line = {"estimator": ESTIMATORS.get(method, method), "masks": masks, "draws": group["draw"].nunique()}
        lines.append({**line, **_line(group)})
    table = pd.DataFrame(lines)
    return table.astype({"masks": "Int64"})


def _line(group: pd.DataFrame) -> dict[str, Any]:
    """The numbers of one estimator with one number of masks."""
    if group["metric"].eq("").any():
        return {"status": group["message"].iloc[0]}
    metrics = [find(name, METRICS, argument="metrics") for name in SCORES]
    scores = {metric.name: counted(group[group["metric"].eq(metric.name)], metric) for metric in metrics}
    by_draw = {name: rows.groupby("draw")["value"].median() for name, rows in scores.items()}
    pixel_counts = group[group["metric"].eq("nonzero")]["value"]
    shares = group[group["metric"].eq("own right")]["value"]
    return {
        "ima": by_draw["ima"].median(),
        "ima_low": by_draw["ima"].min(),
        "ima_high": by_draw["ima"].max(),
        "precision": by_draw["precision"].median(),
        "zero": scores["ima"]["failed"].mean(),
        "nonzero": pixel_counts.mean(),
        "own_right": shares.mean(),
        "status": "ok",
    }


def verdict(table: pd.DataFrame) -> str:
    """What each estimator gains by masks, against random maps."""
    random = table[table["estimator"].eq(RANDOM)].iloc[0]
    lines = [f"Random maps: median IMA {_range(random)} over {random['draws']} draws."]
    for name, group in table[table["estimator"].ne(RANDOM)].groupby("estimator", sort=False):
        scored = group[group["status"].eq("ok")]
        words = [_words(line) for _, line in group.iterrows()]
        above = scored[scored["ima_low"] > random["ima_high"]]["masks"]
        below = scored[scored["ima_high"] < random["ima_low"]]["masks"]
        words.append(f"every draw above every random one: {_masks(above)}; below: {_masks(below)}")
        lines.append(f"{name}: {'; '.join(words)}.")
    return "\n".join(lines) + "\n"


def _words(line: Mapping[str, Any]) -> str:
    """One number of masks: what came out, or why nothing did."""
    if line["status"] != "ok":
        return f"nothing with {line['masks']:,} masks: {line['status']}"
    empty = f", {line['zero']:.0%} of maps empty" if line["zero"] else ""
    return f"{_range(line)} with {line['masks']:,} masks{empty}"


def _range(line: Mapping[str, Any]) -> str:
    return f"{line['ima']:.3f} [{line['ima_low']:.3f}, {line['ima_high']:.3f}]"


def _masks(numbers: pd.Series) -> str:
    return f"with {', '.join(f'{number:,}' for number in numbers)} masks" if len(numbers) else "never"
