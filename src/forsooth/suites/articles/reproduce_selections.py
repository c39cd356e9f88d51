"""Documents as rationale models select their words, with a verdict on each claim. [zhou2022feature, section 7]"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pandas import DataFrame, concat

from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction
from forsooth.scores.selection import FIRST
from forsooth.stats import SHARE, mean_interval, share_interval
from forsooth.stats.bootstrap import bootstrapped_ratio
from forsooth.suites.articles import documents
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.reproduce_rationales import RATIONALES
from forsooth.suites.articles.sentences import basis, documents_of
from forsooth.suites.articles.settings import RELAXED, Settings
from forsooth.suites.verdicts import above, judgement, verdict

MARKS = (
    "[word]: selected; [word!]: selected, tells nothing though an article; _word_: a correlating article that is missed"
)
LOWEST = replace(RATIONALES, kinds=("Article",), models=(RELAXED,), rates_article=(), rate_article=0.07)
ONE_RATE = replace(RATIONALES, kinds=("CN", "NC"), rates_halves=())
OF_DOCUMENTS = {"sample": "document", "value": "selected"}
COUNTS = ["selected", "articles", "hits", "misled", "others", "first_others"]


def plan_selections(settings: Settings, choice: Choice) -> Plan:
    """The suite's own plan, and a row for each document and selection."""
    return documents.with_documents(plan(settings, choice), documents.selection_by_document, of="articles.select")


def judge(outcome: Outcome, *, shown: int, claims: Callable[[DataFrame, str], list[str]]) -> Judgement:
    """Documents with their selections marked, and claims on all test documents."""
    own = (
        documents_of(outcome, "rationale model")
        .drop(columns="selected")
        .rename(columns=OF_DOCUMENTS)
        .astype(dict.fromkeys(COUNTS, int))
    )
    tables = []
    sentences = [basis(outcome), MARKS]
    for _, group in own.groupby("cell", sort=False):
        tables.append(group[["kind", "model", "rate", "document", *COUNTS, "text"]].head(shown))
        sentences += claims(group, f"{group['kind'].iloc[0]}, {group['model'].iloc[0]}")
    table = concat(tables, ignore_index=True)
    sentences += [f"{line.kind}, {line.model}: {line.text}" for line in table.itertuples()]
    return judgement(table, sentences)


def claims_16(table: DataFrame, who: str) -> list[str]:
    """Does the relaxation of the lowest rate take the first few words?"""
    some = table[table["others"] > 0]
    first = mean_interval(some["first_others"] / some["others"], bounds=SHARE)
    claim = f"{who}: of the selected words that are no articles, most are among the first {FIRST} (share)"
    none = "no other word is selected in any document" * some.empty
    hit = share_interval(table["hits"] > 0)
    return [
        verdict(claim, first, holds=first.low > 0.5, fails=some.empty or first.high <= 0.5, more=none),
        verdict(f"{who}: some article is selected in every document", hit, holds=hit.mean == 1, fails=True),
    ]


def claims_17(table: DataFrame, who: str) -> list[str]:
    """Do selections of CN and NC hold articles alone, and which?"""
    articles = bootstrapped_ratio(table["hits"] + table["misled"], table["selected"])
    misled = bootstrapped_ratio(table["misled"], table["selected"])
    missed = 1 - table["hits"].sum() / table["articles"].sum()
    return [
        above(f"{who}: the selection is almost exclusively of articles (over 0.95)", articles, 0.95),
        above(
            f"{who}: non-correlating articles are selected (share of it)",
            misled,
            more=f"{missed:.0%} of correlating missed",
        ),
    ]


REPRODUCTIONS = (
    Reproduction(
        "articles/figure-16",
        "four documents as the relaxation selects at the lowest rate, Article",
        LOWEST,
        plan_selections,
        partial(judge, shown=4, claims=claims_16),
    ),
    Reproduction(
        "articles/figure-17",
        "one document as both rationale models select, CN and NC",
        ONE_RATE,
        plan_selections,
        partial(judge, shown=1, claims=claims_17),
    ),
)
