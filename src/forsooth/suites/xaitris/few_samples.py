"""LIME and Kernel SHAP taken apart: the estimator, the number of masks and the draw, one changed at a time."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from pandas import DataFrame
from torch import Tensor

from forsooth import scores, seeds
from forsooth.attributions import METHODS
from forsooth.counted import counted
from forsooth.engine import make_task, task
from forsooth.frames import only, without
from forsooth.names import find
from forsooth.records import Cell, Choice, Facts, Judgement, Names, Outcome, Plan, Row
from forsooth.scores.localisation import nonzero_pixels
from forsooth.settings import check_range
from forsooth.suites import explain
from forsooth.suites.planning import planned
from forsooth.suites.xaitris import data, questions
from forsooth.suites.xaitris import plan as suite
from forsooth.suites.xaitris import settings as presets
from forsooth.suites.xaitris.data import DataSpec
from forsooth.wording import paragraphs

# Methods of the catalogue that differ in how the values under the masks become a map.
ESTIMATORS = {
    "lime_25": "LIME, lasso",  # Captum's default, as published: penalty 0.01, masks unpaired
    "lime": "LIME, ridge",  # penalty 1, masks in complementary pairs
    "kernel_shap_25": "Kernel SHAP, least norm",  # Captum's, as published
    "kernel_shap": "Kernel SHAP, constrained",
}
MOST = {"kernel_shap_25": 4_096}  # masks; a fit with more masks than pixels has no least norm to choose, and is slow
RANDOM = "random"
ONE_NETWORK = presets.Settings(
    sizes=(64,),
    scenarios=("LIN",),
    backgrounds=("WHITE",),
    models=("llr",),
    trainings=1,
    samples=20,
    recipe="quick",
    output="probabilities",
)
SCORES = ("ima", "precision")


@dataclass(frozen=True)
class Settings:
    """What is varied, and on what.

    estimators  methods of the catalogue that differ in how values under masks become a map
    masks       numbers of masks; 8,192 and 10,240 are the defaults of `lime` and `kernel_shap` for 4,096 pixels
    draws       of the masks; the lowest and the highest of six enclose the median draw in 97 of 100 cases
    suite       one network and the images, as a run of the suite has them
    """

    estimators: Names = tuple(ESTIMATORS)
    masks: tuple[int, ...] = (25, 100, 400, 1_600, 8_192, 10_240)
    draws: int = 6
    suite: presets.Settings = ONE_NETWORK


def plan(settings: Settings, choice: Choice) -> Plan:
    """One training, then one task for every estimator, number of masks and draw; random maps beside them."""
    check_range(settings, ("masks", "draws"), 1)
    suite.check_one_size(settings.suite, choice)
    spec = next(iter(suite.chosen_data(settings.suite, choice)))
    net = suite.explained_networks(settings.suite, choice, spec)[0]
    trained = suite.training_task(spec, net, 0, settings.suite, choice)
    tasks = [trained]
    for (name, masks), draw in itertools.product(cells(settings), range(settings.draws)):
        ask = Ask(
            method=name,
            version=find(name, METHODS, argument="estimators").version,
            masks=masks,
            draw=draw,
            samples=settings.suite.samples,
            output=settings.suite.output,
            seed=seeds.derive(choice.seed, "draw", draw),
            sampling_seed=suite.sampling_seed(choice),
            device=choice.device,
        )
        title = f"{name}, {masks or 'no'} masks, draw {draw}"
        tasks.append(make_task(measure, {"spec": spec, "ask": ask}, [trained], name=title))
    return planned(tasks)


def cells(settings: Settings) -> list[tuple[str, int | None]]:
    """Estimator and number of masks of every line of the table."""
    pairs = itertools.product(settings.estimators, settings.masks)
    return [*((name, masks) for name, masks in pairs if masks <= MOST.get(name, masks)), (RANDOM, None)]


@dataclass(frozen=True)
class Ask:
    """One draw of masks of one estimator."""

    method: str
    version: int
    masks: int | None
    draw: int
    samples: int | None
    output: str
    seed: int
    sampling_seed: int
    device: str

    def on_network(self) -> questions.Ask:
        """The same as a question of the suite."""
        shared = {name: value for name, value in vars(self).items() if name not in ("masks", "draw")}
        return questions.Ask(**shared, code="", softmax="rule")


@task("xaitris.few_samples", version=2, spec="panel", ask="*")
def measure(trained: Cell, *, spec: DataSpec, ask: Ask) -> Cell:
    """Rows on the maps of one draw: their scores, their pixels that are not zero, and how many of those are right."""
    record = find(ask.method, METHODS, argument="estimators")
    if ask.masks is not None:
        record = replace(record, settings={**record.settings, "samples": ask.masks})
    template = data.panel(spec, "llr", 0).row("draws", ask.method).having(masks=ask.masks, draw=ask.draw)
    dataset = data.dataset(spec)
    chosen = data.explained((trained,), dataset, ask.samples, seed=ask.sampling_seed)
    if not len(chosen):
        return nothing(template, "no test image is predicted correctly by a network above its gate")
    made = explain.attribute(record, questions.question(trained, spec, chosen, ask.on_network()))
    if "maps" not in made.tensors:
        return nothing(template, made.facts["message"])
    flat = made.tensors["maps"].abs().sum(1)
    return Cell(rows=tuple(rows_of(template, flat, explain.truth_of(dataset, chosen), chosen)))


def rows_of(template: Row, maps: Tensor, truth: Tensor, samples: Tensor) -> Iterator[Row]:
    """Scores and pixel counts of maps (n, side, side)."""
    yield from explain.metric_rows(template, maps, {"truth": truth}, SCORES, samples)
    for name, values in nonzero_pixels(maps, truth).items():
        yield from explain.rows_by_sample(template.having(metric=name), samples, value=values)


def nothing(template: Row, message: str) -> Cell:
    """One row that says why there are no maps; the task is tried again next time."""
    return Cell((template.having(metric="", sample=-1, status="error", message=message),), facts={"failed": True})


def judge(outcome: Outcome) -> Judgement:
    """Where each of 4,096 pixels plays: is 25 masks too few, or is it the estimator? Random maps beside them."""
    table = summary(only(outcome.rows, part="draws"))
    return Judgement(table.round(3), verdict(table))


def summary(rows: DataFrame) -> DataFrame:
    """One line for each estimator and number of masks.

    Columns: estimator, masks, draws, ima (the median over draws of the median over images), ima_low and ima_high (the
    lowest and the highest draw), precision (likewise), zero (share of maps that are zero, which count as the worst),
    ima_defined and precision_defined (the same medians without those maps), nonzero (pixels, mean over all maps),
    own_right (share of a map's own nonzero pixels that are right, mean over the maps that have any), status ("ok", or
    why there is nothing)
    """
    lines = []
    for (method, masks), group in rows.groupby(["method", "masks"], sort=False, dropna=False):
        line = {"estimator": ESTIMATORS.get(method, method), "masks": masks, "draws": group["draw"].nunique()}
        lines.append(line | _line(group))
    return DataFrame(lines).astype({"masks": "Int64"})


def _line(group: DataFrame) -> Facts:
    """The numbers of one estimator with one number of masks."""
    if group["metric"].eq("").any():
        return {"status": group["message"].iloc[0]}
    means = group.groupby("metric")["value"].mean()
    imas = scored_by(group, "ima")
    precisions = scored_by(group, "precision")
    by_draw = imas.groupby("draw")["value"].median()
    return {
        "ima": by_draw.median(),
        "ima_low": by_draw.min(),
        "ima_high": by_draw.max(),
        "precision": median_draw(precisions),
        "zero": imas["failed"].mean(),
        "ima_defined": median_draw(only(imas, failed=False)),
        "precision_defined": median_draw(only(precisions, failed=False)),
        "nonzero": means["nonzero"],
        "own_right": means["own right"],
        "status": "ok",
    }


def median_draw(rows: DataFrame) -> float:
    """The median over draws of the median over images; nan of no rows."""
    return float(rows.groupby("draw")["value"].median().median())


def scored_by(rows: DataFrame, metric: str) -> DataFrame:
    """The rows of one metric, in which an empty map counts as the worst."""
    return counted(only(rows, metric=metric), scores.metric(metric))


def verdict(table: DataFrame) -> str:
    """What each estimator gains by masks, against random maps, in few_samples.jinja."""
    random = only(table, estimator=RANDOM).iloc[0]
    others = without(table, estimator=RANDOM)
    others = others.assign(above=others["ima_low"] > random["ima_high"], below=others["ima_high"] < random["ima_low"])
    estimators = {name: own.to_dict("records") for name, own in others.groupby("estimator", sort=False)}
    return "\n".join(paragraphs(__package__, "few_samples.jinja", random=random, estimators=estimators)) + "\n"
