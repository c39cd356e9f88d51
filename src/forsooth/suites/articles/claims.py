"""The claims of sections 6 and 7 of the paper, on attention and on rationales. [zhou2022feature]"""

from collections.abc import Iterator

from pandas import DataFrame, Series

from forsooth import papers
from forsooth.frames import only, without, worded
from forsooth.scores.selection import FIRST
from forsooth.stats import SHARE, Interval, mean_interval, share_interval, variance_ratio_interval
from forsooth.stats.bootstrap import bootstrapped_ratio
from forsooth.suites.articles.sentences import FAR
from forsooth.suites.articles.settings import REINFORCE, RELAXED
from forsooth.suites.articles.tables import ON_TARGET
from forsooth.suites.verdicts import above, around, below, verdict
from forsooth.wording import paragraphs

EXCLUSIVE = 0.9  # from this Attr% on attention lies on articles "exclusively"
NEAR = 0.05  # a precision or recall that is nearer to the optimum than this is "nearly optimal"
FAULTY = 0.07  # the target at which the relaxation of the paper fails


def far_from_one(means: DataFrame) -> Iterator[str]:
    """For each kind of data: is Attr% far from 1, and is it more than the frequency?"""
    for kind, own in means.groupby("kind", sort=False):
        by_words = dict(tuple(own.groupby("words")))
        attr = mean_interval(by_words["correlating"]["value"], bounds=SHARE)
        yield below(f"{kind}: attention on correlating articles is far from 1 (below {FAR})", attr, FAR)
        for words in ("correlating", "non_correlating"):
            if words in by_words:
                excess = mean_interval(by_words[words]["value"] - by_words[words]["frequency"])
                yield above(f"{kind}: {words} articles get more than their frequency (excess)", excess)


def beside_published(table: DataFrame) -> Iterator[str]:
    """Every published number beside ours."""
    for line in table.dropna(subset="published").to_dict("records"):
        ours = Interval.of(line, "attr", "low", "high", "trainings")
        claim = f"{line['kind']}: Attr% on {line['words']} words, in %"
        spreads = "spread {sd:.1f}, published {published_sd:.1f}".format_map(line)
        yield around(claim, ours, line["published"], spreads)


def wider(means: DataFrame) -> list[str]:
    """The verdict on "trainings of CN differ more than those of Article"; nothing where they are too few."""
    own = only(means, words="correlating")
    values = dict(tuple(own.groupby("kind")["value"]))
    if not {"Article", "CN"} <= set(values) or min(map(len, values.values())) <= 2:
        return []
    ratio = variance_ratio_interval(values["CN"], values["Article"])
    return [above("Trainings of CN differ more than those of Article (ratio of variances)", ratio, 1.0)]


def claims_of_figure(kind: str, table: DataFrame) -> list[str]:
    """The claims on one training, from a line for each document."""
    local = mean_interval(table["articles_above_neighbours"] - table["others_above_neighbours"])
    peaks = f"{kind}: articles stand out from their neighbours (share of peaks, less that of others)"
    largest = (
        f"{kind}: articles do not stand out in the document (share whose largest weight is on a correlating article)"
    )
    return [
        *claims_on_share(kind, table),
        above(peaks, local),
        below(largest, share_interval(table["largest_is_article"]), FAR),
    ]


def claims_on_share(kind: str, table: DataFrame) -> list[str]:
    """What the paper says of Attr% in this kind of data."""
    attr = mean_interval(table["attr"], bounds=SHARE)
    if kind == "CN":
        return [above(f"CN: attention lies on correlating articles exclusively (over {EXCLUSIVE})", attr, EXCLUSIVE)]
    if kind == "NC":
        return [below("NC: Attr% is far from 1", attr, FAR)]
    excess = mean_interval(table["attr"] - table["frequency"])
    published = papers.claim("articles_claims", "6.1", "attr_articles")
    return [
        around("Article: Attr% of attention on articles", attr, published),
        above("Article: that is better than random (excess over the frequency)", excess),
    ]


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


def below_optimum(gaps: DataFrame) -> Iterator[str]:
    """For each kind of data and model, at the rate it was asked for and at the one it selects."""
    for (kind, model), own in gaps.groupby(["kind", "model"], sort=False):
        claim = f"{kind}, {model}: precision is markedly below the optimum at the rate it"
        yield markedly(f"{claim} was asked for", own, own["gap_asked"], own["best_precision_asked"])
        yield markedly(f"{claim} selects", own, own["gap"], own["best_precision_dataset"])


def markedly(claim: str, models: DataFrame, gap: Series, best: Series) -> str:
    """The verdict over models, and which of them are surely so by themselves."""
    surely = models[best - models["precision_high"] > NEAR]
    targets = ", ".join(f"{target:.0%}" for target in sorted(surely["target"])) or "no target"
    return above(claim, mean_interval(gap), NEAR, f"single models, over documents: at {targets}")


def further_by_reinforce(gaps: DataFrame) -> list[str]:
    """The verdict on the two kinds of model side by side, where there are both."""
    wide = gaps.pivot_table(index=["kind", "target", "number"], columns="model", values="gap")
    if not {RELAXED, REINFORCE} <= set(wide):
        return []
    difference = mean_interval(wide[REINFORCE] - wide[RELAXED])
    return [above("REINFORCE is further from the optimum than the relaxation (difference)", difference)]


def claims_16(table: DataFrame, who: str) -> list[str]:
    """Does the relaxation of the lowest rate take the first few words?"""
    some = table[table["others"] > 0]
    first = mean_interval(some["first_others"] / some["others"], bounds=SHARE)
    claim = f"{who}: of the selected words that are no articles, most are among the first {FIRST} (share)"
    none = "no other word is selected in any document" * some.empty
    hit = share_interval(table["hits"] > 0)
    return [
        verdict(claim, first, holds=first.low > 0.5, fails=some.empty or first.high <= 0.5, more=none),
        verdict(f"{who}: some article is selected in every document", hit, holds=hit.mean == 1, fails=True),
    ]


def claims_17(table: DataFrame, who: str) -> list[str]:
    """Do selections of CN and NC hold articles alone, and which?"""
    articles = bootstrapped_ratio(table["hits"] + table["misled"], table["selected"])
    misled = bootstrapped_ratio(table["misled"], table["selected"])
    missed = 1 - table["hits"].sum() / table["articles"].sum()
    return [
        above(f"{who}: the selection is almost exclusively of articles (over 0.95)", articles, 0.95),
        above(
            f"{who}: non-correlating articles are selected (share of it)",
            misled,
            more=f"{missed:.0%} of correlating missed",
        ),
    ]
