"""The answer in plain words: how often each method would mislead, and whom to believe."""

from typing import Any

import pandas as pd

from forsooth.report.promises import broken_promises, gap_table
from forsooth.scores.functionless import Patched
from forsooth.user.independence.patches import Case
from forsooth.user.independence.result import clearly_worse
from forsooth.wording import agreeing, joined, share

FEW = 20  # inputs below which an interval says little
STEADY = "neither looks at the model: so steady is a map that says nothing, and so much does chance alone move one"


def summary(case: Case, patched: Patched, table: pd.DataFrame, rows: pd.DataFrame) -> str:
    """What was asked, what came out, and what to do."""
    some = int(patched.found().sum())
    if not some:
        return no_patches(case, patched)
    threshold = case.request.threshold
    known = table[table["attention"].notna()]
    methods = known[known["kind"].eq("method")]
    gaps = gap_table(rows.assign(metric="gap", value=rows["gap"]))
    parts = [
        setting(case, patched),
        f"The map of the patch's place changes by {share(threshold)} or more: {each(methods)}.",
        beside(known[known["kind"].eq("null")]),
        few(some),
        " ".join(broken_promises(gaps).values()),
        advice(methods, rows, threshold),
    ]
    return "\n\n".join(part for part in parts if part)


def first_words(case: Case, patched: Patched) -> str:
    n = len(case.x)
    patches = f"A patch that is seen and changes no output was found for {int(patched.found().sum())} of {n}"
    return f"{n} inputs; the patch is {case.noun}. {patches}"


def no_patches(case: Case, patched: Patched) -> str:
    """What to do where no patch was found."""
    off = f"the outputs still differ by {share(patched.ratio.median())} of their length in the median"
    remedy = "Try smaller patches (grid:8), or wider bounds: without patches nothing can be said."
    return f"{first_words(case, patched)}: {off}.\n\n{remedy}"


def setting(case: Case, patched: Patched) -> str:
    found = patched.found()
    outputs = share(patched.ratio[found].median(), digits=1)
    pixels = share(patched.change[found].median())
    sizes = f"outputs differ by {outputs} of their length and pixels by {pixels} of their range, medians"
    return f"{first_words(case, patched)} ({sizes})."


def each(methods: pd.DataFrame) -> str:
    """How often, method by method."""
    if methods.empty:
        return "no method was usable"
    return "; ".join(f"{line.method} {how_often(line)}" for line in methods.itertuples())


def beside(nulls: pd.DataFrame) -> str:
    lines = [f"{line.method} maps {how_often(line)}" for line in nulls.itertuples()]
    return f"Beside them, {' and '.join(lines)}; {STEADY}."


def how_often(line: Any) -> str:
    return f"in {share(line.attention)} of inputs (95 % interval {share(line.low)} to {share(line.high)})"


def few(patches: int) -> str:
    """A warning where patches are few; empty where they are enough."""
    if patches >= FEW:
        return ""
    return f"Warning: with {patches} patches the intervals are wide; give at least {FEW} inputs."


def advice(methods: pd.DataFrame, rows: pd.DataFrame, threshold: float) -> str:
    """Whom to believe about a place that may have no function."""
    if methods.empty:
        return "No method gave a usable map: ask others."
    names = methods["method"].tolist()
    worse = clearly_worse(rows, names[0], names, threshold)
    often = methods[methods["low"] > 0.5]["method"].tolist()
    least = joined([name for name in names if name not in worse], "or")
    sentence = f"Least drawn to what has no function: {least}"
    if worse:
        sentence += f"; {joined(worse)} {agreeing(worse, 'does', 'do')} so clearly more often"
    mislead = ""
    if often:
        mislead = f" In more than half of the inputs {joined(often)} would mislead."
    return f"{sentence}.{mislead} Steadiness alone is no proof: ask `forsooth bias`, too."
