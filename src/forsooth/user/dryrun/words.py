"""The answer of a dry run in plain words: what each method did with each artefact, and whom to trust."""

from collections import defaultdict
from collections.abc import Sequence

from pandas import DataFrame

from forsooth.frames import only, without
from forsooth.records import Facts
from forsooth.report.promises import broken_promises
from forsooth.user.dryrun.result import HINT, NOTHING, SHOWS, by_chance, span
from forsooth.wording import joined, text_of

SURE = 0.9  # accuracy below which a model may rightly look elsewhere, too
FEW = 15  # images of one kind below which a mean of skewed shares has no good interval


def summary(table: DataFrame, rows: DataFrame, notes: Sequence[str], *, visibility: int, own: bool) -> str:
    """A paragraph on the images, one for every artefact, and whom to trust; the sentences are in words.jinja.

    table  of `DryRun`, of which `rows` are the rows
    notes  sentences on the images
    own    the user gave the training
    """
    trained = only(rows, metric="accuracy").set_index("manipulation")
    used = trained["status"].eq("ok")
    methods = only(table, kind="method", artefact=trained.index[used])
    artefacts = [artefact_of(lines, trained, rows) for _, lines in table.groupby("artefact", sort=False)]
    return text_of(
        __package__,
        "words.jinja",
        notes=notes,
        artefacts=artefacts,
        scarce=any(artefact["counts"].min() < FEW for artefact in artefacts),
        visibility=visibility,
        own=own,
        sure=SURE,
        few=FEW,
        span=span,
        by_chance=by_chance,
        unexplained=trained.index[~used].tolist(),
        **trust(methods),
    )


def lead(words: str) -> tuple[str, list[str]]:
    """The words for the top of a page: whom to trust, and the lines on artefacts; what images were used it says itself.

    >>> lead("240 images.\\n\\nwatermark: used.\\nwatermark: lime puts 9 %.\\n\\nTrust nobody.")
    ('Trust nobody.', ['watermark: used.', 'watermark: lime puts 9 %.'])
    """
    _, *artefacts, last = words.split("\n\n")
    return last, "\n".join(artefacts).split("\n")


def artefact_of(lines: DataFrame, trained: DataFrame, rows: DataFrame) -> Facts:
    """What the template says of one artefact, from its lines of the table."""
    name = lines["artefact"].iloc[0]
    explained = only(rows, manipulation=name, metric="attr", method="constant")
    return {
        "name": name,
        "model": trained.loc[name].to_dict(),
        "counts": explained.groupby("presence").size(),
        "methods": only(lines, kind="method").to_dict("records"),
        "shares": lines.set_index("method")["present"].to_dict(),
    }


def trust(methods: DataFrame) -> Facts:
    """Whom to trust, from the lines of methods on artefacts whose models use them.

    groups     what they show -> methods, see `group_of`
    partly     those that show some artefacts, with these
    explained  the artefacts
    blind      artefact -> methods that are good for others and not clearly better than random here
    """
    by_method = methods.groupby("method", sort=False)
    groups: dict[str, list[str]] = defaultdict(list)
    for method, lines in by_method:
        groups[group_of(lines)].append(method)
    shown = only(methods, finding=SHOWS).groupby("method")["artefact"].agg(list)
    useful = without(only(methods, finding=NOTHING), method=groups["none"])
    return {
        "groups": groups,
        "partly": [f"{method} for {joined(shown[method])} only" for method in groups["some"]],
        "explained": methods["artefact"].unique().tolist(),
        "blind": useful.groupby("artefact", sort=False)["method"].agg(list),
        "promises": broken_promises(by_method[["gap", "broken"]].mean()),
    }


def group_of(lines: DataFrame) -> str:
    """Whether a method shows all artefacts, some, hints at one, shows none, or gave no maps."""
    findings = set(lines["finding"])
    if lines["status"].ne("ok").all():
        return "lost"
    if findings == {SHOWS}:
        return "all"
    if SHOWS in findings:
        return "some"
    if HINT in findings:
        return "hint"
    return "none"
