"""The answer in plain words: how often each method would mislead, and whom to believe."""

from pandas import DataFrame

from forsooth.frames import only
from forsooth.report.promises import broken_promises, gap_table
from forsooth.scores.functionless import Patched
from forsooth.user.independence.patches import Case
from forsooth.user.independence.result import clearly_worse
from forsooth.wording import agreeing, joined, paragraphs

FEW = 20  # inputs below which an interval says little


def summary(case: Case, patched: Patched, table: DataFrame, rows: DataFrame) -> str:
    """What was asked, what came out, and what to do; the sentences are in words.jinja."""
    known = table[table["attention"].notna()]
    methods = only(known, kind="method")
    parts = paragraphs(
        __package__,
        "words.jinja",
        case=case,
        inputs=len(case.x),
        patched=patched,
        found=int(patched.found().sum()),
        few=FEW,
        methods=methods.to_dict("records"),
        nulls=only(known, kind="null").to_dict("records"),
        promises=broken_promises(gap_table(rows.assign(metric="gap", value=rows["gap"]))),
        advice=advice(methods, rows, case.request.threshold),
    )
    return "\n\n".join(parts)


def advice(methods: DataFrame, rows: DataFrame, threshold: float) -> str:
    """Whom to believe about a place that may have no function."""
    if methods.empty:
        return "No method gave a usable map: ask others."
    names = methods["method"].tolist()
    worse = clearly_worse(rows, names[0], names, threshold)
    often = methods[methods["low"] > 0.5]["method"].tolist()
    least = without(names, worse)
    sentence = f"Least drawn to what has no function: {joined(without(least, often), 'or')}"
    if not worse and len(names) > 1:
        sentence = f"{names[0]} is least drawn to what has no function, and none of the others clearly more"
    if set(least) <= set(often):
        sentence = (
            f"Believe none of them about such a place: {joined(least)} {agreeing(least, 'is', 'are')} least drawn"
        )
    if worse:
        sentence += f"; {joined(worse)} {agreeing(worse, 'does', 'do')} so clearly more often"
    mislead = ""
    if often:
        mislead = f" In clearly more than half of the inputs {joined(often)} would mislead."
    return f"{sentence}.{mislead} Steadiness alone is no proof: ask `forsooth bias`, too."


def without(names: list[str], others: list[str]) -> list[str]:
    return [name for name in names if name not in others]
