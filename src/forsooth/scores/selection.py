"""Do weights and selections of words fall on those that tell the label [zhou2022feature, sections 6 and 7]?

Every function leaves padding out: `tokens` are ids (n, length), and 0 is padding.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from forsooth.records import Metric, UsageError
from forsooth.scores.maps import check_maps

FIRST = 3  # "the first few words"


class Counts(NamedTuple):
    """For each document, (n,) float64: words selected that are in the truth, words selected, words of the truth, words.

    nan for a selection that is not finite.
    """

    hits: Tensor
    selected: Tensor
    relevant: Tensor
    words: Tensor


class Optimum(NamedTuple):
    """The best that a selection of a given rate can do, in [0, 1]; nan where it is not defined."""

    precision: float
    recall: float


def attr_words(attribution: Tensor, truth: Tensor, tokens: Tensor) -> Tensor:
    """Attr%: the share of the absolute attribution of a document that lies on the words of the truth.

    attribution  (n, length) real, e.g. attention; the absolute value is taken here
    truth        (n, length) bool: correlating articles, or non-correlating ones, or other words
    tokens       (n, length) int
    returns      (n,) float64 in [0, 1]; nan where all is zero or not finite, and where the truth is empty

    A constant map scores `frequency` exactly.
    """
    check_maps(attribution)
    inside, words = masks(attribution, truth, tokens)
    size = attribution.detach().abs().to(torch.float64).where(words, 0.0)
    defined = size.isfinite().all(1) & (size > 0).any(1) & inside.any(1)
    size = size / size.amax(1, keepdim=True)  # keeps the sums finite whatever the scale of the map
    return ((size * inside).sum(1) / size.sum(1)).masked_fill(~defined, torch.nan)


def attr_words_non_correlating(attribution: Tensor, truth: Tensor, tokens: Tensor) -> Tensor:
    """Attr% on articles that look alike and tell nothing: the share of a document's absolute attribution on them.

    Shapes and undefined maps as in `attr_words`.
    """
    return attr_words(attribution, truth, tokens)


def share_on(weights: Tensor, mask: Tensor) -> float:
    """The share of the absolute weights (length,) of one document on the words of the mask (length,) bool.

    nan where no word has a weight, or none is in the mask. `attr_words` of many documents, for weights of any scale.
    """
    total = weights.abs().sum()
    if not total > 0 or not mask.any():
        return float("nan")
    return float(weights.abs()[mask].sum() / total)


def peaks(weights: Tensor) -> Tensor:
    """(length,) bool: whether a word has more weight than the words beside it; weights (length,).

    >>> peaks(torch.tensor([3.0, 1.0, 2.0])).tolist()
    [True, False, True]
    """
    padded = torch.nn.functional.pad(weights, (1, 1), value=-torch.inf)
    return (weights > padded[:-2]) & (weights > padded[2:])


def standing_out(weights: Tensor, correlating: Tensor, non_correlating: Tensor, other: Tensor) -> dict[str, float]:
    """How articles of one document stand out: weights and the masks of the three kinds of words, each (length,).

    attr, attr_non_correlating            shares of the weights, see `share_on`
    articles_above_…, others_above_…      shares of the words of that kind that are `peaks`
    largest_is_article                    whether the word of largest weight is a correlating article, 1 or 0
    """
    above = peaks(weights)
    return {
        "attr": share_on(weights, correlating),
        "articles": int(correlating.sum()),
        "attr_non_correlating": share_on(weights, non_correlating),
        "frequency": correlating.double().mean().item(),
        "articles_above_neighbours": share_of(above, correlating),
        "others_above_neighbours": share_of(above, other),
        "largest_is_article": int(correlating[int(weights.argmax())]),
    }


def share_of(hits: Tensor, mask: Tensor) -> float:
    """The share of the words of a mask (length,) that are hits (length,); nan of none."""
    return hits[mask].double().mean().item()


def kinds_selected(chosen: Tensor, correlating: Tensor, non_correlating: Tensor, other: Tensor) -> dict[str, float]:
    """How many words of one document are selected, of which kind; all masks (length,). Of articles, how many there are.

    first_others  of the first few words alone
    """
    return {
        "selected": float(chosen.sum()),
        "articles": int(correlating.sum()),
        "hits": float((chosen & correlating).sum()),
        "misled": float((chosen & non_correlating).sum()),
        "others": int((chosen & other).sum()),
        "first_others": int((chosen & other)[:FIRST].sum()),
    }


def frequency(truth: Tensor, tokens: Tensor) -> Tensor:
    """The share (n,) float64 of the words of a document that are in the truth; nan for an empty document."""
    inside, words = masks(truth, truth, tokens)
    return inside.sum(1, dtype=torch.float64) / words.sum(1)


def others(correlating: Tensor, non_correlating: Tensor, tokens: Tensor) -> Tensor:
    """(n, length) bool: the words that are neither, without padding."""
    return (tokens != 0) & ~correlating & ~non_correlating


def counts(selection: Tensor, truth: Tensor, tokens: Tensor) -> Counts:
    """What the score of a selection is made of; every z that is not 0 is selected, whatever its sign.

    selection  (n, length) real or bool
    truth      (n, length) bool
    tokens     (n, length) int
    """
    inside, words = masks(selection, truth, tokens)
    finite = selection.detach().to(torch.float64).where(words, 0.0).isfinite().all(1)
    chosen = (selection.detach() != 0) & words
    parts = (chosen & inside, chosen, inside, words)
    return Counts(*(part.sum(1, dtype=torch.float64).masked_fill(~finite, torch.nan) for part in parts))


def counts_by_kind(
    selection: Tensor, correlating: Tensor, non_correlating: Tensor, tokens: Tensor
) -> list[dict[str, float]]:
    """`counts` of each document with correlating words as the truth, and `misled`: selected non-correlating ones."""
    columns = counts(selection, correlating, tokens)._asdict()
    columns["misled"] = counts(selection, non_correlating, tokens).hits
    lines = torch.stack(list(columns.values()), dim=1).tolist()
    return [dict(zip(columns, line, strict=True)) for line in lines]


def precision_selected(selection: Tensor, truth: Tensor, tokens: Tensor) -> Tensor:
    """Pr(F) = |F & F_C| / |F| of the selected words F of each document, (n,) float64; nan where nothing is selected.

    Shapes as in `counts`. nan, too, where the truth is empty: no selection could be right.
    """
    count = counts(selection, truth, tokens)
    return (count.hits / count.selected).masked_fill(count.relevant == 0, torch.nan)


def recall_selected(selection: Tensor, truth: Tensor, tokens: Tensor) -> Tensor:
    """Re(F) = |F & F_C| / |F_C| of the selected words F of each document, (n,) float64; nan for an empty truth."""
    count = counts(selection, truth, tokens)
    return count.hits / count.relevant


def optimal_dataset(rate: float, relevant: Tensor, words: Tensor) -> Optimum:
    """The solid line of Fig. 8: the best when a share `rate` of the words of all documents together is selected.

    relevant, words  (n,) words of the truth and words of each document

    With budget k = rate * sum(words) and c = sum(relevant), the best selection takes min(k, c) of the truth first:
    precision min(1, c / k) and recall min(1, k / c), over all words of all documents. Budgets need not be whole.
    """
    each, all_words = _checked(rate, relevant, words)
    return _best(torch.minimum(each.sum(), rate * all_words.sum()), each.sum(), rate * all_words.sum())


def optimal_document(rate: float, relevant: Tensor, words: Tensor) -> Optimum:
    """The dashed line of Fig. 8: the best when a share `rate` of the words of each document is selected.

    relevant, words  (n,) words of the truth and words of each document

    With budgets k_i = rate * words_i, document i can hold min(k_i, c_i) hits: precision is their sum over sum(k_i),
    recall their sum over sum(c_i). Never above `optimal_dataset`, and equal where all documents have the same share.
    The text names this line but not how documents are averaged; words are pooled here as there.
    """
    each, all_words = _checked(rate, relevant, words)
    return _best(torch.minimum(each, rate * all_words).sum(), each.sum(), rate * all_words.sum())


OPTIMA = {"dataset": optimal_dataset, "document": optimal_document}


def optimum(line: str, rate: float, relevant: Tensor, words: Tensor) -> Optimum:
    """The best on a line of Fig. 8, by its name in `OPTIMA`; not defined where nothing is selected."""
    if not rate:
        return Optimum(torch.nan, torch.nan)
    return OPTIMA[line](rate, relevant, words)


def _best(hits: Tensor, relevant: Tensor, selected: Tensor) -> Optimum:
    return Optimum((hits / selected).item(), (hits / relevant).item())


def _checked(rate: float, relevant: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
    """Both as float64."""
    if not 0 < rate <= 1:
        raise UsageError(f"`rate` must lie in (0, 1], got {rate}")
    if relevant.shape != words.shape or relevant.ndim != 1:
        came = f"{tuple(relevant.shape)} and {tuple(words.shape)}"
        raise UsageError(f"`relevant` and `words` must both have shape (n,), got {came}")
    if (relevant > words).any() or (relevant < 0).any():
        raise UsageError(
            "`relevant` must lie between 0 and `words`, got documents with more words of the truth than words"
        )
    return relevant.to(torch.float64), words.to(torch.float64)


def masks(values: Tensor, truth: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Truth without padding, and words, both (n, length) bool; UsageError where shapes or types differ."""
    for name, tensor in (("truth", truth), ("tokens", tokens)):
        if tensor.shape != values.shape or values.ndim != 2:
            raise UsageError(
                f"`{name}` must have the shape (n, length) of maps of words, got {tuple(tensor.shape)} and maps "
                f"{tuple(values.shape)}"
            )
    if truth.dtype != torch.bool:
        raise UsageError(f"`truth` must be a mask of type torch.bool, got {truth.dtype}")
    words = tokens != 0
    return truth & words, words


ATTR_WORDS = Metric(
    name="attr_words",
    function=attr_words,
    reads=("truth", "x"),
    better="higher",
    bounds=(0.0, 1.0),
    cite="zhou2022feature",
    version=1,
)
PRECISION_SELECTED = Metric(
    name="precision_selected",
    function=precision_selected,
    reads=("truth", "x"),
    better="higher",
    bounds=(0.0, 1.0),
    cite="zhou2022feature",
    version=1,
)
RECALL_SELECTED = Metric(
    name="recall_selected",
    function=recall_selected,
    reads=("truth", "x"),
    better="higher",
    bounds=(0.0, 1.0),
    cite="zhou2022feature",
    version=1,
)
