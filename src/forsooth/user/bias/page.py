"""The page of an answer: boards and curves as the suite has them, and maps of inputs beside their Shapley values."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from forsooth import scores
from forsooth.adapters.methods import NamedMethod
from forsooth.counted import ABSENT
from forsooth.names import grouped
from forsooth.records import NO_MODEL, SCORED
from forsooth.runs import described_metric
from forsooth.scores import bias
from forsooth.suites import choose
from forsooth.suites.album import Album
from forsooth.suites.bias.plan import SEEN
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.result import END, Judged
from forsooth.user.bias.subject import Subject
from forsooth.user.pages import Page, add_pictures, asked, described_methods, grey, plain_rows
from forsooth.user.requests import command

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
    return Page(
        suite="bias",
        question=QUESTION,
        command=command("bias", request),
        settings=asked(request),
        seed=request.seed,
        methods={**described_methods(chosen), END: {"null": False, "cite": "", "settings": {}}},
        facts=[MEANS],
        scores={
            "factors": list(FACTORS),
            "levels": {"end": list(bias.ENDS), "fraction": list(bias.FRACTIONS)},
            "metrics": {name: described_metric(scores.metric(name)) for name in METRICS},
            "exhibits": ["bias_curves", "examples"],
        },
        rows=plain_rows(kept_rows(rows, judged).assign(suite="bias", part="scores", model_seed=0, **panel)),
        album=album_of(subject, judged, panel),
        seen=SEEN,
        seconds=seconds,
    )


def name_of(inputs: Any) -> str:
    """What the inputs are called on boards."""
    if isinstance(inputs, str | Path):
        return Path(inputs).stem
    return "inputs"


def kept_rows(rows: pd.DataFrame, judged: Judged) -> pd.DataFrame:
    """The rows as those of a run; a method that gave no map has one for every group of players that others have."""
    rows = rows.assign(model=[model_of(method, judged) for method in rows["method"]])
    told = rows["end"].ne("") | rows["status"].isin(SCORED)
    groups = rows[["end", "fraction"]][rows["end"].ne("") & ~rows["status"].isin(ABSENT)].drop_duplicates()
    metrics = pd.DataFrame({"metric": METRICS})
    silent = rows[~told].drop(columns=["metric", "end", "fraction"]).merge(metrics, how="cross")
    return pd.concat([rows[told], silent.merge(groups, how="cross")])


def model_of(method: str, judged: Judged) -> str:
    """The model that a row or a picture is of; empty methods are those of the inputs themselves."""
    return {"null": NO_MODEL}.get(judged.kinds.get(method, ""), MODEL)


def album_of(subject: Subject, judged: Judged, panel: dict[str, str]) -> Album:
    """The first inputs of each class, their Shapley values and maps, where players are places of an image."""
    album = Album(panel)
    if subject.seats.labels.ndim != 2 or subject.stage.head is not None:
        return album
    for label, place, sample in shown_inputs(judged.target.tolist()):
        add_pictures(album, looked_at(subject, judged, sample), place, label)
    for line in album.pictures:
        line["model"] = model_of(line["method"], judged)
    return album


def shown_inputs(target: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Class, place among the shown of that class, and number of every input that the page shows.

    >>> list(shown_inputs([1, 0, 1]))
    [(0, 0, 1), (1, 0, 0), (1, 1, 2)]
    """
    by_label = grouped((label, sample) for sample, label in enumerate(target))
    for label, samples in sorted(by_label.items())[:MOST]:
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
