"""The answer: one line for every check and kind of input, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pandas import DataFrame

from forsooth.adapters.methods import NamedMethod
from forsooth.frames import only, without
from forsooth.user.check.evidence import Evidence
from forsooth.user.check.units import BY_HAND
from forsooth.user.check.verdicts import OK, Check, Verdict, verdicts
from forsooth.user.pages import Page, PagedResult, described_methods
from forsooth.wording import joined, text_of

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


def result_of(named: NamedMethod, evidence: Sequence[Evidence], tests: Sequence[Check]) -> CheckResult:
    """The verdict. Unit tests of explanations stand in the table, and are no part of the contract."""
    usable = [seen for seen in evidence if not seen.first.fault]
    by_hand = [Line(name, BY_HAND, *verdict) for name, verdict in tests]
    lines = [line for seen in evidence for line in lines_of(named, seen, works=bool(usable))]
    lines += [*overall(evidence, usable), *by_hand]
    table = DataFrame(lines)
    summary = text_of(
        __package__,
        "words.jinja",
        name=named.name,
        wrong=only(merged(without(table, input=ALL)), status="wrong").to_dict("records"),
        random="random" in table["message"].to_list(),
        works_on=[seen.input for seen in usable],
        tests=by_hand,
    )
    return CheckResult(table, table, summary, passed=only(table, status="wrong").empty, page=page_on(named, lines))


def page_on(named: NamedMethod, lines: Sequence[Line]) -> Page:
    """What the page says beside table and words."""
    return Page(
        suite="check",
        question=f"Does {named.name} keep the contract that every method of the catalogue keeps?",
        command=f"forsooth check {named.name}" if named.portable else "",
        settings={"method": named.name},
        methods=described_methods([named]),
        rows=[{"suite": "check", "part": "check", "method": named.name, "said": " · ".join(line)} for line in lines],
    )


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
    works = Line("inputs", ALL, "ok", f"works on {joined([seen.input for seen in usable])}")
    lost = [seen.input for seen in evidence if seen.first.fault]
    if lost:
        works = works._replace(status="note", message=f"{works.message}; not on {joined(lost)}")
    seconds = ", ".join(f"{quickest(seen):.2g} ({seen.input})" for seen in usable)
    return [works, Line("seconds", ALL, "note", f"for one map: {seconds}")]


def quickest(seen: Evidence) -> float:
    """Seconds for one map, of the two calls that are alike."""
    return min(seen.first.seconds, seen.again.seconds) / len(seen.x)


def merged(table: DataFrame) -> DataFrame:
    """The table with one line for all inputs of which the same is said."""
    lines = []
    for check, own in table.groupby("check", sort=False):
        for (status, message), same in own.groupby(["status", "message"], sort=False):
            inputs = ", ".join(same["input"])
            if len(same) == own["input"].nunique() > 1:
                inputs = ALL
            lines.append(Line(str(check), inputs, status, message))
    return DataFrame(lines)
