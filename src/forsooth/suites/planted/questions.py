"""What a method is asked about planted images, and what becomes of its maps: rows, and pictures for the page."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import scores
from forsooth.records import WHOLE, Cell, Dataset, Facts, Row, Value
from forsooth.suites import choose, explain, networks
from forsooth.suites.planted import data
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.settings import Output

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
    presences: tuple[str, ...]
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
    groups: Mapping[str, Tensor]

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


def learned_from(planted: Dataset) -> dict[str, Tensor]:
    """Training images (k,) that stand for the background, and those that are fitted on: even over labels and kinds."""
    return choose.references(planted, LEARNED_FROM, seed=planted.facts["seed"])


def question(model: nn.Module | None, layer: str | None, images: Explained, ask: Ask) -> explain.Question:
    """What a method is asked of a model that takes the images (None: it looks at none), on the class it predicts."""
    planted = images.dataset
    assert planted.truth is not None
    rows = images.rows
    x = planted.x[rows].to(ask.device)
    target = planted.y[rows].to(ask.device)
    if model is not None:
        target = networks.predicted(model, x)
    others = {role: planted.x[own].to(ask.device) for role, own in learned_from(planted).items()}
    return explain.Question(
        model=model or nn.Identity(),
        x=x,
        target=target,
        background=others["background"],
        fit=others["fit"],
        truth=planted.truth[rows].to(ask.device),
        layer=layer,
        seed=ask.seed,
        samples=rows,
    )


def rows_of(answer: Cell, shared: Row, images: Explained, ask: Ask) -> list[Row]:
    """One row per image and metric, or what went wrong.

    The channel sum of |map| is scored; `er` is the share of the scored region.
    """
    if "maps" not in answer.tensors:
        return no_rows(shared, images, ask, answer.facts)
    flat = answer.tensors["maps"].abs().sum(1)
    rows: list[Row] = []
    for name in ask.metrics:
        rows += score_rows(flat, name, shared, images)
    if shared.part == "scores":
        gaps = explain.gaps(answer)
        rows = explain.promise_rows(shared.having(er=None), rows, gaps, images.rows.tolist())
    return [with_presence(row, images.presence(row.sample)) for row in rows]


def score_rows(maps: Tensor, metric: str, shared: Row, images: Explained) -> list[Row]:
    """One row per image, of maps (k, h, w) and one metric."""
    region = data.region(metric, images.dataset, images.spec)
    beside = shared.having(er=region.double().mean().item())
    reads = {"truth": region.expand(len(maps), -1, -1)}
    return explain.score_rows(beside, maps, reads, scores.metrics([metric]), images.rows.tolist())


def no_rows(shared: Row, images: Explained, ask: Ask, facts: Mapping[str, Any], *, whole: bool = False) -> list[Row]:
    """Rows without a value, with the status and message of `facts`: one for each image, or one for all of them."""
    rows: list[Row] = []
    for presence, own in images.groups.items():
        samples = [WHOLE] if whole else own.tolist()
        rows += explain.no_scores(with_presence(shared.having(er=None), presence), ask.metrics, samples, facts)
    return rows


def with_presence(row: Row, presence: str) -> Row:
    """Only images that have the artefact are ranked; the others are a part of their own."""
    if row.part == "scores" and presence != data.PRESENT:
        return row.having(presence=presence, part="absence")
    return row.having(presence=presence)


def label(presence: str) -> int:
    """The class of the images in the figure of examples: 1 has the artefact."""
    return int(presence == data.PRESENT)


def first_maps(answer: Cell, images: Explained) -> dict[str, Tensor]:
    """The first few maps of each presence, their largest value 1, so that half precision can hold them."""
    if "maps" not in answer.tensors:
        return {}
    tensors = {}
    first = 0
    for presence, rows in images.groups.items():
        for place in range(min(len(rows), choose.SHOWN)):
            flat = answer.tensors["maps"][first + place].abs().sum(0)
            tensors[choose.placed(presence, place)] = (flat / flat.amax().clamp(min=1e-30)).half()
        first += len(rows)
    return tensors


def map_pictures(names: Iterable[str], columns: Mapping[str, Value]) -> list[Facts]:
    """What `first_maps` are of, for the page."""
    pictures = []
    for name in names:
        presence, _, place = name.partition(" ")
        about = {"kind": "example", "label": label(presence), "place": int(place or 0)}
        pictures.append({**columns, "tensor": name, **about})
    return pictures


def participants(images: Explained, columns: Mapping[str, Value]) -> list[Facts]:
    """Who took part in each role, by class and presence, for the run to keep; of ranked panels alone."""
    if columns["part"] != "scores":
        return []
    where = {name: columns[name] for name in ("manipulation", "model_seed")}
    return data.class_counts(images.dataset, {"explained": images.rows, **learned_from(images.dataset)}, where=where)
