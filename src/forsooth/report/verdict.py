"""The findings of a run in plain words, computed from its rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from forsooth.report.aggregate import Results, panel_names
from forsooth.report.leaderboard import losses
from forsooth.report.medians import CEILING, Medians
from forsooth.report.promises import broken_promises
from forsooth.stats.differences import enough
from forsooth.stats.spread import FEWEST
from forsooth.wording import paragraphs, plural, share

NOTABLE = 0.05  # share of lost samples from which a method is named


def verdict(results: Results, tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame]) -> tuple[str, ...]:
    """A few sentences a stranger can read, in verdict.jinja; by the first metric, with a word on the others.

    "Clearly" holds for the whole board: of equal methods at most one board in twenty names any difference.
    """
    if not tables:
        return ("No map was scored, so there is nothing to rank.",)
    first = next(iter(tables))
    table = tables[first]
    board = boards[first]
    methods = judged(board)
    lost = board[board["failed"].ge(NOTABLE)].sort_values("failed", ascending=False)
    training = results.rows[results.rows["part"].eq("training") & results.rows["metric"].eq("accuracy")]
    gated = int(training["status"].eq("below gate").sum())
    sentences = paragraphs(
        __package__,
        "verdict.jinja",
        metric=first,
        ranked=board[board["group"].ne("")].to_dict("records"),
        leads=_leads(boards),
        methods=len(methods),
        any_null=bool(board["null"].any()),
        nulls=[name for name, rival in zip(table.methods, table.null & table.rival, strict=True) if rival],
        won=int(table.wins.any(axis=1).sum()),
        panels=len(table.panels),
        strongest=_strongest_null(results, table),
        losers=methods[methods["wins"].eq(0)]["method"].tolist(),
        failing=[f"{line.method} on {share(line.failed)}" for line in lost.itertuples()],
        broken=broken_promises(board.set_index("method")),
        gated=gated,
        trained=len(training),
    )
    if table.null.all():  # the last one is on models below the gate
        return ("No method was scored, only nulls.", "".join(sentences[-1:] if gated else []))
    return tuple(sentences)


def judged(board: pd.DataFrame) -> pd.DataFrame:
    """Lines of a board that are methods: neither nulls nor the ends of the scale."""
    return board[~board["null"] & ~board["method"].isin(CEILING)]


def _leads(boards: Mapping[str, pd.DataFrame]) -> list[tuple[str, list[str]]]:
    """Who leads, and by which metrics."""
    leads: dict[str, list[str]] = {}
    for metric, board in boards.items():
        for leader in board["method"][board["group"].ne("")][:1]:
            leads.setdefault(leader, []).append(metric)
    return list(leads.items())


def _strongest_null(results: Results, table: Medians) -> dict[str, Any]:
    """The null and the panel in which it beats the most methods; empty where there are no nulls or no methods."""
    nulls = np.flatnonzero(table.null & table.rival)
    methods = np.flatnonzero(~table.null & table.rival)
    if not len(nulls) or not len(methods):
        return {}
    beaten = losses(table).sum(axis=1).T  # (nulls, panels)
    null, panel = np.unravel_index(beaten.argmax(), beaten.shape)
    return {
        "name": table.methods[nulls[null]],
        "beaten": beaten.max(),
        "of": np.isfinite(table.value[panel, methods]).sum(),
        "panel": panel_names(results, table.panels.iloc[[panel]])[0],
    }


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


def too_small(table: Medians) -> bool:
    """Whether samples or trainings are too few for any claim, as `caution` says."""
    networks = {panel.network: len(panel.seeds) for panel in table.chance}
    further = sum(networks.values()) - len(networks)
    return bool(_of_samples(table)) or 0 < further < FEWEST


def _of_samples(table: Medians) -> list[str]:
    """Whether the smallest panel has enough samples for a claim."""
    fewest = min(panel.signs.shape[1] for panel in table.chance)
    needed = enough(int(np.isfinite(table.value[:, ~table.null]).sum()))
    if fewest >= needed:
        return []
    there = f"A panel has {plural(fewest, 'sample')} only"
    return [f"{there}: it takes {needed} to call a method clearly better than a null among so many comparisons."]
