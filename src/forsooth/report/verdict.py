"""The findings of a run in plain words, computed from its rows."""

import itertools

import numpy as np
from pandas import DataFrame

from forsooth.frames import only
from forsooth.names import grouped
from forsooth.report.aggregate import Results, Values, panel_names
from forsooth.report.leaderboard import Boards, losses
from forsooth.report.medians import CEILING, Medians, Tables
from forsooth.report.promises import broken_promises
from forsooth.stats.differences import enough
from forsooth.stats.spread import FEWEST
from forsooth.wording import paragraphs, share

NOTABLE = 0.05  # share of lost samples from which a method is named


def verdict(results: Results, tables: Tables, boards: Boards) -> tuple[str, ...]:
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
    training = only(results.rows, part="training", metric="accuracy")
    gated = len(only(training, status="below gate"))
    sentences = paragraphs(
        __package__,
        "verdict.jinja",
        metric=first,
        board=board.to_dict("records"),
        leads=leads({metric: lines[lines["group"].ne("")] for metric, lines in boards.items()}),
        methods=len(methods),
        nulls=list(itertools.compress(table.methods, table.null & table.rival)),
        won=int(table.wins.any(axis=1).sum()),
        panels=len(table.panels),
        strongest=_strongest_null(results, table),
        losers=hopeless(methods),
        failing=[f"{line.method} on {share(line.failed)}" for line in lost.itertuples()],
        broken=broken_promises(board.set_index("method")),
        gated=gated,
        trained=len(training),
    )
    if table.null.all():  # the last one is on models below the gate
        return ("No method was scored, only nulls.", "".join(sentences[-1:] if gated else []))
    return tuple(sentences)


def judged(board: DataFrame) -> DataFrame:
    """Lines of a board that are methods: neither nulls nor the ends of the scale."""
    return board[~board["null"] & ~board["method"].isin(CEILING)]


def hopeless(methods: DataFrame) -> list[str]:
    """Who of these lines is nowhere clearly better than all nulls."""
    return list(only(methods, wins=0)["method"])


def leads(boards: Boards) -> dict[str, list[str]]:
    """Who is first on these boards, and by which metrics."""
    return grouped((leader, metric) for metric, board in boards.items() for leader in board["method"][:1])


def _strongest_null(results: Results, table: Medians) -> Values:
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


ONE_DRAW = "They know the data of this run: another seed makes or draws other data."


def caution(tables: Tables) -> str:
    """What the intervals are over, and what they cannot know, in caution.jinja."""
    for table in list(tables.values())[:1]:
        return " ".join([*paragraphs(__package__, "caution.jinja", **sizes(table)), ONE_DRAW])
    return ""


def sizes(table: Medians) -> Values:
    """How much was run, and whether that is enough for a claim.

    single      networks with one training
    few         whether trainings are too few to know how far they differ
    fewest      samples of the smallest panel; it takes `needed` to call a method clearly better among so many
    """
    networks = {panel.network: len(panel.seeds) for panel in table.chance}
    trainings = sum(networks.values())
    return {
        "panels": len(table.panels),
        "networks": len(networks),
        "single": sum(count == 1 for count in networks.values()),
        "trainings": trainings,
        "few": 0 < trainings - len(networks) < FEWEST,
        "fewest": min(panel.signs.shape[1] for panel in table.chance),
        "needed": enough(int(np.isfinite(table.value[:, ~table.null]).sum())),
    }
