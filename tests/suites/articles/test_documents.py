"""Odd documents: batches of one, empty and endless ones, unknown words; all models and methods of text."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from forsooth.attributions import METHODS as CATALOGUE
from forsooth.datasets.articles import Setting
from forsooth.datasets.articles import articles as make
from forsooth.datasets.texts import Documents
from forsooth.models import attention, rationale
from forsooth.suites.articles import plan as articles
from forsooth.suites.articles import settings as articles_presets
from forsooth.suites.articles import tasks as reading
from forsooth.suites.articles import words as weighing

pytestmark = pytest.mark.usefixtures("single")


ODD = Documents(
    "odd",
    (
        "the cat saw a dog near the house and a tree .",
        "no such words here , none at all",
        "the a the a",
        "the 日本 cat naïve saw a $1 dog near the house $2 .",
        "the",
        *("the cat saw a dog in some place " * k for k in range(1, 6)),
    ),
    {"documents": 10, "empty": 0, "undecodable_bytes": 0},
)


@pytest.fixture(scope="module")
def odd():
    """Documents as they are, an empty one put in; truth and words of each kind."""
    made = make(Setting("CN", sizes=(6, 2, 2), filtered=False), ODD, seed=0)
    x = made.dataset.x.clone()
    x[0] = 0
    keep = x != 0
    return replace(
        made,
        dataset=replace(made.dataset, x=x, truth=made.dataset.truth & keep),
        non_correlating=made.non_correlating & keep,
    )


def readers(words: int, variant: str = "small"):
    torch.manual_seed(0)
    for build in (attention.attention, rationale.relaxed, rationale.reinforce):
        model = build(words=words, variant=variant)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std={"small": 0.5, "paper": 0.1}[variant])
        yield model.eval().requires_grad_(False)


def ask(method: str) -> dict:
    record = next(m for m in CATALOGUE if m.name == method)
    return {"method": method, "null": record.null, "seed": 3, "device": "cpu"}


def weights(model, made, rows, method):
    own = None if ask(method)["null"] else model
    return weighing.weights_of_words(own, made, rows, ask(method), fit=torch.arange(6))


def can(model, method):
    return (
        articles.unable(
            next(m for m in CATALOGUE if m.name == method),
            articles.Reader(attention.ATTENTION if hasattr(model, "attend") else rationale.RELAXED, 0, None),
        )
        == ""
    )


@pytest.mark.parametrize(("variant", "step"), [("small", 1), ("paper", 3)])
@pytest.mark.parametrize("method", [*articles_presets.OWN, *articles_presets.POST_HOC, *articles_presets.NULLS])
def test_a_batch_of_one_is_its_row_in_any_batch(odd, method, variant, step):
    """Whatever the lengths of the neighbours; random methods draw by sample or for all alike."""
    rows = torch.arange(len(odd.dataset.x))
    rows = rows[reading.lengths_of(odd.dataset.x[rows]) < 30][::step]
    for model in readers(len(odd.vocabulary), variant):
        if not can(model, method):
            continue
        together = weights(model, odd, rows, method)["weights"]
        for k in range(0, len(rows), 3 // step):
            alone = weights(model, odd, rows[k : k + 1], method)["weights"]
            scale = together[k].abs().amax().clamp(min=1)
            torch.testing.assert_close(alone[0] / scale, together[k] / scale, rtol=0, atol=1e-5)


def test_what_models_say_of_themselves(odd):
    rows = torch.arange(len(odd.dataset.x))
    tokens = odd.dataset.x[rows]
    one, two, three = readers(len(odd.vocabulary))
    found = weights(one, odd, rows, "attention")["weights"]
    np.testing.assert_allclose(found.sum(1)[1:], 1, rtol=1e-5)
    assert (found[0] == 0).all() and (found[tokens == 0] == 0).all()
    torch.testing.assert_close(found.float(), one.attention(tokens), rtol=1e-4, atol=1e-6)
    for model in (two, three):
        z = weights(model, odd, rows, "rationale")["weights"]
        torch.testing.assert_close(z.float(), model.selection(tokens), rtol=1e-4, atol=1e-6)


def test_shapley_values_of_words_are_complete(odd):
    rows = torch.arange(1, 5)
    model = next(readers(len(odd.vocabulary)))
    for method in ("shapley_sampling", "kernel_shap"):
        found = weights(model, odd, rows, method)
        for k, row in enumerate(rows.tolist()):
            tokens = odd.dataset.x[row : row + 1]
            length = int(reading.lengths_of(tokens))
            logits = model(tokens)[0]
            empty = model.from_embedded(torch.zeros(1, length, model.embedding.dims)).logits[0]
            target = int(logits.argmax())
            assert found["weights"][k].sum().item() == pytest.approx((logits - empty)[target].item(), abs=1e-4)
        assert (found["gap"] < 1e-3).all()


def test_odd_documents_are_rows_with_a_status(odd):
    rows = torch.arange(len(odd.dataset.x))
    model = next(readers(len(odd.vocabulary)))
    metrics = {"attr_words": 1, "attr_words_non_correlating": 1}
    found = weighing.judged(weights(model, odd, rows, "gradient"), odd, rows, metrics, {"part": "scores"})
    table = pd.DataFrame(found)
    own = table[table["metric"].eq("attr_words")].set_index("sample")
    assert len(own) == len(rows)
    without = ~odd.dataset.truth.any(1)
    assert without.sum() >= 2
    for sample in rows.tolist():
        line = own.loc[sample]
        if without[sample]:
            assert (
                line["status"] == "no sample" and "no correlating words" in line["message"] and np.isnan(line["value"])
            )
        else:
            assert line["status"] == "ok" and 0 <= line["value"] <= 1


def test_a_document_of_ten_thousand_words():
    long = Documents("long", ("the cat saw a dog . " * 1700, *("the cat saw a dog " * 3,) * 4), ODD.facts)
    made = make(Setting("NC", sizes=(2, 1, 2), length=10_000), long, seed=0)
    row = reading.lengths_of(made.dataset.x).argmax()[None]
    assert reading.lengths_of(made.dataset.x[row]).item() == 10_000
    one, two, _ = readers(len(made.vocabulary))
    for model, method in ((one, "attention"), (one, "gradient"), (two, "rationale")):
        found = weighing.weights_of_words(model, made, row, ask(method), fit=torch.arange(2))
        assert found["weights"].isfinite().all() and found["told"] == [None]
