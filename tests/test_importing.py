"""A user's module, as it is imported by `python -m forsooth` in the folder where it lies."""

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import forsooth
from forsooth.importing import NEEDED, look_here, staying
from forsooth.records import UsageError

SOURCE = str(Path(forsooth.__file__).parents[1])
LEAVES = "import os\n\nos._exit(0)\n"
LEAVES_WHEN_ASKED = "import os\n\n\ndef f(model, x, target):\n    os._exit(0)\n"
TAKEN = "raise RuntimeError('taken for the real one')\n"


def told(folder: Path, *words: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of a command in that folder."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    environment.pop("PYTHONSAFEPATH", None)
    line = [sys.executable, "-m", "forsooth", *words]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_a_module_that_ends_the_process_at_import_is_told(tmp_path):
    (tmp_path / "leaves.py").write_text(LEAVES)
    code, _, error = told(tmp_path, "check", "leaves:f")
    assert code == 2 and error.count("\n") == 1
    assert "whose import raised SystemExit: 0 (leaves.py, line 3: os._exit(0))" in error


def test_a_method_that_ends_the_process_when_it_is_checked_is_wrong(tmp_path):
    (tmp_path / "leaves.py").write_text(LEAVES_WHEN_ASKED)
    code, output, _ = told(tmp_path, "check", "leaves:f")
    assert code == 1 and "SystemExit: 0" in output


def test_only_the_code_inside_stays(tmp_path):
    ended = []
    before = os._exit
    with staying():
        with pytest.raises(SystemExit) as raised:
            os._exit(7)
        if not (child := os.fork()):
            os._exit(5)
        _, status = os.waitpid(child, 0)
        ended.append(os.waitstatus_to_exitcode(status))
    assert raised.value.code == 7 and ended == [5] and os._exit is before


def test_another_thread_ends_the_process_all_the_same(monkeypatch):
    left = []
    monkeypatch.setattr(os, "_exit", left.append)
    with staying():
        thread = threading.Thread(target=lambda: os._exit(3))
        thread.start()
        thread.join()
    assert left == [3]


def test_files_named_like_packages_are_not_taken_for_them(tmp_path):
    """Python itself looks into the working folder first."""
    for name in ("torch", "typer", "random"):
        (tmp_path / f"{name}.py").write_text(TAKEN)
    code, output, error = told(tmp_path, "list", "metrics")
    assert code == 0 and "precision" in output, error


def test_a_file_named_like_a_package_beside_a_method_is_told(tmp_path):
    """Processes that are begun for the work would import it."""
    (tmp_path / "mine.py").write_text("def f(model, x, target):\n    return x\n")
    (tmp_path / "torch.py").write_text(TAKEN)
    code, _, error = told(tmp_path, "run", "xaitris", "--methods", "mine:f", "--workers", "2")
    assert code == 2 and error.count("\n") == 1 and "must have no file torch.py" in error
    assert not (tmp_path / "forsooth-runs").exists()


def test_a_package_of_that_name_is_told_and_a_folder_of_data_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numpy").mkdir()
    look_here()
    assert str(tmp_path) in sys.path
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    (tmp_path / "numpy" / "__init__.py").touch()
    with pytest.raises(UsageError, match=r"must have no file numpy/__init__\.py"):
        look_here()


def test_all_packages_that_we_import_are_known():
    nodes = [node for path in Path(SOURCE).rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    installed = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"forsooth"}
    assert installed <= set(NEEDED), installed - set(NEEDED)
