"""The documents of the suite: what decides them, which are explained, and which of their words tell the label."""

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from forsooth.datasets import articles, remarks, texts
from forsooth.datasets.articles import Articles, Setting
from forsooth.digests import digest, require_same
from forsooth.models.recurrent import lengths_of
from forsooth.plain import remembered
from forsooth.records import NO_MODEL, Facts, Row
from forsooth.scores import selection
from forsooth.suites import choose

WORDS = {"attr_words": "correlating", "attr_words_non_correlating": "non_correlating", "attr_words_other": "other"}
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
        return Row("articles", part, dataset).having(method=method, **asdict(self))


@dataclass(frozen=True)
class Chosen:
    """Some documents of a dataset, by their numbers rows (k,)."""

    documents: Articles
    rows: Tensor

    @property
    def tokens(self) -> Tensor:
        """(k, length) ids, 0 is padding."""
        return self.documents.dataset.x[self.rows]

    @property
    def lengths(self) -> Tensor:
        """(k,) words of each."""
        return lengths_of(self.tokens)

    @property
    def labels(self) -> Tensor:
        return self.documents.dataset.y[self.rows]

    def at(self, places: Tensor) -> "Chosen":
        """Those at some places (m,) among them."""
        return Chosen(self.documents, self.rows[places])

    def masks(self) -> dict[str, Tensor]:
        """Masks (k, length) of the three kinds of words."""
        truth = self.documents.dataset.truth
        assert truth is not None
        correlating = truth[self.rows]
        non_correlating = self.documents.non_correlating[self.rows]
        other = selection.others(correlating, non_correlating, self.tokens)
        return {"correlating": correlating, "non_correlating": non_correlating, "other": other}


@remembered(4)
def dataset(spec: DataSpec) -> Articles:
    """The documents, made again from their recipe; the last ones are kept, since tasks come in their order."""
    documents = None
    if spec.path:
        documents = texts.documents(spec.path)
        require_same(digest(spec.path), spec.digest, spec.path)
    return articles.articles(spec.setting, documents, seed=spec.seed)


def source(documents: Articles) -> str:
    """Where the texts are from: the column `dataset` of all rows."""
    return str(documents.dataset.facts["source"])


def notes(spec: DataSpec) -> list[str]:
    """Sentences on the documents that a reader of the results must know."""
    sentences = remarks.on_documents(dataset(spec), spec.vectors, seed=spec.seed)
    require_same_vectors(spec)
    return sentences


def require_same_vectors(spec: DataSpec) -> None:
    """UsageError where the word vectors are not those that were planned with; asked after they were read."""
    if spec.vectors:
        require_same(digest(spec.vectors), spec.vectors_digest, spec.vectors)


def explained(documents: Articles, samples: int | None) -> Chosen:
    """The test documents that are explained, as many of either label; the same in all kinds of data."""
    return _drawn(documents, documents.dataset.splits["test"], samples, role="explained")


def _drawn(documents: Articles, rows: Tensor, count: int | None, *, role: str) -> Chosen:
    seed = documents.dataset.facts["seed"]
    return Chosen(documents, choose.rows_of(documents.dataset, rows, count, seed=seed, role=role))


def shown(chosen: Chosen) -> list[int]:
    """Which of the explained documents the page shows: the shortest of at least 30 words, then the longest others.

    The kinds share their documents, so that these are the same in all.
    """
    lengths = chosen.lengths
    last = int(lengths.max()) + 1
    turns = torch.where(lengths >= PAGE_WORDS, lengths, 2 * last - lengths)
    return [int(place) for place in turns.argsort(stable=True)[: choose.SHOWN]]


def behind(documents: Articles, length: int) -> Chosen:
    """Of the training documents some that have `length` words or more, evenly over labels."""
    train = documents.dataset.splits["train"]
    long_enough = train[Chosen(documents, train).lengths >= length]
    return _drawn(documents, long_enough, BACKGROUND_DOCUMENTS, role="background")


def background(documents: Articles, length: int) -> Tensor:
    """Tokens (k, length) of training documents that are as long, cut; padding where none is."""
    tokens = behind(documents, length).tokens[:, :length]
    if not len(tokens):
        return torch.zeros(1, length, dtype=torch.int64)
    return tokens


def drawn(chosen: Chosen, kind: str) -> list[Facts]:
    """Who took part in each role, by label, for the run to keep; the background is that of the longest document."""
    background = behind(chosen.documents, int(chosen.lengths.max()))
    return choose.classes_of({"explained": chosen.labels, "background": background.labels}, where={"kind": kind})
