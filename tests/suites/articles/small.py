"""Settings of seconds, odd documents and untrained readers, for all tests of the articles suite."""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import nn

from forsooth.attributions import METHODS
from forsooth.datasets.articles import Articles, Setting, articles
from forsooth.datasets.texts import Documents
from forsooth.models import attention, rationale
from forsooth.plugins import method
from forsooth.suites.articles.questions import Ask

TINY = {
    "sizes": (150, 20, 20),
    "samples": 4,
    "gate": 0.0,
    "gate_reinforce": 0.0,
    "epochs": 2,
    "length": 60,
    "rates_article": (),
    "rates_halves": (0.09,),
    "kinds": ("Article", "CN"),
    "trainings": 1,
    "rationale_trainings": 1,
}
SMALL = {  # of a reproduction, whose own settings are those of the paper
    **{name: value for name, value in TINY.items() if name != "kinds"},
    "attention_variant": "small",
    "rationale_variant": "small",
    "recipe": "quick",
    "length": 256,
}
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


def odd_documents() -> Articles:
    """Documents as they are, an empty one put in; truth and words of each kind."""
    documents = articles(Setting("CN", sizes=(6, 2, 2), filtered=False), ODD, seed=0)
    x = documents.dataset.x.clone()
    x[0] = 0
    keep = x != 0
    return replace(
        documents,
        dataset=replace(documents.dataset, x=x, truth=documents.dataset.truth & keep),
        non_correlating=documents.non_correlating & keep,
    )


def readers(words: int, variant: str = "small") -> Iterator[nn.Module]:
    """An attention model and the two rationale models with random weights."""
    torch.manual_seed(0)
    for build in (attention.attention, rationale.relaxed, rationale.reinforce):
        model = build(words=words, variant=variant)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std={"small": 0.5, "paper": 0.1}[variant])
        yield model.eval().requires_grad_(False)


def ask(name: str) -> Ask:
    record = method(name, METHODS)
    return Ask(name, record.version, "", None, record.null, {"attr_words": 1}, True, True, 3, "cpu")
