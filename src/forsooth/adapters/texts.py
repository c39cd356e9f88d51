"""Classifiers of texts: token ids become embeddings, which is where words are hidden and methods attribute.

A classifier of Hugging Face without padding reads embeddings itself. Any other one is asked with the ids of the text
that is explained, while its embedding gives what is asked about; so a mask, a padding or a last word that it finds in
the ids stays where it was. Where it finds nothing there, the ids of one text do for all of them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.adapters.inputs import arrays_in, is_file, is_table
from forsooth.adapters.outputs import logits_in
from forsooth.engine import one_thread
from forsooth.records import UsageError

IDS = "input_ids"  # as tokenizers of Hugging Face call them
AT_ONCE = 32  # texts in one forward


@dataclass(frozen=True)
class Texts:
    """Token ids (n, length) int64, and what goes with them by name, each (n, length): an attention mask, kinds."""

    ids: Tensor
    beside: Mapping[str, Tensor]

    def row(self, place: int, rows: int) -> tuple[Tensor, dict[str, Tensor]]:
        """One of the texts, repeated."""
        beside = {name: value[place].expand(rows, -1) for name, value in self.beside.items()}
        return self.ids[place].expand(rows, -1), beside

    @property
    def padded(self) -> bool:
        mask = self.beside.get("attention_mask")
        return mask is not None and not bool(mask.bool().all())


def read(values: Any, argument: str = "inputs") -> Texts | None:
    """What a tokenizer gave, or an array of whole numbers, as texts; None where neither came."""
    if is_file(values) and not is_table(values):
        named = arrays_in(Path(values), argument)
        values = named if IDS in named else next(iter(named.values()), None)
    if isinstance(values, Mapping):
        return of_tokenizer(values, argument)
    array = values if isinstance(values, Tensor | np.ndarray) else None
    if array is None or array.ndim != 2 or "int" not in str(array.dtype):
        return None
    return Texts(_whole(array, argument), {})


def of_tokenizer(values: Mapping[Any, Any], argument: str) -> Texts:
    """What a tokenizer gave: ids, and what has their shape beside them."""
    if IDS not in values:
        raise UsageError(f"`{argument}` must have {IDS}, as tokenizers give them, got {', '.join(map(str, values))}")
    given = {str(name): _whole(value, argument) for name, value in values.items() if value is not None}
    ids = given.pop(IDS)
    odd = [name for name, value in given.items() if value.shape != ids.shape]
    if odd:
        raise UsageError(f"`{argument}` must have the shape {tuple(ids.shape)} in all entries, not so: {odd}")
    return Texts(ids, given)


def _whole(value: Any, argument: str) -> Tensor:
    tensor = torch.as_tensor(value)
    if tensor.ndim != 2 or tensor.is_floating_point():
        raise UsageError(f"`{argument}` must be whole numbers (n, length), padded to one length, got {tensor.dtype}")
    return tensor.long()


def embedding_of(module: nn.Module, texts: Texts) -> nn.Embedding | None:
    """The table that a module looks its token ids up in: the first that is given just them."""
    tables = [part for part in module.modules() if isinstance(part, nn.Embedding)]
    found: list[Any] = []
    first = texts.ids[:1].cpu()

    def noting(table: nn.Module, given: tuple[Any, ...]) -> None:
        if torch.equal(given[0].cpu(), first):
            found.append(table)

    handles = [table.register_forward_pre_hook(noting) for table in tables]
    try:
        if tables:
            with torch.no_grad():
                ask(module, *texts.row(0, 1))
    finally:
        for handle in handles:
            handle.remove()
    return next(iter(found), None)


def ask(module: nn.Module, ids: Tensor, beside: Mapping[str, Tensor]) -> Tensor:
    """The logits (n, classes) for texts."""
    place = next(iter(module.parameters())).device
    beside = {name: value.to(place) for name, value in beside.items()}
    logits = logits_in(module(ids.to(place), **beside))
    if logits is None:
        raise UsageError(f"`model` must give logits (n, classes), got none from {type(module).__name__}")
    return logits


class Embedded(nn.Module):
    """A classifier of embeddings x (n, length, dims), where the module reads them itself and nothing is padded."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.training = inner.training

    def forward(self, x: Tensor) -> Tensor:
        logits = logits_in(self.inner(inputs_embeds=x))
        assert logits is not None  # it gave some for ids
        return logits


class Framed(nn.Module):
    """A classifier of embeddings x (n, length, dims) that all stand for one text, whose ids it is asked with.

    place  which of the texts it is now
    """

    def __init__(self, inner: nn.Module, table: nn.Embedding, texts: Texts) -> None:
        super().__init__()
        self.inner = inner
        self.texts = texts
        self.training = inner.training
        self.place = 0
        self._table = (table,)  # in a tuple, since it is a part of `inner` already

    def forward(self, x: Tensor) -> Tensor:
        ids, beside = self.texts.row(self.place, len(x))
        with giving(self._table[0], x):
            return ask(self.inner, ids, beside)


@contextmanager
def giving(table: nn.Embedding, x: Tensor) -> Iterator[None]:
    """While it lasts, the table gives x for whatever is looked up of that length."""

    def replace(_: nn.Module, given: tuple[Any, ...], output: Tensor) -> Tensor:
        return x if output.shape == x.shape else output

    handle = table.register_forward_hook(replace)
    try:
        yield
    finally:
        handle.remove()


@dataclass(frozen=True)
class Read:
    """A classifier of texts made ready: module of embeddings, the texts' own x (n, length, dims), outputs (n, classes).

    framed  the module that must be told which text is asked about; None where it need not be
    """

    module: nn.Module
    x: Tensor
    outputs: Tensor
    table: nn.Embedding
    framed: Framed | None


def opened(module: nn.Module, values: Any) -> Read | None:
    """The module as a classifier of embeddings, where these are texts and it looks them up; None where not."""
    texts = read(values)
    if texts is None:
        return None
    table = table_of(module, texts, named=isinstance(values, Mapping))
    if table is None:
        return None
    with torch.no_grad(), one_thread():
        x = embedded(table, texts.ids)
        outputs = outputs_of(module, texts)
        if reads_embeddings(module, texts, x, outputs):
            return Read(Embedded(module), x, outputs, table, None)
    framed = Framed(module, table, texts)
    if alike_for_all(framed, x, outputs):
        return Read(framed, x, outputs, table, None)
    return Read(framed, x, outputs, table, framed)


def table_of(module: nn.Module, texts: Texts, *, named: bool) -> nn.Embedding | None:
    """`embedding_of`; None where the module has none, or cannot read whole numbers that may be no words.

    named  a tokenizer gave the ids, so that they are words
    """
    table = None
    try:
        table = embedding_of(module, texts)
    except (TypeError, IndexError, RuntimeError, ValueError) as error:
        if named or "index out of range" in str(error):
            raise UsageError(f"`model` must read these token ids, but it raised {error}") from error
    if table is None and named:
        raise UsageError(f"`model` must look {IDS} up in an nn.Embedding, but {type(module).__name__} does not")
    return table


def outputs_of(module: nn.Module, texts: Texts) -> Tensor:
    """The logits (n, classes) of all texts, some at a time."""
    parts = []
    for rows in torch.arange(len(texts.ids)).split(AT_ONCE):
        parts.append(ask(module, texts.ids[rows], {name: value[rows] for name, value in texts.beside.items()}))
    return torch.cat(parts)


def embedded(table: nn.Embedding, ids: Tensor) -> Tensor:
    found: Tensor = table(ids.to(table.weight.device))
    return found.detach()


def alike_for_all(framed: Framed, x: Tensor, outputs: Tensor) -> bool:
    """Whether a module that is asked with the ids of the first text says of all x (n, length, dims) what it should."""
    if framed.texts.padded or len(x) < 2:
        return False
    with torch.no_grad(), one_thread():
        said = chunks.over(framed, x, size=AT_ONCE)
    return torch.allclose(said, outputs, rtol=1e-4, atol=1e-5)


def reads_embeddings(module: nn.Module, texts: Texts, x: Tensor, outputs: Tensor) -> bool:
    """Whether a module says of embeddings alone what it says of the texts."""
    if texts.padded or not hasattr(module, "get_input_embeddings"):
        return False
    kinds = [value for name, value in texts.beside.items() if name != "attention_mask"]
    if any(bool(value.any()) for value in kinds):
        return False
    said = logits_in(module(inputs_embeds=x[:AT_ONCE]))
    return said is not None and torch.allclose(said, outputs[:AT_ONCE], rtol=1e-4, atol=1e-5)
