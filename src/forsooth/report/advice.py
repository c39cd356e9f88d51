"""The paragraph at the head of the page: what to do with what came out."""

from pandas import DataFrame

from forsooth.report.leaderboard import Boards
from forsooth.report.medians import Tables
from forsooth.report.verdict import hopeless, judged, leads, sizes
from forsooth.wording import paragraphs


def advice(tables: Tables, boards: Boards, *, preset: str) -> str:
    """Which method to reach for, which not to rely on, and what to do first; empty where no method was scored."""
    if not tables:
        return ""
    metric = next(iter(tables))
    table = tables[metric]
    if table.null.all() or not (table.null & table.rival).any():
        return ""
    methods = judged(boards[metric])
    winners = _winners(methods)
    trusted = winners[winners["group"].isin(winners["group"][:1])]
    return " ".join(
        paragraphs(
            __package__,
            "advice.jinja",
            metric=metric,
            preset=preset,
            methods=len(methods),
            trusted=trusted.to_dict("records"),
            others=leads({name: _winners(board) for name, board in boards.items() if name != metric}),
            hopeless=hopeless(methods),
            **sizes(table),
        )
    )


def _winners(board: DataFrame) -> DataFrame:
    """Lines of those who beat every null somewhere and took part in every panel."""
    return board[~board["null"] & board["group"].ne("") & board["wins"].gt(0)]
