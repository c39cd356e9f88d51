"""`forsooth check`: good methods pass, and each way to break the contract is found and named."""

import dataclasses
import itertools
import random
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import own_methods
import pandas as pd
import pytest
import torch
from captum.attr import InputXGradient
from torch import nn
from typer.testing import CliRunner

import forsooth
from forsooth import cli
from forsooth.attributions import METHODS
from forsooth.models import specimens
from forsooth.records import Method, UsageError
from forsooth.suites.explain import misshapen
from forsooth.user.check import verdicts
from forsooth.user.check.evidence import Evidence, Trial

KINDS = ("image 1×8×8", "image 3×16×16", "ViT 1×8×8", "table of 6", "words 5×4")
PAGE = (Path(__file__).parents[3] / "docs" / "add-one.md").read_text()


def good(model, x, target):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(model(x)[torch.arange(len(x)), target].sum(), x)[0]


def wrong_shape(model, x, target):
    return good(model, x, target).flatten(1).sum(1)


def array(model, x, target):
    return good(model, x, target).numpy()


def raises(model, x, target):
    raise ValueError("no map\ntoday")


def too_few(model, x):
    return x


def nan(model, x, target):
    return good(model, x, target) / torch.zeros_like(x)


def double(model, x, target):
    return good(model, x, target).double()


def changes_x(model, x, target):
    maps = good(model, x, target)
    x *= 2
    return maps


def wants_grad(model, x, target):
    x.requires_grad_()
    return torch.autograd.grad(model(x)[torch.arange(len(x)), target].sum(), x)[0]


def changes_target(model, x, target):
    maps = good(model, x, target)
    target.zero_()
    return maps


def trains(model, x, target):
    maps = good(model, x, target)
    model.train()
    return maps


def changes_weights(model, x, target):
    maps = good(model, x, target)
    next(model.parameters()).data.add_(1)
    return maps


def freezes(model, x, target):
    model.requires_grad_(False)
    return good(model, x, target)


def hooks(model, x, target):
    next(model.children()).register_forward_hook(lambda *given: None)
    return good(model, x, target)


def replaces(model, x, target):
    name = next(name for name, part in model.named_children() if isinstance(part, nn.ReLU))
    maps = good(model, x, target)
    setattr(model, name, nn.Tanh().eval())
    return maps


def no_grad_left(model, x, target):
    maps = good(model, x, target)
    torch.set_grad_enabled(False)
    return maps


def scaled_by_the_batch(model, x, target):
    maps = good(model, x, target)
    return maps / maps.abs().max()


def not_alone(model, x, target):
    assert len(x) > 1, "one is not enough"
    return good(model, x, target)


def numpys(model, x, target):
    return good(model, x, target) * float(np.random.rand())  # noqa: NPY002


def randoms(model, x, target):
    return good(model, x, target) * random.random()


def unseeded(model, x, target):
    return good(model, x, target) * float(np.random.default_rng().random())


def leaves(model, x, target):
    raise SystemExit(3)


calls = itertools.count()


def every_other_time(model, x, target):
    if next(calls) % 2:
        raise RuntimeError("not again")
    return good(model, x, target)


def first_class_only(model, x, target):
    if len(x) > 1 and target[0] != 0:
        raise RuntimeError("another class")
    return good(model, x, target)


BAD = [
    (wrong_shape, "shape", r"must have the shape of x \(3, 6\), got \(3,\)"),
    (raises, "runs", r"ValueError: no map today \(.*test_work.py, line "),
    (leaves, "runs", r"SystemExit: 3 \(.*test_work.py, line "),
    (too_few, "runs", r"TypeError: too_few\(\) takes 2 positional arguments but 3 were given \(.*test_work.py, line "),
    (nan, "finite", "of 18 values are nan or infinite"),
    (double, "dtype", r"must be torch.float32 like x, got torch.float64: return map.to\(x.dtype\)"),
    (changes_x, "untouched", r"x was changed: work on a copy, x = x.clone\(\)"),
    (wants_grad, "untouched", r"x was left with another requires_grad: derive by a copy"),
    (changes_target, "untouched", "target was changed"),
    (trains, "untouched", r"left in another mode \(train or eval\)"),
    (changes_weights, "untouched", "weights or buffers of the model were changed"),
    (freezes, "untouched", "weights of the model were left with another requires_grad"),
    (hooks, "untouched", "hooks were left on the model"),
    (replaces, "untouched", "layers of the model were replaced"),
    (no_grad_left, "untouched", "torch was left in another grad mode"),
    (
        scaled_by_the_batch,
        "batch",
        "an input alone gets another map than in a batch, off by 0.*: reduce over the axes of",
    ),
    (not_alone, "batch", "with a batch of one it failed: AssertionError: one is not enough"),
    (numpys, "same seed", "draws from numpy's global generator, which nobody seeds here: draw with torch, or declare"),
    (randoms, "same seed", "draws from the global generator of `random`"),
    (unseeded, "same seed", "two calls with the same seed give two maps: draw with torch"),
    (every_other_time, "same seed", "a second call with the same inputs failed: RuntimeError: not again"),
    (first_class_only, "target", "with other classes it failed: RuntimeError: another class"),
]


def wrongs(found: forsooth.CheckResult) -> set[str]:
    return set(found.table.loc[found.table["status"].eq("wrong") & found.table["input"].ne("all"), "check"])


def line(found: forsooth.CheckResult, check: str, where: str = "table of 6") -> pd.Series:
    return found.table[found.table["check"].eq(check) & found.table["input"].eq(where)].iloc[0]


def record(function, **fields):
    plain = {"needs": (), "random": False, "signed": True, "cite": "me", "version": 1}
    return Method(name=function.__name__, function=function, **{**plain, **fields})


def test_a_good_method_passes():
    found = forsooth.check(good)
    table = found.table
    assert found.passed and isinstance(found, forsooth.CheckResult)
    assert list(table.columns) == ["check", "input", "status", "message"]
    assert set(table["status"]) <= {"ok", "note", "pass", "fail"}
    assert tuple(table["input"].unique()) == (*KINDS, "all", "weights by hand")
    assert set(table[table["status"].eq("note")]["check"]) == {"sum", "seconds"}
    assert line(found, "randomness")["message"] == "deterministic"
    assert line(found, "inputs", "all")["message"].startswith("works on image 1×8×8")
    assert found.words.startswith(
        "good keeps the contract on image 1×8×8, image 3×16×16, ViT 1×8×8, table of 6 and words 5×4. It is"
    )
    assert len(found.shown()) < len(table) / 2 and "same seed" in str(found)


@pytest.mark.parametrize("method, check, message", BAD, ids=lambda value: getattr(value, "__name__", None))
def test_each_fault_is_found_and_named(method, check, message):
    found = forsooth.check(method)
    assert not found.passed and {check} <= wrongs(found)
    if method is not every_other_time:  # which fails in other places, too
        assert wrongs(found) == {check}
    assert re.search(message, line(found, check)["message"])
    assert f"{method.__name__} breaks the contract. To fix:\n- {check} (" in found.words
    assert re.search(message, found.words)


def test_the_line_of_the_error_is_the_users_own():
    def deep(model, x, target):
        return torch.linalg.inv(torch.zeros(2, 2))

    here = deep.__code__.co_firstlineno + 1
    message = line(forsooth.check(deep), "runs")["message"]
    assert message.endswith(f"{Path(__file__).name}, line {here})") and message.count(Path(__file__).name) == 1


def test_in_training_mode_the_statistics_of_a_batch_show():
    def in_training(model, x, target):
        return good(model.train(), x, target)

    found = forsooth.check(in_training)
    messages = found.table[found.table["input"].eq("image 3×16×16") & found.table["check"].eq("untouched")]["message"]
    assert any("buffers" in message for message in messages) and any("mode" in message for message in messages)


@pytest.mark.parametrize(
    "method, check, message",
    [
        (numpys, "global draws", "numpy's global generator"),
        (own_methods.draws, "global draws", "torch's global generator; that is seeded"),
        (own_methods.gradient, "untouched", "fills .grad of the model's weights"),
        (own_methods.says_nothing, "finite", "zero everywhere"),
        (own_methods.says_nothing, "target", "target is not used"),
        (good, "sum", "the sum of a map is off f(x) - f(0) by "),
    ],
)
def test_what_is_no_fault_is_a_note(method, check, message):
    found = line(forsooth.check(method), check)
    assert found["status"] == "note" and message in found["message"]


def test_a_method_that_draws_is_random_and_its_batch_is_inconclusive():
    found = forsooth.check(own_methods.draws)
    assert found.passed and line(found, "randomness")["message"] == "random" and "It is random." in found.words
    assert line(found, "batch")["status"] == "inconclusive"


def test_one_kind_of_input_is_enough():
    def images_only(model, x, target):
        return torch.nn.functional.avg_pool2d(good(model, x, target), 3, stride=1, padding=1) if x.ndim == 4 else x[0]

    found = forsooth.check(images_only)
    assert found.passed
    assert line(found, "shape")["status"] == "note" and line(found, "shape", KINDS[0])["status"] == "ok"
    expected = "works on image 1×8×8, image 3×16×16 and ViT 1×8×8; not on table of 6 and words 5×4"
    assert tuple(line(found, "inputs", "all"))[2:] == ("note", expected)


def spread(model, x, target, part):
    each = part / x[0].numel()
    return each.view(-1, *[1] * (x.ndim - 1)).expand_as(x)


def conserving(model, x, target):
    with torch.no_grad():
        return spread(model, x, target, model(x)[torch.arange(len(x)), target])


def half(model, x, target):
    with torch.no_grad():
        return spread(model, x, target, (model(x) - model(0 * x))[torch.arange(len(x)), target] / 2)


def test_promises_are_held_against_the_record():
    """Sums known beforehand: all of f(x), or half of f(x) - f(0)."""
    broken = line(forsooth.check(record(half, promise="complete")), "sum")
    assert (
        broken["status"] == "wrong" and "off f(x) - f(0) by 50.0 %, though the record promises it" in broken["message"]
    )
    assert line(forsooth.check(record(half)), "sum")["status"] == "note"
    kept = line(forsooth.check(record(conserving, promise="conserve")), "sum")
    assert tuple(kept)[2:] == ("ok", "a map sums to f(x)")
    assert line(forsooth.check(record(conserving, promise="complete")), "sum")["status"] == "wrong"  # f(0) is not 0


def test_the_record_must_be_true():
    assert wrongs(forsooth.check(record(own_methods.draws))) == {"randomness"}
    assert forsooth.check(record(own_methods.draws, random=True)).passed
    assert wrongs(forsooth.check(record(good, signed=False))) == {"sign"}


def test_a_record_gets_what_it_needs():
    def needy(model, x, target, *, background, fit, generator, generators, layer, truth):
        assert background.shape[1:] == fit.shape[1:] == x.shape[1:] and layer in dict(model.named_modules())
        assert truth.dtype == torch.bool
        noise = torch.stack([torch.rand(x[0].shape, generator=own) for own in generators])
        return good(model, x, target) + torch.rand(x[0].shape, generator=generator) + noise

    needs = ("background", "fit", "generator", "generators", "layer", "truth")
    found = forsooth.check(record(needy, needs=needs, random=True))
    assert found.passed and line(found, "batch", KINDS[0])["status"] == "ok"  # the same draws for any batch
    assert "it needs a layer" in line(found, "runs")["message"]

    def overwrites(model, x, target, *, background):
        background.zero_()
        return good(model, x, target)

    assert "background was changed" in forsooth.check(record(overwrites, needs=("background",))).words


def test_nothing_of_the_surroundings_is_changed():
    def noisy(model, x, target):
        return numpys(model, x, target) * random.random() * torch.rand(())

    before = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    before += (torch.get_num_threads(), torch.is_grad_enabled())
    for method in (noisy, no_grad_left):
        forsooth.check(method)
    after = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    after += (torch.get_num_threads(), torch.is_grad_enabled())
    assert torch.equal(before[0], after[0]) and before[1:] == after[1:]


def test_the_networks_tell_classes_inputs_and_modes_apart():
    for kind in specimens.specimens(0, "cpu"):
        with torch.no_grad():
            found = kind.model(kind.x)
            assert found.shape == (3, 3) and found.dtype == torch.float32
            assert torch.pdist(found).min() > 1e-3 and torch.pdist(found.T).min() > 1e-3
            assert not any(part.training for part in kind.model.modules())
    again = specimens.specimens(0, "cpu")[0]
    assert torch.equal(again.x, specimens.specimens(0, "cpu")[0].x) and not torch.equal(
        again.x, specimens.specimens(1, "cpu")[0].x
    )


def test_rounding_is_no_fault_and_nan_cannot_be_compared():
    x = torch.ones(3, 2)

    def seen(alone):
        first, one = (Trial(maps, "", "", 0.0) for maps in (x, alone))
        return Evidence("table", x, first, first, first, first, ((0, one),))

    for value, status in ((1 + 5e-6, "ok"), (1 + 5e-4, "note"), (1.1, "wrong"), (float("nan"), "inconclusive")):
        assert verdicts.batch(seen(torch.full((1, 2), value)))[0] == status
    assert "off by 0.0001 of its largest value or more, as rounding does" in verdicts.batch(seen(x[:1] + 5e-4))[1]
    assert verdicts.device(Evidence("table", x, Trial(x.to("meta"), "", "", 0.0)))[0] == "wrong"


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_catalogue_keeps_the_contract(method):
    found = forsooth.check(method.name)
    assert found.passed, found.words
    assert "for none of them" not in line(found, "inputs", "all")["message"]
    assert "randomness" not in wrongs(found)


def test_a_captum_class_and_paths():
    assert forsooth.check(InputXGradient).words.startswith("InputXGradient keeps the contract")
    found = forsooth.check("own_methods:RECORD")
    assert (
        "Next: forsooth run xaitris --preset demo --methods saliency,sobel,random,oracle,own_methods:RECORD"
        in found.words
    )
    nameless = dataclasses.replace(own_methods.RECORD, needs=("gradients",))
    with pytest.raises(UsageError, match=r"`needs` of mine must be among gradient, .*, got gradients"):
        forsooth.check(nameless)


def terminal(monkeypatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["forsooth", "check", *words])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code or 0


def test_at_the_terminal(monkeypatch, capsys):
    assert terminal(monkeypatch, "own_methods:RECORD", "--quiet") == 0
    assert "own_methods:RECORD keeps the contract" in capsys.readouterr().out
    assert terminal(monkeypatch, "own_methods:wrong_shape", "--quiet") == 1
    printed = capsys.readouterr().out
    assert "breaks the contract. To fix:" in printed and "have the shape of x (3, 6), got (3, 3)" in printed


def test_brackets_are_printed_as_they_are(tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "brackets.py").write_text("def f(model, x, target):\n    raise ValueError('[n, c] and [/c]')\n")
    assert terminal(monkeypatch, "brackets:f", "--quiet") == 1
    assert capsys.readouterr().out.count("[n, c] and [/c]") >= 2  # in the table and in the words


@pytest.mark.parametrize(
    "words, message",
    [
        (["salency"], "`method` must be a known name, got 'salency'; did you mean saliency"),
        (["no_such_module:f"], "`method` names the module 'no_such_module', which cannot be imported"),
        (["own_methods:gradiant"], "`method` must be a known name, got 'gradiant'; did you mean gradient"),
        (["own_methods:NOT_CALLABLE"], "`methods` must name a function"),
        (["half_written:f"], "`method` names 'half_written:f', whose import raised SyntaxError"),
        (["saliency", "--device", "tpu"], "`device` must be a known name, got 'tpu'"),
    ],
)
def test_an_error_is_one_line_and_exit_code_two(monkeypatch, capsys, tmp_path, words, message):
    (tmp_path / "half_written.py").write_text("def f(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert terminal(monkeypatch, *words) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"forsooth: {message}") and error.count("\n") == 1


def test_the_page_says_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    code, command, shown = re.search(
        r"```python\n(# mine.py.*?)```.*?```\n(forsooth check.*?)\n```\n\n```\n(.*?)```", PAGE, flags=re.S
    ).groups()
    Path("mine.py").write_text(code)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    done = CliRunner().invoke(cli.app, [*shlex.split(command)[1:], "--quiet"], catch_exceptions=False)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    assert done.exit_code == 0
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for said in shown.splitlines():
        assert said.strip() in ("", "…") or " ".join(said.split()) in printed


def test_a_map_without_channels_is_told_how_to_have_them():
    x = torch.zeros(2, 3, 4, 4)
    assert "maps[:, None].expand_as(x) gives all channels" in misshapen(x.sum(1), x)
    assert "expand_as" not in misshapen(x[:, 0, 0], x) + misshapen(x[:1], x)
    assert "must be a torch tensor" in misshapen([1], x) and "got list" in misshapen([1], x)


def without_channels(model, x, target):
    maps = good(model, x, target)
    return maps.sum(1) if maps.ndim == 4 else maps


def test_a_map_that_fits_no_image_is_wrong_though_it_fits_words():
    found = forsooth.check(without_channels)
    assert not found.passed and wrongs(found) == {"shape"}
    assert line(found, "shape", "words 5×4")["status"] == "ok"


def statuses(method):
    table = forsooth.check(method).table
    by_hand = table[table["input"].eq("weights by hand")]
    return dict(zip(by_hand["check"], by_hand["status"], strict=True))


def test_networks_set_by_hand_are_explained_or_not():
    names = ("weighted sum", "interaction", "saturation", "suppressor", "attention copy head")
    assert statuses("shapley_sampling") == dict.fromkeys(names, "pass")
    assert statuses(good) == {**dict.fromkeys(names, "pass"), "saturation": "fail"}
    assert set(statuses("constant").values()) == {"fail"}
    assert statuses("rise")["attention copy head"] == "refused"
    assert "it explains 4 rightly; not saturation." in forsooth.check(good).words
