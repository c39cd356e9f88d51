"""What a reader would use instead of attention: every method on the same models. The paper does not ask this."""

from dataclasses import replace

from pandas import DataFrame, MultiIndex

from forsooth.counted import counted
from forsooth.frames import lines_by, only, without, worded
from forsooth.records import NO_MODEL, Judgement, Outcome, Reproduction, Sentences
from forsooth.scores.selection import ATTR_WORDS
from forsooth.stats.claims import surely_above, surely_below
from forsooth.suites.articles.plan import plan
from forsooth.suites.articles.sentences import FAR, basis, nothing_to_judge
from forsooth.suites.articles.settings import PAPER
from forsooth.suites.articles.tables import attr_estimate, attr_interval
from forsooth.suites.verdicts import corrected, judgement

EVERY_METHOD = replace(PAPER, trainings=3, rationale_trainings=1, rates_article=(), rates_halves=(), samples=60)
NEAR_ONE = 0.9
GROUP = ["kind", "model", "method"]


def judge(outcome: Outcome) -> Judgement:
    """Attr% on the correlating articles by kind of data, model and method, over documents and trainings."""
    rows = outcome.rows
    scored = only(rows[rows["sample"].ge(0)], metric="attr_words")
    if without(scored, model=NO_MODEL).empty:
        raise nothing_to_judge("model", outcome)
    table = lines_by(scored, GROUP, line_of).join(sure_of(scored), on=GROUP)
    sentences = [
        basis(outcome),
        "Intervals are over documents and over trainings, where there are several.",
        *silent(table),
        *verdicts(table),
    ]
    return judgement(table.round(4), sentences)


def line_of(rows: DataFrame) -> dict[str, float]:
    """One method for the trainings of one model, from a row for each document and training.

    A map without any weight counts as 0, as it does on the board: `failed` is the share of those, and `attr_defined`
    the mean without them.
    """
    rows = counted(rows, ATTR_WORDS)
    by_training = rows.groupby("model_seed")["value"].mean()
    return {
        **attr_interval(rows).columns("attr", "low", "high", "documents"),
        "trainings": len(by_training),
        "sd_trainings": by_training.std(),
        "frequency": rows["frequency"].mean(),
        "failed": rows["failed"].mean(),
        "attr_defined": rows.loc[~rows["failed"], "value"].mean(),
    }


def silent(table: DataFrame) -> list[str]:
    """A map that is zero everywhere has no share of its own. Who gave how many of them."""
    words = "{kind}, {model}, {method}: {failed:.0%}, without them {attr_defined:.2f}"
    who = worded(table[table["failed"] > 0], words)
    if not who:
        return []
    return [f"Maps without any weight have no Attr% and count as 0. {'; '.join(who)}."]


def sure_of(rows: DataFrame) -> DataFrame:
    """What is sure of each method on each model: three claims, each a family of all methods and models.

    returns  near_one, far_from_one and above_frequency, true or false by `GROUP`; nothing of maps that know no model
    """
    groups = dict(tuple(without(rows, model=NO_MODEL).groupby(GROUP, sort=False)))
    attrs = [attr_estimate(counted(own, ATTR_WORDS)) for own in groups.values()]
    return DataFrame(
        {
            "near_one": surely_above(attrs, NEAR_ONE),
            "far_from_one": surely_below(attrs, FAR),
            "above_frequency": surely_above(attrs, [own["frequency"].mean() for own in groups.values()]),
        },
        index=MultiIndex.from_tuples(groups, names=GROUP),
    )


def verdicts(table: DataFrame) -> Sentences:
    """For every kind of data and model: who is near 1, who is far from it, and who is no better than a constant map."""
    models = without(table, model=NO_MODEL)
    yield (
        f"Near 1 is surely above {NEAR_ONE} and far from it surely below {FAR}, each{corrected(len(models))}; the "
        "intervals are of a method alone."
    )
    for (kind, model), own in models.groupby(["kind", "model"], sort=False):
        parts = [
            f"near 1: {listed(only(own, near_one=True))}",
            f"far from 1: {listed(only(own, far_from_one=True))}",
            f"not surely above the frequency: {listed(only(own, above_frequency=False))}",
        ]
        yield f"{kind}, {model}. {'; '.join(parts)}."


def listed(table: DataFrame) -> str:
    """The methods with their intervals, the highest first."""
    best_first = table.sort_values("attr", ascending=False)
    return ", ".join(worded(best_first, "{method} {attr:.2f} [{low:.2f}, {high:.2f}]")) or "none"


REPRODUCTIONS = (
    Reproduction("articles/post-hoc", "Attr% of every method on the same models", EVERY_METHOD, plan, judge),
)
