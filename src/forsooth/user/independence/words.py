"""The answer in plain words: how often each method would mislead, and whom to believe."""

from pandas import DataFrame

from forsooth.frames import only
from forsooth.report.promises import broken_promises, gap_table
from forsooth.scores.functionless import Patched
from forsooth.user.independence.patches import Case
from forsooth.user.independence.result import clearly_worse
from forsooth.wording import text_of

FEW = 20  # inputs below which an interval says little


def summary(case: Case, patched: Patched, table: DataFrame, rows: DataFrame) -> str:
    """What was asked, what came out, and what to do; the sentences are in words.jinja."""
    known = table[table["attention"].notna()]
    methods = only(known, kind="method")
    return text_of(
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


def advice(methods: DataFrame, rows: DataFrame, threshold: float) -> str:
    """Whom to believe about a place that may have no function."""
    names = methods["method"].tolist()
    worse = clearly_worse(rows, names, threshold)
    least = [name for name in names if name not in worse]
    often = methods["method"][methods["low"].gt(0.5)].tolist()
    return text_of(__package__, "advice.jinja", least=least, worse=worse, often=often)
