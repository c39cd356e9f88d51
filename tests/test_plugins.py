import dataclasses
import linecache
import os
import subprocess
import sys
from pathlib import Path

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
        (":x", r"`methods` must be package.module:function, got ':x'"),
        ("own_methods:", r"`methods` must be package.module:function, got 'own_methods:'"),
        (".own_methods:x", r"`methods` must be package.module:function, got '.own_methods:x'"),
        ("own_methods:NOT_CALLABLE", r"a Captum class, got 'own_methods:NOT_CALLABLE', which is int"),
        ("salency", r"`methods` must be a known name, got 'salency'"),
    ],
)
def test_what_cannot_be_found_is_said(path, message):
    with pytest.raises(UsageError, match=message):
        plugins.method(path, ())


def test_only_what_can_be_called_is_offered():
    with pytest.raises(UsageError, match=r"known: Method, RECORD, an_array, .*, wrong_shape$"):
        plugins.method("own_methods:zzz", ())
    with pytest.raises(UsageError) as caught:
        plugins.method("own_methods:zzz", ())
    assert "torch" not in str(caught.value) and "NOT_CALLABLE" not in str(caught.value)


def test_the_fingerprint_follows_the_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    prints = []
    for body in ("return x", "return 2 * x"):
        module = tmp_path / f"plug{len(prints)}.py"
        module.write_text(f"def f(model, x, target):\n    {body}\n")
        prints.append(plugins.fingerprint(plugins.load(f"plug{len(prints)}:f", argument="methods")))
    assert prints[0] != prints[1]
    assert plugins.fingerprint(own_methods.gradient) == plugins.fingerprint(own_methods.RECORD)


def test_the_fingerprint_follows_what_the_code_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    prints = []
    for factor in (1, 2):
        (tmp_path / f"inner{factor}.py").write_text(f"FACTOR = {factor}\n")
        (tmp_path / f"helper{factor}.py").write_text(
            f"import inner{factor} as inner\n\n\ndef g(x):\n    return inner.FACTOR * x\n"
        )
        (tmp_path / f"outer{factor}.py").write_text(
            f"from helper{factor} import g\n\n\ndef f(model, x, target):\n    return g(x)\n"
        )
        function = plugins.load(f"outer{factor}:f", argument="methods")
        found = plugins.imported(sys.modules[f"outer{factor}"])
        assert [module.__name__ for module in found] == [f"helper{factor}", f"inner{factor}"]
        before = plugins.fingerprint(function)
        (tmp_path / f"inner{factor}.py").write_text(f"FACTOR = {factor} + 5\n")
        linecache.checkcache()
        assert plugins.fingerprint(function) != before
        prints.append(before)
    assert prints[0] != prints[1]


def test_installed_modules_are_not_the_users():
    assert not plugins.is_own(torch.__file__) and not plugins.is_own(plugins.__file__) and not plugins.is_own(None)
    assert not plugins.is_own(linecache.__file__) and plugins.is_own(__file__)


def test_an_error_names_the_users_file_and_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "divides.py").write_text("def f():\n    return 1 / 0\n")
    with pytest.raises(ZeroDivisionError) as caught:
        plugins.load("divides:f", argument="train")()
    assert plugins.place(caught.value) == " (divides.py, line 2: return 1 / 0)"
    with pytest.raises(OSError) as elsewhere:
        Path("/no/such/file").read_text()
    assert "read_text()" in plugins.place(elsewhere.value)  # the last line of ours, not of the library


def test_a_file_is_no_module():
    with pytest.raises(UsageError, match=r"`train` must be package.module:name and no file, .* did you mean mine:f"):
        plugins.load("./here/mine.py:f", argument="train")


def test_a_module_that_fails_at_import_is_named_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "fails_at_import.py").write_text("x = 1\ny = x / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        UsageError, match=r"'fails_at_import:f', whose import raised ZeroDivisionError.*line 2: y = x / 0"
    ):
        plugins.method("fails_at_import:f", ())


def test_a_module_that_leaves_at_import_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("leaves_at_import.py").write_text("import sys\n\nsys.exit(0)\n")
    with pytest.raises(UsageError, match=r"whose import raised SystemExit: 0 \(leaves_at_import.py, line 3: sys.exit"):
        plugins.method("leaves_at_import:f", ())


SHADOWS = """
import arithmetic
from pathlib import Path
from forsooth import engine, plugins, store
from forsooth.progress import Silent

if __name__ == "__main__":
    plugins.load("mine:method", argument="methods")
    tasks = [engine.make_task(arithmetic.number, {"value": v}, name="n") for v in (1.0, 2.0)]
    engine.execute(tasks, store.Store(Path("store")), workers=2, progress=Silent())
    assert all(store.Store(Path("store")).read(task.key).rows for task in tasks)
"""


def test_a_file_named_like_the_standard_library_breaks_no_worker(tmp_path):
    """The file lies beside the user's method, not beside the script: there Python itself would take it."""
    here = tmp_path / "here"
    here.mkdir()
    (tmp_path / "script.py").write_text(SHADOWS)
    (here / "mine.py").write_text("def method(model, x, target): return x\n")
    for name in ("secrets", "random", "socket"):
        (here / f"{name}.py").write_text("raise RuntimeError('taken for the real one')\n")
    paths = [str(Path(plugins.__file__).parents[1]), str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
