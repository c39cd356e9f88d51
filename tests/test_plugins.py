import dataclasses

import own_methods
import pytest
import torch
from torch import nn

from forsooth import plugins
from forsooth.records import UsageError

MODEL = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).requires_grad_(False)
X, TARGET = torch.arange(8.0).view(2, 1, 2, 2), torch.tensor([0, 1])


def test_a_function_becomes_a_method():
    method = plugins.method("own_methods:gradient", ())
    expected = MODEL[1].weight[TARGET].view(2, 1, 2, 2)
    torch.testing.assert_close(method(MODEL, X, TARGET), expected)
    assert method.name == "own_methods:gradient"


def test_a_captum_class_becomes_a_method():
    method = plugins.method("captum.attr:InputXGradient", ())
    expected = MODEL[1].weight[TARGET].view(2, 1, 2, 2) * X
    torch.testing.assert_close(method(MODEL, X, TARGET), expected)


def test_a_record_keeps_all_but_its_name():
    method = plugins.method("own_methods:RECORD", ())
    assert method == dataclasses.replace(own_methods.RECORD, name="own_methods:RECORD")


@pytest.mark.parametrize(
    "path, message",
    [
        ("no_such_module:f", r"names the module 'no_such_module', which cannot be imported: No module named"),
        ("own_methods:gradiant", r"`methods` must be a known name, got 'gradiant'; did you mean gradient\?"),
        ("own_methods:NOT_CALLABLE", r"a Captum class, got 'own_methods:NOT_CALLABLE', which is int"),
        ("salency", r"`methods` must be a known name, got 'salency'"),
    ],
)
def test_what_cannot_be_found_is_said(path, message):
    with pytest.raises(UsageError, match=message):
        plugins.method(path, ())


def test_the_fingerprint_follows_the_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    prints = []
    for body in ("return x", "return 2 * x"):
        module = tmp_path / f"plug{len(prints)}.py"
        module.write_text(f"def f(model, x, target):\n    {body}\n")
        prints.append(plugins.fingerprint(plugins.load(f"plug{len(prints)}:f", argument="methods")))
    assert prints[0] != prints[1]
    assert plugins.fingerprint(own_methods.gradient) == plugins.fingerprint(own_methods.RECORD)
