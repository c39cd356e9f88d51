"""The claims of sections 6 and 7 of the paper, on attention and on rationales. [zhou2022feature]"""

from collections.abc import Iterator, Sequence

from pandas import DataFrame, Series

from forsooth import papers
from forsooth.frames import only, without, worded
from forsooth.records import Sentences
from forsooth.scores.selection import FIRST
from forsooth.stats import SHARE, mean_interval, share_interval, variance_ratio_interval
from forsooth.stats.bootstrap import ratio_estimate
from forsooth.stats.claims import directions
from forsooth.stats.intervals import Student, mean_estimate, share_estimate
from forsooth.suites.articles.sentences import FAR
from forsooth.suites.articles.settings import REINFORCE, RELAXED
from forsooth.suites.articles.tables import ON_TARGET
from forsooth.suites.verdicts import (
    Claim,
    above,
    corrected,
    family,
    family_around,
    verdict,
)
from forsooth.wording import paragraphs

ARTICLES = ("correlating", "non_correlating")  # of the words, those that are articles
EXCLUSIVE = 0.9  # from this Attr% on attention lies on articles "exclusively"
NEAR = 0.05  # a precision or recall that is nearer to the optimum than this is "nearly optimal"
FAULTY = 0.07  # the target at which the relaxation of the paper fails
PEAKS = "articles stand out from their neighbours (share of peaks, less that of others)"
LARGEST = "articles do not stand out in the document (share whose largest weight is on a correlating article)"
Selection = tuple[str, DataFrame]  # whose it is, and a line for each document
Training = tuple[str, str, DataFrame]  # the same, and the kind of data between


def far_from_one(means: DataFrame) -> Iterator[str]:
    """In each kind of data: is Attr% far from 1, and do articles get more than their frequency? Two families."""
    far = []
    more = []
    for (kind, words), own in means.groupby(["kind", "words"], sort=False):
        if words == "correlating":
            claim = f"{kind}: attention on correlating articles is far from 1 (below {FAR})"
            far.append(Claim(claim, mean_estimate(own["value"], bounds=SHARE), FAR, side=-1))
        if words in ARTICLES:
            claim = f"{kind}: {words} articles get more than their frequency (excess)"
            more.append(Claim(claim, mean_estimate(own["value"] - own["frequency"])))
    yield from family(far)
    yield from family(more)


def beside_published(means: DataFrame, table: DataFrame) -> Sentences:
    """Every published number beside ours.

    means  of every training, kind of data and kind of words
    table  of these, beside the published ones, in %
    """
    values = dict(tuple(means.groupby(["kind", "words"])["value"]))
    spreads = "spread {sd:.1f}, published {published_sd:.1f}"
    claims = []
    for line in table.dropna(subset="published").to_dict("records"):
        ours = mean_estimate(100 * values[line["kind"], line["words"]], bounds=(0, 100))
        claim = f"{line['kind']}: Attr% on {line['words']} words, in %"
        claims.append(Claim(claim, ours, line["published"], spreads.format_map(line)))
    return family_around(claims)


def wider(means: DataFrame) -> list[str]:
    """The verdict on "trainings of CN differ more than those of Article"; nothing where they are too few."""
    own = only(means, words="correlating")
    values = dict(tuple(own.groupby("kind")["value"]))
    if not {"Article", "CN"} <= set(values) or min(map(len, values.values())) <= 2:
        return []
    ratio = variance_ratio_interval(values["CN"], values["Article"])
    return [above("Trainings of CN differ more than those of Article (ratio of variances)", ratio, 1.0)]


def claims_of_figure(trainings: Sequence[Training]) -> Iterator[str]:
    """The claims on single trainings, from a line for each document; each claim is a family over trainings."""
    published = []
    shares: dict[str, list[Claim]] = {}  # by kind of data, of which the paper claims different things
    peaks = []
    largest = []
    for who, kind, table in trainings:
        if kind == "Article":
            published.append(attr_of_articles(who, table))
        shares.setdefault(kind, []).append(claim_on_share(who, kind, table))
        ahead = mean_estimate(table["articles_above_neighbours"] - table["others_above_neighbours"])
        peaks.append(Claim(f"{who}: {PEAKS}", ahead))
        largest.append(Claim(f"{who}: {LARGEST}", share_estimate(table["largest_is_article"]), FAR, side=-1))
    yield from family_around(published)
    for own in (*shares.values(), peaks, largest):
        yield from family(own)


def attr_of_articles(who: str, table: DataFrame) -> Claim:
    """Ours beside the published number."""
    attr = mean_estimate(table["attr"], bounds=SHARE)
    return Claim(
        f"{who}: Attr% of attention on articles", attr, papers.claim("articles_claims", "6.1", "attr_articles")
    )


def claim_on_share(who: str, kind: str, table: DataFrame) -> Claim:
    """What the paper says of Attr% in this kind of data."""
    attr = mean_estimate(table["attr"], bounds=SHARE)
    if kind == "CN":
        return Claim(f"{who}: attention lies on correlating articles exclusively (over {EXCLUSIVE})", attr, EXCLUSIVE)
    if kind == "NC":
        return Claim(f"{who}: Attr% is far from 1", attr, FAR, side=-1)
    excess = mean_estimate(table["attr"] - table["frequency"])
    return Claim(f"{who}: that is better than random (excess over the frequency)", excess)


def claims_7_1(table: DataFrame) -> list[str]:
    """Judged at the rate a model selects, as the figure does: but no more than the largest rate that was asked for."""
    own = only(table, kind="Article")
    most = own["target"].max() + ON_TARGET
    return [claim_7_1(line, most) for _, line in own.iterrows()]


def claim_7_1(line: Series, most: float) -> str:
    """Whether one model of Article is nearly optimal, and whether the paper says so, in claim_7_1.jinja."""
    gap = max(line["best_precision_dataset"] - line["precision"], line["best_recall_dataset"] - line["recall"])
    near = gap <= NEAR and line["selected"] <= most
    published_near = line["model"] != RELAXED or line["target"] > FAULTY
    words = paragraphs(__package__, "claim_7_1.jinja", line=line, near=near, published_near=published_near)
    return " ".join(words)


def claims_7_2(table: DataFrame) -> list[str]:
    """The claims on CN and NC."""
    own = without(table, kind="Article")
    if own.empty:
        return []
    gaps = own.assign(
        gap=own["best_precision_dataset"] - own["precision"],
        gap_asked=own["best_precision_asked"] - own["precision"],
    )
    articles = mean_interval(own["articles"], bounds=SHARE)
    misled = mean_interval(own["misled"], bounds=SHARE)
    return [
        above("CN and NC: rationales consist almost exclusively of articles (over 0.95)", articles, 0.95),
        on_target(own),
        *below_optimum(gaps),
        *further_by_reinforce(gaps),
        above("Non-correlating articles are selected (share of the selection)", misled),
    ]


def on_target(table: DataFrame) -> str:
    """Whether all models select what they are asked for, and who does not."""
    reached = share_interval(table["on_target"])
    missed = worded(only(table, on_target=False), "{kind}, {model}: asked {target:.0%}, selected {selected:.0%}")
    claim = f"CN and NC: models select the rate they are asked for (within {ON_TARGET:.0%})"
    return verdict(claim, reached, holds=reached.mean == 1, fails=reached.mean < 1, more="; ".join(missed))


def below_optimum(gaps: DataFrame) -> Sentences:
    """For each kind of data and model, at the rate it was asked for and at the one it selects: one family."""
    claims = []
    for (kind, model), own in gaps.groupby(["kind", "model"], sort=False):
        claim = f"{kind}, {model}: precision is markedly below the optimum at the rate it"
        claims.append(markedly(f"{claim} was asked for", own, own["gap_asked"], own["best_precision_asked"]))
        claims.append(markedly(f"{claim} selects", own, own["gap"], own["best_precision_dataset"]))
    return family(claims)


def markedly(claim: str, models: DataFrame, gap: Series, best: Series) -> Claim:
    """The claim over models, and which of them are so with their own interval, each asked alone."""
    alone = models[best - models["precision_high"] > NEAR]
    targets = ", ".join(f"{target:.0%}" for target in sorted(alone["target"])) or "no target"
    return Claim(claim, mean_estimate(gap), NEAR, f"single models, each alone over its documents: at {targets}")


def further_by_reinforce(gaps: DataFrame) -> list[str]:
    """The verdict on the two kinds of model side by side, where there are both."""
    wide = gaps.pivot_table(index=["kind", "target", "number"], columns="model", values="gap")
    if not {RELAXED, REINFORCE} <= set(wide):
        return []
    difference = mean_interval(wide[REINFORCE] - wide[RELAXED])
    return [above("REINFORCE is further from the optimum than the relaxation (difference)", difference)]


def claims_16(selections: Sequence[Selection]) -> Sentences:
    """Does the relaxation of the lowest rate take the first few words?"""
    firsts = [first_words(table) for _, table in selections]
    for (who, table), first, sign in zip(selections, firsts, directions(firsts, 0.5), strict=True):
        claim = f"{who}: of the selected words that are no articles, most are among the first {FIRST} (share)"
        none = first.n == 0
        more = "no other word is selected in any document" * none
        together = corrected(len(selections))
        yield verdict(f"{claim}{together}", first.interval, holds=sign > 0, fails=none or sign < 0, more=more)
        hit = share_interval(table["hits"] > 0)
        yield verdict(f"{who}: some article is selected in every document", hit, holds=hit.mean == 1, fails=True)


def first_words(table: DataFrame) -> Student:
    """The share of the first words among those that are no articles, over the documents that have such."""
    some = table[table["others"] > 0]
    return mean_estimate(some["first_others"] / some["others"], bounds=SHARE)


def claims_17(selections: Sequence[Selection]) -> Iterator[str]:
    """Do selections of CN and NC hold articles alone, and which? Two families."""
    exclusively = []
    not_correlating = []
    for who, table in selections:
        articles = ratio_estimate(table["hits"] + table["misled"], table["selected"])
        exclusively.append(Claim(f"{who}: the selection is almost exclusively of articles (over 0.95)", articles, 0.95))
        missed = 1 - table["hits"].sum() / table["articles"].sum()
        misled = ratio_estimate(table["misled"], table["selected"])
        claim = f"{who}: non-correlating articles are selected (share of it)"
        not_correlating.append(Claim(claim, misled, more=f"{missed:.0%} of correlating missed"))
    yield from family(exclusively)
    yield from family(not_correlating)
