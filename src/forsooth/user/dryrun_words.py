"""The answer of a dry run in plain words: what each method did with each artefact, and whom to trust."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from forsooth.report.promises import broken_promises
from forsooth.user.dryrun_table import HINT, NOTHING, SHOWS, by_chance, percent, span
from forsooth.user.words import joined

SURE = 0.9  # accuracy below which a model may rightly look elsewhere, too
FEW = 15  # images of one kind below which a mean of skewed shares has no good interval


def told(table: pd.DataFrame, rows: pd.DataFrame, said: Sequence[str], *, visibility: int, own: bool) -> str:
    """A paragraph on the images, one for every artefact, and whom to trust.

    table  of `DryRun`, of which `rows` are the rows
    said   sentences on the images
    own    the user gave the training
    """
    trained = rows[rows["metric"].eq("accuracy")].set_index("manipulation")
    parts = [" ".join(said)]
    for artefact, lines in table.groupby("artefact", sort=False):
        one, tests = trained.loc[artefact].to_dict(), rows[rows["manipulation"].eq(artefact)]
        if one["status"] != "ok":
            parts.append(f"{artefact}: {unused(one, visibility=visibility, own=own)}")
            continue
        methods = lines[lines["kind"].eq("method")].to_dict("records")
        nulls = lines.set_index("method")["present"].to_dict()
        parts.append("\n".join([f"{artefact}: {used(one, tests)}", *(sentence(method, nulls) for method in methods)]))
    return "\n\n".join(part for part in (*parts, trust(table, trained)) if part)


def lead(words: str) -> tuple[str, list[str]]:
    """The words for the top of a page: whom to trust, and the lines on artefacts and images.

    >>> lead("240 images.\\n\\nwatermark: used.\\nwatermark: lime puts 9 %.\\n\\nTrust nobody.")
    ('Trust nobody.', ['watermark: used.', 'watermark: lime puts 9 %.', '240 images.'])
    """
    images, *artefacts, trust_ = words.split("\n\n")
    return trust_, [line for part in (*artefacts, images) for line in part.split("\n")]


def used(one: Mapping[str, Any], rows: pd.DataFrame) -> str:
    """That the model uses the artefact, and how surely."""
    seen = rows[rows["metric"].eq("attr") & rows["method"].eq("constant")].groupby("presence").size()
    said = (
        f"the model is right on {percent(one['value'])} of the test images, and could expect {percent(one['p_star'])} "
        f"without the artefact: it uses it. {seen.get('with', 0)} images with it were explained, and "
        f"{seen.get('without', 0)} without."
    )
    if one["value"] < SURE:
        said += " It is wrong so often that a part of its attribution may rightly lie elsewhere."
    if seen.min() < FEW:
        said += f" These are few: an interval from less than {FEW} images is rather too narrow."
    return said


def unused(one: Mapping[str, Any], *, visibility: int, own: bool) -> str:
    """Why a model was not explained, and what to do."""
    if one["status"] == "error":
        return f"no model, so nothing was explained: {one['message']}."
    level = "4" if visibility == 3 else f"{visibility + 1} to 4"
    more = [f"make the artefact more visible (visibility {level})"] if visibility < 4 else []
    longer = "train longer" if own else "give a training of your own that goes on for longer (train)"
    return (
        f"the model is right on {percent(one['value'])} of the test images, and could expect {percent(one['p_star'])} "
        f"without the artefact. Luck alone comes so far with a probability of {one['p_value']:.2g}, which is too much. "
        f"It need not use the artefact, so it was not explained. To change that, "
        f"{joined([*more, 'give more images (images)', longer], 'or')}."
    )


def sentence(one: Mapping[str, Any], nulls: Mapping[str, float]) -> str:
    """What a method did with one artefact, beside the shares of the nulls."""
    if one["status"] != "ok":
        return f"{one['artefact']}: {one['method']} gave no map: {one['message'] or one['status']}."
    share, blind = span(one["present"], one["low"], one["high"]), percent(one["random"])
    said = (
        f"{one['artefact']}: {one['method']} puts {share} of its attribution on the {percent(one['region'])} of the "
        f"image where the artefact is; a random map puts {blind}."
    )
    if by_chance(one["unbeaten"]):
        said += " That is no better than random."
    elif one["unbeaten"]:
        best = one["unbeaten"].split(", ")[0]
        said += f" But {best}, which never looks at the model, puts {percent(nulls[best])} there."
    if one["absent"] == one["absent"]:
        verdict = no_better(one["absent_unbeaten"]) if one["absent_unbeaten"] else "better than random"
        said += f" Absent artefact: {percent(one['absent'])}, {verdict}."
    if one["failed"] > 0:
        said += f" It gave no usable map for {percent(one['failed'])} of the images, each counted as 0 %."
    return said


def no_better(unbeaten: str) -> str:
    """
    >>> no_better("sobel, random")
    'no better than random'
    >>> no_better("sobel, laplace")
    'not clearly better than sobel, which never looks at the model'
    """
    if by_chance(unbeaten):
        return "no better than random"
    return f"not clearly better than {unbeaten.split(', ')[0]}, which never looks at the model"


def trust(table: pd.DataFrame, trained: pd.DataFrame) -> str:
    """Whom to trust, in a few sentences."""
    methods = table[table["kind"].eq("method") & table["artefact"].isin(trained.index[trained["status"].eq("ok")])]
    if methods.empty:
        return "No model uses its artefact, so nothing can be said of the methods: do as is said above, and ask again."
    groups: dict[str, list[str]] = {"all": [], "some": [], "hint": [], "none": [], "lost": []}
    partly = []
    for method, own in methods.groupby("method", sort=False):
        shows = own["artefact"][own["finding"].eq(SHOWS)].tolist()
        hints = own["artefact"][own["finding"].eq(HINT)].tolist()
        if own["status"].ne("ok").all():
            groups["lost"].append(method)
        elif shows:
            groups["all" if len(shows) == len(own) else "some"].append(method)
            partly += [] if len(shows) == len(own) else [f"{method} for {joined(shows)} only"]
        else:
            groups["hint" if hints else "none"].append(method)
    left = trained.index[trained["status"].ne("ok")].tolist()
    said = verdicts(groups, partly, artefacts=methods["artefact"].unique().tolist())
    said += nowhere(methods[~methods["method"].isin(groups["none"])])
    said += broken_promises(methods.groupby("method")[["gap", "broken"]].mean()).values()
    return " ".join([*said, *([f"Of {joined(left)} nothing can be said."] if left else [])])


def nowhere(methods: pd.DataFrame) -> list[str]:
    """Artefacts on which methods that are good for others are no better than random."""
    blind = methods[methods["finding"].eq(NOTHING)].groupby("artefact", sort=False)["method"].agg(list)
    return [
        f"On {artefact} {joined(names)} {'is' if len(names) == 1 else 'are'} no better than random."
        for artefact, names in blind.items()
    ]


def verdicts(groups: Mapping[str, list[str]], partly: Sequence[str], *, artefacts: Sequence[str]) -> list[str]:
    """One sentence for each kind of method that there is."""
    what = f"such {'an artefact' if len(artefacts) == 1 else 'artefacts'} ({joined(list(artefacts))})"
    said = []
    if groups["all"]:
        said.append(f"To show {what} you may trust {joined(groups['all'])}.")
    if partly:
        said.append(f"You may trust {joined(list(partly))}.")
    if not groups["all"] and not partly:
        said.append(f"None of the planned methods may be trusted to show {what}.")
    if groups["hint"]:
        mark = "it marks" if len(groups["hint"]) == 1 else "they mark"
        said.append(f"Take {joined(groups['hint'])} as a hint at most: much of what {mark} lies elsewhere.")
    if groups["none"]:
        are = "it is" if len(groups["none"]) == 1 else "they are"
        said.append(f"Do not trust {joined(groups['none'], 'or')} here: {are} no better than a random map.")
    if groups["lost"]:
        said.append(f"Nothing can be said of {joined(groups['lost'])}: no map was given.")
    return said
