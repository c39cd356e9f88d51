"""What a method is asked about planted images, and what becomes of its maps: rows, and pictures for the page."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from forsooth.records import WHOLE, Cell, Columns, Dataset, Facts, Names, Row, Tensors
from forsooth.suites import choose, explain, networks
from forsooth.suites.album import Album, scaled
from forsooth.suites.planted import data
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.settings import Output

LABELS = {data.MISSING: 0, data.PRESENT: 1}  # in the figure of examples: 1 has the artefact
LEARNED_FROM = {"background": 200, "fit": 500}  # training images that stand for the background, and are fitted on


@dataclass(frozen=True)
class Ask:
    """What a method is asked of a network.

    method, version, code  which one, see `plugins.identity`
    samples                test images of each presence; None: all
    metrics                name -> version
    checkpoints            all states of the training, whatever their accuracy, and not only the network that passed
    show                   keep a map of each presence for the page
    """

    method: str
    version: int
    code: str
    samples: int | None
    presences: Names
    output: Output
    metrics: Mapping[str, int]
    checkpoints: bool = field(metadata={"key": "every"})
    show: bool
    seed: int
    device: str


@dataclass(frozen=True)
class Explained:
    """The images that a method is asked about: rows (k,) of the planted data for each presence."""

    spec: DataSpec
    dataset: Dataset
    groups: Tensors

    @property
    def rows(self) -> Tensor:
        return torch.cat(list(self.groups.values()))

    def presence(self, sample: int | None) -> str:
        """The group that an image is in."""
        return next(name for name, rows in self.groups.items() if sample in rows)


def explained_images(spec: DataSpec, ask: Ask) -> Explained:
    planted = data.dataset(spec)
    groups = data.explained_rows(planted, spec, samples=ask.samples)
    return Explained(spec, planted, {name: rows for name, rows in groups.items() if name in ask.presences})


def learned_from(planted: Dataset) -> Tensors:
    """Training images (k,) that stand for the background, and those that are fitted on: even over labels and kinds."""
    return choose.references(planted, LEARNED_FROM, seed=planted.facts["seed"])


def question(model: nn.Module | None, layer: str | None, images: Explained, ask: Ask) -> explain.Question:
    """What a method is asked of a model that takes the images (None: it looks at none), on the class it predicts."""
    found = explain.about(
        images.dataset,
        images.rows,
        learned_from(images.dataset),
        model=model or nn.Identity(),
        layer=layer,
        seed=ask.seed,
        device=ask.device,
    )
    if model is None:
        return found
    return replace(found, target=networks.predicted(model, found.x))


def rows_of(answer: Cell, shared: Row, images: Explained, ask: Ask) -> list[Row]:
    """One row per image and metric, or what went wrong.

    The channel sum of |map| is scored; `er` is the share of the scored region.
    """
    if "maps" not in answer.tensors:
        return no_rows(shared, images, ask, answer.facts)
    flat = answer.tensors["maps"].abs().sum(1)
    samples = images.rows
    rows: list[Row] = []
    for name in ask.metrics:
        region = data.region(name, images.dataset, images.spec)
        beside = shared.having(er=region.double().mean().item())
        rows += explain.metric_rows(beside, flat, {"truth": region.expand_as(flat)}, [name], samples)
    if shared.part == "scores":
        rows = explain.promise_rows(shared.having(er=None), rows, explain.gaps(answer), samples)
    return [with_presence(row, images.presence(row.sample)) for row in rows]


def no_rows(shared: Row, images: Explained, ask: Ask, facts: Mapping[str, Any], *, whole: bool = False) -> list[Row]:
    """Rows without a value, with the status and message of `facts`: one for each image, or one for all of them."""
    rows: list[Row] = []
    for presence, own in images.groups.items():
        samples = [WHOLE] if whole else own
        rows += explain.no_scores(with_presence(shared.having(er=None), presence), ask.metrics, samples, facts)
    return rows


def with_presence(row: Row, presence: str) -> Row:
    """Only images that have the artefact are ranked; the others are a part of their own."""
    if row.part == "scores" and presence != data.PRESENT:
        return row.having(presence=presence, part="absence")
    return row.having(presence=presence)


def album_of(answer: Cell, images: Explained, shared: Columns, *, prefix: str = "") -> Album:
    """The first few maps of each presence; no pictures of a method that gave no maps.

    prefix  of the names of tensors, where one cell keeps the maps of several methods
    """
    album = Album(shared)
    if "maps" not in answer.tensors:
        return album
    parts = answer.tensors["maps"].split([len(rows) for rows in images.groups.values()])
    for presence, maps in zip(images.groups, parts, strict=True):
        for place, one in enumerate(maps[: choose.SHOWN]):
            album.add(scaled(one.abs().sum(0)), f"{prefix}{presence}", place, kind="example", label=LABELS[presence])
    return album


def participants(images: Explained, columns: Columns) -> list[Facts]:
    """Who took part in each role, by class and presence, for the run to keep; of ranked panels alone."""
    if columns["part"] != "scores":
        return []
    where = {name: columns[name] for name in ("manipulation", "model_seed")}
    return data.class_counts(images.dataset, {"explained": images.rows, **learned_from(images.dataset)}, where=where)
