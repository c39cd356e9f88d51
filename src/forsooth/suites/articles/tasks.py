"""The tasks of the articles suite: rewrite, train, select. Arguments are plain values; results are cells."""

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.datasets import articles, texts
from forsooth.engine import known_as
from forsooth.models import MODELS, train_text
from forsooth.models.recurrent import lengths_of
from forsooth.names import find
from forsooth.records import Cell
from forsooth.scores import METRICS, selection
from forsooth.suites import choose, explain

WORDS_AT_ONCE = 2**16  # words in one forward of a model on tokens
RATES = tuple(k / 200 for k in range(2, 41))  # 1 % to 20 %, where the lines of Fig. 8 are drawn
KINDS_OF_WORDS = ("correlating", "non_correlating", "other")


def data(plot: Mapping[str, Any]) -> articles.Articles:
    """The dataset of a plot: `setting`, `path` and `digest` of the documents (None: generated), `seed`."""
    return _data(json.dumps({k: plot[k] for k in ("setting", "path", "digest", "seed")}, sort_keys=True))


@functools.lru_cache(maxsize=4)
def _data(key: str) -> articles.Articles:
    plot = json.loads(key)
    setting = articles.Setting(**{**plot["setting"], "sizes": tuple(plot["setting"]["sizes"])})
    given = texts.documents(plot["path"]) if plot["path"] else None
    return articles.articles(setting, given, seed=plot["seed"])


def untrained(net: str, variant: str, plot: Mapping[str, Any]) -> nn.Module:
    """The network for the vocabulary of a plot; with given word vectors where the plot names a file of them."""
    words, vectors = data(plot).vocabulary, None
    if plot["vectors"]:
        vectors = texts.word_vectors(plot["vectors"], words, seed=plot["seed"])[0]
    module: nn.Module = find(net, MODELS, argument="models").function(
        words=len(words), variant=variant, vectors=vectors
    )
    return module


def trained_from(cell: Cell, plot: Mapping[str, Any], *, device: str) -> nn.Module:
    """The network of a cell of `train_reader`, ready to be explained."""
    module = untrained(cell.facts["net"], cell.facts["variant"], plot)
    module.load_state_dict(dict(cell.tensors))
    return module.eval().requires_grad_(False).to(device)


@known_as("articles.train")
def train_reader(
    *,
    plot: dict[str, Any],
    net: dict[str, Any],
    recipe: dict[str, Any],
    about: dict[str, Any],
    seed: int,
    device: str,
) -> Cell:
    """One training. The cell holds the weights and the row of its accuracy.

    net  name, version and variant
    """
    given, aim = data(plot), recipe["aim"]
    asked = train_text.TextRecipe(**{**recipe, "aim": train_text.Aim(**aim) if aim else None})
    trained = train_text.fit_text(
        lambda: untrained(net["name"], net["variant"], plot), given.dataset, asked, seed=seed, device=device
    )
    reason = "" if trained.passed else f"accuracy {trained.test_accuracy:.1%}, below the gate of {asked.gate:.0%}"
    row = {
        **about,
        **{"suite": "articles", "part": "training", "dataset": given.dataset.facts["source"], "method": ""},
        **{"metric": "accuracy", "sample": -1, "value": trained.test_accuracy, "selected": trained.test_rate},
        **{"status": "below gate" if reason else "ok", "message": reason, "sizes": sizes_of(given)},
    }
    facts = {
        **{"passed": trained.passed, "net": net["name"], "variant": net["variant"], "reached": trained.reached},
        **{"attempts": list(trained.attempts), "epochs": len(trained.history), "rate": number(trained.test_rate)},
        "said": [*said(given), *said_of_vectors(plot)],
    }
    return Cell(rows=(row,), tensors=dict(trained.module.state_dict()), facts=facts)


def said(given: articles.Articles) -> list[str]:
    """Sentences on the documents that a reader of the results must know."""
    facts = given.dataset.facts
    shares = " / ".join(f"{100 * share:.1f}" for share in facts["frequency"])
    theirs = " / ".join(f"{100 * share:.1f}" for share in facts["paper_frequency"])
    lost = {
        **{"empty": "were empty", "without_tokens": "had no token", "without_articles": "had no article"},
        **{"articles_in_one_half": "had articles in one half only", "undecided": "have nothing that tells the label"},
        **{"truncated": f"were cut at {facts['length']} tokens"},
    }
    counted = ", ".join(f"{facts[name]} {words}" for name, words in lost.items() if facts[name])
    bytes_ = f"; {facts['undecodable_bytes']} bytes could not be decoded" if facts["undecodable_bytes"] else ""
    unknown = facts["unknown_tokens"] / max(1, facts["tokens"])
    return [
        f"{facts['setting']['kind']}: correlating articles, non-correlating articles and other words are {shares} % of "
        f"the words ({theirs} % in the paper).",
        f"Documents: {facts['documents']} of {facts['source']}, of which {counted or 'none was left out or cut'}"
        f"{bytes_}; {sizes_of(given)} train, validate and test. {unknown:.1%} of the words are unknown to the "
        f"vocabulary of {facts['words']}.",
    ]


def said_of_vectors(plot: Mapping[str, Any]) -> list[str]:
    """How many words have a vector in the file that the plot names."""
    if not plot["vectors"]:
        return []
    words = data(plot).vocabulary
    found = texts.word_vectors(plot["vectors"], words, seed=plot["seed"])[1]
    return [f"Word vectors: {found} of the {len(words)} words have one in the given file, the others a random one."]


def sizes_of(given: articles.Articles) -> str:
    """How many documents train, validate and test."""
    return "/".join(str(len(given.dataset.splits[name])) for name in ("train", "val", "test"))


def explained(given: articles.Articles, samples: int | None) -> Tensor:
    """(k,) the test documents that are explained, as many of either label; the same in all kinds of data."""
    dataset = given.dataset
    return choose.rows_of(dataset, dataset.splits["test"], samples, seed=dataset.facts["seed"], role="explained")


def shown(given: articles.Articles, rows: Tensor) -> int:
    """Which of the explained documents rows (k,) the page shows: the shortest of at least 30 words, else the longest.

    The kinds share their documents, so that this is the same in all.
    """
    lengths = lengths_of(given.dataset.x[rows])
    fit = lengths >= 30
    return int(torch.where(fit, lengths, lengths.max() + 1).argmin()) if fit.any() else int(lengths.argmax())


def words_of(given: articles.Articles, rows: Tensor) -> dict[str, Tensor]:
    """Masks (k, length) of the three kinds of words of the documents rows (k,)."""
    assert given.dataset.truth is not None
    one, two = given.dataset.truth[rows], given.non_correlating[rows]
    return dict(zip(KINDS_OF_WORDS, (one, two, selection.others(one, two, given.dataset.x[rows])), strict=True))


@known_as("articles.select")
def select(trained: Cell, *, plot: dict[str, Any], about: dict[str, Any], metrics: dict[str, int], device: str) -> Cell:
    """Precision and recall of a rationale model on every test document, and what the best could do at each rate.

    Words are counted in every row, so that a reader can pool them: `hits`, `selected`, `relevant`, `misled` (selected
    non-correlating articles) and `words`.
    """
    given = data(plot)
    shared = {**about, "suite": "articles", "part": "selection", "dataset": given.dataset.facts["source"]}
    shared |= {"method": "rationale", "line": ""}
    if not trained.facts["passed"]:
        none = {"status": "below gate", "message": "the network is below its gate", "sample": -1, "value": None}
        return Cell(rows=tuple({**shared, **none, "metric": metric} for metric in metrics))
    rows = given.dataset.splits["test"]
    tokens, masks = given.dataset.x[rows], words_of(given, rows)
    model = trained_from(trained, plot, device=device)
    size = max(1, WORDS_AT_ONCE // tokens.shape[1])
    with torch.no_grad():
        z = chunks.over(lambda part: model.selection(part), tokens.to(device), size=size).cpu()  # type: ignore[operator]
    found = selection.counts(z, masks["correlating"], tokens)
    misled = selection.counts(z, masks["non_correlating"], tokens).hits
    columns = zip(*(part.tolist() for part in (*found, misled)), strict=True)
    counted = [dict(zip(("hits", "selected", "relevant", "words", "misled"), row, strict=True)) for row in columns]
    table = []
    for name in metrics:
        metric = find(name, METRICS, argument="metrics")
        told = explain.score(z, {"truth": masks["correlating"], "x": tokens}, [metric], rows.tolist())
        table += [{**shared, **said_of(row), **count} for row, count in zip(told, counted, strict=True)]
    return Cell(rows=tuple(table), tensors={"weights": z, "rows": rows})


def said_of(row: dict[str, Any]) -> dict[str, Any]:
    """The row of a selection. One that holds no word has a recall of 0, and its precision is not defined."""
    if row["status"] != "zero map":
        return row
    known = row["value"] == row["value"]
    return {**row, "status": "ok" if known else "undefined", "message": "" if known else "nothing is selected"}


@known_as("articles.optimum")
def optimum(*, plot: dict[str, Any], about: dict[str, Any]) -> Cell:
    """The two lines of Fig. 8 for the test documents of a dataset, at many rates."""
    given = data(plot)
    rows = given.dataset.splits["test"]
    relevant, words = given.dataset.truth[rows].sum(1), lengths_of(given.dataset.x[rows])  # type: ignore[index]
    shared = {**about, "suite": "articles", "part": "optimum", "dataset": given.dataset.facts["source"]}
    shared |= {"model": "none", "model_seed": -1, "method": "", "sample": -1}
    table = []
    for line, best in (("dataset", selection.optimal_dataset), ("document", selection.optimal_document)):
        for rate in RATES:
            for name, value in zip(("precision_selected", "recall_selected"), best(rate, relevant, words), strict=True):
                defined = {} if value == value else {"status": "no sample", "message": "no document has such words"}
                table.append({**shared, "metric": name, "line": line, "rate": rate, "value": value, **defined})
    return Cell(rows=tuple(table))


@known_as("articles.show")
def show(*, plot: dict[str, Any], about: dict[str, Any], samples: int | None) -> Cell:
    """The document that the page shows: its words, and which of them are articles of which kind."""
    given = data(plot)
    rows = explained(given, samples)
    row = rows[shown(given, rows)]
    words = texts.decode(given.dataset.x[row], given.vocabulary)
    masks = words_of(given, row[None])
    kinds = torch.stack([masks["correlating"][0], masks["non_correlating"][0]])[:, : len(words)].float()
    here = {**about, "model": "none", "method": "", "shows": "document", "tensor": "shown", "words": words}
    return Cell(tensors={"shown": kinds}, facts={"pictures": [{**here, "label": int(given.dataset.y[row])}]})


def plain(setting: articles.Setting) -> dict[str, Any]:
    """A setting as plain values."""
    return {**asdict(setting), "sizes": list(setting.sizes)}


def number(value: float) -> float | None:
    """JSON has no nan."""
    return value if value == value else None
