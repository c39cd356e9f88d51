"""Odd words, settings, models, maps and files: python benchmarks/fuzz.py [CALLS] [SEED].

Whatever is called with whatever, the answer is a result or one line that names what is wrong (UsageError, exit code 2).
Every other end is counted by the place that raised it, and its first traceback is printed. The same seed makes the same
calls. Commands are parsed and planned, and their tasks are not run.
"""

import contextlib
import inspect
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import odd_files
import torch
import typer
from odd_files import NUMBERS, WORDS, changed_bytes, changed_json, odd_array, odd_value, written
from torch import nn

import forsooth
from forsooth import api, cli, isolation, report, runs, settings
from forsooth.adapters import inputs
from forsooth.attributions import METHODS
from forsooth.datasets import folders, labelled, tables, texts
from forsooth.games.shapley import Estimate
from forsooth.models import weights
from forsooth.progress import Silent
from forsooth.records import Choice, FailedTasks, UsageError
from forsooth.scores import METRICS
from forsooth.store import Store
from forsooth.suites import REPRODUCTIONS, SUITES
from forsooth.user.export import read_export

MAPS = ((2, 4, 4), (2, 4, 4), (0, 4, 4), (2, 0, 4), (), (3,), (1, 1, 1), (2, 3, 4, 4), (5, 8), (5, 8))
MOST_MEMORY = 6 * 2**30  # bytes of addresses, torch among them: what asks for more is a fault like any other
LONGEST = 30  # seconds that a call may take
TINY = {"n": 200, "alpha": 0.6, "samples": 4, "sweep": (), "trainings": 1, "gate": 0.0}
ONLY = {"scenario": "LIN", "background": "WHITE", "model": "llr"}
ANSWERS = {"doctor": (1,)}  # exit codes that say what was found
FREE = (
    "bias",
    "export-data",
    "independence",
    "dryrun",
    "demo",
    "score",
    "check",
)  # commands that work at once: asked in Python


class Hang(Exception):
    """A call took too long."""


@dataclass(frozen=True)
class Ground:
    """Where the files are. `run` is a finished run with its run.json in `about`."""

    folder: Path
    run: Path
    about: dict[str, Any]
    kept: dict[str, bytes]


def ground(folder: Path) -> Ground:
    """A small run, and places for odd files."""
    run = folder / "run"
    forsooth.run("xaitris", methods=["saliency", "random"], only=ONLY, settings=TINY, out=run, progress=Silent())
    kept = {
        path.name: path.read_bytes() for path in run.iterdir() if path.suffix in (".json", ".parquet", ".safetensors")
    }
    return Ground(folder, run, json.loads(kept["run.json"]), kept)


def command_line(dice: Random, at: Ground) -> None:
    """One of the commands with some of its options, right ones and odd ones."""
    app = typer.main.get_command(cli.app)
    names = [name for name in app.commands if name not in FREE]
    name = dice.choice(names)
    words = [name]
    for parameter in app.commands[name].params:
        if parameter.param_type_name == "argument":
            if dice.random() < 0.95:
                words.append(word_for(dice, at, name, parameter.name))
        elif dice.random() < 0.15:
            words += [parameter.opts[0], *([] if parameter.is_flag else [word_for(dice, at, name, parameter.name)])]
    if dice.random() < 0.1:
        words.insert(dice.randrange(len(words) + 1), dice.choice((*WORDS, "--", "-h", "--help", "--nothing", "-")))
    if name in ("run", "reproduce", "export-data") and not any(w == "--out" for w in words):
        words += ["--out", str(at.folder / "out")]
    try:
        app.main(words, prog_name="forsooth")
    except SystemExit as end:
        if end.code not in (0, 2, *ANSWERS.get(name, ())):
            raise


def word_for(dice: Random, at: Ground, command: str, parameter: str) -> str:
    """A word that could stand there, more or less."""
    if dice.random() < 0.2:
        return dice.choice(WORDS).replace("\x00", "") or "''"
    run, place = str(at.run), str(at.folder / "new")
    suite = dice.choice(SUITES)
    fitting: dict[str, tuple[str, ...]] = {
        "suite": tuple(one.name for one in SUITES),
        "name": (*(one.name for one in REPRODUCTIONS), "lime", "emd"),
        "what": ("methods", "metrics", "models", "datasets", "suites", "reproductions"),
        "preset": ("demo", "quick", "paper", "released"),
        "methods": ("saliency", "lime,random", "nothing:here", "saliency,saliency", "json:dumps", "oracle"),
        "models": ("llr", "mlp,cnn", "none"),
        "only": tuple(f"{factor}={dice.choice((*WORDS, 'LIN', 'mlp', 'WHITE'))}" for factor in suite.factors),
        "change": (f"{dice.choice(list(settings.values_of(suite.presets['quick'])))}={dice.choice(WORDS)}",),
        "device": ("cpu", "auto", "cuda"),
        "format": ("csv", "json", "parquet", "markdown", "latex", "table"),
        "metric": ("emd", "ima", "precision", "gap"),
        "seed": ("0", "1", "-1", "18446744073709551616"),
        "on": ("local:0", "tcp://", "nothing"),
        "split": ("test", "train", "val"),
        "samples": ("0", "1", "-3", "5"),
    }
    return dice.choice(fitting.get(parameter) or (run, place, "1"))


def set_values(dice: Random, _: Ground) -> None:
    """A plan with odd settings, levels and methods."""
    suite = dice.choice(SUITES)
    preset = dice.choice(list(suite.presets))
    known = settings.values_of(suite.presets[preset])
    changes = {}
    for name in dice.sample(list(known), min(len(known), dice.randrange(1, 4))):
        near = (known[name], odd_value(dice), odd_value(dice, 0), dice.choice(NUMBERS), str(dice.choice(NUMBERS)))
        changes[name] = dice.choice(near)
    only = {factor: dice.choice(WORDS) for factor in suite.factors if dice.random() < 0.1}
    chosen = settings.configured(suite, preset, changes)
    asked = tuple(dice.sample([method.name for method in METHODS], 2))
    suite.plan(chosen, Choice(methods=asked, only={name: (value,) for name, value in only.items()}, seed=3))


def network(dice: Random, shape: tuple[int, ...]) -> Any:
    """Something that may be a model for inputs of that shape."""
    count = int(np.prod(shape[1:])) if len(shape) > 1 else 1
    outputs = dice.choice((1, 2, 3))
    plain = nn.Sequential(nn.Flatten(), nn.Linear(max(1, count), outputs))
    kinds = (
        plain,
        plain,
        lambda x: x.sum(),
        lambda x: None,
        lambda x: x.reshape(len(x), -1),
        nn.ReLU(),
        5,
        None,
        "a:b",
    )
    return dice.choice(kinds)


def value_for(dice: Random) -> Any:
    """Inputs, more or less."""
    if dice.random() < 0.5:
        return np.random.default_rng(dice.randrange(5)).normal(
            size=dice.choice(((2, 4), (2, 1, 3, 3), (1, 6), (3, 2, 2)))
        )
    array = odd_array(dice)
    return dice.choice((array, array, array.tolist(), odd_value(dice), torch.ones(dice.choice(odd_files.SHAPES))))


def own_model(dice: Random, _: Ground) -> None:
    """`bias` with odd models, inputs and words."""
    x = value_for(dice)
    words = {
        "target": (None, 0, 1, -1, 5, [0, 1], np.array([0.5]), "x", [[0]]),
        "players": ("pixels", "features", "grid:2", "grid:0", "units:1", odd_value(dice), odd_array(dice)),
        "permutations": (2, 3, "exact", 0, 1, True, 2.5, "many", -1, None),
        "baseline": ("mean", "zero", "blur", "channel_mean", odd_array(dice), odd_value(dice)),
        "data": (None, x, odd_array(dice)),
        "output": ("logits", "probabilities", "x", None),
        "channels": ("sum", "max_abs", 3),
        "methods": (
            ("gradient",),
            ("lime",),
            ("nothing",),
            (5,),
            (lambda model, x, target: x,),
            ("gradient", "gradient"),
        ),
        "seed": (0, 1, -1, 2**64, "x", None, 0.5),
    }
    asked = {name: dice.choice(values) for name, values in words.items() if dice.random() < 0.2}
    asked = {"methods": ("gradient",), "permutations": 2, **asked}
    forsooth.bias(network(dice, np.shape(x) if isinstance(x, np.ndarray) else (2, 4)), x, progress=Silent(), **asked)


def own_patches(dice: Random, _: Ground) -> None:
    """`independence` with odd models, inputs and words."""
    x = value_for(dice)
    words = {
        "target": (None, 0, -1, [0, 1], "x"),
        "patch": ("grid:2", "grid:9999", "size:1", "size:99", "x", odd_array(dice), odd_value(dice)),
        "bounds": (None, (0, 1), (1, 0), (0, float("nan")), "ab", 5, (1,), (0.0, float("inf"))),
        "layer": (None, "1", "x", 5),
        "threshold": (0.1, 0, -1, float("nan"), "x", None),
        "methods": (("gradient",), ("nothing",), (5,), ("oracle",)),
        "seed": (0, -1, "x"),
    }
    asked = {name: dice.choice(values) for name, values in words.items() if dice.random() < 0.25}
    asked = {"methods": ("gradient",), **asked}
    forsooth.independence(
        network(dice, np.shape(x) if isinstance(x, np.ndarray) else (2, 4)), x, progress=Silent(), **asked
    )


def maps(dice: Random, shape: tuple[int, ...]) -> torch.Tensor:
    """Maps, more or less."""
    if dice.random() < 0.15:
        shape = dice.choice(MAPS)
    dtype = dice.choice((torch.float32, torch.float32, torch.float64, torch.float16, torch.bool, torch.int64))
    made = torch.randn(shape, generator=torch.Generator().manual_seed(dice.randrange(9)))
    made = made * dice.choice((1.0, 1.0, 0.0, 1e30, 1e-40, float("nan"), float("inf")))
    return (made > 0.5) if dtype == torch.bool else made.to(dtype)


def read_by(dice: Random, name: str, shape: tuple[int, ...]) -> Any:
    """What a metric reads under that name, more or less."""
    if name == "truth":
        return maps(dice, shape) > 0
    if name == "anchor":
        values = maps(dice, shape).double()
        return Estimate(values, values.abs(), values[:, None] if values.ndim else values, torch.tensor([3.0]), 3)
    return maps(dice, shape[:1] if name == "total" else shape)


def map_scores(dice: Random, _: Ground) -> None:
    """A metric on odd maps beside what it reads."""
    metric = dice.choice(METRICS)
    shape = dice.choice(MAPS)
    beside = [read_by(dice, name, shape) for name in metric.reads]
    options = {"fraction": (0.1, 1.0, 0.0, -1.0, 2.0, float("nan")), "end": ("top", "bottom", "x")}
    takes = set(inspect.signature(metric.function).parameters) & set(options)
    metric.function(maps(dice, shape), *beside, **{name: dice.choice(options[name]) for name in sorted(takes)})


def given_maps(dice: Random, at: Ground) -> None:
    """`score` with odd maps and truths."""
    truth = dice.choice((np.eye(4, dtype=bool)[None].repeat(2, 0), odd_array(dice), written(at.folder, dice, ".npz")))
    own = dice.choice((np.ones((2, 4, 4)), odd_array(dice), {"a": odd_array(dice)}, written(at.folder, dice, ".npz")))
    words = {
        "images": (None, odd_array(dice)),
        "metrics": (("ima",), ("emd",), ("x",)),
        "emd_tolerance": (0.1, -1, None),
    }
    asked = {name: dice.choice(values) for name, values in words.items() if dice.random() < 0.3}
    shutil.rmtree(at.folder / "scored", ignore_errors=True)
    api.score(own, truth, out=at.folder / "scored", page=False, progress=Silent(), **asked)


def restored(at: Ground) -> None:
    for name, content in at.kept.items():
        (at.run / name).write_bytes(content)


def run_folder(dice: Random, at: Ground) -> None:
    """A run whose files were changed, read by all who read runs."""
    restored(at)
    name = dice.choice(("run.json", "run.json", "run.json", *at.kept))
    if name == "run.json" and dice.random() < 0.85:
        changed = at.about
        for _ in range(dice.choice((1, 1, 3))):
            changed = changed_json(changed, dice)
        (at.run / name).write_text(json.dumps(changed))
    else:
        (at.run / name).write_bytes(changed_bytes(at.kept[name], dice))
    made = forsooth.Run(at.run)
    readers: tuple[Callable[[], Any], ...] = (
        *(lambda: report.read(at.run), lambda: made.rows, lambda: made.metrics, lambda: made.settings),
        *(lambda: made.scores(), lambda: made.leaderboard(), lambda: made.failed, lambda: made._repr_html_()),
        lambda: runs.write_page([at.run], at.folder / "page.html"),
    )
    dice.choice(readers)()


def cell(dice: Random, at: Ground) -> None:
    """A cell whose files were changed."""
    place = dice.choice(sorted(at.run.glob("store/cells/*/*")))
    file = dice.choice(sorted(place.iterdir()))
    before = file.read_bytes()
    file.write_bytes(changed_bytes(before, dice))
    store = Store(at.run / "store")
    try:
        dice.choice((store.meta, store.verify, store.read, store.rows))(place.name)
    finally:
        file.write_bytes(before)


def files(dice: Random, at: Ground) -> None:
    """An odd file, read by one of those who read such."""
    numbers = (".npy", ".npz", ".safetensors")
    readers: dict[Callable[[Path], Any], tuple[str, ...]] = {
        (lambda path: inputs.batch(path, "inputs")): numbers,
        (lambda path: weights.load(nn.Linear(3, 2), path)): (".npz", ".safetensors"),
        texts.documents: (".txt", ".csv", ".tsv", ".txt.gz"),
        texts.read_vectors: (".npz",),
        (lambda path: tables.table(path, seed=0)): (".csv", ".tsv", ".csv.gz", ".parquet", ".txt"),
        (lambda path: labelled.images(path, side=8, seed=0)): (".zip",),
        (lambda path: folders.photographs(path, side=8)): (".zip",),
        (lambda path: read_export(path.parent)): (".npz",),
    }
    reader = dice.choice(list(readers))
    path = written(at.folder, dice, dice.choice(readers[reader]))
    shutil.copy(path, at.folder / "samples.npz")
    reader(path)


Call = Callable[[Random, Ground], None]
SHARES: dict[Call, float] = {
    **{command_line: 0.25, set_values: 0.27, own_model: 0.08, own_patches: 0.04, map_scores: 0.14},
    **{given_maps: 0.02, run_folder: 0.08, cell: 0.02, files: 0.10},
}


@dataclass
class Found:
    """What the calls came to: results, refusals, and all else by the place that raised it."""

    ends: dict[str, Counter[str]] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)
    places: Counter[str] = field(default_factory=Counter)

    def note(self, kind: str, number: int, error: BaseException | None) -> None:
        own = self.ends.setdefault(kind, Counter())
        if error is None:
            own["answered"] += 1
        elif isinstance(error, UsageError | FailedTasks):
            own["refused"] += 1
        else:
            own["tracebacks"] += 1
            place = f"{type(error).__name__} at {where(error)}"
            self.places[place] += 1
            told = "".join(traceback.format_exception(error)[-7:])
            self.faults.setdefault(place, f"call {number} ({kind}):\n{told}")


def where(error: BaseException) -> str:
    """The last place of this package that the error came by."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}forsooth{os.sep}" in frame.filename]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def planned_only(*_: Any) -> None:
    raise UsageError("planned, and not run")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No task is run, nothing is printed, no call goes on for ever."""

    def hang(*_: Any) -> None:
        raise Hang(f"more than {LONGEST} s")

    before = signal.signal(signal.SIGALRM, hang)
    perform = api.perform
    api.perform = planned_only
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        api.perform = perform
        signal.signal(signal.SIGALRM, before)


def fuzz(calls: int, seed: int, folder: Path) -> Found:
    """So many calls; every one has dice of its own, so that it can be made again alone."""
    at = ground(folder)
    found = Found()
    kinds = Random(seed).choices(list(SHARES), weights=list(SHARES.values()), k=calls)
    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, kind in enumerate(kinds):
            error: BaseException | None = None
            signal.alarm(LONGEST)
            try:
                kind(Random(f"{seed} {number}"), at)
            except (Exception, SystemExit) as raised:
                error = raised
            finally:
                signal.alarm(0)
            found.note(kind.__name__, number, error)
    restored(at)
    return found


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    begun = time.monotonic()
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as made, isolation.limited(seconds=20, gigabytes=2):
        os.chdir(made)
        found = fuzz(calls, seed, Path(made))
        os.chdir("/")
    print(f"{calls} calls, seed {seed}, {time.monotonic() - begun:.0f} s")
    for kind, ends in found.ends.items():
        print(f"{kind:<14}" + "".join(f"{name} {ends[name]:>6}   " for name in ("answered", "refused", "tracebacks")))
    for place, count in found.places.most_common():
        print(f"\n{count} x {place}\n{found.faults[place]}")


if __name__ == "__main__":
    main()
