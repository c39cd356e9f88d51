"""A run killed at any moment goes on and ends with the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny

from forsooth import api

TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory) -> bytes:
    folder = tmp_path_factory.mktemp("unbroken") / "run"
    api.run("xaitris", methods=tiny.METHODS, only=tiny.ONLY, settings=tiny.SETTINGS, out=folder)
    return (folder / "scores.parquet").read_bytes()


def test_ten_kills_change_no_byte(tmp_path, unbroken):
    command = [sys.executable, str(TESTS / "kill_driver.py"), str(tmp_path / "run"), "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TESTS)
    assert int(done.stdout.split()[0]) == 10
    assert (tmp_path / "run" / "scores.parquet").read_bytes() == unbroken


def test_a_killed_pool_leaves_no_worker_behind_and_goes_on(tmp_path, unbroken):
    folder = tmp_path / "run"
    words = ["run", "xaitris", "--workers", "2", "--out", str(folder), "--methods", ",".join(tiny.METHODS)]
    words += [f"--only={key}={value}" for key, value in tiny.ONLY.items()]
    words += [f"--set={key}={value}" for key, value in tiny.SETTINGS.items() if value != ()] + ["--set=sweep="]
    command = [sys.executable, "-m", "forsooth", *words]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list(folder.glob("store/cells/*/*")):
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _until_gone(process.pid)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert (folder / "scores.parquet").read_bytes() == unbroken


def test_a_terminated_pool_says_that_work_is_kept_and_ends_at_once(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "forsooth", "run", "xaitris", "--workers", "2", "--out", str(folder), "--quiet"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    while not list(folder.glob("store/cells/*/*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 143
    assert said == "stopped; what was finished is kept, and the same command goes on from there\n"
    _until_gone(process.pid)


def _until_gone(group: int) -> None:
    """Wait until no process of the session is left; a worker that waits for ever would fail the test."""
    for _ in range(400):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a worker outlived its parent")
