"""Texts: a word is hidden where its embedding is, and padding stays padding."""

import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import forsooth
from forsooth.adapters import models, texts
from forsooth.records import UsageError
from forsooth.user.bias.prepare import prepare
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.work import estimate

IDS = torch.tensor([[3, 4, 5, 6], [7, 8, 9, 0], [2, 5, 1, 0]])
MASK = (IDS > 0).long()


class Recurrent(nn.Module):
    """Reads the last word that is no padding, as it finds it in the ids."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.gru, self.head = nn.Embedding(10, 6), nn.GRU(6, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, ids):
        states = self.gru(self.words(ids))[0]
        return self.head(states[torch.arange(len(ids)), (ids > 0).sum(1) - 1])


def recurrent() -> Recurrent:
    torch.manual_seed(0)
    return Recurrent().eval()


def hugging_face(kind: str):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 10, "num_labels": 3}
    if kind == "bert":
        small = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
        config = transformers.BertConfig(**sizes, **small, max_position_embeddings=6)
        return transformers.BertForSequenceClassification(config).eval()
    config = transformers.GPT2Config(**sizes, n_positions=6, n_embd=8, n_layer=1, n_head=2, pad_token_id=0)
    return transformers.GPT2ForSequenceClassification(config).eval()


def said(model, values, mask=MASK):
    with torch.no_grad():
        if isinstance(model, Recurrent):
            return model(values)
        return model(input_ids=values, attention_mask=mask).logits


def opened(model, given):
    adapted, x, outputs = models.asked_inputs(model, given, device="auto", output="logits")
    return adapted, x, outputs


@pytest.mark.parametrize("kind", ["bert", "gpt2", "gru"])
def test_embeddings_are_asked_as_ids_are_padding_included(kind):
    model = recurrent() if kind == "gru" else hugging_face(kind)
    given = IDS if kind == "gru" else {"input_ids": IDS, "attention_mask": MASK}
    adapted, x, outputs = opened(model, given)
    torch.testing.assert_close(outputs, said(model, IDS))
    assert x.shape == (3, 4, x.shape[2]) and adapted.framed is not None
    for place in range(3):
        adapted.framed.place = place
        torch.testing.assert_close(adapted.module(x[[place, place]]), outputs[[place, place]])


def test_without_padding_embeddings_are_read_at_once():
    model = hugging_face("bert")
    adapted, x, _ = opened(model, IDS)
    assert adapted.framed is None
    torch.testing.assert_close(adapted.module(x), said(model, IDS, torch.ones_like(IDS)))


@pytest.mark.parametrize("kind", ["bert", "gru"])
def test_shapley_values_of_words_are_those_by_hand(kind):
    model = recurrent() if kind == "gru" else hugging_face(kind)
    table = model.words if kind == "gru" else model.get_input_embeddings()
    given = IDS if kind == "gru" else {"input_ids": IDS, "attention_mask": MASK}
    outputs = opened(model, given)[2]
    target = int(outputs[1].argmax())

    def worth(coalition) -> float:
        ids = IDS[1:2].clone()
        shown = [i in coalition for i in range(4)]
        with torch.no_grad():
            if kind == "gru":
                frame = [word if keep else 9 for word, keep in zip(ids[0].tolist(), shown, strict=True)]
                states = model.gru(table(torch.tensor([frame])))[0]
                return model.head(states[0, 2])[target].item()
            hidden = torch.where(torch.tensor(shown)[None], ids, torch.full_like(ids, 9))
            return model(input_ids=hidden, attention_mask=MASK[1:2]).logits[0, target].item()

    expected = []
    for player in range(4):
        others = [k for k in range(4) if k != player]
        total = 0.0
        for size in range(4):
            for group in itertools.combinations(others, size):
                share = math.factorial(size) * math.factorial(3 - size) / math.factorial(4)
                total += share * (worth({*group, player}) - worth(set(group)))
        expected.append(total)
    assert expected[3] == pytest.approx(0, abs=1e-6)  # padding
    request = BiasRequest(model=model, inputs=given, players="words", permutations="exact", baseline="token:9")
    values = estimate(prepare(model, request), "anchor", 1, 2).values[0]
    np.testing.assert_allclose(values.numpy(), expected, atol=1e-5)


def test_independence_takes_texts_without_padding_and_refuses_others():
    model = hugging_face("bert")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = forsooth.independence(model, IDS, patch="size:2", methods=["gradient", "integrated_gradients"])
    assert set(answer.table.status) == {"ok"}
    with pytest.raises(UsageError, match="must be texts without padding"):
        forsooth.independence(recurrent(), IDS, patch="size:2", methods=["gradient"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ids": IDS}, "`inputs` must have input_ids"),
        ({"input_ids": IDS, "attention_mask": MASK[:2]}, "must have the shape .* not so: ..attention_mask"),
        ({"input_ids": IDS + 5}, "`model` must read these token ids, but it raised index out of range"),
    ],
)
def test_what_is_no_text_is_refused(given, message):
    with pytest.raises(UsageError, match=message):
        opened(recurrent(), given)


def test_numbers_stay_numbers_where_nothing_looks_them_up():
    net = nn.Sequential(nn.Linear(4, 3))
    assert texts.opened(net, IDS) is None
    with pytest.raises(UsageError, match=r"must look input_ids up in an nn\.Embedding, but Sequential does not"):
        texts.opened(net.double(), {"input_ids": IDS})
    with pytest.raises(UsageError, match="`baseline` token:ID must be that of a classifier of texts"):
        forsooth.bias(net.float(), torch.rand(3, 4), baseline="token:3")
