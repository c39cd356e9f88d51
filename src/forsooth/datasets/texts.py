"""Documents of the user, as tokens and as numbers: what was cut, replaced or left out is counted."""

import codecs
import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from forsooth import strangers
from forsooth.datasets.folders import printable
from forsooth.datasets.grammar import reviews
from forsooth.records import UsageError
from forsooth.seeds import generator

PADDING = 0
UNKNOWN = 1
RESERVED = ("", "\ufffd")  # what the two are called in a vocabulary; a sign that cannot be decoded is unknown
TOKEN = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_")
SEPARATORS = {".tsv": "\t", ".csv": ","}
QUOTING: dict[str, Literal[0, 3]] = {".tsv": csv.QUOTE_NONE, ".csv": csv.QUOTE_MINIMAL}
LARGEST = 2**30  # bytes of a text after unpacking; a gzip of 1 MB can hold a gigabyte
LARGEST_VECTORS = 2**31  # bytes of an .npz after unpacking
MISSING_VECTOR = 0.05  # words without a vector get one from U(-0.05, 0.05), as the released code of Zhou et al. does


@dataclass(frozen=True)
class Documents:
    """Texts in the order of the file, none of them empty, and what a reader must know of them."""

    name: str
    texts: tuple[str, ...]
    facts: Mapping[str, Any]


def documents(path: str | Path) -> Documents:
    """The documents of a file: the column `text` of a .csv or .tsv, else one a line; `.gz` is unpacked first.

    A .tsv has no quoting: a quote is a quote. Bytes that are not UTF-8 become U+FFFD and are counted in `facts`, as
    are empty documents, which are left out. UsageError where nothing is left.
    """
    path = Path(path)
    content, broken = read(path)
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    lines = content.removesuffix("\n").split("\n")
    if suffix in SEPARATORS:
        lines = column(content, path, suffix)
    texts = tuple(line.strip() for line in lines)
    kept = tuple(text for text in texts if text)
    if not kept:
        raise UsageError(f"`data` must hold documents, but there is no line with a word in {path}")
    facts = {"documents": len(texts), "empty": len(texts) - len(kept), "undecodable_bytes": broken}
    return Documents(printable(path.name.split(".")[0]), kept, facts)


def generated(n: int, *, seed: int) -> Documents:
    """n reviews of the embedded grammar."""
    return Documents("grammar", reviews(n, seed=seed), {"documents": n, "empty": 0, "undecodable_bytes": 0})


def read(path: Path) -> tuple[str, int]:
    """The text of a file, lines ended by \\n alone, and how many signs of it could not be decoded."""
    if not path.is_file():
        raise UsageError(f"`data` must be a file of documents, but there is no file at {path}")
    try:
        data = strangers.unpacked(path, LARGEST)
    except ValueError as error:
        raise UsageError(f"`data` must be a readable file, but {path} cannot be read: {error}") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", errors="replace").encode()
    if b"\0" in data:
        raise UsageError(f"`data` must be text, but {path} holds zero bytes, which no text has")
    text = data.decode("utf-8-sig", errors="replace")
    replaced = text.count("\ufffd") - data.count("\ufffd".encode())  # some files hold the sign itself
    return text.replace("\r\n", "\n"), replaced


def column(content: str, path: Path, suffix: str) -> list[str]:
    """The column `text` of a table."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
            frame = parsed(content, suffix)
    except (ValueError, pd.errors.ParserWarning) as error:  # all of pandas' parser errors are of this kind
        raise UsageError(f"`data` must be a table, but {path} cannot be read as one: {error}") from error
    names = {str(name).strip().lower(): name for name in frame.columns}
    if "text" not in names:
        raise UsageError(f"`data` must have a column `text`, got {', '.join(map(str, frame.columns))} in {path}")
    return [str(text) for text in frame[names["text"]].fillna("")]


def parsed(content: str, suffix: str) -> pd.DataFrame:
    """The text of a .csv or .tsv as a frame of text, blank lines and all."""
    return pd.read_csv(
        io.StringIO(content),
        sep=SEPARATORS[suffix],
        quoting=QUOTING[suffix],
        dtype=str,
        keep_default_na=False,
        index_col=False,
        skip_blank_lines=False,
    )


def tokenise(text: str) -> list[str]:
    """Words in lower case and marks of punctuation; joined by spaces they give the same tokens again.

    Nothing but white space is lost. A hyphen or apostrophe inside a word stays in it.
    """
    return TOKEN.findall(text.lower())


def vocabulary(tokens: Iterable[Sequence[str]], *, cap: int, first: Sequence[str] = ()) -> tuple[str, ...]:
    """At most `cap` words: padding, the unknown, those of `first`, then the others by frequency, ties by name.

    tokens  one sequence for each document of the training split, so that val and test can hold unknown words
    """
    least = len(RESERVED) + len(first)
    if cap < least:
        raise UsageError(f"`cap` must be at least {least}, got {cap}")
    counts = Counter(token for document in tokens for token in document)
    others = sorted(counts.keys() - {*RESERVED, *first}, key=lambda word: (-counts[word], word))
    return (*RESERVED, *first, *others)[:cap]


def encode(tokens: Sequence[Sequence[str]], words: Sequence[str], *, length: int) -> tuple[Tensor, dict[str, Any]]:
    """Token ids (n, at most length) int64, padded behind with 0, and what was cut and unknown.

    Documents are cut after `length` tokens. The width is that of the longest that is left, at least 1.
    """
    if length < 1:
        raise UsageError(f"`length` must be at least 1, got {length}")
    index = {word: k for k, word in enumerate(words)}
    lengths = [len(document) for document in tokens]
    longest = max(lengths, default=1)
    ids = torch.full((len(tokens), max(1, min(length, longest))), PADDING)
    for row, document in zip(ids, tokens, strict=True):
        row[: len(document)] = numbered(document[:length], index)
    return ids, encoding_facts(ids, lengths, length=length)


def numbered(tokens: Sequence[str], index: Mapping[str, int]) -> Tensor:
    """(tokens,) int64: the id of each, that of the unknown where the index lacks it."""
    return torch.tensor([index.get(token, UNKNOWN) for token in tokens], dtype=torch.int64)


def encoding_facts(ids: Tensor, lengths: Sequence[int], *, length: int) -> dict[str, int]:
    """What ids (n, width) of documents of these lengths (n,), cut after `length`, have lost."""
    total = int((ids != PADDING).sum())
    return {
        "length": length,
        "truncated": sum(count > length for count in lengths),
        "tokens_cut": sum(lengths) - total,
        "tokens": total,
        "unknown_tokens": int((ids == UNKNOWN).sum()),
    }


def decode(ids: Tensor, words: Sequence[str]) -> list[str]:
    """Tokens of one document from its ids (length,), without the padding."""
    return [words[k] for k in ids.tolist() if k != PADDING]


def word_vectors(path: str | Path, words: Sequence[str], *, seed: int) -> tuple[Tensor, int]:
    """Vectors (len(words), dims) float32 of a vocabulary from an .npz with `words` and `vectors`; how many were there.

    Words that the file lacks, the unknown among them, get vectors from U(-0.05, 0.05); padding gets zeros.
    """
    file_words, vectors = read_vectors(path)
    row_of = {str(word): k for k, word in enumerate(file_words)}
    shared = [k for k, word in enumerate(words) if word in row_of and k > UNKNOWN]
    if not shared:
        raise UsageError(
            f"`vectors` must have words of the documents, but none of the {len(row_of)} in {path} is there"
        )
    draws = torch.rand(len(words), vectors.shape[1], generator=generator(seed, "vectors"))
    table = (2 * draws - 1) * MISSING_VECTOR
    table[PADDING] = 0
    rows = [row_of[words[k]] for k in shared]
    table[shared] = torch.from_numpy(vectors[rows].astype(np.float32))
    return table, len(shared)


def read_vectors(path: str | Path) -> tuple[NDArray[np.str_], NDArray[np.floating[Any]]]:
    """Words (n,) and their vectors (n, dims), all finite, of an .npz."""
    words, vectors = load_vectors(path)
    if vectors.ndim != 2 or words.shape != vectors.shape[:1]:
        raise UsageError(f"`vectors` must be (words, dims) for {words.shape} words, got {vectors.shape} in {path}")
    if not np.isfinite(vectors.astype(np.float32)).all():
        raise UsageError(f"`vectors` must be finite numbers, but {path} holds nan or infinity")
    return words, vectors


def load_vectors(path: str | Path) -> tuple[NDArray[np.str_], NDArray[np.floating[Any]]]:
    """The arrays `words` and `vectors` of an .npz, as they are."""
    path = Path(path)
    if not path.is_file() or path.suffix != ".npz":
        raise UsageError(f"`vectors` must be an .npz with `words` and `vectors`, and {path} is none")
    try:
        found = strangers.arrays(path, most=LARGEST_VECTORS)
        return found["words"], found["vectors"]
    except (ValueError, KeyError) as error:
        raise UsageError(f"`vectors` must be an .npz with `words` and `vectors`, got {path}: {error}") from error


def marked(words: Sequence[str], chosen: Tensor, correlating: Tensor, non_correlating: Tensor) -> str:
    """The words with marks: [selected], [selected!] of a non-correlating article, _missed_ of a correlating one.

    chosen, correlating, non_correlating  (length,) bool

    >>> kinds = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0]]).bool()
    >>> marked(["one", "a", "the", "two"], *kinds)
    '[one] [a!] _the_ two'
    """
    marks = {(True, True): "[{}!]", (True, False): "[{}]"}
    parts = []
    for word, selected, tells, misleads in zip(words, chosen, correlating, non_correlating, strict=True):
        missed = "_{}_" if tells else "{}"
        parts.append(marks.get((bool(selected), bool(misleads)), missed).format(word))
    return " ".join(parts)


def check_files(*, data: str | None, vectors: str | None) -> None:
    """UsageError where a file of the user's, of documents or of word vectors, cannot be read: told before any work."""
    for argument, path in (("data", data), ("vectors", vectors)):
        if path is None or Path(path).is_file():
            continue
        problem = "is a folder" if Path(path).is_dir() else "does not exist"
        raise UsageError(f"`{argument}` must be a file, but {path} {problem}")
    if data:
        documents(data)
    if vectors:
        read_vectors(vectors)
