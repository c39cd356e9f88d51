"""Fig. 3 and appendix N made again: what networks use that they should not need. [anonymous2023evaluation]"""

import dataclasses
from collections.abc import Callable
from functools import partial

from pandas import DataFrame, Series

from forsooth import papers
from forsooth.frames import only
from forsooth.records import Judgement, Outcome, Reproduction
from forsooth.stats.intervals import AT_LEAST_0, SHARE, samples_and_trainings
from forsooth.suites.bias import audit
from forsooth.suites.bias.audit import AuditSettings
from forsooth.suites.verdicts import judgement

Judge = Callable[[Outcome], Judgement]

SURELY_USED = 0.1  # of the mean attribution of a region
NEXT_TO_ALL = 0.98  # of the Shapley mass


@dataclasses.dataclass(frozen=True)
class Line:
    """One audited network in numbers.

    accuracy   and gate, %; the accuracy is that of the trainings above the gate, if there are any
    trainings  above the gate; `below_gate` are the others
    inputs     audited images
    plain      mean if the noise of the estimates counts, too
    """

    dataset: str
    model: str
    accuracy: float
    gate: float
    trainings: int
    below_gate: int
    inputs: int
    mean: float
    low: float
    high: float
    plain: float
    published: float

    @property
    def title(self) -> str:
        return f"{self.dataset}, {self.model} ({self.accuracy:.0f} % accurate)"

    @property
    def numbers(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def figure_3(outcome: Outcome) -> Judgement:
    """Fig. 3: relative attribution of a region that was pasted in from another class; 0 if it did not matter."""
    lines = lines_of(outcome, "figure-3", bounds=AT_LEAST_0)
    return judgement(DataFrame(lines).drop(columns="plain").round(4), map(on_region, lines))


def appendix_n(outcome: Outcome) -> Judgement:
    """Appendix N: share of Shapley mass inside a pattern whose presence is the label; 1 if nothing else mattered."""
    lines = lines_of(outcome, "appendix-n", bounds=SHARE)
    return judgement(DataFrame(lines).round(4), map(on_pattern, lines))


def lines_of(outcome: Outcome, name: str, *, bounds: tuple[float, float]) -> list[Line]:
    published = float(papers.table("bias_audits").set_index("artefact").loc[name, "value"])
    networks = outcome.rows.groupby(["dataset", "model"], sort=False)
    return [line_of(rows, published, bounds=bounds) for _, rows in networks]


def line_of(rows: DataFrame, published: float, *, bounds: tuple[float, float]) -> Line:
    """The numbers of one network from the rows of its trainings and audits."""
    trainings = only(rows, part="training")
    audited = only(rows, part="audit")
    passed = trainings["status"].eq("ok")
    interval = samples_and_trainings(audited, bounds=bounds)
    return Line(
        dataset=rows["dataset"].iloc[0],
        model=rows["model"].iloc[0],
        accuracy=100 * trainings["value"][passed | ~passed.any()].mean(),
        gate=100 * rows["gate"].iloc[0],
        trainings=int(passed.sum()),
        below_gate=int((~passed).sum()),
        inputs=interval.n,
        mean=interval.mean,
        low=interval.low,
        high=interval.high,
        plain=audited.get("plain", Series(dtype=float)).mean(),
        published=published,
    )


REGION = (
    "{line.title}: the irrelevant region has {line.numbers} of the mean attribution of a region over {drawn} "
    "(published {line.published}). {used}"
)
PATTERN = (
    "{line.title}: {line.numbers} of the Shapley mass lies inside the pattern over {drawn} (published "
    "{line.published}; {line.plain:.3f} if the noise of the estimates counts, too); {outside}"
)


def on_region(line: Line) -> str:
    return not_audited(line) or REGION.format(line=line, drawn=drawn(line), used=used(line))


def on_pattern(line: Line) -> str:
    return not_audited(line) or PATTERN.format(line=line, drawn=drawn(line), outside=outside(line))


def not_audited(line: Line) -> str:
    """Why a network was not audited; empty if it was."""
    if line.inputs:
        return ""
    below = f"below its gate of {line.gate:.0f} %"
    why = below if line.accuracy < line.gate else "no image with a region got right"
    return f"{line.title}: {why}, so not audited."


def drawn(line: Line) -> str:
    """What the interval of a line is over."""
    one = "of one training (the interval knows its images alone)"
    trained = one if line.trainings < 2 else f"and {line.trainings} trainings"
    left_out = f"; {line.below_gate} below the gate of {line.gate:.0f} % left out" if line.below_gate else ""
    return f"{line.inputs} images {trained}{left_out}"


def used(line: Line) -> str:
    """What the interval says of a region that cannot matter."""
    if line.low > SURELY_USED:
        return "It is not 0, so the published finding holds: pasted regions are used."
    if line.low > 0:
        return "It is not 0, so the finding holds weakly: pasted regions are used."
    return "The interval reaches 0, so whether pasted regions are used is inconclusive."


def outside(line: Line) -> str:
    """What the interval says of the mass outside a pattern that is the label."""
    if line.low > NEXT_TO_ALL:
        return "next to nothing of it lies outside."
    if line.high < 1:
        return "a part of it lies outside."
    return "whether a part of it lies outside is inconclusive."


REPRODUCTIONS = (
    Reproduction(
        "bias/figure-3",
        "do networks use a pasted region that cannot matter?",
        AuditSettings(),
        partial(audit.plan, kind="region"),
        figure_3,
    ),
    Reproduction(
        "bias/appendix-n",
        "do networks use only the pattern that is the label?",
        AuditSettings(),
        partial(audit.plan, kind="pattern"),
        appendix_n,
    ),
)
