"""What every judgement says of its models."""

from dataclasses import replace

import pandas as pd
import pytest

from forsooth import papers
from forsooth.records import Choice, Outcome, UsageError
from forsooth.suites import verdicts
from forsooth.suites.articles import sentences
from forsooth.suites.articles.settings import QUICK

TRAINED = pd.DataFrame(
    {
        "metric": "accuracy",
        "dataset": "imdb",
        "sizes": "20/4/4",
        "kind": ["CN", "CN", "NC"],
        "model": ["rationale_relaxed", "rationale_relaxed", "attention"],
        "rate": [0.05, 0.07, None],
        "value": [0.493, 1.0, 0.81],
        "selected": [0.0, 0.07, None],
        "status": ["below gate", "ok", "below gate"],
    }
)
OUTCOME = Outcome(TRAINED, {}, replace(QUICK, length=64, models=("attention", "rationale_relaxed")), Choice())


def test_models_below_their_gate_are_named():
    assert sentences.basis(OUTCOME).endswith(
        "; 1 passed the gate. Left out: CN, rationale_relaxed asked for 5% of the words (accuracy 49%, selects 0.0%); "
        "NC, attention (accuracy 81%)."
    )
    assert sentences.basis(replace(OUTCOME, rows=TRAINED[1:2])).endswith("; 1 passed the gate.")


def test_the_basis_of_a_judgement():
    text = sentences.basis(OUTCOME)
    assert text.startswith(
        "3 models (attention, rationale_relaxed) on imdb, 20/4/4 documents of at most 64 words to train, validate and "
        "test; 1 passed the gate. Left out: CN, "
    )


def test_one_model_is_one_model():
    assert sentences.basis(replace(OUTCOME, rows=TRAINED[1:2])).startswith("1 model (")


def test_nothing_to_judge_is_an_error_with_its_basis():
    error = sentences.nothing_to_judge("attention model", OUTCOME)
    assert isinstance(error, UsageError)
    assert str(error).startswith("no attention model passed its gate, so there is nothing to judge. 3 models (")


@pytest.mark.parametrize(("values", "word"), [([0.98, 0.99, 1.0], "holds"), ([0.98, 0.9, 1.0], "does not hold")])
def test_all_models_must_be_accurate(values, word):
    sentence = sentences.accurate(TRAINED.assign(value=values), "6.2")
    assert sentence.startswith(f"All models achieve over 97% accuracy (share): {word}. Ours ")


def test_rows_of_other_metrics_are_no_accuracies():
    others = TRAINED.assign(metric="attr_words", value=0.0)
    sentence = sentences.accurate(pd.concat([TRAINED.assign(value=0.98), others]), "6.1")
    assert "holds" in sentence and "n = 3" in sentence


def test_published_claims_are_found_by_section():
    assert papers.claim("articles_claims", "6.1", "attr_articles") == 0.086
    with pytest.raises(KeyError):
        papers.claim("articles_claims", "9", "accuracy")


def test_a_judgement_is_lines_of_text():
    judgement = verdicts.judgement(TRAINED, ["One.", "Two."])
    assert judgement.words == "One.\nTwo.\n" and judgement.table is TRAINED
