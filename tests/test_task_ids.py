"""Ids and keys of tasks: a file may move, a function may be renamed, and no cell of anyone's store goes stale for it.

Where a key here changes though no version was raised and no setting of a preset was changed, an argument or a field has
another name than in everybody's stores: give it its old word by `task(..., new="old")`, or raise the version. Where the
change is wanted, the failure shows the new key.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from PIL import Image

import forsooth
from forsooth import engine, plugins
from forsooth.progress import Silent
from forsooth.records import Cell, Choice, Task
from forsooth.settings import changed, values_of
from forsooth.store import Store
from forsooth.suites import SUITES
from forsooth.user import steps
from forsooth.user.dryrun import DryRunRequest
from forsooth.user.dryrun import work as dryrun
from forsooth.user.score import work as score
from forsooth.user.score.request import ScoreRequest

SOURCE = Path(forsooth.__file__).parent
HASH = re.compile("[0-9a-f]{32,64}")
PINNED: Mapping[str, Mapping[str, str]] = {
    "xaitris": {
        "xaitris.train": "99c1d367e3b4e05b4f81f721f5d21f6f",
        "xaitris.show": "917abc385b3542e21e6f42d1e41959db",
        "xaitris.explain": "8ebd0ffda82e7358641fb4cf99fd2812",
        "xaitris.score": "09d38fc0dbdcd3d2a0b8af4862c8f567",
        "xaitris.strategies": "0207af6798e6b474f91a7ee505d1c2a6",
    },
    "bam": {
        "bam.train": "d61fe9bc328ae5a6b0c4f6b0116c6232",
        "bam.verify": "2148ecf3ca131e5d11b7ae9a2a7966ba",
        "bam.patches": "9cad41194d1182c29fee2faea2aa9547",
        "bam.tcav": "813118a48f7649bddd1ef5baba446bf9",
        "bam.show": "bfd9cd54e80612555f6c350b81519455",
        "bam.explain": "bcdb385ecd7e8e67436201acc8aef8b0",
    },
    "planted": {
        "planted.train": "72d99b96bf49ad846696359b6be2dd24",
        "planted.show": "4fcb95251267185a722d245cb1cea4df",
        "planted.explain": "fbd1515ea47703ff23957bed5f107a7e",
    },
    "articles": {
        "articles.train": "219aff81014a239270d8161e7641b368",
        "articles.select": "7c77cf5b9cb7d79a671058c5f6ade7d0",
        "articles.show": "b8af8e0236195d22cf44997c270bb320",
        "articles.optimum": "f52134f126a12d5bcc0d42f6163ea098",
        "articles.explain": "71e48af89254bafb84742c6057564ce8",
    },
    "bias": {
        "bias.train": "2a607cf64ff7caafea2e6c906be2d496",
        "bias.play": "5d5c06354fe2020556404fc55d3d3e3e",
        "bias.explain": "34aee29f5dc147c61a77087a2061389d",
        "bias.judge": "ac89a0babe0d7895596180214a6355b3",
        "bias.show": "80b9a6cb11b89de0851be97cace2bcb8",
    },
    "xaitris/few-samples": {
        "xaitris.few_samples": "5e4086d071a4cd954258b96508509fe9",
    },
    "bias/table-13": {
        "bias.rivals": "0ff59b4ec812c6899893e8d402f76abc",
    },
    "bias/figure-4b": {
        "bias.contexts": "87e60b2506f8428683a5ded8be8059ed",
    },
    "bias/table-14": {
        "bias.regions": "49d85ffd98be7c4e380dcab67e81c586",
    },
    "bias/figure-5": {
        "bias.unstable": "f7e6786be0c0c7498125ec9564794304",
    },
    "bias/proposition-1": {
        "bias.ratios": "eeeb167d77644d4e7a167446ab219550",
    },
    "bias/figure-6": {
        "bias.both_biases": "c88ca3ce4de9e8937a0a24fcd2458d55",
    },
    "bias/suppressor": {
        "bias.known_network": "b2c633ca16eb70a874238a0863cec8cb",
        "bias.closed_form": "d7cfa58360bf2cdab5b3910ee942e7c7",
    },
    "bias/figure-3": {
        "bias.audit_train": "f114c88beb3aadc095da4453d887eeaf",
        "bias.audit_region": "3d3807f75307f31c36151f2ecfc9be3a",
    },
    "bias/appendix-n": {
        "bias.audit_pattern": "d3e55d4b1323fbf231e27a4c68dca6ba",
    },
    "articles/figure-5": {
        "articles.attention_by_document": "820338f2fbc631c3025ce00b64f5a2cf",
    },
    "articles/figure-16": {
        "articles.selection_by_document": "581c9fd96114916eeac94112b34fbd75",
    },
    "forsooth bias": {
        "user.bias_play": "e0cb6855a2748a9795e4a86b310adb58",
        "user.bias_explain": "54eeee2194cde2375acade15bd2bf622",
    },
    "forsooth independence": {
        "user.independence_patches": "48dd9af6105e877be0472591f1b26586",
        "user.independence_explain": "58db2c94c5116ecd83cccb74f3932b1a",
    },
    "forsooth dryrun": {
        "user.dryrun": "0710de8722a65fa1c026031d2dca71b9",
    },
    "forsooth score": {
        "user.score_given": "04bcfb19591df0490728f7784f709635",
        "user.score_maps": "78edd3a055fb560bb0a31eeea2422b26",
        "user.score_null": "29d05dedf481e79d5e2d50fc5ad4f3f2",
    },
}
DOORS = {"bias": {"permutations": 2}, "independence": {"patch": "grid:2"}}


class PlannedError(Exception):
    """Raised in the place of all work."""


def of_suite(name: str) -> Iterator[Task]:
    """The tasks of a suite, with a method that is what it is."""
    (suite,) = [suite for suite in SUITES if suite.name == name]
    yield from suite.plan(suite.presets["quick"], Choice(methods=("constant",))).tasks


def of_reproduction(name: str) -> Iterator[Task]:
    """The tasks of a reproduction, few of each kind."""
    (record,) = [one for suite in SUITES for one in suite.reproductions if one.name == name]
    few = {"trainings": 1} if "trainings" in values_of(record.settings) else {}
    yield from record.plan(changed(record.settings, few), Choice()).tasks


def of_door(name: str, folder: Path) -> Iterator[Task]:
    """The tasks of a door for one's own model, which are many; no work is done."""
    inputs = folder / "x.npy"
    np.save(inputs, np.linspace(0, 1, 72, dtype=np.float32).reshape(2, 1, 6, 6))
    words: dict[str, Any] = {"methods": ["constant"], "device": "cpu", "progress": Silent(), **DOORS[name]}
    with mock.patch.object(steps, "execute", side_effect=PlannedError) as execute, pytest.raises(PlannedError):
        getattr(forsooth, name)("own_models:net", inputs, out=folder / name, **words)
    yield from execute.call_args.args[0]


def of_dry_run(folder: Path) -> Iterator[Task]:
    """The tasks of a dry run with a training of the user's."""
    for name in ("cat", "dog"):
        (folder / "photos" / name).mkdir(parents=True)
        for k in range(60):
            Image.new("RGB", (32, 32), (4 * k, 100, 200)).save(folder / "photos" / name / f"{k}.png")
    request = DryRunRequest(
        data=str(folder / "photos"),
        train="own_trainings:learns",
        methods=("constant",),
        artefacts=("watermark",),
        size=32,
    )
    with mock.patch.object(plugins, "fingerprint", return_value="code"):  # the file of the training may change
        yield from dryrun.plan(request).tasks


def of_score(folder: Path) -> Iterator[Task]:
    """The tasks of maps that were made elsewhere."""
    truth = np.zeros((2, 4, 4), dtype=bool)
    truth[:, :2] = True
    request = ScoreRequest(maps={"mine": truth.astype(np.float32)}, truth=truth)
    yield from score.tasks_of(score.prepare(request), Store(folder / "cells"))


def tasks_of(door: str, folder: Path) -> Iterator[Task]:
    """The tasks of what goes by this name in the table."""
    if door == "forsooth dryrun":
        return of_dry_run(folder)
    if door == "forsooth score":
        return of_score(folder)
    if door.startswith("forsooth "):
        return of_door(door.partition(" ")[2], folder)
    if "/" in door:
        return of_reproduction(door)
    return of_suite(door)


def keys_of(door: str, folder: Path) -> dict[str, str]:
    """id -> key of the first task of that id, as it is wherever the folder, whatever the processor and torch.

    Keys of what a task needs are left out: each stands here by itself.
    """
    found: dict[str, str] = {}
    for task in tasks_of(door, folder):
        if task.id not in found:
            arguments = {name: portable(value, folder) for name, value in task.arguments.items()}
            with mock.patch.object(torch, "__version__", "any"):
                found[task.id] = engine.make_task(task.function, arguments, name="").key
    return found


def portable(value: Any, folder: Path) -> Any:
    """The value with a word for every hash, and for the folder."""
    if isinstance(value, dict):
        return {name: portable(inner, folder) for name, inner in value.items()}
    if isinstance(value, list):
        return [portable(inner, folder) for inner in value]
    if isinstance(value, str):
        return HASH.sub("hash", value.replace(str(folder), "folder"))
    return value


@pytest.mark.parametrize("door", PINNED)
def test_ids_and_keys_are_these_and_stay_these(door, tmp_path):
    found = keys_of(door, tmp_path)
    assert {id: found.get(id) for id in PINNED[door]} == PINNED[door]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_suite_has_no_task_that_is_not_pinned(suite, tmp_path):
    assert set(keys_of(suite.name, tmp_path)) == set(PINNED[suite.name])


def test_every_id_there_is_is_pinned():
    named = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "task":
                named.add(ast.literal_eval(node.args[0]))
    assert named == {id for ids in PINNED.values() for id in ids} and len(named) > 40


def renamed(arguments: Any, old: str, new: str) -> Any:
    """The arguments where a field goes by another name."""
    if isinstance(arguments, dict):
        return {new if name == old else name: renamed(value, old, new) for name, value in arguments.items()}
    return arguments


@pytest.mark.parametrize("old", ["spec", "samples", "seed"])
def test_another_name_of_an_argument_is_another_key(old):
    (first, *_) = [task for task in of_suite("xaitris") if task.id == "xaitris.explain"]
    other = engine.make_task(first.function, renamed(first.arguments, old, "renamed"), name="")
    assert other.key != engine.make_task(first.function, first.arguments, name="").key


def work(*, number: int) -> Cell:
    return Cell(facts={"number": number})


def test_a_key_follows_the_id_and_not_the_place_of_the_function():
    here = engine.task("demo.work")(work)

    def elsewhere(*, number: int) -> Cell:
        return Cell(facts={"number": number})

    moved = engine.task("demo.work")(elsewhere)
    other = engine.task("demo.other")(lambda *, number: Cell())
    keys = [engine.make_task(f, {"number": 1}, name="any", version=1).key for f in (here, moved, other)]
    assert keys[0] == keys[1] != keys[2]
