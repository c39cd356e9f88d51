"""Precision and recall of rationales made again, with a verdict on each claim. [zhou2022feature, section 7]"""

from dataclasses import replace

from forsooth.frames import only
from forsooth.records import Judgement, Outcome, Reproduction
from forsooth.suites.articles.claims import claims_7_1, claims_7_2
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.sentences import accurate, basis, nothing_to_judge
from forsooth.suites.articles.settings import PAPER, REINFORCE, RELAXED
from forsooth.suites.articles.tables import KEY, MODEL, selection_table
from forsooth.suites.verdicts import judgement

RATIONALES = replace(PAPER, models=(RELAXED, REINFORCE), methods=(), rationale_trainings=1)


def judge(outcome: Outcome) -> Judgement:
    """Precision and recall of both kinds of model at every target rate, beside the two optima."""
    rows = outcome.rows
    table = selection_table(rows)
    if table.empty:
        raise nothing_to_judge("rationale model", outcome)
    accuracy = only(rows, metric="accuracy").set_index(KEY)["value"]
    table.insert(4, "accuracy", [accuracy.loc[model] for model in table[MODEL].itertuples(index=False, name=None)])
    sentences = [basis(outcome), accurate(rows, "7.1"), *claims_7_1(table), *claims_7_2(table)]
    return judgement(table.round(4), sentences)


REPRODUCTIONS = (
    Reproduction(
        "articles/figure-8",
        "precision and recall of rationales against the rate of selection",
        RATIONALES,
        plan,
        judge,
    ),
)
