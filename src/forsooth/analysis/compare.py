"""Two runs side by side: the difference of every score with its interval, and what was set otherwise."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from forsooth import report
from forsooth.analysis.select import Only, narrowed
from forsooth.records import UsageError
from forsooth.report.aggregate import Results, choose
from forsooth.report.medians import Medians, medians
from forsooth.stats import holm
from forsooth.stats.boards import SAMPLES, interval_sources
from forsooth.stats.panels import Panel
from forsooth.stats.two_runs import Change, independent_change, paired_change
from forsooth.wording import agreeing, html_piece, listed, printed_table, text

LEVEL = 0.05
SECOND = "\x00"  # behind a method's name: that of the second run
COLUMNS = ("method", "a", "b", "difference", "low", "high", "clear", "panels", "over")
ABOUT = ("preset", "seed", "settings", "choice", "versions")  # of run.json: what may differ


class InFolder(Protocol):
    """A run."""

    @property
    def folder(self) -> Path: ...


Source = str | Path | InFolder


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What became of every method from run a to run b.

    metric    by which they were compared
    table     one line per method that both runs have:
              a, b        mean over the panels that both have of the panel's median
              difference  b - a, with its 95 % interval low, high
              clear       whether it differs; all methods of the table are one family, corrected by Holm. Of networks
                          trained apart nothing is clear where no panel has two trainings
              panels      how many panels both runs have of it
              over        what the interval was drawn over
    settings  setting, a, b: what was set otherwise, versions of packages included
    paired    whether both runs explained the same samples of the same networks, so that differences were taken one
              by one
    words     the same in plain sentences
    """

    metric: str
    table: pd.DataFrame
    settings: pd.DataFrame
    paired: bool
    words: str

    def tables(self) -> dict[str, pd.DataFrame]:
        return {"table": self.table, "settings": self.settings}

    def __str__(self) -> str:
        parts = [self.table.round(3).to_string(index=False)]
        if len(self.settings):
            parts.append(printed_table(self.settings))
        return "\n\n".join([*parts, self.words])

    def _repr_html_(self) -> str:
        scores = html_piece(f"{self.metric}: b - a", self.table.round(3), self.words)
        return scores + html_piece("set otherwise", self.settings, "")


def compare(a: Source, b: Source, metric: str | None = None, *, only: Only | None = None) -> Comparison:
    """What became of every method's score from one run to another, with 95 % intervals of the difference.

    a, b    runs of one suite, or their folders
    metric  one that both have; None: the first
    only    factor -> value or values to keep, as in `Run.leaderboard`
    """
    runs = [narrowed(report.read(_folder(one)), only or {}) for one in (a, b)]
    name = _shared_metric(runs[0].run, runs[1].run, metric)
    scored = [medians(run, name).rows for run in runs]
    paired = _same_networks(*runs) and _same_samples(*scored, factors=runs[0].run["factors"])
    lines = list(_paired_lines(runs[0], runs[1], name) if paired else _independent_lines(runs[0], runs[1], name))
    changes = pd.DataFrame(lines, columns=["method", "panels", "over", *Change._fields, "claimed"])
    table = _judged(changes)
    settings = differing_settings(runs[0].run, runs[1].run)
    words = _words(table, settings, paired=paired, claimed=bool(changes["claimed"].all()))
    return Comparison(name, table, settings, paired, words)


def _folder(run: Source) -> Path:
    if isinstance(run, str | Path):
        return Path(run)
    return run.folder


def _shared_metric(a: Mapping[str, Any], b: Mapping[str, Any], metric: str | None) -> str:
    if a["factors"] != b["factors"]:
        raise UsageError(f"`b` must be a run of the same suite as `a` ({a['suite']}), got {b['suite']}")
    shared = [name for name in a["metrics"] if name in b["metrics"]]
    if not shared:
        raise UsageError(f"`b` must share a metric with `a`, got {', '.join(b['metrics']) or 'none'}")
    return choose("metric", metric or shared[0], shared)


def differing_settings(a: Mapping[str, Any], b: Mapping[str, Any]) -> pd.DataFrame:
    """setting, a, b: what two run.json say otherwise of how they were made."""
    first = dict(_leaves({name: a.get(name) for name in ABOUT}))
    second = dict(_leaves({name: b.get(name) for name in ABOUT}))
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    lines = [(name, text(first.get(name)), text(second.get(name))) for name in names]
    return pd.DataFrame(lines, columns=["setting", "a", "b"])


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested objects with its dotted name."""
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        yield from _leaves(inner, f"{name}.{key}".lstrip("."))


def _same_networks(a: Results, b: Results) -> bool:
    """Whether both runs trained the same networks on the same data in the panels that both have.

    The key of a training's cell says all of it.
    """
    rows = [run.rows[run.rows["part"].eq("training")] for run in (a, b)]
    trained = [set(own["cell"]) for own in _where_both(*rows, columns=a.run["factors"])]
    return bool(trained[0]) and trained[0] == trained[1]


def _same_samples(a: pd.DataFrame, b: pd.DataFrame, *, factors: Sequence[str]) -> bool:
    """Whether the methods that both have were scored on the same samples and trainings of the panels that both have."""
    keys = [column for column in a if column not in ("value", "status", "message", "failed", "panel")]
    rows = _where_both(*_where_both(a, b, columns=factors), columns=["method"])
    drawn = [set(own[keys].itertuples(index=False)) for own in rows]
    return drawn[0] == drawn[1]


def _where_both(a: pd.DataFrame, b: pd.DataFrame, *, columns: Sequence[str]) -> list[pd.DataFrame]:
    """The lines of both tables whose values of these columns are found in both; no value equals no value."""
    keys = [pd.MultiIndex.from_frame(table[list(columns)].astype(str)) for table in (a, b)]
    return [a[keys[0].isin(keys[1])], b[keys[1].isin(keys[0])]]


def _paired_lines(a: Results, b: Results, metric: str) -> Iterator[tuple[Any, ...]]:
    """method, panels, over, the change, whether it may be claimed; both runs are joined as if they were one."""
    renamed = b.rows.assign(method=[f"{name}{SECOND}" if name else "" for name in b.rows["method"]])
    both = medians(dataclasses.replace(a, rows=pd.concat([a.rows, renamed], ignore_index=True)), metric)
    for name in both.methods:
        if f"{name}{SECOND}" not in both.methods:
            continue
        panels = _panels_of(both, [name, f"{name}{SECOND}"])
        if panels:
            shown = list(panels.values())
            yield name, len(shown), interval_sources(shown)[0], *paired_change(shown), True


def _independent_lines(a: Results, b: Results, metric: str) -> Iterator[tuple[Any, ...]]:
    """The same, of runs that drew apart. What ignores the model does not hang on a training."""
    tables = [medians(run, metric) for run in (a, b)]
    for place, name in enumerate(tables[0].methods):
        if name not in tables[1].methods:
            continue
        panels = [_panels_of(table, [name]) for table in tables]
        shared = [key for key in panels[0] if key in panels[1]]
        if not shared:
            continue
        first, second = ([own[key] for key in shared] for own in panels)
        over = min(interval_sources(first)[0], interval_sources(second)[0])  # samples, if one says so
        claimed = over != SAMPLES or bool(tables[0].null[place])
        yield name, len(shared), over, *independent_change(first, second), claimed


def _panels_of(table: Medians, names: list[str]) -> dict[tuple[str, ...], Panel]:
    """Levels of the factors -> the panel of these methods alone, where all of them have a score."""
    places = np.array([table.methods.index(name) for name in names])
    taken = np.isfinite(table.value[:, places]).all(axis=1)
    levels = list(table.panels.itertuples(index=False, name=None))
    return {levels[k]: table.chance[k].take(places) for k in np.flatnonzero(taken)}


def _judged(lines: pd.DataFrame) -> pd.DataFrame:
    """The table of a comparison."""
    difference = lines["second"] - lines["first"]
    ends = {"low": difference - lines["half"], "high": difference + lines["half"]}
    clear = holm(lines["pvalue"].where(lines["claimed"].astype(bool))) <= LEVEL
    table = lines.rename(columns={"first": "a", "second": "b"}).assign(difference=difference, clear=clear, **ends)
    return table[list(COLUMNS)].sort_values("difference", ascending=False, ignore_index=True)


def _words(table: pd.DataFrame, settings: pd.DataFrame, *, paired: bool, claimed: bool) -> str:
    clear = table.loc[table["clear"], "method"].tolist()
    sentences = [f"None of {len(table)} methods has a clearly different score."]
    if clear:
        sentences = [f"{listed(clear)} {agreeing(clear, 'has', 'have')} a clearly different score, of {len(table)}."]
    if paired:
        sentences.append("Both runs explained the same samples of the same networks: differences are paired.")
    else:
        sentences.append("The runs drew samples or networks apart: their variances add.")
    if not claimed:
        sentences.append("With one training in a run nothing is claimed of a method that looks at the model.")
    sentences.append(f"Set otherwise: {listed(settings['setting'].tolist()) or 'nothing'}.")
    return " ".join(sentences)
