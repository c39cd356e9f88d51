"""Table 1 and the figures of attention made again, with a verdict on each claim. [zhou2022feature, section 6]"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from forsooth import papers
from forsooth.counted import counted
from forsooth.datasets import texts
from forsooth.models.recurrent import lengths_of
from forsooth.records import Artefact, Choice, Plan, Task, UsageError
from forsooth.scores.selection import ATTR_WORDS
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.articles import plan as articles
from forsooth.suites.articles import settings as articles_presets
from forsooth.suites.articles import tasks as reading
from forsooth.suites.verdicts import SHARE, Interval, above, around, mean_of, share_of, verdict

Perform = Callable[[Plan], Store]
ATTENTION = replace(articles_presets.PAPER, models=(articles_presets.ATTENTION,), methods=("attention",), samples=None)
METRICS = {"attr_words": "correlating", "attr_words_non_correlating": "non_correlating", "attr_words_other": "other"}
FAR = 0.5  # an Attr% below is far from the 1 that a valid attribution has


def made(settings: articles_presets.Settings, choice: Choice, perform: Perform) -> tuple[Plan, Store, pd.DataFrame]:
    """The run of these settings: its plan, its store and all its rows."""
    plan = articles.plan(settings, choice)
    store = perform(plan)
    found = [rows for task in plan.tasks if (rows := store.rows(task.key)) is not None]
    return plan, store, pd.DataFrame([row for table in found for row in table.to_pylist()])


def table_1(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Mean and spread over trainings of Attr% of attention on the three kinds of words, beside the published."""
    settings = changed(ATTENTION, changes)
    _, _, rows = made(settings, choice, perform)
    models = of_trainings(rows)
    if models.empty:
        raise UsageError(f"no attention model passed its gate, so there is nothing to judge. {on_what(rows, settings)}")
    lines = []
    for (kind, words), own in models.groupby(["kind", "words"], sort=False):
        found = mean_of(100 * own["value"], bounds=(0, 100))
        line = {"kind": kind, "words": words, **dict(zip(("attr", "low", "high", "trainings"), found, strict=True))}
        lines.append({**line, "sd": 100 * own["value"].std(), "frequency": 100 * own["frequency"].mean()})
    published = papers.table("articles_table_1").rename(columns={"mean": "published", "sd": "published_sd"})
    table = pd.DataFrame(lines).merge(
        published.rename(columns={"frequency": "published_frequency"}), on=["kind", "words"], how="left"
    )
    words = [on_what(rows, settings), *claims_of_table(models, rows, table)]
    return table.round(2), "\n".join(words) + "\n"


def of_trainings(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over documents of Attr% and of the frequency, for each training and each kind of words."""
    own = rows[rows["metric"].isin(METRICS) & rows["model"].eq(articles_presets.ATTENTION)]
    own = counted(own.assign(words=own["metric"].map(METRICS)), ATTR_WORDS)  # a map without weight has none on any kind
    return own.groupby(["kind", "words", "model_seed"], sort=False, as_index=False)[["value", "frequency"]].mean()


def claims_of_table(models: pd.DataFrame, rows: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    lines = [accurate(rows, "6.2")]
    for kind, own in models.groupby("kind", sort=False):
        told = {words: group for words, group in own.groupby("words")}
        found = mean_of(told["correlating"]["value"], bounds=SHARE)
        said = f"{kind}: attention on correlating articles is far from 1 (below {FAR})"
        lines.append(verdict(said, found, holds=found.high < FAR, fails=found.low >= FAR))
        for words in ("correlating", "non_correlating"):
            if words in told:
                more = mean_of(told[words]["value"] - told[words]["frequency"])
                lines.append(above(f"{kind}: {words} articles get more than their frequency (excess)", more))
    for line in table[table["published"].notna()].to_dict("records"):
        found = Interval(line["attr"], line["low"], line["high"], line["trainings"])
        spreads = f"spread {line['sd']:.1f}, published {line['published_sd']:.1f}"
        lines.append(around(f"{line['kind']}: Attr% on {line['words']} words, in %", found, line["published"], spreads))
    spread = {kind: own["value"] for kind, own in models[models["words"].eq("correlating")].groupby("kind")}
    if {"Article", "CN"} <= set(spread) and min(len(own) for own in spread.values()) > 2:
        lines.append(wider(spread["CN"], spread["Article"]))
    return lines


def wider(one: pd.Series, other: pd.Series) -> str:
    """The verdict on "trainings of CN differ more than those of Article", by the ratio of variances."""
    ratio = float(one.var() / other.var())
    low, high = (ratio / stats.f.ppf(tail, dfn=len(one) - 1, dfd=len(other) - 1) for tail in (0.975, 0.025))
    found = Interval(ratio, float(low), float(high), len(one))
    return above("Trainings of CN differ more than those of Article (ratio of variances)", found, 1.0)


def accurate(rows: pd.DataFrame, section: str) -> str:
    """The verdict on "all models achieve over 97 % accuracy"."""
    known = papers.table("articles_claims").astype({"section": str}).set_index(["section", "quantity"])["value"]
    limit = known[(section, "accuracy")]
    right = rows.loc[rows["metric"].eq("accuracy"), "value"] > limit
    found = share_of(right)
    return verdict(f"All models achieve over {limit:.0%} accuracy (share)", found, holds=right.all(), fails=True)


def on_what(rows: pd.DataFrame, settings: articles_presets.Settings) -> str:
    trained = rows[rows["metric"].eq("accuracy")]
    counted = int(trained["status"].eq("ok").sum())
    models = f"{len(trained)} model{'' if len(trained) == 1 else 's'}"
    return (
        f"{models} ({', '.join(settings.models)}) on {rows['dataset'].iloc[0]}, {trained['sizes'].iloc[0]} documents "
        f"of at most {settings.length} words to train, validate and test; {counted} passed the gate.{left_out(trained)}"
    )


def left_out(trained: pd.DataFrame) -> str:
    """Who did not pass, with what accuracy, and how many words a rationale model selects: with none it is dead."""
    told = []
    for line in trained[trained["status"].ne("ok")].to_dict("records"):
        rate = "" if pd.isna(line["rate"]) else f" asked for {line['rate']:.0%} of the words"
        chosen = "" if pd.isna(line["selected"]) else f", selects {line['selected']:.1%}"
        told.append(f"{line['kind']}, {line['model']}{rate} (accuracy {line['value']:.0%}{chosen})")
    return f" Left out: {'; '.join(told)}." if told else ""


def figure(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, kinds: tuple[str, ...], documents: int
) -> tuple[pd.DataFrame, str]:
    """Attention word by word: some documents in numbers, the claims on all test documents of one training."""
    settings = changed(replace(ATTENTION, kinds=kinds, trainings=1), changes)
    plan, store, rows = made(settings, choice, perform)
    tables, words = [], [on_what(rows, settings), "Intervals are over the documents of one training."]
    for task in explained(plan, store):
        kind, number = (task.arguments["about"][name] for name in ("kind", "model_seed"))
        found = by_document(task, store)
        found.insert(0, "training", number)
        found.insert(0, "kind", kind)
        tables.append(found)
        if settings.trainings > 1:
            words.append(f"Training {number}.")
        words += claims_of_figure(kind, found)
    if not tables:
        raise UsageError(f"no attention model passed its gate, so there is nothing to judge. {on_what(rows, settings)}")
    table = pd.concat([found.head(documents) for found in tables], ignore_index=True)
    return table.round(4), "\n".join([*words, accurate(rows, "6.1")]) + "\n"


def explained(plan: Plan, store: Store) -> Iterator[Task]:
    """The tasks of a plan that left weights of words."""
    for task in plan.tasks:
        if task.id in ("articles.explain", "articles.select") and "weights" in store.read(task.key).tensors:
            yield task


def by_document(task: Task, store: Store) -> pd.DataFrame:
    """One line per document: Attr% and frequency, how often an article stands out, and the word of largest weight."""
    cell, given = store.read(task.key), reading.data(task.arguments["plot"])
    weights, rows = cell.tensors["weights"].double(), cell.tensors["rows"]
    lengths, masks = lengths_of(given.dataset.x[rows]), reading.words_of(given, rows)
    lines = []
    for k, row in enumerate(rows.tolist()):
        own, length = weights[k, : int(lengths[k])], int(lengths[k])
        right, wrong = (masks[name][k, :length] for name in ("correlating", "non_correlating"))
        peak = peaks(own)
        largest = int(own.argmax())
        lines.append(
            {
                **{"document": row, "label": int(given.dataset.y[row]), "words": length, "articles": int(right.sum())},
                **{"attr": share(own, right), "attr_non_correlating": share(own, wrong)},
                **{"frequency": right.double().mean().item(), "articles_above_neighbours": mean(peak[right])},
                **{"others_above_neighbours": mean(peak[~right & ~wrong]), "largest_is_article": bool(right[largest])},
                "largest": texts.decode(given.dataset.x[row], given.vocabulary)[largest],
            }
        )
    return pd.DataFrame(lines)


def peaks(weights: Tensor) -> Tensor:
    """(length,) bool: whether a word has more weight than the words beside it; weights (length,).

    >>> peaks(torch.tensor([3.0, 1.0, 2.0])).tolist()
    [True, False, True]
    """
    around_ = torch.nn.functional.pad(weights, (1, 1), value=-torch.inf)
    return (weights > around_[:-2]) & (weights > around_[2:])


def share(weights: Tensor, mask: Tensor) -> float:
    """The share of weights (length,) on the mask (length,); nan where there is none of either."""
    total = weights.abs().sum()
    return float(weights.abs()[mask].sum() / total) if total > 0 and mask.any() else float("nan")


def mean(hits: Tensor) -> float:
    """The share that is true; nan of nothing."""
    return hits.double().mean().item() if len(hits) else float("nan")


def claims_of_figure(kind: str, found: pd.DataFrame) -> list[str]:
    attr, excess = mean_of(found["attr"], bounds=SHARE), mean_of(found["attr"] - found["frequency"])
    known = papers.table("articles_claims").set_index("quantity")["value"]
    lines = []
    if kind == "Article":
        lines.append(around("Article: Attr% of attention on articles", attr, float(known["attr_articles"])))
        lines.append(above("Article: that is better than random (excess over the frequency)", excess))
    if kind == "CN":
        lines.append(above("CN: attention lies on correlating articles exclusively (over 0.9)", attr, 0.9))
    if kind == "NC":
        lines.append(verdict("NC: Attr% is far from 1", attr, holds=attr.high < FAR, fails=attr.low >= FAR))
    local = mean_of(found["articles_above_neighbours"] - found["others_above_neighbours"])
    lines.append(
        above(f"{kind}: articles stand out from their neighbours (share of peaks, less that of others)", local)
    )
    top = share_of(found["largest_is_article"])
    said = f"{kind}: articles do not stand out in the document (share whose largest weight is on a correlating article)"
    lines.append(verdict(said, top, holds=top.high < FAR, fails=top.low >= FAR))
    return lines


def _figure(number: int, title: str, kinds: tuple[str, ...], documents: int) -> Artefact:
    return Artefact(f"articles/figure-{number}", title, partial(figure, kinds=kinds, documents=documents))


ARTEFACTS = (
    Artefact("articles/table-1", "Attr% of attention over 11 trainings of Article, CN and NC", table_1),
    _figure(5, "attention on every word of two documents, Article", ("Article",), 2),
    _figure(7, "attention on every word of one document, CN and NC", ("CN", "NC"), 1),
    _figure(14, "attention on every word of six documents, Article", ("Article",), 6),
    _figure(15, "attention on every word of four documents, CN and NC", ("CN", "NC"), 4),
)
