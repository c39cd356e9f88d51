"""The answer of a dry run in plain words: what each method did with each artefact, and whom to trust."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from forsooth.report.promises import broken_promises
from forsooth.user.dryrun.result import HINT, NOTHING, SHOWS, by_chance, span
from forsooth.wording import agreeing, joined, share

SURE = 0.9  # accuracy below which a model may rightly look elsewhere, too
FEW = 15  # images of one kind below which a mean of skewed shares has no good interval
UNSAID = "No model uses its artefact, so nothing can be said of the methods: do as is said above, and ask again."


def summary(table: pd.DataFrame, rows: pd.DataFrame, notes: Sequence[str], *, visibility: int, own: bool) -> str:
    """A paragraph on the images, one for every artefact, and whom to trust.

    table  of `DryRun`, of which `rows` are the rows
    notes  sentences on the images
    own    the user gave the training
    """
    trained = rows[rows["metric"].eq("accuracy")].set_index("manipulation")
    parts = [" ".join(notes)]
    for artefact, lines in table.groupby("artefact", sort=False):
        model = trained.loc[artefact].to_dict()
        if model["status"] == "ok":
            parts.append(used_artefact(lines, model, rows[rows["manipulation"].eq(artefact)]))
        else:
            parts.append(f"{artefact}: {unused(model, visibility=visibility, own=own)}")
    parts.append(trust(table, trained))
    return "\n\n".join(part for part in parts if part)


def lead(words: str) -> tuple[str, list[str]]:
    """The words for the top of a page: whom to trust, and the lines on artefacts and images.

    >>> lead("240 images.\\n\\nwatermark: used.\\nwatermark: lime puts 9 %.\\n\\nTrust nobody.")
    ('Trust nobody.', ['watermark: used.', 'watermark: lime puts 9 %.', '240 images.'])
    """
    images, *artefacts, last = words.split("\n\n")
    lines = "\n".join([*artefacts, images])
    return last, lines.split("\n")


def used_artefact(lines: pd.DataFrame, model: Mapping[str, Any], rows: pd.DataFrame) -> str:
    """A line on the model that uses an artefact, and one for each method."""
    artefact = lines["artefact"].iloc[0]
    nulls = lines.set_index("method")["present"].to_dict()
    sentences = [f"{artefact}: {used(model, rows)}"]
    for method in lines[lines["kind"].eq("method")].to_dict("records"):
        sentences.append(f"{artefact}: {method['method']} {sentence(method, nulls)}")
    return "\n".join(sentences)


def rightness(model: Mapping[str, Any]) -> str:
    right = share(model["value"])
    expected = share(model["p_star"])
    return f"the model is right on {right} of the test images, and could expect {expected} without the artefact"


def used(model: Mapping[str, Any], rows: pd.DataFrame) -> str:
    """That the model uses the artefact, and how surely."""
    counts = rows[rows["metric"].eq("attr") & rows["method"].eq("constant")].groupby("presence").size()
    images = f"{counts.get('with', 0)} images with it were explained, and {counts.get('without', 0)} without."
    sentences = [f"{rightness(model)}: it uses it.", images]
    if model["value"] < SURE:
        sentences.append("It is wrong so often that a part of its attribution may rightly lie elsewhere.")
    if counts.min() < FEW:
        sentences.append(f"These are few: an interval from less than {FEW} images is rather too narrow.")
    return " ".join(sentences)


def unused(model: Mapping[str, Any], *, visibility: int, own: bool) -> str:
    """Why a model was not explained, and what to do."""
    if model["status"] == "error":
        return f"no model, so nothing was explained: {model['message']}."
    chance = f"Chance alone gets so far with a p-value of {model['p_value']:.2g}, which is too much."
    remedies = joined([*more_visible(visibility), "give more images (images)", train_longer(own)], "or")
    result = "It need not use the artefact, so it was not explained."
    return f"{rightness(model)}. {chance} {result} To change that, {remedies}."


def more_visible(visibility: int) -> list[str]:
    """Levels that are left above this one."""
    if visibility > 3:
        return []
    levels = "4"
    if visibility < 3:
        levels = f"{visibility + 1} to 4"
    return [f"make the artefact more visible (visibility {levels})"]


def train_longer(own: bool) -> str:
    if own:
        return "train longer"
    return "give a training of your own that goes on for longer (train)"


def sentence(line: Mapping[str, Any], nulls: Mapping[str, float]) -> str:
    """What a method did with one artefact, beside the shares of the nulls."""
    if line["status"] != "ok":
        return f"gave no map: {line['message'] or line['status']}."
    present = span(line["present"], line["low"], line["high"])
    where = f"the {share(line['region'])} of the image where the artefact is"
    sentences = [f"puts {present} of its attribution on {where}; a random map puts {share(line['random'])}."]
    if by_chance(line["unbeaten"]):
        sentences.append("That is no better than random.")
    elif line["unbeaten"]:
        best = line["unbeaten"].split(", ")[0]
        sentences.append(f"But {best}, which never looks at the model, puts {share(nulls[best])} there.")
    if line["absent"] == line["absent"]:
        sentences.append(f"Absent artefact: {share(line['absent'])}, {beside_nulls(line['absent_unbeaten'])}.")
    if line["failed"] > 0:
        sentences.append(f"It gave no usable map for {share(line['failed'])} of the images, each counted as 0 %.")
    return " ".join(sentences)


def beside_nulls(unbeaten: str) -> str:
    """
    >>> beside_nulls("sobel, random"), beside_nulls("")
    ('no better than random', 'better than random')
    >>> beside_nulls("sobel, laplace")
    'not clearly better than sobel, which never looks at the model'
    """
    if not unbeaten:
        return "better than random"
    if by_chance(unbeaten):
        return "no better than random"
    return f"not clearly better than {unbeaten.split(', ')[0]}, which never looks at the model"


def trust(table: pd.DataFrame, trained: pd.DataFrame) -> str:
    """Whom to trust, in a few sentences."""
    explained = trained.index[trained["status"].eq("ok")]
    methods = table[table["kind"].eq("method") & table["artefact"].isin(explained)]
    if methods.empty:
        return UNSAID
    groups = grouped(methods)
    shown = {method: shown_by(methods[methods["method"].eq(method)]) for method in groups["some"]}
    partly = [f"{method} for {joined(artefacts)} only" for method, artefacts in shown.items()]
    sentences = verdicts(groups, partly, artefacts=list(methods["artefact"].unique()))
    sentences += nowhere(methods[~methods["method"].isin(groups["none"])])
    sentences += broken_promises(methods.groupby("method")[["gap", "broken"]].mean()).values()
    left = trained.index[trained["status"].ne("ok")]
    if len(left):
        sentences.append(f"Of {joined(list(left))} nothing can be said.")
    return " ".join(sentences)


def grouped(methods: pd.DataFrame) -> dict[str, list[str]]:
    """Methods by what they show, see `group_of`."""
    groups: dict[str, list[str]] = {"all": [], "some": [], "hint": [], "none": [], "lost": []}
    for method, lines in methods.groupby("method", sort=False):
        groups[group_of(lines)].append(method)
    return groups


def shown_by(lines: pd.DataFrame) -> list[str]:
    """The artefacts that a method shows, from its lines."""
    return list(lines["artefact"][lines["finding"].eq(SHOWS)])


def group_of(lines: pd.DataFrame) -> str:
    """Whether a method shows all artefacts, some, hints at one, shows none, or gave no maps."""
    if lines["status"].ne("ok").all():
        return "lost"
    if lines["finding"].eq(SHOWS).all():
        return "all"
    if lines["finding"].eq(SHOWS).any():
        return "some"
    if lines["finding"].eq(HINT).any():
        return "hint"
    return "none"


def nowhere(methods: pd.DataFrame) -> list[str]:
    """Artefacts on which methods that are good for others are no better than random."""
    blind = methods[methods["finding"].eq(NOTHING)].groupby("artefact", sort=False)["method"].agg(list)
    return [
        f"On {artefact} {joined(names)} {agreeing(names, 'is', 'are')} no better than random."
        for artefact, names in blind.items()
    ]


def verdicts(groups: Mapping[str, list[str]], partly: Sequence[str], *, artefacts: Sequence[str]) -> list[str]:
    """One sentence for each kind of method that there is."""
    what = f"such {agreeing(artefacts, 'an artefact', 'artefacts')} ({joined(artefacts)})"
    hint = groups["hint"]
    none = groups["none"]
    sentences = {
        f"To show {what} you may trust {joined(groups['all'])}.": groups["all"],
        f"You may trust {joined(partly)}.": partly,
        f"None of the planned methods may be trusted to show {what}.": not groups["all"] and not partly,
        f"Take {joined(hint)} as a hint at most: much of what {agreeing(hint, 'it marks', 'they mark')} lies "
        "elsewhere.": hint,
        f"Do not trust {joined(none, 'or')} here: {agreeing(none, 'it is', 'they are')} no better than a random "
        "map.": none,
        f"Nothing can be said of {joined(groups['lost'])}: no map was given.": groups["lost"],
    }
    return [sentence for sentence, needed in sentences.items() if needed]
