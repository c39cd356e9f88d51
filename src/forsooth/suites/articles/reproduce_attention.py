"""Table 1 and the figures of attention made again, with a verdict on each claim. [zhou2022feature, section 6]"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from pandas import DataFrame, concat

from forsooth import papers
from forsooth.counted import counted
from forsooth.frames import lines_by, only
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction
from forsooth.scores.selection import ATTR_WORDS
from forsooth.stats import SHARE, Interval, mean_interval, share_interval, variance_ratio_interval
from forsooth.suites.articles import documents
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.sentences import (
    FAR,
    accurate,
    basis,
    documents_of,
    nothing_to_judge,
    published_claim,
)
from forsooth.suites.articles.settings import ATTENTION, PAPER, Settings
from forsooth.suites.verdicts import above, around, below, judgement

ALL_ATTENTION = replace(PAPER, models=(ATTENTION,), methods=("attention",), samples=None)
WORDS = {"attr_words": "correlating", "attr_words_non_correlating": "non_correlating", "attr_words_other": "other"}
EXCLUSIVE = 0.9  # from this Attr% on attention lies on articles "exclusively"
OF_DOCUMENTS = {"model_seed": "training", "sample": "document", "value": "attr"}
COLUMNS = [
    *("kind", "training", "document", "label", "words", "articles", "attr", "attr_non_correlating", "frequency"),
    *("articles_above_neighbours", "others_above_neighbours", "largest_is_article", "largest"),
]
COUNTS = {"label": int, "words": int, "articles": int, "largest_is_article": bool}


def judge_table_1(outcome: Outcome) -> Judgement:
    """Mean and spread over trainings of Attr% of attention on the three kinds of words, beside the published."""
    means = training_means(outcome.rows)
    if means.empty:
        raise nothing_to_judge("attention model", outcome)
    names = {"mean": "published", "sd": "published_sd", "frequency": "published_frequency"}
    published = papers.table("articles_table_1").rename(columns=names)
    table = lines_by(means, ["kind", "words"], line_of).merge(published, on=["kind", "words"], how="left")
    sentences = [
        basis(outcome),
        accurate(outcome.rows, "6.2"),
        *far_from_one(means),
        *beside_published(table),
        *wider(means),
    ]
    return judgement(table.round(2), sentences)


def training_means(rows: DataFrame) -> DataFrame:
    """Mean over documents of Attr% and of the frequency, for each training and each kind of words."""
    own = only(rows, metric=WORDS, model=ATTENTION)
    own = counted(own.assign(words=own["metric"].map(WORDS)), ATTR_WORDS)  # a map without weight has none on any kind
    return own.groupby(["kind", "words", "model_seed"], sort=False, as_index=False)[["value", "frequency"]].mean()


def line_of(means: DataFrame) -> dict[str, float]:
    """One kind of words in one kind of data, in %."""
    return {
        **mean_interval(100 * means["value"], bounds=(0, 100)).columns("attr", "low", "high", "trainings"),
        "sd": 100 * means["value"].std(),
        "frequency": 100 * means["frequency"].mean(),
    }


def far_from_one(means: DataFrame) -> Iterator[str]:
    """For each kind of data: is Attr% far from 1, and is it more than the frequency?"""
    for kind, own in means.groupby("kind", sort=False):
        by_words = dict(tuple(own.groupby("words")))
        attr = mean_interval(by_words["correlating"]["value"], bounds=SHARE)
        yield below(f"{kind}: attention on correlating articles is far from 1 (below {FAR})", attr, FAR)
        for words in ("correlating", "non_correlating"):
            if words in by_words:
                excess = mean_interval(by_words[words]["value"] - by_words[words]["frequency"])
                yield above(f"{kind}: {words} articles get more than their frequency (excess)", excess)


def beside_published(table: DataFrame) -> Iterator[str]:
    """Every published number beside ours."""
    for line in table[table["published"].notna()].itertuples():
        ours = Interval(line.attr, line.low, line.high, line.trainings)
        spreads = f"spread {line.sd:.1f}, published {line.published_sd:.1f}"
        yield around(f"{line.kind}: Attr% on {line.words} words, in %", ours, line.published, spreads)


def wider(means: DataFrame) -> list[str]:
    """The verdict on "trainings of CN differ more than those of Article"; nothing where they are too few."""
    own = only(means, words="correlating")
    values = {kind: group["value"] for kind, group in own.groupby("kind")}
    if not {"Article", "CN"} <= set(values) or min(map(len, values.values())) <= 2:
        return []
    ratio = variance_ratio_interval(values["CN"], values["Article"])
    return [above("Trainings of CN differ more than those of Article (ratio of variances)", ratio, 1.0)]


def plan_figure(settings: Settings, choice: Choice) -> Plan:
    """Attention word by word: the suite's own plan, and a row for each document."""
    return documents.with_documents(plan(settings, choice), documents.attention_by_document, of="articles.explain")


def judge_figure(outcome: Outcome, *, shown: int) -> Judgement:
    """Attention word by word: some documents in numbers, the claims on all test documents of one training."""
    own = documents_of(outcome, "attention model").rename(columns=OF_DOCUMENTS).astype(COUNTS)
    tables = []
    sentences = [basis(outcome), "Intervals are over the documents of one training."]
    for (kind, training), group in own.groupby(["kind", "training"], sort=False):
        tables.append(group[COLUMNS].head(shown))
        if outcome.settings.trainings > 1:
            sentences.append(f"Training {training}.")
        sentences += claims_of_figure(str(kind), group)
    table = concat(tables, ignore_index=True)
    return judgement(table.round(4), [*sentences, accurate(outcome.rows, "6.1")])


def claims_of_figure(kind: str, table: DataFrame) -> list[str]:
    """The claims on one training, from a line for each document."""
    local = mean_interval(table["articles_above_neighbours"] - table["others_above_neighbours"])
    peaks = f"{kind}: articles stand out from their neighbours (share of peaks, less that of others)"
    largest = (
        f"{kind}: articles do not stand out in the document (share whose largest weight is on a correlating article)"
    )
    return [
        *claims_on_share(kind, table),
        above(peaks, local),
        below(largest, share_interval(table["largest_is_article"]), FAR),
    ]


def claims_on_share(kind: str, table: DataFrame) -> list[str]:
    """What the paper says of Attr% in this kind of data."""
    attr = mean_interval(table["attr"], bounds=SHARE)
    if kind == "CN":
        return [above(f"CN: attention lies on correlating articles exclusively (over {EXCLUSIVE})", attr, EXCLUSIVE)]
    if kind == "NC":
        return [below("NC: Attr% is far from 1", attr, FAR)]
    excess = mean_interval(table["attr"] - table["frequency"])
    return [
        around("Article: Attr% of attention on articles", attr, published_claim("6.1", "attr_articles")),
        above("Article: that is better than random (excess over the frequency)", excess),
    ]


def figure(number: int, title: str, kinds: tuple[str, ...], shown: int) -> Reproduction:
    settings = replace(ALL_ATTENTION, kinds=kinds, trainings=1)
    judge = partial(judge_figure, shown=shown)
    return Reproduction(f"articles/figure-{number}", title, settings, plan_figure, judge)


REPRODUCTIONS = (
    Reproduction(
        "articles/table-1",
        "Attr% of attention over 11 trainings of Article, CN and NC",
        ALL_ATTENTION,
        plan,
        judge_table_1,
    ),
    figure(5, "attention on every word of two documents, Article", ("Article",), 2),
    figure(7, "attention on every word of one document, CN and NC", ("CN", "NC"), 1),
    figure(14, "attention on every word of six documents, Article", ("Article",), 6),
    figure(15, "attention on every word of four documents, CN and NC", ("CN", "NC"), 4),
)
