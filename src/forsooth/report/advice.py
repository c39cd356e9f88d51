"""The paragraph at the head of the page: what to do with what came out."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from forsooth.report.medians import Medians
from forsooth.report.verdict import judged, too_small
from forsooth.wording import paragraphs


def advice(tables: Mapping[str, Medians], boards: Mapping[str, pd.DataFrame], *, preset: str) -> str:
    """Which method to reach for, which not to rely on, and what to do first; empty where no method was scored."""
    if not tables:
        return ""
    metric = next(iter(tables))
    table = tables[metric]
    if table.null.all() or not (table.null & table.rival).any():
        return ""
    methods = judged(boards[metric])
    trusted = _trusted(methods)
    names = trusted["method"].tolist()
    facts = {
        "metric": metric,
        "preset": preset,
        "methods": len(methods),
        "trusted": names,
        "wins": next(iter(trusted["wins"].tolist()), 0),
        "others": _others(boards, metric, names),
        "hopeless": methods[methods["wins"].eq(0)]["method"].tolist(),
    }
    return " ".join(paragraphs(__package__, "advice.jinja", **facts, **_size(table)))


def _size(table: Medians) -> dict[str, Any]:
    """How much was run."""
    thin = all(len(panel.seeds) == 1 for panel in table.chance)
    return {"panels": len(table.panels), "small": too_small(table), "thin": thin}


def _trusted(methods: pd.DataFrame) -> pd.DataFrame:
    """Lines of the first tie group whose methods beat every null somewhere, and do so themselves."""
    winners = methods[methods["group"].ne("") & methods["wins"].gt(0)]
    return winners[winners["group"].isin(winners["group"][:1])]


def _others(boards: Mapping[str, pd.DataFrame], metric: str, trusted: list[str]) -> list[tuple[str, list[str]]]:
    """Who leads by the other scores, where that is nobody of those named."""
    leads: dict[str, list[str]] = {}
    for name, board in boards.items():
        leader = board[~board["null"] & board["group"].ne("") & board["wins"].gt(0)]["method"][:1]
        for method in leader:
            if name != metric and method not in trusted:
                leads.setdefault(method, []).append(name)
    return list(leads.items())
