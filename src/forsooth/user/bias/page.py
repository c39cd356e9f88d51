"""The page of an answer: boards and curves as the suite has them, and maps of inputs beside their Shapley values."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from forsooth import scores
from forsooth.adapters.methods import NamedMethod
from forsooth.counted import ABSENT
from forsooth.records import NO_MODEL, SCORED
from forsooth.runs import described_metric
from forsooth.scores import bias
from forsooth.suites import choose
from forsooth.suites.album import Album
from forsooth.suites.bias.plan import SEEN
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.result import END, Judged
from forsooth.user.bias.subject import Subject
from forsooth.user.pages import Page, asked, command, described_methods, grey, plain_rows

FACTORS = ("dataset", "model", "player", "end", "fraction")  # as in the suite, whose figures read them
METRICS = ("m_bias", "relative_bias")
MODEL = "model"
QUESTION = (
    "Where nobody knows the truth: which maps give the top and the bottom players what their Shapley values give?"
)
MEANS = "The answer takes means over inputs, with Student's intervals; the leaderboards below take medians."
MOST = 6  # classes of which inputs are shown


def page(
    request: BiasRequest,
    subject: Subject,
    chosen: Sequence[NamedMethod],
    judged: Judged,
    rows: pd.DataFrame,
    seconds: float,
) -> Page:
    """What the page says beside table and words. rows: those of `BiasResult`."""
    panel = {"dataset": name_of(request.inputs), "player": subject.seats.noun}
    album = album_of(subject, judged, panel)
    anchor = {END: {"null": False, "cite": "", "settings": {}}}
    return Page(
        suite="bias",
        question=QUESTION,
        command=command("bias", request),
        settings=asked(request),
        seed=request.seed,
        methods={**described_methods(chosen), **anchor},
        facts=[MEANS, SEEN] if album.pictures else [MEANS],
        scores={
            "factors": list(FACTORS),
            "levels": {"end": list(bias.ENDS), "fraction": list(bias.FRACTIONS)},
            "metrics": {name: described_metric(scores.metric(name)) for name in METRICS},
            "exhibits": ["bias_curves", "examples"],
        },
        rows=list(kept_rows(rows, judged, panel)),
        pictures=album.tensors,
        index=album.pictures,
        seconds=seconds,
    )


def name_of(inputs: Any) -> str:
    """What the inputs are called on boards."""
    if isinstance(inputs, str | Path):
        return Path(inputs).stem
    return "inputs"


def kept_rows(rows: pd.DataFrame, judged: Judged, panel: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The rows as those of a run; a method that gave no map has one for every group of players that others have."""
    judged_by = rows[rows["end"].ne("") & ~rows["status"].isin(ABSENT)]
    pairs = judged_by[["end", "fraction"]].drop_duplicates().itertuples(index=False, name=None)
    groups = list(itertools.product(METRICS, pairs))
    for row in plain_rows(rows):
        null = judged.kinds[row["method"]] == "null"
        model = {True: NO_MODEL, False: MODEL}[null]
        own = {"suite": "bias", "part": "scores", "model_seed": 0, "model": model, **panel, **row}
        if row["end"] or row["status"] in SCORED:
            yield own
        else:
            for metric, (end, fraction) in groups:
                yield {**own, "metric": metric, "end": end, "fraction": fraction}


def album_of(subject: Subject, judged: Judged, panel: dict[str, str]) -> Album:
    """The first inputs of each class, their Shapley values and maps, where players are places of an image."""
    album = Album(panel)
    if subject.seats.labels.ndim != 2 or subject.stage.head is not None:
        return album
    for label, place, sample in shown_inputs(judged.target.tolist()):
        for (kind, method), picture in looked_at(subject, judged, sample).items():
            model = {True: NO_MODEL, False: MODEL}[judged.kinds.get(method) == "null"]
            about = {"model": model, "kind": kind, "method": method}
            album.add(picture.float().cpu().contiguous(), f"{kind}/{label}/{method}", place, label=label, **about)
    return album


def shown_inputs(target: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Class, place among the shown of that class, and number of every input that the page shows.

    >>> list(shown_inputs([1, 0, 1]))
    [(0, 0, 1), (1, 0, 0), (1, 1, 2)]
    """
    for label in sorted(set(target))[:MOST]:
        samples = [sample for sample, own in enumerate(target) if own == label]
        for place, sample in enumerate(samples[: choose.SHOWN]):
            yield label, place, sample


def looked_at(subject: Subject, judged: Judged, place: int) -> dict[tuple[str, str], Tensor]:
    """Kind and method -> (h, w) of one input: itself, its Shapley values, and what the methods say of the players."""
    seats = subject.seats.labels.cpu()
    seen = {("input", ""): grey(subject.x[place]), ("truth", END): judged.anchor.values[place][seats]}
    for method, values in judged.maps.items():
        if method != END:
            seen["example", method] = values[place][seats]
    return seen
