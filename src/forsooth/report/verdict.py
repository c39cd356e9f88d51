"""The findings of a run in plain words, computed from its rows."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from forsooth.report.aggregate import Results, panel_names
from forsooth.report.leaderboard import losses, wins
from forsooth.report.medians import Medians
from forsooth.report.promises import broken_promises
from forsooth.stats.differences import enough
from forsooth.stats.spread import FEWEST
from forsooth.wording import listed, number, plural, share

NOTABLE = 0.05  # share of lost samples from which a method is named


def verdict(results: Results, tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """A few sentences a stranger can read; by the first metric, with a word on the others.

    "Clearly" holds for the whole board: of equal methods at most one board in twenty names any difference.
    """
    if not tables:
        return ("No map was scored, so there is nothing to rank.",)
    first = next(iter(tables))
    table = tables[first]
    board = boards[first]
    if table.null.all():
        return ("No method was scored, only nulls.", _gated(results))
    said = (
        _winner(first, board),
        _others(boards),
        _against_nulls(table),
        _strongest_null(results, table),
        _never(board),
        _failing(board),
        _broken(board),
        _gated(results),
    )
    return tuple(sentence for sentence in said if sentence)


def _winner(metric: str, board: pd.DataFrame) -> str:
    ranked = board[board["group"].ne("")]
    if ranked.empty:
        return ""
    best = ranked.iloc[0]
    ends = f"{number(best['low'])} to {number(best['high'])}"
    where = f"score {number(best['score'])}, 95 % interval {ends} over {best['over']}"
    null = {True: ", which never looks at the model,", False: ""}[bool(best["null"])]
    return f"By {metric}, {best['method']}{null} comes first among {_rivals(ranked)} ({where}){_tied(ranked)}."


def _rivals(ranked: pd.DataFrame) -> str:
    """How many are ranked, in words."""
    nulls = int(ranked["null"].sum())
    methods = plural(len(ranked) - nulls, "method")
    if not nulls:
        return methods
    return f"{methods} and {plural(nulls, 'null')}"


def _tied(ranked: pd.DataFrame) -> str:
    """Whom the first is no better than, as the end of a sentence."""
    ties = ranked[ranked["group"].eq("A")]["method"].tolist()[1:]
    if not ties:
        return ""
    return f"; it is indistinguishable from {listed(ties)}"


def _others(boards: Mapping[str, pd.DataFrame]) -> str:
    """Who leads by the other metrics."""
    leads: dict[str, list[str]] = {}
    for metric, board in boards.items():
        for leader in board["method"][board["group"].ne("")][:1]:
            leads.setdefault(leader, []).append(metric)
    if not leads:
        return ""
    (_, own), *others = leads.items()
    sentences = [f"By {listed(metrics)}, {leader} comes first." for leader, metrics in others]
    if own[1:]:
        sentences.insert(0, f"It also comes first by {listed(own[1:])}.")
    return " ".join(sentences)


def _against_nulls(table: Medians) -> str:
    nulls = [name for name, null, rival in zip(table.methods, table.null, table.rival, strict=True) if null and rival]
    if not nulls or table.null.all():
        return ""
    won = int(wins(table).any(axis=1).sum())
    total = len(table.panels)
    better = f"at least one method is clearly better than every map that never looks at the model ({listed(nulls)})"
    if won < total:
        return f"In {won} of {plural(total, 'panel')} {better}; in {total - won} none is."
    if total == 1:
        return f"In the one panel {better}."
    return f"In each of {total} panels {better}."


def _strongest_null(results: Results, table: Medians) -> str:
    """The null and the panel in which it beats the most methods."""
    nulls = np.flatnonzero(table.null & table.rival)
    methods = np.flatnonzero(~table.null)
    if not len(nulls) or not len(methods):
        return ""
    beaten = losses(table).sum(axis=1).T  # (nulls, panels)
    null, panel = np.unravel_index(beaten.argmax(), beaten.shape)
    if beaten.max() == 0:
        return "No such map clearly beats a method in any panel."
    there = np.isfinite(table.value[panel, methods]).sum()
    where = panel_names(results, table.panels.iloc[[panel]])[0]
    worst = f"At worst, {table.methods[nulls[null]]} clearly beats {beaten.max()} of {there} methods"
    if not where:
        return f"{worst}."
    return f"{worst} in {where}."


def _never(board: pd.DataFrame) -> str:
    methods = board[~board["null"]]
    losers = methods[methods["wins"].eq(0)]["method"].tolist()
    if not losers or not board["null"].any():
        return ""
    are = {1: "is"}.get(len(losers), "are")
    return f"{len(losers)} of {len(methods)} methods {are} clearly better than all these in no panel: {listed(losers)}."


def _failing(board: pd.DataFrame) -> str:
    lost = board[board["failed"].ge(NOTABLE)].sort_values("failed", ascending=False)
    if lost.empty:
        return ""
    shares = [f"{line.method} on {share(line.failed)}" for line in lost.itertuples()]
    return f"No usable map, and so the worst possible score: {listed(shares)} of samples."


def _broken(board: pd.DataFrame) -> str:
    return " ".join(broken_promises(board.set_index("method")).values())


def _gated(results: Results) -> str:
    training = results.rows[results.rows["part"].eq("training") & results.rows["metric"].eq("accuracy")]
    gated = int(training["status"].eq("below gate").sum())
    if not gated:
        return ""
    were = {1: "was"}.get(gated, "were")
    return f"{gated} of {len(training)} trained models fell below the accuracy gate and {were} not explained."


ONE_TRAINING = (
    "There is one training per panel: intervals are over samples alone (each with draws of its own), cannot know how "
    "another training differs, and nothing here is claimed beyond these networks."
)
ONE_DRAW = "They know the data of this run: another seed makes or draws other data."


def caution(tables: Mapping[str, Medians]) -> str:
    """What the intervals are over, and what they cannot know."""
    for table in list(tables.values())[:1]:
        return " ".join([*_of_trainings(table), *_of_samples(table), ONE_DRAW])
    return ""


def _of_trainings(table: Medians) -> list[str]:
    """What is known of trainings, in words."""
    networks = {panel.network: len(panel.seeds) for panel in table.chance}
    single = sum(trainings == 1 for trainings in networks.values())
    if single == len(networks):
        return [ONE_TRAINING]
    sentences = ["Intervals are over samples (each with draws of its own) and trainings."]
    trainings = sum(networks.values())
    if trainings - len(networks) < FEWEST:
        many = {1: "one network"}.get(len(networks), f"{len(networks)} networks")
        few = f"{trainings} trainings of {many} are too few to know how far trainings differ"
        wide = "intervals are wide, and no method that is trained is called clearly better or worse"
        sentences.append(f"But {few}: {wide}.")
    elif single:
        have = {1: "has"}.get(single, "have")
        sentences.append(f"{single} of {len(networks)} networks {have} one training: taken to spread as the others do.")
    return sentences


def _of_samples(table: Medians) -> list[str]:
    """Whether the smallest panel has enough samples for a claim."""
    fewest = min(panel.signs.shape[1] for panel in table.chance)
    needed = enough(int(np.isfinite(table.value[:, ~table.null]).sum()))
    if fewest >= needed:
        return []
    there = f"A panel has {plural(fewest, 'sample')} only"
    return [f"{there}: it takes {needed} to call a method clearly better than a null among so many comparisons."]
