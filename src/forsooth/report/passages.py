"""Texts in colour: the words of a few documents of each panel, shaded by what every method gives to them.

The page holds the first document as text that one can search and select; its script steps through the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.frames import only, without
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, in_order, methods_in, panel_names
from forsooth.report.anchors import anchor
from forsooth.report.maps import nulls
from forsooth.report.medians import CEILING
from forsooth.wording import text

COLUMNS = ("tensor", "shows", "method", "label", "place", "words")
KINDS = ("", "tells", "alike")  # of words: any; one that tells the label; one that looks alike and tells nothing
LEAST = 1  # per cent of the largest weight, below which a word has no shade


@dataclass(frozen=True)
class Document:
    """words, the kind of each by its number in `KINDS`, and the class of the text."""

    words: list[str]
    kinds: list[int]
    label: str

    def plain(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {"label": self.label, "words": self.words, "kinds": self.kinds}


def passages(results: Results) -> list[dict[str, Any]]:
    """What the template shows: for every panel that has texts its documents and the shades of their words."""
    shown = texts(results)
    if shown.empty or "model" not in results.run["factors"]:
        return []
    weights = only(shown, shows="weights")
    keys = list(results.run["factors"])
    documents = documents_by_place(results, only(shown, shows="document"), keys)
    lines = weights[~weights["model"].isin([NO_MODEL, ""])][keys].drop_duplicates()
    lines = in_order(results, lines)
    made = []
    for name, line in zip(panel_names(results, lines), lines.to_dict("records"), strict=True):
        where = {key: value for key, value in line.items() if key != "model"}
        own = only(weights, **where, model=(line["model"], NO_MODEL))
        made += list(panel(results, name, own, documents.get(tuple(where.values()), {})))
    return made


def texts(results: Results) -> DataFrame:
    """The texts among the run's pictures, and what methods give to their words; none where a run has no texts."""
    factors = results.run["factors"]
    frame = DataFrame(results.run["pictures"]).reindex(columns=[*COLUMNS, *factors])
    frame = frame[frame["tensor"].isin(list(results.pictures)) & frame["shows"].isin(["document", "weights"])]
    frame = frame.assign(**{name: frame[name].map(text) for name in (*factors, "label", "method")})
    return frame.assign(place=pd.to_numeric(frame["place"], errors="coerce").fillna(0).astype(int))


def documents_by_place(
    results: Results, shown: DataFrame, keys: Sequence[str]
) -> dict[tuple[str, ...], dict[int, Document]]:
    """Factors but the model -> place -> document."""
    where = [name for name in keys if name != "model"]
    found: dict[tuple[str, ...], dict[int, Document]] = {}
    for line in shown.to_dict("records"):
        tells, alike = results.pictures[line["tensor"]] > 0
        kinds = np.where(tells, 1, np.where(alike, 2, 0)).tolist()
        known = found.setdefault(tuple(line[name] for name in where), {})
        known[line["place"]] = Document([str(word) for word in line["words"]], kinds, line["label"])
    return found


def panel(
    results: Results, name: str, weights: DataFrame, documents: Mapping[int, Document]
) -> Iterator[dict[str, Any]]:
    """The texts of one panel, the first as the template writes it; nothing where no text is known."""
    places = [place for place in sorted(documents) if weights["place"].eq(place).any()]
    if not places:
        return
    methods = methods_in(results, without(weights, method=CEILING))
    shades = [shades_at(results, only(weights, place=place), methods) for place in places]
    first = documents[places[0]]
    yield {
        "panel": name,
        "anchor": anchor(name),
        "lines": [
            {"method": method, "anchor": anchor(method), "null": method in nulls(results), **runs_of(first, shade)}
            for method, shade in zip(methods, shades[0], strict=True)
        ],
        "data": {"texts": [documents[place].plain() for place in places], "shades": shades},
    }


def shades_at(results: Results, weights: DataFrame, methods: Sequence[str]) -> list[list[int] | None]:
    """For each method per cents of its largest |weight|, a number a word; None where it has no map."""
    tensors = dict(zip(weights["method"], weights["tensor"], strict=True))
    return [shade_of(results.pictures[tensors[name]]) if name in tensors else None for name in methods]


def shade_of(weights: NDArray[Any]) -> list[int] | None:
    """Per cents of the largest |weight| (length,); None where one is no number.

    >>> shade_of(np.array([0.5, -1.0, 0.001])), shade_of(np.array([np.nan, 1.0]))
    ([50, 100, 0], None)
    """
    sizes = np.abs(np.asarray(weights, dtype=float))
    if not np.isfinite(sizes).all():
        return None
    shares = np.round(100 * sizes / (sizes.max(initial=0) or 1.0))
    return [int(share) for share in shares]


def runs_of(document: Document, shade: Sequence[int] | None) -> dict[str, Any]:
    """A line of the template: the words, those without shade and kind together, and a mark where there is no shade."""
    marks = {True: "–", False: ""}[shade is None]
    levels = list(shade or [0] * len(document.words))
    if shade is not None and not any(levels):
        marks = "0"
    words = zip(document.words, document.kinds, levels, strict=True)
    runs: list[dict[str, Any]] = []
    for plain, group in groupby(words, key=lambda one: not one[1] and one[2] < LEAST):
        own = list(group)
        if plain:
            runs.append({"words": " ".join(word for word, _, _ in own), "kind": "", "shade": 0})
        else:
            runs += [{"words": word, "kind": KINDS[kind], "shade": level} for word, kind, level in own]
    return {"mark": marks, "runs": runs}
