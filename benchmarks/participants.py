"""Who is explained and who is background in every preset of every suite, drawn as the suite draws; trains nothing.

It is as if all networks were right about all images. Counts do not depend on the size of pictures, so these are made
as small as they can be, or not at all.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import torch
from pandas import DataFrame, Series, concat
from torch import Tensor

from forsooth.datasets import plain_images, tetromino, tetromino_settings
from forsooth.datasets.class_pairs import of_pair
from forsooth.datasets.pasted import Pastes
from forsooth.datasets.planted import KINDS, kinds_of, reassign, transitions
from forsooth.datasets.worlds import world
from forsooth.records import Cell, Choice, Dataset
from forsooth.suites import articles, bam, bias, planted, xaitris
from forsooth.suites.articles import data as documents
from forsooth.suites.bam import data as pastes
from forsooth.suites.bam.questions import BACKGROUND as BAM_BACKGROUND
from forsooth.suites.bias import stage
from forsooth.suites.planted import data as plots
from forsooth.suites.planted import questions
from forsooth.suites.xaitris import data as tetrominoes
from forsooth.suites.xaitris.plan import sampling_seed

SIDE = 8  # px, the least that can be drawn
PLAIN = Choice()
PLACE = ["suite", "preset", "data", "role", "wanted", "by", "classes", "why"]


@dataclass(frozen=True)
class Draw:
    """Some rows drawn for a role: the classes of those drawn (k,), and of all that could have been (n,).

    data    what they are drawn from, in words; many datasets may share them
    wanted  how many; None: all
    """

    data: str
    role: str
    wanted: int | None
    chosen: Mapping[str, Tensor] = field(repr=False)
    known: Mapping[str, Tensor] = field(repr=False)

    @property
    def why(self) -> str:
        """Why counts cannot be even; empty where they can."""
        if self.wanted is None:
            return "all are taken"
        available = [classes.unique(return_counts=True)[1] for classes in self.known.values()]
        return "one runs out" if any(own.min() < self.wanted / len(own) for own in available) else ""

    def lines(self) -> Iterator[dict[str, Any]]:
        """For each way to name classes: the least and the most drawn of one, and how far any is from an even share."""
        for by, classes in self.known.items():
            names = classes.unique()
            counts = (self.chosen[by][:, None] == names).sum(0)
            share = len(self.chosen[by]) / len(names)
            yield {
                "data": self.data,
                "role": self.role,
                "wanted": self.wanted or "all",
                "by": by,
                "classes": len(names),
                "why": self.why,
                "rows": len(self.chosen[by]),
                "least": int(counts.min()),
                "most": int(counts.max()),
                "off": float((counts - share).abs().max()),
            }


def all_right(rows: int) -> list[Cell]:
    """As a training leaves it that is right about so many images."""
    return [Cell(tensors={"correct": torch.ones(rows, dtype=torch.bool)}, facts={"passed": True})]


def classes_of(dataset: Dataset, rows: Tensor) -> dict[str, Tensor]:
    """The class of rows (k,), and the kind where there are finer ones."""
    classes = {"class": dataset.y[rows]}
    if dataset.strata is not None and len(dataset.strata.unique()) > len(dataset.y.unique()):
        classes["kind"] = dataset.strata[rows]
    return classes


def drawn_of(dataset: Dataset, split: str, rows: Tensor, wanted: int | None, *, data: str, role: str) -> Draw:
    known = classes_of(dataset, dataset.splits[split])
    return Draw(data, role, wanted, classes_of(dataset, rows), known)


def of_xaitris(settings: Any) -> Iterator[Draw]:
    seed = sampling_seed(PLAIN)
    for spec in xaitris.plan.chosen_data(settings, PLAIN):
        dataset = without_images(tetromino_settings.resolve(spec.setting), seed=spec.seed)
        right = all_right(len(dataset.splits["test"]))
        explained = tetrominoes.explained(right, dataset, settings.samples, seed=seed)
        yield drawn_of(dataset, "test", explained, settings.samples, data=spec.setting.scenario, role="explained")
        wanted = {"background": tetrominoes.BACKGROUND_IMAGES, "fit": tetrominoes.FIT_IMAGES}
        for role, rows in tetrominoes.references(dataset, seed=seed).items():
            yield drawn_of(dataset, "train", rows, wanted[role], data=spec.setting.scenario, role=role)


def without_images(recipe: tetromino_settings.ResolvedSetting, *, seed: int) -> Dataset:
    """Labels, kinds and splits of a tetromino dataset."""
    kinds = tetromino.draw_kinds(recipe, seed=seed)
    splits = tetromino.split_of(kinds, recipe, seed=seed)
    return Dataset("", torch.empty(0), tetromino.labels(kinds, recipe), None, splits, {}, strata=kinds)


def of_planted(settings: Any) -> Iterator[Draw]:
    for panel in planted.plan.panels(settings, PLAIN):
        dataset = unplanted(panel.spec)
        about = panel.place.experiment
        groups = plots.explained_rows(dataset, panel.spec, samples=settings.samples)
        everyone = plots.explained_rows(dataset, panel.spec, samples=None)
        for presence in set(groups) & set(settings.presences):
            chosen, known = (classes_of(dataset, found[presence]) for found in (groups, everyone))
            yield Draw(about, f"explained {presence}", settings.samples, chosen, known)
        for role, rows in questions.learned_from(dataset).items():
            yield drawn_of(dataset, "train", rows, questions.LEARNED_FROM[role], data=about, role=role)


def unplanted(spec: plots.DataSpec) -> Dataset:
    """The planted data but for the artefacts."""
    images = of_pair(plain_images.base(replace(spec.images, side=SIDE)), spec.pair)
    y = reassign(images.y, transitions(spec.r, 2), seed=spec.seed)
    strata = y * KINDS + kinds_of(images)
    return Dataset("", images.x, y, None, images.splits, {"seed": spec.seed}, strata=strata)


def of_bias(settings: Any) -> Iterator[Draw]:
    panels = bias.plan.chosen_panels(replace(settings, side=SIDE), PLAIN)
    for panel in {panel.source.name: panel for panel in panels}.values():  # all of a dataset draw alike
        dataset = stage.data.dataset(panel.source)
        right = all_right(len(stage.tested(panel, dataset)))
        explained = stage.explained(right, panel, dataset)[: settings.samples]
        baseline = stage.drawn(panel, dataset, "train", stage.REFERENCES, role="baseline")
        background = baseline[: stage.BACKGROUND]
        name = panel.source.name
        yield drawn_of(dataset, "test", explained, settings.samples, data=name, role="explained")
        yield drawn_of(dataset, "train", background, stage.BACKGROUND, data=name, role="background")
        yield drawn_of(dataset, "train", baseline, stage.REFERENCES, data=name, role="baseline")


def of_articles(settings: Any) -> Iterator[Draw]:
    wanted = documents.BACKGROUND_DOCUMENTS
    for spec in articles.plan.chosen_data(settings, PLAIN):
        known = documents.dataset(spec)
        dataset = known.dataset
        train = documents.Chosen(known, dataset.splits["train"])
        explained = documents.explained(known, settings.samples)
        name = spec.setting.kind
        yield drawn_of(dataset, "test", explained.rows, settings.samples, data=name, role="explained")
        for length in explained.lengths.unique().tolist():
            behind = {"class": documents.behind(known, length).labels}
            yield Draw(name, "background", wanted, behind, {"class": train.labels[train.lengths >= length]})


def of_bam(settings: Any) -> Iterator[Draw]:
    spec = bam.plan.checked_data(replace(settings, side=SIDE), PLAIN)
    counts = {settings.samples, settings.samples_expensive}
    if len(settings.placings) > 1:
        counts.add(settings.samples_robustness)
    for count in sorted(counts):
        yield of_pastes(spec, *pastes.explained(spec, None, count=count), count, data="X_os", split="test")
    every = pastes.explained(spec, 1.0, count=settings.samples)
    yield of_pastes(spec, *every, settings.samples, data="X^1_os", split="test")
    count = settings.samples_per_k
    first = pastes.explained(spec, 1.0, count=count, first_only=True)
    yield of_pastes(spec, *first, count, data="X^1_os, first scene", split="test")
    for net in bam.plan.networks(settings):
        behind = pastes.learned_from(spec, net, count=BAM_BACKGROUND)
        about = "X_os" if net.k is None else "X^k_os"
        yield of_pastes(spec, *behind, BAM_BACKGROUND, data=about, split="train")


def of_pastes(
    spec: pastes.DataSpec, table: Pastes, chosen: pastes.Selection, wanted: int, *, data: str, split: str
) -> Draw:
    """What was chosen of a split of a table; only of the classes that are in it, since some sets have but one."""
    here = world(spec.world)
    rows = table.splits[split]
    scene = here.scenes.y[table.scene[rows]]
    if "first scene" in data:
        scene = scene[scene == pastes.FIRST]
    known = {"scene": scene, "object": here.cutouts.y[table.cutout[rows]]}
    role = {"test": "explained", "train": "background"}[split]
    return Draw(data, role, wanted, {"scene": chosen.scene, "object": chosen.kind}, known)


DRAWS: Mapping[str, Callable[[Any], Iterator[Draw]]] = {
    "xaitris": of_xaitris,
    "bias": of_bias,
    "planted": of_planted,
    "articles": of_articles,
    "bam": of_bam,
}


def lines(suite: str, preset: str) -> DataFrame:
    """One line for each draw of a preset and each way to name its classes; see `Draw.lines`."""
    draws = DRAWS[suite](presets(suite)[preset])
    return DataFrame([{"suite": suite, "preset": preset, **line} for draw in draws for line in draw.lines()])


def every_preset() -> DataFrame:
    """The lines of all presets of all suites."""
    return concat([lines(suite, preset) for suite in DRAWS for preset in presets(suite)])


def presets(suite: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = import_module(f"forsooth.suites.{suite}").SUITE.presets
    return found


def summary(table: DataFrame) -> DataFrame:
    """Draws of one kind as one line: how many they are, the rows of each, how many of a class, how far from even."""
    parts = table.groupby(PLACE, sort=False)
    columns = {
        "draws": parts.size(),
        "rows": words(parts["rows"].min(), parts["rows"].max()),
        "of each": words(parts["least"].min(), parts["most"].max()),
        "off": parts["off"].max(),
    }
    order = ["suite", "preset", "data", "role", "wanted", "draws", "rows", "by", "classes", "why", "of each", "off"]
    return DataFrame(columns).reset_index()[order]


def words(low: Series, high: Series) -> Series:
    """Two numbers as "3 to 4", or as one where they are the same."""
    return (low.astype(str) + " to " + high.astype(str)).where(low != high, low.astype(str))
