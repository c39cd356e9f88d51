"""Where the picture of every column is found, of every sample of every panel: figures and galleries show the same."""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from pandas import DataFrame

from forsooth.frames import only, without
from forsooth.records import NO_MODEL
from forsooth.report.aggregate import Picture, Results, in_order, methods_in, nulls_in
from forsooth.report.medians import CEILING
from forsooth.wording import with_text

PLAIN = ("input", "truth")  # columns that are no method's map
BEFORE = {"example": ["input", "truth"], "global": ["truth"]}  # those of each kind
Line = Mapping[Hashable, Any]  # of a table
ANY = ""  # of labels


def pictures(results: Results, *more: str) -> DataFrame:
    """run.json's list of pictures, with factors as text and one line per picture that is there.

    place  which of the samples of its panel it is of: 0, 1 …
    more   further columns
    """
    factors = results.run["factors"]
    columns = dict.fromkeys(("tensor", "kind", "method", "label", "place", *more, *factors))
    frame = with_text(DataFrame(results.run["pictures"], columns=list(columns)), (*factors, "label", "method"))
    frame["place"] = pd.to_numeric(frame["place"], errors="coerce").fillna(0).astype(int)
    return only(frame, tensor=results.pictures)


def compared(results: Results) -> DataFrame:
    """The pictures that a reader compares: without maps of whoever was told the truth, but with the truth itself."""
    every = pictures(results)
    return every[every["kind"].isin(PLAIN) | ~every["method"].isin(CEILING)]


def blocks(results: Results, shown: DataFrame, kind: str) -> list[list[str]]:
    """Columns that are no method's map, the methods that have maps, then the nulls; no block is empty."""
    blind = nulls_in(results)
    methods = methods_in(results, only(shown, kind=kind))
    own = [name for name in methods if name not in blind]
    return [block for block in (BEFORE[kind], own, [name for name in methods if name in blind]) if block]


@dataclass(frozen=True)
class Wall:
    """Where every picture hangs.

    lines     factors and label of every row: of the maps of models, unless there are none
    labelled  whether panels have rows of several labels: samples with and without an artefact, say
    key       factors but the model
    tensors   (values of the key, column, place, model, label) -> picture; of each also under any label
    """

    lines: DataFrame
    labelled: bool
    key: list[str]
    tensors: Mapping[tuple[Any, ...], Picture]

    def where(self, line: Line) -> tuple[Any, ...]:
        """The values of the key."""
        return tuple(line[name] for name in self.key)

    def title(self, panel: str, line: Line) -> str:
        """What a row of a panel is called."""
        if not self.labelled:
            return panel
        return f"{panel} y={line['label']}" if panel else str(line["label"])

    def hung(self, line: Line, columns: Iterable[str], place: int) -> dict[str, Picture]:
        """Column -> picture, of one sample of a row; of an input or a truth its own, or else any of the panel."""
        label = line["label"] if self.labelled else ANY
        found = {}
        for column in columns:
            places = [(line.get("model"), label), (NO_MODEL, label)]
            if column in PLAIN:
                places.append((NO_MODEL, ANY))
            keys = [(self.where(line), column, place, *known) for known in places]
            known = [self.tensors[key] for key in keys if key in self.tensors]
            if known:
                found[column] = known[0]
        return found


def wall_of(results: Results, shown: DataFrame, kind: str) -> Wall:
    """The wall of one kind of maps; shown: lines of `pictures`, of that kind and of inputs and truths."""
    factors = list(results.run["factors"])
    lines = _lines(only(shown, kind=kind, place=0), factors)
    labelled = bool(lines.duplicated(factors).any()) if factors else len(lines) > 1
    if not labelled:
        lines = lines.drop_duplicates(factors)
    tensors: dict[tuple[Any, ...], Picture] = {}
    wall = Wall(in_order(results, lines), labelled, [name for name in factors if name != "model"], tensors)
    for picture in shown.to_dict("records"):
        column, model = _column_and_model(picture)
        for label in (picture["label"], ANY):
            key = (wall.where(picture), column, picture["place"], model, label)
            tensors.setdefault(key, results.pictures[picture["tensor"]])
    return wall


def _lines(first: DataFrame, factors: list[str]) -> DataFrame:
    """Factors and label of every row, from the maps of first samples: those of models, unless there are none."""
    own = without(first, model=(NO_MODEL, "")) if "model" in factors else first
    return (first if own.empty else own)[[*factors, "label"]].drop_duplicates()


def _column_and_model(picture: Line) -> tuple[str, str]:
    """Inputs and truths are of no model."""
    if picture["kind"] in PLAIN:
        return picture["kind"], NO_MODEL
    return picture["method"], picture.get("model") or NO_MODEL
