"""The transformers of the house in every suite that has networks of their kind: trained, asked, scored."""

from dataclasses import replace
from typing import Any

import pytest
from suites.articles.small import TINY as ARTICLES
from suites.bam.small import FEW as BAM
from suites.planted.smallest import TINY as PLANTED

from forsooth import api
from forsooth.suites.bias import data

PLANTED_ONCE = {**PLANTED, "trainings": 1, "epochs": 1, "gate": 0.0, "max_p_value": 1.0, "experiments": ("5.1",)}
PLANTED_ONCE |= {"manipulations": ("watermark",), "levels": (4,), "samples": 2}
RUNS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "xaitris": (
        {"n": 200, "alpha": 0.6, "samples": 2, "sweep": (), "trainings": 1, "gate": 0.0, "metrics": ("ima",)},
        {"scenario": "LIN", "background": "WHITE", "size": "8"},
    ),
    "planted": (PLANTED_ONCE, {}),
    "bam": ({**BAM, "gate": 0.0}, {}),
    "bias": (
        {"samples": 2, "permutations": 4, "trainings": 1, "players": ("input",)},
        {"dataset": "leaves"},
    ),
    "articles": ({**ARTICLES, "kinds": ("CN",), "samples": 2, "epochs": 1}, {}),
}
NETWORKS = {"articles": "text_encoder"}
METHODS = ("attn_lrp", "gradient", "random")
KNOWN = data.entry_for


def ungated(name: str) -> data.DatasetEntry:
    """The data of the bias suite, whose trainings are cut short here."""
    entry = KNOWN(name)
    return replace(entry, recipe=replace(entry.recipe, epochs=1), gate=0.0)


@pytest.mark.parametrize("suite", RUNS)
def test_a_transformer_is_trained_and_explained_in_every_suite(suite, tmp_path, monkeypatch):
    monkeypatch.setattr(data, "LEAVES_IMAGES", 200)
    monkeypatch.setattr(data, "entry_for", ungated)
    net = NETWORKS.get(suite, "vit")
    settings, only = RUNS[suite]
    settings = {**settings, "models": (net,)}
    run = api.run(suite, preset="demo", methods=METHODS, settings=settings, only=only, out=tmp_path, page=False)
    rows = run.rows[run.rows["model"].eq(net) & run.rows["method"].isin(["attn_lrp", "gradient"])]
    assert set(rows["method"]) == {"attn_lrp", "gradient"}
    assert set(rows["status"]) <= {"ok", "undefined", "no correct input"}
    assert rows["status"].eq("ok").any()
