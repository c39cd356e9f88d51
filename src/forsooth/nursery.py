"""The clean process in which users' methods are born: it imports torch and this package once, and forks.

`python -m forsooth.nursery MODULE` speaks with `forsooth.isolation` by standard input and output. It has one thread and
uses no accelerator, since neither survives a fork.
"""

import contextlib
import importlib
import json
import os
import pickle
import select
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import safetensors.torch
import torch

from forsooth.chunks import is_full
from forsooth.isolation import CARD_FULL, GRACE, receive, send
from forsooth.mirror import SCRATCH

TAIL = 200  # bytes of what was printed last that are kept
PIECE = 2**16
PAUSE = 0.005  # seconds between looks at a child that has closed its output
GIBIBYTE = 2**30


def main() -> None:
    """Take questions until the input ends. First of all comes the folder for what children need, which ends with us."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever an import prints is no answer
    torch.set_num_threads(1)
    importlib.import_module(sys.argv[1])
    gone = (EOFError, BrokenPipeError)  # who asks may be killed at any moment
    with contextlib.suppress(*gone), tempfile.TemporaryDirectory(prefix=SCRATCH) as folder:
        send(answers, folder.encode())
        while True:
            request = json.loads(_whole(questions))
            packed = _whole(questions)
            outcome = _outcome(_born(request, packed), request["limits"]["seconds"], questions)
            send(answers, json.dumps(outcome).encode())


def _whole(stream: Any) -> bytes:
    """A message from a stream without a buffer, so that `select` sees all that waits there."""
    return receive(_Patient(stream))  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Patient:
    """A raw stream that reads until it has all that is asked for, or the end."""

    stream: Any

    def read(self, length: int) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            piece = self.stream.read(min(length - len(parts), 2**20))
            if not piece:
                break
            parts += piece
        return bytes(parts)


@dataclass
class Child:
    """A process with a question.

    output   what it prints comes out here
    printed  bytes so far
    tail     the last of them
    """

    pid: int
    output: int
    printed: int = 0
    tail: bytes = b""
    open: list[int] = field(default_factory=list)

    def listen(self) -> None:
        """Take what was printed; at the end of it there is nothing more to hear."""
        piece = os.read(self.output, PIECE)
        self.printed += len(piece)
        self.tail = (self.tail + piece)[-TAIL:]
        if not piece:
            self.open.remove(self.output)

    def end(self) -> None:
        """It, and all that it may have started, are no more."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _born(request: dict[str, Any], packed: bytes) -> Child:
    output, printing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _live(request, packed, printing)
    os.close(printing)
    return Child(pid, output, open=[output])


def _outcome(child: Child, seconds: float, questions: IO[bytes]) -> dict[str, Any]:
    """How the child ended, and what it printed."""
    deadline = time.monotonic() + seconds
    over = False
    while True:
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > deadline:
            over = True
            child.end()
        _attend(child, questions)
    child.end()  # processes and threads that it left
    _drain(child)
    os.close(child.output)
    words = " ".join(child.tail.decode(errors="replace").split())
    return {"end": "timeout" if over else _how(status), "printed": child.printed, "tail": words}


def _attend(child: Child, questions: IO[bytes]) -> None:
    """Wait a little for something to be printed. EOFError where those who asked are gone."""
    heard = [*child.open, questions.fileno()]
    ready, _, _ = select.select(heard, [], [], 10 * PAUSE if child.open else PAUSE)
    if questions.fileno() in ready:  # nobody asks two questions at once: it is the end
        child.end()
        raise EOFError
    if child.output in ready:
        child.listen()


def _drain(child: Child) -> None:
    """The rest of what was printed before the end."""
    stop = time.monotonic() + GRACE
    while child.open and time.monotonic() < stop and select.select(child.open, [], [], 0)[0]:
        child.listen()


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return f"exit {os.WEXITSTATUS(status)}"


def _live(request: dict[str, Any], packed: bytes, printing: int) -> None:
    """All of a child's life: the question is answered into a file, and nothing of the parent's is at hand."""
    code = 1
    try:
        os.setsid()
        _sever(printing)
        sys.path[:] = request["path"]
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        torch.set_num_threads(request["threads"])
        function, arguments = pickle.loads(packed)
        confine(request["limits"]["gigabytes"], arguments)
        cell = function(*arguments)
        lift()
        tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in cell.tensors.items()}
        metadata = {"facts": json.dumps(dict(cell.facts))}
        safetensors.torch.save_file(tensors, request["answer"], metadata=metadata)
        code = 0
    except BaseException as error:  # nothing may come back up into the loop of the parent
        with contextlib.suppress(Exception):
            os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
        if is_full(error):
            code = CARD_FULL
    finally:
        with contextlib.suppress(Exception):  # whatever stands there by now
            sys.stdout.flush()  # `os._exit` forgets what waits to be printed
        os._exit(code)


def _sever(printing: int) -> None:
    """Nothing to read, one place to print to, and no other file of the parent's."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, given in ((0, nothing), (1, printing), (2, printing)):
        os.dup2(given, number)
    os.closerange(3, 256)


def confine(gigabytes: float, arguments: Any) -> None:
    """No more memory than this beyond what the process has now."""
    if _on_accelerator(arguments):
        return
    limit = _taken() + int(gigabytes * GIBIBYTE)
    _set_limit(limit)


def lift() -> None:
    """To hand back the answer takes memory as well."""
    _set_limit(-1)


def _set_limit(limit: int) -> None:
    import resource  # not everywhere

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    with contextlib.suppress(ValueError, OSError):  # some systems know no such limit
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _taken() -> int:
    """Bytes of addresses that this process has."""
    try:
        taken = Path("/proc/self/statm").read_text()
        return int(taken.split()[0]) * os.sysconf("SC_PAGESIZE")
    except OSError:  # no Linux
        return 0


def _on_accelerator(arguments: Any) -> bool:
    return any(getattr(getattr(one, "x", None), "is_cuda", False) for one in arguments)


if __name__ == "__main__":
    main()
