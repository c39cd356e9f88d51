"""Two runs at once, a page while a run writes, a full or closed disk, a copied store: nothing lost, nothing wrong."""

import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
import safetensors.torch
import tiny

from forsooth import api, report
from forsooth.progress import Silent
from forsooth.records import UsageError
from forsooth.runs import write_page
from forsooth.store import Store

METHODS = ("saliency", "random")
QUIET = {"settings": tiny.SETTINGS, "only": {**tiny.ONLY, "model": "llr"}, "progress": Silent()}


def run(folder: Path, **changes) -> Path:
    return api.run("xaitris", **{**QUIET, "methods": METHODS, "page": False, "out": folder, **changes}).folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    return run(tmp_path_factory.mktemp("whole") / "run")


def scores(folder: Path) -> bytes:
    return (folder / "scores.parquet").read_bytes()


def command(folder: Path) -> list[str]:
    words = [f"--only={key}={value}" for key, value in QUIET["only"].items()]
    words += [f"--set={key}={'' if value == () else value}" for key, value in tiny.SETTINGS.items()]
    methods = f"--methods={','.join(METHODS)}"
    return [
        sys.executable,
        "-m",
        "forsooth",
        "run",
        "xaitris",
        methods,
        *words,
        "--workers=1",
        "--quiet",
        f"--out={folder}",
    ]


def test_two_runs_at_once_in_one_folder(tmp_path, whole):
    runs = [subprocess.Popen(command(tmp_path / "run"), stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in runs] == [0, 0]
    assert scores(tmp_path / "run") == scores(whole)
    assert not list((tmp_path / "run").glob("store/unfinished/*"))


def test_files_of_two_different_runs_in_one_folder_belong_together(tmp_path, whole):
    """Whoever writes last, run.json and scores.parquet are of the same run."""
    folder = shutil.copytree(whole, tmp_path / "run")
    asked = [{"methods": ("saliency",)}, {"methods": ("random",)}]
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            list(pool.map(lambda words: run(folder, **words), asked))
            results = report.read(folder)
            scored = results.rows.loc[results.rows["part"].eq("scores"), "method"]
            assert set(scored) - {""} == set(results.run["choice"]["methods"])


def test_a_page_while_a_run_writes(tmp_path, whole):
    folder = shutil.copytree(whole, tmp_path / "run")
    over = threading.Event()

    def writes() -> None:
        while not over.is_set():
            run(folder)

    writer = threading.Thread(target=writes)
    writer.start()
    try:
        pages = {report.read(folder).rows.to_csv() for _ in range(8)}
        write_page([folder])
    finally:
        over.set()
        writer.join()
    assert len(pages) == 1


def test_a_store_copied_from_another_machine_serves(tmp_path, whole, monkeypatch):
    """Nothing in a cell names the machine or the folder in which it was made."""
    folder = tmp_path / "elsewhere" / "run"
    folder.mkdir(parents=True)
    shutil.copytree(whole / "store", folder / "store")
    monkeypatch.setattr("forsooth.engine.run_task", None)  # nothing may be made again
    run(folder)
    assert scores(folder) == scores(whole)
    text = b"".join(path.read_bytes() for path in folder.glob("store/cells/*/*/*"))
    assert str(whole).encode() not in text


def test_weights_of_a_copied_cell_that_were_exchanged_are_made_again(tmp_path, whole):
    folder = shutil.copytree(whole, tmp_path / "run")
    place = sorted(folder.glob("store/cells/*/*/tensors.safetensors"))[0]
    tensors = {name: value + 1 for name, value in safetensors.torch.load_file(place).items()}
    safetensors.torch.save_file(tensors, place)
    run(folder)
    assert scores(folder) == scores(whole) and len(list(folder.glob("store/damaged/*"))) == 1


@pytest.mark.parametrize("name", ["run.json", "scores.parquet"])
def test_files_of_different_runs_are_told_apart(tmp_path, whole, name):
    folder = shutil.copytree(whole, tmp_path / "run")
    other = run(tmp_path / "other", methods=("random",))
    shutil.copy(other / name, folder / name)
    with pytest.raises(UsageError, match=r"scores\.parquet is not what was written with run\.json"):
        report.read(folder)


@pytest.fixture
def disk(tmp_path):
    """A disk of 400 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_one_line_and_the_same_words_go_on_when_there_is_room(disk, whole):
    filler = disk / "filler"
    folder = disk / "run"
    refusals = []
    for size in (396_000, 388_000, 376_000, 350_000, 300_000):
        filler.write_bytes(bytes(size))
        try:
            run(folder)
        except UsageError as error:
            refusals.append(str(error))
        filler.unlink()
    assert len(refusals) > 1 and all("No space left on device" in line for line in refusals)
    assert not list(folder.glob("store/unfinished/*")) and not list(folder.glob(".*"))
    subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
    run(folder)
    assert scores(folder) == scores(whole)


def test_a_folder_that_can_only_be_read_is_one_line_and_its_results_can_be_read(disk, whole):
    subprocess.run(["mount", "-o", "remount,size=20m", str(disk)], check=True)
    folder = shutil.copytree(whole, disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in ({}, {"methods": ("saliency",)}):
        with pytest.raises(UsageError, match=r"`out` must be a folder that can be written, got .*Read-only"):
            run(folder, **words)
    with pytest.raises(UsageError, match=r"`out` must be a place one can write to, got .*Read-only"):
        write_page([folder])
    assert isinstance(api.Run(folder).leaderboard(), pd.DataFrame)
    cell = next(folder.glob("store/cells/*/*")).name
    assert Store(folder / "store").verify(cell)
