"""Documents as rationale models select their words, with a verdict on each claim. [zhou2022feature, section 7]"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from forsooth.frames import worded
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction, Sentences
from forsooth.suites.articles import documents
from forsooth.suites.articles.claims import Selection, claims_16, claims_17
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.reproduce_rationales import RATIONALES
from forsooth.suites.articles.sentences import basis, documents_of
from forsooth.suites.articles.settings import RELAXED, Settings
from forsooth.suites.verdicts import judgement

MARKS = (
    "[word]: selected; [word!]: selected, tells nothing though an article; _word_: a correlating article that is missed"
)
LOWEST = replace(RATIONALES, kinds=("Article",), models=(RELAXED,), rates_article=(), rate_article=0.07)
ONE_RATE = replace(RATIONALES, kinds=("CN", "NC"), rates_halves=())
OF_DOCUMENTS = {"sample": "document", "value": "selected"}
COUNTS = ["selected", "articles", "hits", "misled", "others", "first_others"]
COLUMNS = ["kind", "model", "rate", "document", *COUNTS, "text"]


def plan_selections(settings: Settings, choice: Choice) -> Plan:
    """The suite's own plan, and a row for each document and selection."""
    return documents.with_documents(plan(settings, choice), documents.selection_by_document, of="articles.select")


def judge(outcome: Outcome, *, shown: int, claims: Callable[[Sequence[Selection]], Sentences]) -> Judgement:
    """Documents with their selections marked, and claims on all test documents."""
    own = documents_of(outcome, "rationale model").drop(columns="selected").rename(columns=OF_DOCUMENTS)
    own[COUNTS] = own[COUNTS].astype(int)
    selections = [(*worded(group[:1], "{kind}, {model}"), group) for _, group in own.groupby("cell", sort=False)]
    sentences = [basis(outcome), MARKS, *claims(selections)]
    table = own.groupby("cell", sort=False)[COLUMNS].head(shown).reset_index(drop=True)
    sentences += worded(table, "{kind}, {model}: {text}")
    return judgement(table, sentences)


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
