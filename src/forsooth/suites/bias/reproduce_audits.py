"""Fig. 3 and appendix N made again: what networks use that they should not need. [anonymous2023evaluation]"""

import dataclasses
from functools import partial

from pandas import DataFrame, Series

from forsooth import papers
from forsooth.frames import only
from forsooth.records import Judgement, Outcome, Reproduction
from forsooth.stats.intervals import AT_LEAST_0, SHARE, samples_and_trainings
from forsooth.suites.bias import audit
from forsooth.suites.bias.audit import AuditSettings
from forsooth.suites.verdicts import judgement
from forsooth.wording import text_of

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


def figure_3(outcome: Outcome) -> Judgement:
    """Fig. 3: relative attribution of a region that was pasted in from another class; 0 if it did not matter."""
    lines = lines_of(outcome, "figure-3", bounds=AT_LEAST_0)
    return judgement(DataFrame(lines).drop(columns="plain").round(4), map(partial(words_of, kind="region"), lines))


def appendix_n(outcome: Outcome) -> Judgement:
    """Appendix N: share of Shapley mass inside a pattern whose presence is the label; 1 if nothing else mattered."""
    lines = lines_of(outcome, "appendix-n", bounds=SHARE)
    return judgement(DataFrame(lines).round(4), map(partial(words_of, kind="pattern"), lines))


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


def words_of(line: Line, *, kind: audit.Kind) -> str:
    """What the interval of a network says, or why it was not audited, in audits.jinja."""
    values = {"line": line, "kind": kind, "surely_used": SURELY_USED, "next_to_all": NEXT_TO_ALL}
    return text_of(__package__, "audits.jinja", **values)


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
