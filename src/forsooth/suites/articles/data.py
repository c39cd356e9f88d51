"""The documents of the suite: what decides them, which are explained, and which of their words tell the label."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from forsooth.datasets import articles, texts
from forsooth.datasets.articles import Articles, Setting
from forsooth.models.recurrent import lengths_of
from forsooth.plain import remembered
from forsooth.records import NO_MODEL, Row
from forsooth.scores import selection
from forsooth.suites import choose

KINDS_OF_WORDS = ("correlating", "non_correlating", "other")
BACKGROUND_DOCUMENTS = 50  # training documents that stand for the background, cut to the length of the explained one
PAGE_WORDS = 30  # a shorter document shows little


@dataclass(frozen=True)
class DataSpec:
    """All that decides the documents and the vectors of their words.

    path            of the user's documents; None: those of the embedded grammar
    vectors         .npz of word vectors; None: they are learned
    digest          of the file at `path`
    vectors_digest  of the file at `vectors`
    """

    setting: Setting
    path: str | None = None
    vectors: str | None = None
    digest: str | None = None
    vectors_digest: str | None = None
    seed: int = 0


@dataclass(frozen=True)
class Panel:
    """Kind of data and training of a line on the page. `model_seed` is -1 where no network is looked at.

    rate  target rate of selection of a rationale model
    """

    kind: str
    model: str = NO_MODEL
    model_seed: int = -1
    rate: float | None = None

    def row(self, part: str, dataset: str, method: str = "") -> Row:
        """The row that all rows of this panel begin as."""
        return Row(
            suite="articles",
            part=part,
            dataset=dataset,
            model=self.model,
            model_seed=self.model_seed,
            method=method,
            columns={"kind": self.kind, "rate": self.rate},
        )


def factors(spec: DataSpec) -> dict[str, str]:
    """The columns that tell datasets apart."""
    return {"kind": spec.setting.kind}


@remembered(4)
def dataset(spec: DataSpec) -> Articles:
    """The documents, made again from their recipe; the last ones are kept, since tasks come in their order."""
    documents = None
    if spec.path:
        documents = texts.documents(spec.path)
    return articles.articles(spec.setting, documents, seed=spec.seed)


def source(documents: Articles) -> str:
    """Where the texts are from: the column `dataset` of all rows."""
    return str(documents.dataset.facts["source"])


def sizes(documents: Articles) -> str:
    """How many documents train, validate and test."""
    return "/".join(str(len(documents.dataset.splits[name])) for name in ("train", "val", "test"))


def notes(spec: DataSpec) -> list[str]:
    """Sentences on the documents that a reader of the results must know."""
    documents = dataset(spec)
    facts = documents.dataset.facts
    unknown = facts["unknown_tokens"] / max(1, facts["tokens"])
    sentences = [
        f"{spec.setting.kind}: correlating articles, non-correlating articles and other words are "
        f"{_percent(facts['frequency'])} % of the words ({_percent(facts['paper_frequency'])} % in the paper).",
        f"Documents: {facts['documents']} of {facts['source']}, of which {_losses(facts)}; {sizes(documents)} train, "
        f"validate and test. {unknown:.1%} of the words are unknown to the vocabulary of {facts['words']}.",
    ]
    if spec.vectors:
        words = documents.vocabulary
        known = texts.word_vectors(spec.vectors, words, seed=spec.seed)[1]
        sentences.append(
            f"Word vectors: {known} of the {len(words)} words have one in the given file, the others a random one."
        )
    return sentences


def _percent(shares: list[float]) -> str:
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def _losses(facts: Any) -> str:
    """How many documents were left out or cut, and why."""
    reasons = {
        "empty": "were empty",
        "without_tokens": "had no token",
        "without_articles": "had no article",
        "articles_in_one_half": "had articles in one half only",
        "undecided": "have nothing that tells the label",
        "truncated": f"were cut at {facts['length']} tokens",
    }
    counts = ", ".join(f"{facts[name]} {reason}" for name, reason in reasons.items() if facts[name])
    sentence = counts or "none was left out or cut"
    if facts["undecodable_bytes"]:
        sentence += f"; {facts['undecodable_bytes']} bytes could not be decoded"
    return sentence


def explained(documents: Articles, samples: int | None) -> Tensor:
    """(k,) the test documents that are explained, as many of either label; the same in all kinds of data."""
    own = documents.dataset
    return choose.rows_of(own, own.splits["test"], samples, seed=own.facts["seed"], role="explained")


def shown(documents: Articles, rows: Tensor) -> int:
    """Which of the explained documents rows (k,) the page shows: the shortest of at least 30 words, else the longest.

    The kinds share their documents, so that this is the same in all.
    """
    lengths = lengths_of(documents.dataset.x[rows])
    fit = lengths >= PAGE_WORDS
    if not fit.any():
        return int(lengths.argmax())
    return int(torch.where(fit, lengths, lengths.max() + 1).argmin())


def truth(documents: Articles) -> Tensor:
    """(n, length) bool: the correlating articles."""
    assert documents.dataset.truth is not None
    return documents.dataset.truth


def word_masks(documents: Articles, rows: Tensor) -> dict[str, Tensor]:
    """Masks (k, length) of the three kinds of words of the documents rows (k,)."""
    correlating = truth(documents)[rows]
    non_correlating = documents.non_correlating[rows]
    other = selection.others(correlating, non_correlating, documents.dataset.x[rows])
    return {"correlating": correlating, "non_correlating": non_correlating, "other": other}


def background_rows(documents: Articles, fit: Tensor, length: int) -> Tensor:
    """(k,) of the training documents fit (m,), drawn among those of `length` words or more, evenly over labels."""
    own = documents.dataset
    long_enough = fit[lengths_of(own.x[fit]) >= length]
    return choose.rows_of(own, long_enough, BACKGROUND_DOCUMENTS, seed=own.facts["seed"], role="background")


def background(documents: Articles, fit: Tensor, length: int) -> Tensor:
    """Tokens (k, length) of training documents that are as long, cut; padding where none is."""
    rows = background_rows(documents, fit, length)
    if not len(rows):
        return torch.zeros(1, length, dtype=torch.int64)
    return documents.dataset.x[rows, :length]


def drawn(documents: Articles, rows: Tensor, kind: str) -> list[dict[str, Any]]:
    """Who took part in each role, by label, for the run to keep; the background is that of the longest document."""
    own = documents.dataset
    longest = int(lengths_of(own.x[rows]).max())
    behind = background_rows(documents, own.splits["train"], longest)
    where = {"kind": kind}
    lines = choose.classes_of(own.y[rows], role="explained", where=where)
    return lines + choose.classes_of(own.y[behind], role="background", where=where)
