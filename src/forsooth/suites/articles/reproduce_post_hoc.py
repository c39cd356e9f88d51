"""What a reader would use instead of attention: every method on the same models. The paper does not ask this."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from forsooth.counted import counted
from forsooth.names import find
from forsooth.records import Artefact, Choice, Plan, UsageError
from forsooth.scores import METRICS
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.articles import settings as articles_presets
from forsooth.suites.articles.reproduce import FAR, made, on_what
from forsooth.suites.verdicts import SHARE, crossed, mean_of

Perform = Callable[[Plan], Store]
ASKED = replace(articles_presets.PAPER, trainings=3, rates_article=(), rates_halves=(), samples=60)
NEAR_ONE = 0.9
GROUP = ["kind", "model", "method"]


def post_hoc(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Attr% on the correlating articles by kind of data, model and method, over documents and trainings."""
    settings = changed(ASKED, changes)
    _, _, rows = made(settings, choice, perform)
    scored = rows[rows["metric"].eq("attr_words") & rows["sample"].ge(0) & rows["method"].ne("")]
    if scored[scored["model"].ne("none")].empty:
        raise UsageError(f"no model passed its gate, so there is nothing to judge. {on_what(rows, settings)}")
    table = pd.DataFrame([line_of(key, own) for key, own in scored.groupby(GROUP, sort=False)])
    words = [
        on_what(rows, settings),
        "Intervals are over documents and over trainings, where there are several.",
        *silent(table),
    ]
    return table.round(4), "\n".join([*words, *verdicts(table)]) + "\n"


def line_of(key: tuple[str, ...], rows: pd.DataFrame) -> dict[str, Any]:
    """One method for the trainings of one model, from a row for each document and training.

    A map without any weight counts as 0, as it does on the board: `failed` is the share of those, and `attr_defined`
    the mean without them.
    """
    rows = counted(rows, find("attr_words", METRICS, argument="metrics"))
    by_document, by_training = (rows.groupby(unit)["value"].mean() for unit in ("sample", "model_seed"))
    one = len(by_training) < 2
    found = mean_of(by_document, bounds=SHARE) if one else crossed(by_document, by_training, bounds=SHARE)
    line = {**dict(zip(GROUP, key, strict=True)), **dict(zip(("attr", "low", "high", "documents"), found, strict=True))}
    line |= {"trainings": len(by_training), "sd_trainings": by_training.std(), "frequency": rows["frequency"].mean()}
    defined = rows.loc[~rows["failed"], "value"].mean()
    return {**line, "failed": rows["failed"].mean(), "attr_defined": defined}


def silent(table: pd.DataFrame) -> list[str]:
    """A map that is zero everywhere has no share of its own. Who gave how many of them."""
    lines = table[table["failed"] > 0].itertuples()
    who = [f"{r.kind}, {r.model}, {r.method}: {r.failed:.0%}, without them {r.attr_defined:.2f}" for r in lines]
    return [f"Maps without any weight have no Attr% and count as 0. {'; '.join(who)}."] if who else []


def verdicts(table: pd.DataFrame) -> list[str]:
    """For every kind of data and model: who is near 1, who is far from it, and who is no better than a constant map."""
    lines = []
    for (kind, model), own in table[table["model"].ne("none")].groupby(["kind", "model"], sort=False):
        parts = []
        for words, chosen in (
            (f"near 1 (interval above {NEAR_ONE})", own["low"] > NEAR_ONE),
            (f"far from 1 (interval below {FAR})", own["high"] < FAR),
            ("not surely above the frequency", own["low"] <= own["frequency"]),
        ):
            who = [f"{m} {a:.2f} [{lo:.2f}, {hi:.2f}]" for m, a, lo, hi in _lines(own[chosen])]
            parts.append(f"{words}: {', '.join(who) or 'none'}")
        lines.append(f"{kind}, {model}. {'; '.join(parts)}.")
    return lines


def _lines(table: pd.DataFrame) -> list[tuple[str, float, float, float]]:
    chosen = table.sort_values("attr", ascending=False)[["method", "attr", "low", "high"]]
    return list(chosen.itertuples(index=False, name=None))


ARTEFACTS = (Artefact("articles/post-hoc", "Attr% of every method on the same models", post_hoc),)
