"""The words of the catalogues that are kept in a file are those of the records."""

from pathlib import Path

from forsooth import facts, scores
from forsooth.analysis.cards import page
from forsooth.wording import first_line

ROOT = Path(__file__).parent.parent


def test_the_file_of_facts_says_what_the_records_say():
    kept = (ROOT / "src/forsooth" / facts.FILE).read_text(encoding="utf-8")
    assert kept == facts.written(), "python -m forsooth.facts"


def test_the_page_on_settings_is_what_the_records_say():
    shown = facts.settings_page(facts.known()["settings"])
    assert (ROOT / "docs/settings.md").read_text() == shown, "forsooth settings --format markdown > docs/settings.md"


def test_the_page_of_cards_is_what_the_records_say():
    cards = facts.known()["cards"]
    shown = page(cards["methods"].values(), cards["metrics"].values())
    assert (ROOT / "docs/cards.md").read_text() == shown, "forsooth card > docs/cards.md"


def test_long_values_may_break_at_their_commas_and_prose_is_left_alone():
    line = {"setting": "methods", "meaning": "a,b", "quick": "a,b, c"}
    assert facts._broken(line) == {"setting": "methods", "meaning": "a,b", "quick": "a, b, c"}


def test_every_metric_says_something_of_its_own():
    told = [first_line(metric.function) for metric in scores.METRICS]
    assert all(told) and len(set(told)) == len(told)
