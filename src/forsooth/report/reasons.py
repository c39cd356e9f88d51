"""Failures and skips by their reason: a reason that many share is said once."""

import re
from collections.abc import Collection

from pandas import DataFrame

from forsooth.wording import joined, plural, share

Lines = list[dict[str, str]]


def by_reason(failures: DataFrame) -> Lines:
    """One line for each reason, those that took most samples first; `failures` as from `tables.failures`."""
    lines = []
    for (status, message, metrics), own in failures.groupby(["status", "message", "metrics"], sort=False):
        methods = joined([f"{line.method} {share(line.share)}" for line in own.itertuples()])
        about = {"reason": message, "status": status, "methods": methods, "scores": metrics}
        lines.append({**about, "panels": str(own["panels"].max())})
    return lines


def skipped_by_reason(skips: DataFrame, asked: Collection[str]) -> Lines:
    """One line for each reason; `skips` as from `tables.skips`.

    A reason that begins with who skipped says "the method" instead, so that many can share it.

    asked  methods that the page names: where a reason is that of all of them, they are not named one by one
    """
    alike = [re.sub(rf"^{re.escape(line.what)}\b", "the method", line.message) for line in skips.itertuples()]
    lines = []
    for (status, message), own in skips.assign(message=alike).groupby(["status", "message"], sort=False):
        what = list(dict.fromkeys(own["what"]))
        if len(asked) > 1 and set(asked) <= set(what):
            what = [f"all {len(asked)} methods and nulls", *(name for name in what if name not in asked)]
        lines.append({"reason": message, "status": status, "what": joined(what), "where": _places(own)})
    return lines


def _places(own: DataFrame, *, most: int = 6) -> str:
    """How many panels, and which."""
    names = list(dict.fromkeys(own["where"].explode()))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{plural(len(names), 'panel')}: {', '.join(names[:most])}{more}"
