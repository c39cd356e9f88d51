"""Failures and skips by their reason: a reason that many share is said once."""

import pandas as pd

from forsooth.wording import joined, plural, share

Lines = list[dict[str, str]]


def by_reason(failures: pd.DataFrame) -> Lines:
    """One line for each reason, those that took most samples first; `failures` as from `tables.failures`."""
    lines = []
    for (status, message, metrics), own in failures.groupby(["status", "message", "metrics"], sort=False):
        methods = [f"{line.method} {share(line.share)}" for line in own.itertuples()]
        panels = str(own["panels"].max())
        lines.append(
            {"reason": message, "status": status, "methods": joined(methods), "scores": metrics, "panels": panels}
        )
    return lines


def skipped_by_reason(skips: pd.DataFrame) -> Lines:
    """One line for each reason and place; `skips` as from `tables.skips`.

    A reason that names who skipped says "the method" instead, so that many can share it.
    """
    alike = [line.message.replace(line.what, "the method") for line in skips.itertuples()]
    lines = []
    for (status, message, where), own in skips.assign(message=alike).groupby(
        ["status", "message", "where"], sort=False
    ):
        panels = plural(int(own["panels"].max()), "panel")
        lines.append(
            {"reason": message, "status": status, "what": joined([*own["what"]]), "where": f"{panels}: {where}"}
        )
    return lines
