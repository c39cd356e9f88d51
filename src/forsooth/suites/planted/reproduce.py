"""The figures of section 5 made again, and a verdict on each of their claims. [zhou2022feature]"""

from dataclasses import replace

from pandas import DataFrame, concat

from forsooth.frames import only
from forsooth.names import kept
from forsooth.records import Choice, Judgement, Outcome, Plan, Reproduction, UsageError
from forsooth.settings import check_words
from forsooth.suites.planted.claims import CLAIMS
from forsooth.suites.planted.plan import plan
from forsooth.suites.planted.settings import ENDS, PAPER, PUBLISHED, Settings
from forsooth.suites.planted.tables import model_means, table_of
from forsooth.suites.verdicts import judgement


def judge(outcome: Outcome) -> Judgement:
    """Attr% by method, manipulation and presence, and the claims of the sections that were asked for."""
    tables = []
    words = [what_was_run(outcome.rows, outcome.settings)]
    for experiment in kept(outcome.settings.experiments, outcome.choice.only, "experiment"):
        rows = only(outcome.rows, experiment=experiment)
        models = model_means(rows)
        if models.empty:
            raise UsageError(f"no model passed its gate in {experiment}, so there is nothing to judge")
        tables.append(table_of(models, experiment))
        accuracy = only(rows, metric="accuracy")["value"]
        words += [f"Section {experiment}.", *CLAIMS[experiment](models, accuracy)]
    return judgement(concat(tables, ignore_index=True).round(4), words)


def what_was_run(rows: DataFrame, settings: Settings) -> str:
    trained = only(rows, metric="accuracy")
    passed = trained["status"].eq("ok").sum()
    restarts = ""
    if settings.restarts:
        restarts = f" Trainings were restarted up to {settings.restarts} times."
    return (
        f"{len(trained)} models ({', '.join(settings.models)}) on {rows['dataset'].iloc[0]} at {settings.side} px, "
        f"{passed} of them beat p* (p-value at most {settings.max_p_value:g}) and pass {settings.gate:.0%}; intervals "
        "are over models; an image without a usable map counts as 0 (failed: their share; attr_defined leaves them "
        f"out).{restarts}"
    )


def plan_of_claims(settings: Settings, choice: Choice) -> Plan:
    check_words(settings, {"experiments": CLAIMS})
    return plan(settings, choice)


def reproduction(number: int, title: str, *experiments: str) -> Reproduction:
    settings = replace(PAPER, experiments=experiments, methods=(*PUBLISHED, *ENDS))
    return Reproduction(f"planted/figure-{number}", title, settings, plan_of_claims, judge)


REPRODUCTIONS = (
    reproduction(3, "Attr% against the size of the region and against accuracy", "5.1", "5.2"),
    reproduction(4, "Attr% against visibility and against r", "5.3", "5.4"),
    reproduction(10, "Attr% against the size of the region, 100 models", "5.1"),
    reproduction(11, "Attr% against visibility, 100 models", "5.3"),
    reproduction(12, "Attr% against r, 120 models", "5.4"),
    reproduction(13, "Attr% against test accuracy, 100 models", "5.2"),
)
