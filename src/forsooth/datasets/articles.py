"""Text whose label is told by its articles alone [zhou2022feature, section 6]."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from forsooth.datasets.texts import PADDING, RESERVED, Documents, encode, generated, tokenise, vocabulary
from forsooth.records import Dataset, UsageError
from forsooth.seeds import generator

Kind = Literal["Article", "CN", "NC"]
KINDS: tuple[Kind, ...] = ("Article", "CN", "NC")
ARTICLES = frozenset(("a", "an", "the"))
FIRST = ("a", "the")  # these two are in every vocabulary of this file
A = len(RESERVED)  # the id of the first, which the other follows
LEAST_WORDS = len(RESERVED) + len(FIRST)
SPLITS = ("train", "val", "test")
SPARE = 1.3  # reviews of the grammar made for each one needed: one in seven lacks an article in a half
# Shares of words, Table 1: correlating articles, non-correlating articles, other words.
PAPER_FREQUENCY = {"Article": (0.079, 0.0, 0.921), "CN": (0.041, 0.038, 0.921), "NC": (0.038, 0.041, 0.921)}


@dataclass(frozen=True)
class Setting:
    """How to make a dataset; the defaults are those of the paper where it states them.

    kind      Article: all articles tell the label. CN: those of the first half do, those of the second do not.
              NC: the other way round
    sizes     documents in train, val and test
    length    tokens after which a document is cut, before it is halved; 256 is that of the released code
    cap       words in the vocabulary at most
    filtered  leave out documents without an article in each half, since nothing tells their label in one dataset or
              another: so all three kinds have the same documents, as in Table 1
    """

    kind: Kind = "Article"
    sizes: tuple[int, int, int] = (10_000, 1_000, 1_000)
    length: int = 256
    cap: int = 20_000
    filtered: bool = True


@dataclass(frozen=True)
class Articles:
    """A dataset with its words.

    dataset          x (n, length) int64 token ids, 0 is padding; y (n,), 1 where "the" tells the label; truth
                     (n, length) bool, the correlating articles
    non_correlating  (n, length) bool
    vocabulary       word of each id
    """

    dataset: Dataset
    non_correlating: Tensor
    vocabulary: tuple[str, ...]


def articles(setting: Setting, documents: Documents | None = None, *, seed: int) -> Articles:
    """Documents with labels drawn at random and articles rewritten so that they tell them.

    documents  None: the reviews of the embedded grammar

    A document of label 1 has "the" for each of its correlating articles, one of label 0 has "a". The non-correlating
    ones of a document are all the same word, drawn at random whatever the label. The first half has the odd token.
    Labels, splits and vocabulary depend on seed and documents, not on the kind. Where there are too few documents,
    all splits shrink by the same factor.

    Departure: the text of the paper says "For CN dataset, the roles of two halves are switched" under its figure of
    CN; it is read as NC. Which reviews the paper selected is not known; see `filtered`.
    """
    check(setting)
    documents = documents or generated(round(SPARE * sum(setting.sizes)), seed=seed)
    corpus = read(documents, setting, seed=seed)
    ids = corpus.ids
    y = torch.randint(2, (len(ids),), generator=generator(seed, "labels"))
    other = torch.randint(2, (len(ids),), generator=generator(seed, "non-correlating"))
    correlating, non_correlating = halves(ids, setting.kind)
    x = rewrite(rewrite(ids, correlating, y), non_correlating, other)
    facts = corpus.facts | frequencies(x, correlating, non_correlating, kind=setting.kind)
    facts |= {
        "setting": asdict(setting),
        "seed": seed,
        "source": documents.name,
        "words": len(corpus.words),
        "undecided": int((~correlating.any(1)).sum()),
    }
    splits = dict(zip(SPLITS, torch.arange(len(x)).split(list(corpus.sizes)), strict=True))
    dataset = Dataset(f"articles-{setting.kind}-{documents.name}", x, y, correlating, splits, facts)
    return Articles(dataset, non_correlating, corpus.words)


class Corpus(NamedTuple):
    """The chosen documents as ids (n, length), the words of the ids, sizes of the splits, and what was left out."""

    ids: Tensor
    words: tuple[str, ...]
    sizes: tuple[int, int, int]
    facts: dict[str, Any]


def read(documents: Documents, setting: Setting, *, seed: int) -> Corpus:
    """Documents in a random order, as many as the splits need, with the vocabulary of the training split."""
    tokens, left_out = usable(documents, setting)
    sizes = shrunk(setting.sizes, len(tokens), documents, left_out)
    order = torch.randperm(len(tokens), generator=generator(seed, "documents")).tolist()
    chosen = [tokens[k] for k in order[: sum(sizes)]]
    train = (row[: setting.length] for row in chosen[: sizes[0]])
    words = vocabulary(train, cap=setting.cap, first=FIRST)
    ids, counts = encode(chosen, words, length=setting.length)
    return Corpus(ids, words, sizes, facts={**documents.facts, **left_out, **counts})


def check(setting: Setting) -> None:
    """UsageError where a setting cannot be."""
    if setting.kind not in KINDS:
        raise UsageError(f"`kind` must be one of {', '.join(KINDS)}, got {setting.kind!r}")
    if len(setting.sizes) != 3 or min(setting.sizes) < 1:
        raise UsageError(f"`sizes` must be three numbers of documents, at least 1 each, got {setting.sizes}")
    if setting.length < 2:
        raise UsageError(f"`length` must be at least 2, since documents are halved, got {setting.length}")


def usable(documents: Documents, setting: Setting) -> tuple[list[list[str]], dict[str, int]]:
    """Tokens of the documents that are kept, every article spelled "a"; and how many were left out, and why."""
    everything = [one_article(tokenise(text)) for text in documents.texts]
    tokens = [row for row in everything if row]
    complete = [row for row in tokens if in_both_halves(row[: setting.length])]
    without = sum("a" not in row[: setting.length] for row in tokens)
    kept = tokens
    if setting.filtered:
        kept = complete
    facts = {
        "without_tokens": len(everything) - len(tokens),
        "without_articles": without,
        "articles_in_one_half": len(tokens) - len(complete) - without,
        "kept": len(kept),
    }
    return kept, facts


def one_article(tokens: Sequence[str]) -> list[str]:
    """The tokens with "a" for every article."""
    spelled = dict.fromkeys(ARTICLES, "a")
    return [spelled.get(token, token) for token in tokens]


def in_both_halves(row: Sequence[str]) -> bool:
    """Whether both halves of the tokens hold an article."""
    middle = (len(row) + 1) // 2
    return "a" in row[:middle] and "a" in row[middle:]


def shrunk(
    sizes: tuple[int, int, int], available: int, documents: Documents, left_out: dict[str, int]
) -> tuple[int, int, int]:
    """Sizes of the splits, smaller by one factor where there are not documents enough; each at least 1."""
    if available < len(SPLITS):
        raise UsageError(
            f"`data` must hold at least {len(SPLITS)} documents with an article in each half, got {available} of "
            f"{len(documents.texts)} in {documents.name}: {left_out['without_articles']} have no article, "
            f"{left_out['articles_in_one_half']} have them in one half only"
        )
    factor = min(1.0, available / sum(sizes))
    val, test = (max(1, int(factor * size)) for size in sizes[1:])
    return min(sizes[0], available - val - test), val, test


def halves(ids: Tensor, kind: Kind) -> tuple[Tensor, Tensor]:
    """Where the correlating and the non-correlating articles stand: two masks like ids (n, length)."""
    article = ids == A
    if kind == "Article":
        return article, torch.zeros_like(article)
    size = (ids != PADDING).sum(1, keepdim=True)
    first = 2 * torch.arange(ids.shape[1]) < size
    if kind == "CN":
        return article & first, article & ~first
    return article & ~first, article & first


def rewrite(ids: Tensor, where: Tensor, word: Tensor) -> Tensor:
    """Ids (n, length) with "a" or "the" at the places of the mask `where`, as word (n,) in {0, 1} says."""
    return torch.where(where, A + word[:, None], ids)


def frequencies(x: Tensor, correlating: Tensor, non_correlating: Tensor, *, kind: Kind) -> dict[str, Any]:
    """Shares of all words that are correlating articles, non-correlating articles and others; ours and the paper's."""
    words = int((x != PADDING).sum())
    telling = int(correlating.sum()) / words
    idle = int(non_correlating.sum()) / words
    return {"frequency": [telling, idle, 1 - telling - idle], "paper_frequency": list(PAPER_FREQUENCY[kind])}
