"""A user's method in a process of its own, with limits: whatever it does there reaches no other method's numbers.

To start Python and torch takes seconds. So one clean process of ours, `forsooth.nursery`, has them ready and forks for
every question; its children begin alike, and end with the answer. Only bytes come back: no object of a child's making
is ever unpacked here.
"""

import atexit
import contextlib
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import safetensors.torch
import torch

from forsooth import chunks
from forsooth.mirror import Mirror, mirrored
from forsooth.records import Cell, UsageError

SECONDS = "FORSOOTH_METHOD_TIMEOUT"  # the environment reaches the workers of a pool, too
GIGABYTES = "FORSOOTH_METHOD_MEMORY"
PRELOADED = "forsooth.suites.explain"  # what children need, imported once
LARGEST = 1e9  # no limit is as large as that
GRACE = 30.0  # seconds that a child has to start and to hand back its answer
ANSWER = "answer.safetensors"
KILLED = ("signal 9", "lost", "stillborn")  # ends for which the method need not be to blame
TRIES = 3  # of a question whose process was killed
NO_MEMORY = "no memory"  # among the facts of a cell: an accelerator was full
CARD_FULL = (
    75  # with this code a child ends that found no memory on an accelerator before it asked the method, or after
)
HEADER = struct.Struct(">Q")  # the length of a message, before it


@dataclass(frozen=True)
class Limits:
    """What one question to a user's method may take.

    seconds    by the clock
    gigabytes  of memory (2^30 bytes) beyond what Python and torch take themselves; not kept on an accelerator, whose
               driver takes addresses without end
    """

    seconds: float = 600.0
    gigabytes: float = 8.0


def memory_facts(error: BaseException) -> dict[str, bool]:
    """What a cell notes of an error, if it was that an accelerator had no memory."""
    if chunks.is_full(error):
        return {NO_MEMORY: True}
    return {}


class Unmovable(Exception):
    """The question cannot be sent to another process; the message says why."""


def limits() -> Limits:
    """The limits that hold now."""
    return Limits(_positive(SECONDS, Limits.seconds), _positive(GIGABYTES, Limits.gigabytes))


@contextmanager
def limited(seconds: float | None = None, gigabytes: float | None = None) -> Iterator[Limits]:
    """Other limits for the work inside, here and in processes that begin there; None: as before."""
    wanted = {SECONDS: _allowed(seconds, "method_timeout"), GIGABYTES: _allowed(gigabytes, "method_memory")}
    before = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            if value is not None:
                os.environ[name] = str(value)
        yield limits()
    finally:
        for name, old in before.items():
            os.environ.pop(name, None)
            if old is not None:
                os.environ[name] = old


def _positive(name: str, default: float) -> float:
    value = _allowed(os.environ.get(name, default), name)
    assert value is not None
    return value


def _allowed(value: Any, name: str) -> float | None:
    """The number above 0 that was given under that name; None where nothing was."""
    if value is None:
        return None
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        if 0 < float(value) < LARGEST:
            return float(value)
    raise UsageError(f"`{name}` must be a number above 0, got {value!r}")


def asked(function: Callable[..., Cell], *arguments: Any) -> Cell:
    """What `function(*arguments)` gives in a process of its own; a cell that says why, where that came to grief.

    function  a module-level one of this package
    Unmovable where the arguments cannot be sent.
    """
    if os.name != "posix":
        raise Unmovable("processes cannot be forked here")
    allowed = limits()
    packed = _packed(function, arguments)
    cell = Cell()
    for _ in range(TRIES):
        end, cell = _tried(packed, allowed)
        if end not in KILLED:
            break
    return cell


def _tried(packed: bytes, allowed: Limits) -> tuple[str, Cell]:
    """How one process with the question ended, and the cell that comes of it."""
    own = _nursery()
    try:
        with own.scratch() as scratch:
            seen = own.seen_of(Path.cwd())
            outcome = own.put(_request(scratch, seen.there, allowed), packed)
            return outcome["end"], _with_absent(_read(scratch / ANSWER, outcome, allowed), seen.too_large)
    except EOFError:
        own.end()  # its pipe ends before the system says that it is over
        return "stillborn", _ended({"end": "stillborn", "tail": ""}, allowed, [])


def _request(scratch: Path, folder: Path, allowed: Limits) -> dict[str, Any]:
    """What a child must know beside its question."""
    return {
        "limits": asdict(allowed),
        "folder": str(folder),
        "answer": str(scratch / ANSWER),
        "path": sys.path,
        "environment": dict(os.environ),
        "threads": torch.get_num_threads(),
    }


def _with_absent(cell: Cell, absent: list[str]) -> Cell:
    """The cell, which says of a method that found no file what of the working folder it could not see."""
    message = cell.facts.get("message", "")
    if not absent or "FileNotFoundError" not in message:
        return cell
    folders = ", ".join(absent[:3])
    hint = f"; too large to be seen by a method, and to be named by its full path: {folders}"
    return replace(cell, facts={**cell.facts, "message": message + hint})


def _packed(function: Callable[..., Cell], arguments: tuple[Any, ...]) -> bytes:
    try:
        packed = pickle.dumps((function, arguments))
    except Exception as error:  # a lock, an open file, a local function: whatever a user's model holds
        raise Unmovable(f"{type(error).__name__}: {error}") from error
    if b"__main__" in packed:
        raise Unmovable("it holds something of the script that runs")
    return packed


def _read(answer: Path, outcome: dict[str, Any], allowed: Limits) -> Cell:
    """The cell that a child left, with a note on what it printed; or the cell that says how it ended."""
    said = _printed(outcome)
    if outcome["end"] != "exit 0":
        return _ended(outcome, allowed, said)
    try:
        with safetensors.safe_open(answer, framework="pt") as opened:
            facts = json.loads((opened.metadata() or {})["facts"])
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 (it is no dict)
    except (OSError, ValueError, KeyError, safetensors.SafetensorError):
        return _ended({**outcome, "end": "no answer"}, allowed, said)
    return Cell(tensors=tensors, facts={**facts, **_said([*facts.get("said", ()), *said])})


def _ended(outcome: dict[str, Any], allowed: Limits, said: list[str]) -> Cell:
    """The cell of a method whose process ended without an answer."""
    killed = "the process of the method was killed: it may have run out of memory, or the method did it itself"
    reasons = {
        "timeout": f"the method did not answer within {allowed.seconds:g} s, and its process was ended",
        "signal 9": killed,
        "lost": killed,
        "stillborn": "no process could be started for the method",
        "no answer": "the method ended its process, or took away what it was to answer with",
    }
    reason = reasons.get(outcome["end"], f"the method ended its process ({outcome['end']})")
    if outcome["tail"]:
        reason += f"; it last printed: {outcome['tail']}"
    facts = {"failed": True, "status": "error", "message": reason[:500], **_said(said)}
    if outcome["end"] == f"exit {CARD_FULL}":
        facts[NO_MEMORY] = True
    return Cell(facts=facts)


def _printed(outcome: dict[str, Any]) -> list[str]:
    if not outcome["printed"]:
        return []
    return [f"It printed {outcome['printed']:,} bytes, which were not kept."]


def _said(lines: list[str]) -> dict[str, list[str]]:
    if lines:
        return {"said": lines}
    return {}


class Nursery:
    """Our clean process, seen from here. It ends with us: the end of its input is the end of its work.

    folder  that it made for its children; who of us lives longer takes it away
    mirror  the last, of the working folder
    """

    folder: Path | None = None
    mirror: Mirror | None = None

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*_package(), os.environ.get("PYTHONPATH", "")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forsooth.nursery", PRELOADED],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C is ours to hear
        )

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for one question. EOFError where the process died before it began."""
        assert self.process.stdout is not None
        if self.folder is None:
            self.folder = Path(receive(self.process.stdout).decode())
        self.folder.mkdir(exist_ok=True)  # it may be old, and temporary files are swept
        made = Path(tempfile.mkdtemp(dir=self.folder))
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def seen_of(self, here: Path) -> Mirror:
        """A folder to work in: what lies here can be read, and what is made or deleted there is lost with it.

        Made anew where the last method left it changed, since to make it may take longer than a question.
        """
        assert self.folder is not None
        if self.mirror is None or not self.mirror.shows(here):
            if self.mirror is not None:
                shutil.rmtree(self.mirror.there, ignore_errors=True)
            self.mirror = mirrored(here, Path(tempfile.mkdtemp(dir=self.folder)))
        return self.mirror

    def put(self, request: dict[str, Any], packed: bytes) -> dict[str, Any]:
        """Ask for a child; how it ended, and what it printed. On any trouble here it is ended, with its child."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            send(self.process.stdin, json.dumps(request).encode())
            send(self.process.stdin, packed)
            outcome: dict[str, Any] = json.loads(receive(self.process.stdout))
        except (OSError, EOFError):
            self.end()
            return {"end": "lost", "printed": 0, "tail": ""}
        except BaseException:
            self.end()
            raise
        return outcome

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        """The end of its input; it then ends its child and itself."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _package() -> list[str]:
    """Where this package lies: it may have been found by a path that only this process knows."""
    return [str(Path(__file__).parents[1])]


_running: dict[int, Nursery] = {}  # by the process that started it: a fork must not share its parent's


def _nursery() -> Nursery:
    """The process of ours; begun anew where there is none, or where it has died."""
    own = _running.get(os.getpid())
    if own is not None and not own.alive:
        own.end()  # what it left is taken away
    if own is None or not own.alive:
        own = Nursery()
        _running[os.getpid()] = own
    return own


@atexit.register
def _close() -> None:
    own = _running.pop(os.getpid(), None)
    if own is not None:
        own.end()


def send(stream: IO[bytes], message: bytes) -> None:
    stream.write(HEADER.pack(len(message)))
    stream.write(message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """The next message; EOFError where the other side has ended."""
    (length,) = HEADER.unpack(_exactly(stream, HEADER.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise EOFError("the other side has ended")
    return data
