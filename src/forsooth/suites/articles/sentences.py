"""What every judgement of the suite says: on what it rests, who was left out, and whether the models are accurate."""

from pandas import DataFrame

from forsooth import papers
from forsooth.frames import only
from forsooth.records import Outcome, UsageError
from forsooth.stats import share_interval
from forsooth.suites.articles.documents import PART
from forsooth.suites.verdicts import verdict
from forsooth.wording import paragraphs

FAR = 0.5  # an Attr% below is far from the 1 that a valid attribution has


def nothing_to_judge(who: str, outcome: Outcome) -> UsageError:
    """The error where every model is below its gate, to be raised by the caller."""
    return UsageError(f"no {who} passed its gate, so there is nothing to judge. {basis(outcome)}")


def basis(outcome: Outcome) -> str:
    """Which models were trained on what, and who did not pass, in basis.jinja.

    Of those: with what accuracy, and how many words a rationale model selects: with none it is dead.
    """
    trained = only(outcome.rows, metric="accuracy")
    lines = [line.dropna().to_dict() for _, line in trained.iterrows()]
    return " ".join(paragraphs(__package__, "basis.jinja", trained=lines, settings=outcome.settings))


def accurate(rows: DataFrame, section: str) -> str:
    """The verdict on "all models achieve over 97 % accuracy"."""
    limit = papers.claim("articles_claims", section, "accuracy")
    right = only(rows, metric="accuracy")["value"] > limit
    claim = f"All models achieve over {limit:.0%} accuracy (share)"
    return verdict(claim, share_interval(right), holds=bool(right.all()), fails=True)


def documents_of(outcome: Outcome, who: str) -> DataFrame:
    """The rows of documents; UsageError where nobody who could weigh their words passed the gate."""
    own = only(outcome.rows, part=PART)
    if own.empty:
        raise nothing_to_judge(who, outcome)
    return own
