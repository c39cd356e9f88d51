"""A table that nobody published."""

from forsooth.suites.needle.plan import plan
from forsooth.suites.needle.settings import Settings

from forsooth.records import Judgement, Outcome, Reproduction


def judge(outcome: Outcome) -> Judgement:
    scores = outcome.rows[outcome.rows["task"].eq("needle.explain")]
    table = scores.groupby("method", as_index=False)["value"].mean()
    best = table.sort_values("value").iloc[-1]
    return Judgement(table, f"The best is {best['method']}.\n")


REPRODUCTIONS = (Reproduction("needle/table-1", "who finds the column", Settings(columnss=(4,)), plan, judge),)
