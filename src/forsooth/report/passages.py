"""Texts in colour: the words of a few documents of each panel, shaded by what every method gives to them.

The page holds the first document as text that one can search and select; its script steps through the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from forsooth.frames import only, without
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Results, Values, in_order, methods_in, nulls_in, panel_names
from forsooth.report.medians import CEILING
from forsooth.report.walls import pictures

KINDS = ("", "tells", "alike")  # of words: any; one that tells the label; one that looks alike and tells nothing
LEAST = 1  # per cent of the largest weight, below which a word has no shade


def passages(results: Results) -> list[Values]:
    """What the template shows: for every panel that has texts its documents and the shades of their words."""
    shown = texts(results)
    factors = results.run["factors"]
    if shown.empty or "model" not in factors:
        return []
    weights = only(shown, shows="weights")
    lines = in_order(results, without(weights, model=(NO_MODEL, ""))[factors].drop_duplicates())
    made: list[Values] = []
    for name, line in zip(panel_names(results, lines), lines.to_dict("records"), strict=True):
        where = {key: line[key] for key in factors if key != "model"}
        documents = documents_by_place(results, only(shown, shows="document", **where))
        made += panel(results, name, only(weights, **where, model=(line["model"], NO_MODEL)), documents)
    return made


def texts(results: Results) -> DataFrame:
    """The texts among the run's pictures, and what methods give to their words; none where a run has no texts."""
    return only(pictures(results, "shows", "words"), shows=("document", "weights"))


def documents_by_place(results: Results, shown: DataFrame) -> dict[int, Values]:
    """Place -> what the page's script reads: words, the kind of each by its number in `KINDS`, the text's class."""
    found = {}
    for line in shown.to_dict("records"):
        tells, alike = results.pictures[line["tensor"]] > 0
        kinds = np.where(tells, 1, np.where(alike, 2, 0)).tolist()
        found[line["place"]] = {"label": line["label"], "words": list(map(str, line["words"])), "kinds": kinds}
    return found


def panel(results: Results, name: str, weights: DataFrame, documents: Mapping[int, Values]) -> Iterator[Values]:
    """The texts of one panel, the first as the template writes it; nothing where no text is known."""
    places = sorted(set(documents) & set(weights["place"]))
    if not places:
        return
    methods = methods_in(results, without(weights, method=CEILING))
    shades = [shades_at(results, only(weights, place=place), methods) for place in places]
    texts = [documents[place] for place in places]
    lines = [
        {"method": method, "null": method in nulls_in(results), **runs_of(texts[0], shade)}
        for method, shade in zip(methods, shades[0], strict=True)
    ]
    yield {"panel": name, "lines": lines, "data": {"texts": texts, "shades": shades}}


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


def runs_of(document: Values, shade: Sequence[int] | None) -> Values:
    """A line of the template: the words, those without shade and kind together, and a mark where there is no shade."""
    levels = shade or [0] * len(document["words"])
    mark = ""
    if not any(levels):
        mark = "–" if shade is None else "0"
    words = zip(document["words"], document["kinds"], levels, strict=True)
    runs: list[Values] = []
    for plain, group in groupby(words, key=lambda one: not one[1] and one[2] < LEAST):
        if plain:
            runs.append({"words": " ".join(word for word, _, _ in group), "kind": "", "shade": 0})
        else:
            runs += [{"words": word, "kind": KINDS[kind], "shade": level} for word, kind, level in group]
    return {"mark": mark, "runs": runs}
