"""Cards say what records say."""

from forsooth.analysis.cards import card
from forsooth.attributions import METHODS


def test_a_card_has_the_facts_of_the_record_and_the_words_of_its_function():
    (lime,) = [method for method in METHODS if method.name == "lime"]
    text = card(lime)
    assert text.startswith("### lime\n")
    assert f"cite: {lime.cite}" in text and all(need in text for need in lime.needs)
    assert "ridge regression" in text and "version" not in text.split("```")[0]
