"""The answer: one line for every check and kind of input, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pandas import DataFrame

from forsooth.adapters.methods import NamedMethod
from forsooth.frames import without
from forsooth.user.check import words
from forsooth.user.check.evidence import Evidence
from forsooth.user.check.units import BY_HAND, UnitTest
from forsooth.user.check.units import summary as units_in_words
from forsooth.user.check.verdicts import OK, Verdict, verdicts
from forsooth.user.pages import Page, PagedResult, described_methods
from forsooth.wording import joined

ALL = "all"  # stands in the column `input` for a line about all inputs together


@dataclass(frozen=True)
class CheckResult(PagedResult):
    """Whether a method keeps the contract of every method of the catalogue.

    table   one line per check and kind of input: check, input, status (ok, wrong, note or inconclusive; pass, fail or
            refused of networks with weights set by hand), message
    rows    the same
    words   the same in plain sentences: what is wrong, and how to fix it
    passed  nothing is wrong
    """

    title: ClassVar[str] = "Contract of a method"
    passed: bool

    def shown(self) -> DataFrame:
        """The table for a reader: inputs of which the same is said stand in one line."""
        return merged(self.table)


class Line(NamedTuple):
    check: str
    input: str
    status: str
    message: str


def result_of(named: NamedMethod, evidence: Sequence[Evidence], tests: Sequence[UnitTest]) -> CheckResult:
    """The verdict. Unit tests of explanations stand in the table, and are no part of the contract."""
    usable = [seen for seen in evidence if not seen.first.fault]
    lines: list[Line] = []
    for seen in evidence:
        lines += lines_of(named, seen, works=bool(usable))
    lines += overall(evidence, usable)
    lines += [Line(test.name, BY_HAND, test.status, test.message) for test in tests]
    table = DataFrame(lines, columns=list(Line._fields))
    wrong = table["status"].eq("wrong")
    summary = words.summary(
        named.name,
        merged(without(table, input=ALL)).query("status == 'wrong'"),
        random=bool(table["message"].eq("random").any()),
        works_on=[seen.input for seen in usable],
    )
    if tests:
        summary += f"\n{units_in_words(tests)}"
    page = Page(
        suite="check",
        question=f"Does {named.name} keep the contract that every method of the catalogue keeps?",
        command=f"forsooth check {named.name}" if named.portable else "",
        settings={"method": named.name},
        methods=described_methods([named]),
        rows=[{"suite": "check", "part": "check", "method": named.name, "said": " · ".join(line)} for line in lines],
    )
    return CheckResult(table, table, summary, passed=not wrong.any(), page=page)


def lines_of(named: NamedMethod, seen: Evidence, *, works: bool) -> list[Line]:
    """All checks on one kind of input. A fault is a note where the method works on another kind.

    But a map of another shape than an image is wrong: it may fit words by chance, and would fail on every image.
    """
    misfit = seen.first.fault == "wrong shape" and seen.x.ndim == 4
    fault = Verdict("note" if works and not misfit else "wrong", seen.first.message)
    if seen.first.fault == "raised":
        found = [("runs", fault)]
    elif seen.first.maps is None:
        found = [("runs", OK), ("shape", fault)]
    else:
        found = [("runs", OK), *verdicts(named.method, named.own, seen)]
    return [Line(check, seen.input, *verdict) for check, verdict in found]


def overall(evidence: Sequence[Evidence], usable: Sequence[Evidence]) -> list[Line]:
    """On which inputs it works, and how long a map takes."""
    if not usable:
        return [Line("inputs", ALL, "wrong", "it gives a map for none of them")]
    names = [seen.input for seen in usable]
    lost = [seen.input for seen in evidence if seen.input not in names]
    works = Line("inputs", ALL, "ok", f"works on {joined(names)}")
    if lost:
        works = works._replace(status="note", message=f"{works.message}; not on {joined(lost)}")
    seconds = ", ".join(f"{quickest(seen):.2g} ({seen.input})" for seen in usable)
    return [works, Line("seconds", ALL, "note", f"for one map: {seconds}")]


def quickest(seen: Evidence) -> float:
    """Seconds for one map, of the two calls that are alike."""
    calls = [trial.seconds for trial in (seen.first, seen.again) if trial]
    return min(calls) / len(seen.x)


def merged(table: DataFrame) -> DataFrame:
    """The table with one line for all inputs of which the same is said."""
    kinds = table.groupby("check")["input"].nunique()
    same = table.groupby(["check", "status", "message"], sort=False)["input"].agg(list).reset_index()
    pairs = zip(same["check"], same["input"], strict=True)
    same["input"] = [ALL if len(inputs) == kinds[check] > 1 else ", ".join(inputs) for check, inputs in pairs]
    order = {check: place for place, check in enumerate(table["check"].unique())}
    return same.sort_values("check", key=lambda check: check.map(order), kind="stable")[list(Line._fields)]
