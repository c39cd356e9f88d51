"""Table 1 and the figures of attention made again, with a verdict on each claim. [zhou2022feature, section 6]"""

from dataclasses import replace
from functools import partial

from pandas import DataFrame

from forsooth import papers
from forsooth.counted import counted
from forsooth.frames import lines_by, only
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction
from forsooth.scores.selection import ATTR_WORDS
from forsooth.stats import mean_interval
from forsooth.suites.articles import documents
from forsooth.suites.articles.claims import beside_published, claims_of_figure, far_from_one, wider
from forsooth.suites.articles.data import WORDS
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.sentences import (
    accurate,
    basis,
    documents_of,
    nothing_to_judge,
)
from forsooth.suites.articles.settings import ATTENTION, PAPER, Settings
from forsooth.suites.verdicts import judgement

ALL_ATTENTION = replace(PAPER, models=(ATTENTION,), methods=("attention",), samples=None)
KINDS = ["kind", "words"]  # of data and of words
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
    table = papers.beside(lines_by(means, KINDS, line_of), "articles_table_1", KINDS, **names)
    sentences = [
        basis(outcome),
        accurate(outcome.rows, "6.2"),
        *far_from_one(means),
        *beside_published(means, table),
        *wider(means),
    ]
    return judgement(table.round(2), sentences)


def training_means(rows: DataFrame) -> DataFrame:
    """Mean over documents of Attr% and of the frequency, for each training and each kind of words."""
    own = only(rows, metric=WORDS, model=ATTENTION)
    own = counted(own.assign(words=own["metric"].map(WORDS)), ATTR_WORDS)  # a map without weight has none on any kind
    return own.groupby([*KINDS, "model_seed"], sort=False, as_index=False)[["value", "frequency"]].mean()


def line_of(means: DataFrame) -> dict[str, float]:
    """One kind of words in one kind of data, in %."""
    return {
        **mean_interval(100 * means["value"], bounds=(0, 100)).columns("attr", "low", "high", "trainings"),
        "sd": 100 * means["value"].std(),
        "frequency": 100 * means["frequency"].mean(),
    }


def plan_figure(settings: Settings, choice: Choice) -> Plan:
    """Attention word by word: the suite's own plan, and a row for each document."""
    return documents.with_documents(plan(settings, choice), documents.attention_by_document, of="articles.explain")


def judge_figure(outcome: Outcome, *, shown: int) -> Judgement:
    """Attention word by word: some documents in numbers, the claims on all test documents of one training."""
    own = documents_of(outcome, "attention model").rename(columns=OF_DOCUMENTS).astype(COUNTS)
    trainings = own.groupby(["kind", "training"], sort=False)
    name = "{}, training {}" if outcome.settings.trainings > 1 else "{}"
    groups = [(name.format(*key), str(key[0]), group) for key, group in trainings]
    sentences = [
        basis(outcome),
        "Intervals are over the documents of one training.",
        *claims_of_figure(groups),
    ]
    table = trainings[COLUMNS].head(shown).reset_index(drop=True)
    return judgement(table.round(4), [*sentences, accurate(outcome.rows, "6.1")])


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
