"""Every line of docs/bring-your-own.md, executed: what it names is taken, and its map is that of the direct call."""

import functools
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import captum
import captum.attr
import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from torch import nn

import forsooth

PAGE = (Path(__file__).parents[1] / "docs" / "bring-your-own.md").read_text()
METHODS = re.findall(r"^\|.*\| `(methods=.*)` \|$", PAGE, flags=re.M)
MODELS = re.findall(r"^\|.*\| `(model=.*)` \|$", PAGE, flags=re.M)
DRAW = torch.Generator().manual_seed(0)
IMAGES = torch.randn(6, 1, 4, 4, generator=DRAW)
TABLE = torch.randn(40, 4, generator=DRAW)
LABELS = (TABLE[:, 0] > 0).long()


def my_function(model, x, target, power=1):
    x = x.clone().requires_grad_()
    output = model(x)[torch.arange(len(x)), target].sum()
    return torch.autograd.grad(output, x)[0] ** power


def explain_func(model, inputs, targets, **kwargs) -> np.ndarray:
    return my_function(model, inputs, targets).numpy()


class MyExplainer:
    def __call__(self, model, x, target):
        return my_function(model, x, target)


class Explainer:
    """The face of an explainer of shap."""

    def __init__(self, model):
        self.model = model

    def shap_values(self, x):
        return np.stack([my_function(self.model, x, torch.full((len(x),), k)).numpy() for k in range(3)], -1)


class Wrapped(nn.Module):
    def __init__(self, inner, output):
        super().__init__()
        self.inner = inner
        self.output = output

    def forward(self, x):
        return self.output(self.inner(x))


def names() -> dict:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 3)).eval()
    forest = RandomForestClassifier(5, max_depth=3, random_state=0).fit(TABLE.numpy(), LABELS.numpy())
    return {
        "functools": functools,
        "captum": captum,
        "forsooth": forsooth,
        "my_function": my_function,
        "explain_func": explain_func,
        "MyExplainer": MyExplainer,
        "net": net,
        "explainer": Explainer(net),
        "with_record": Wrapped(net, lambda logits: SimpleNamespace(loss=logits.sum(), logits=logits)),
        "with_tuple": Wrapped(net, lambda logits: (logits.sum(), logits)),
        "forest": forest,
        "regressor": RandomForestRegressor(5, max_depth=3, random_state=0).fit(TABLE.numpy(), TABLE[:, 0].numpy()),
    }


def value(line: str, known: dict):
    """What stands behind `methods=` or `model=` in a line of the page."""
    return eval(line.partition("=")[2], known)


def bias(model, inputs, **words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Captum, on hooks
        return forsooth.bias(model, inputs, permutations=4, players="pixels", **words)


def test_the_page_has_at_least_twelve_kinds():
    assert len(METHODS) + len(MODELS) >= 12


@pytest.mark.parametrize("line", METHODS)
def test_a_method_is_taken_as_it_is(line):
    known = names()
    method = value(line, known)[0]
    answer = bias(known["net"], IMAGES, methods=[method])
    mine = answer.table.iloc[[k for k, kind in enumerate(answer.table.kind) if kind == "method"]]
    assert list(mine.status) == ["ok"] and list(mine.failed) == [0]


@pytest.mark.parametrize("line", MODELS)
def test_a_model_is_taken_as_it_is(line):
    known = names()
    inputs = TABLE[:6] if "forest" in line or "regressor" in line else IMAGES
    data = TABLE if inputs is not IMAGES else IMAGES
    answer = bias(value(line, known), inputs.numpy(), data=data.numpy(), methods=["lime"])
    assert answer.table.status.eq("ok").all()


@pytest.mark.parametrize("line", MODELS[1:3])
def test_a_wrapped_model_has_the_numbers_of_the_bare_one(line):
    known = names()
    bare, wrapped = (bias(value(one, known), IMAGES, methods=["gradient"]).table for one in (MODELS[0], line))
    np.testing.assert_allclose(bare.m_bias, wrapped.m_bias, atol=1e-6)
