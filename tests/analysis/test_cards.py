"""Cards say what records say."""

from pathlib import Path

from forsooth.analysis.cards import card, page
from forsooth.attributions import METHODS
from forsooth.scores import METRICS

ROOT = Path(__file__).parent.parent.parent


def test_a_card_has_the_facts_of_the_record_and_the_words_of_its_function():
    (lime,) = [method for method in METHODS if method.name == "lime"]
    text = card(lime)
    assert text.startswith("### lime\n")
    assert f"cite: {lime.cite}" in text and all(need in text for need in lime.needs)
    assert "ridge regression" in text and "version" not in text.split("```")[0]


def test_the_page_of_cards_is_what_the_records_say():
    assert (ROOT / "docs/cards.md").read_text() == page(METHODS, METRICS), "forsooth card > docs/cards.md"
