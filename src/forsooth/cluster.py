"""A Dask cluster that runs tasks: only tasks and keys travel, results go to the store, which all machines must see."""

import hashlib
import importlib
import logging
import platform
import queue
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch

import forsooth
from forsooth.records import Fault, Task, Trial, UsageError
from forsooth.schedule import Attempt
from forsooth.store import Store

PATIENCE = 60.0  # seconds in which a lost scheduler or the last worker may come back
CLOSING = 30.0  # seconds that a cluster of this run may take to end
CLOSING_SOON = 3.0  # the same where the run is broken off
HEARD = 1.0  # seconds after which the cluster is looked at, where nothing is heard
LOOK = 3.0  # seconds between two counts of the workers
AHEAD = 3  # tasks for each worker, so that it has the next one when it ends one
GPU = "GPU"  # what workers with an accelerator may declare: dask worker --resources "GPU=1"
ONE_AT_A_TIME = threading.Lock()  # torch's generators and threads belong to a process


class FaultyTask(Exception):
    """What a worker raises for a task that failed; its arguments are those of the trial."""


@dataclass
class Cluster:
    """A cluster by its address, its scheduler file, or `local:N` for one of this machine."""

    attempt: Attempt
    store: Store
    on: str
    timeout: float | None = None
    client: Any = None
    local: Any = None
    begun: dict[Any, float] = field(default_factory=dict)
    running: dict[Any, Task] = field(default_factory=dict)
    ended: "queue.SimpleQueue[Any]" = field(default_factory=queue.SimpleQueue)
    times: Counter[str] = field(default_factory=Counter)
    counted: tuple[float, int] = (0.0, 0)
    empty_since: float | None = None

    def __enter__(self) -> Self:
        self.dask = _imported()
        self.where = _parsed(self.on)
        self.probe = self.store.unfinished("probe")
        try:
            self._attach(PATIENCE / 2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        """Leave the cluster; one that was started here is ended, and sooner where the run is broken off."""
        for future in list(self.running):
            future.release()
        patience = CLOSING
        if kind is not None:
            patience = CLOSING_SOON
        for thing in (self.client, self.local):
            if thing is not None:
                with suppress(
                    TimeoutError
                ):  # all is in the store; workers that are slow to end do so with this process
                    thing.close(timeout=patience)
        self.store.discard(self.probe)

    def _attach(self, patience: float) -> None:
        """A client whose workers fit; a line that says what did not answer for so many seconds.

        A scheduler that answered once is waited for as in the middle of a run: its workers take time to come back.
        """
        begun = time.monotonic()
        until = begun + patience
        while True:
            try:
                self._connect(max(HEARD, until - time.monotonic()))
                self._check()
                return
            except (OSError, TimeoutError) as error:  # a scheduler may go away while it is asked
                if self.client is not None:
                    until = max(until, begun + PATIENCE)
                self._leave()
                if time.monotonic() > until:
                    raise self._unheard(error) from error
                time.sleep(min(HEARD, patience))
            except ValueError as error:  # no address
                raise self._unheard(error) from error

    def _unheard(self, error: Exception) -> UsageError:
        return UsageError(
            f"`on` must be a Dask cluster that answers and has workers, got {self.on}: {_first_line(error)}"
        )

    def _connect(self, patience: float) -> None:
        if "local" in self.where and self.local is None:
            count = self.where["local"]
            self.local = self.dask.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
            )
        words = {"address": self.local} if self.local is not None else self.where
        self.client = self.dask.Client(**words, timeout=patience, set_as_default=False)
        self.client.wait_for_workers(1, timeout=patience)

    def _leave(self) -> None:
        if self.client is not None:
            with suppress(TimeoutError):  # nobody needs it any more
                self.client.close(timeout=1)
            self.client = None

    def _check(self) -> None:
        """UsageError unless every worker sees the store and has the versions of here."""
        self.probe.mkdir(parents=True, exist_ok=True)
        (self.probe / "probe").write_text(self.probe.name)
        for place, problem in self.client.run(look, str(self.probe.resolve()), versions()).items():
            if problem:
                raise UsageError(f"`on` must be a cluster whose workers fit, got {place}, which {problem}")

        self.declared = any(self.client.run_on_scheduler(declared, GPU).values())

    def room(self) -> int:
        """With a limit of time one task for each worker: what waits in a line has not begun, and none can tell."""
        ahead = AHEAD if self.timeout is None else 1
        return max(0, ahead * self._workers() - len(self.running))

    def _workers(self) -> int:
        when, count = self.counted
        if time.monotonic() - when > LOOK and self.client.status == "running":
            with suppress(OSError):  # the scheduler went away: `_lost` will see
                count = len(self.client.nthreads())
            self.counted = (time.monotonic(), count)
        return count

    def submit(self, task: Task) -> None:
        self.times[task.key] += 1
        future = self.client.submit(
            run_there,
            self.attempt,
            task,
            str(self.probe.resolve()),
            versions(),
            key=f"{task.key}-{_short(self.store.root)}-{self.times[task.key]}",
            resources=self._resources(task),
            retries=0,  # the schedule tries again, and knows how
            pure=False,
        )
        self.running[future] = task
        self.begun[future] = time.monotonic()
        future.add_done_callback(self.ended.put)

    def _resources(self, task: Task) -> dict[str, float] | None:
        """A share of a declared accelerator; where nobody declares one, any worker will do."""
        if task.accelerator and self.declared:
            return {GPU: 1}
        return None

    def wait(self) -> Sequence[Trial]:
        futures = []
        try:
            futures.append(self.ended.get(timeout=HEARD))
            while True:
                futures.append(self.ended.get_nowait())
        except queue.Empty:
            pass  # that was all
        trials = [self._trial(future) for future in futures if future in self.running]
        return [*trials, *self._late(), *self._lost()]

    def _trial(self, future: Any) -> Trial:
        """Only what went wrong is fetched: the store has the rest."""
        task = self._over(future)
        if future.status == "finished":
            return Trial(task.key)
        if future.status == "error":
            return _of_error(task, future.exception())
        return Trial(task.key, "lost", f"{task.name}: lost by the cluster")

    def _over(self, future: Any) -> Task:
        del self.begun[future]
        return self.running.pop(future)

    def _late(self) -> list[Trial]:
        """Tasks over their time; the workers that hang on them are started again."""
        if self.timeout is None:
            return []
        now = time.monotonic()
        late = [future for future, begun in self.begun.items() if now - begun > self.timeout]
        for future in late:
            with suppress(OSError):  # the scheduler went away, and its workers with it
                self._end_late(future)
        tasks = [self._over(future) for future in late]
        return [Trial(task.key, "late", f"{task.name}: took more than {self.timeout:g} s") for task in tasks]

    def _end_late(self, future: Any) -> None:
        hung = [place for place, keys in self.client.processing().items() if future.key in keys]
        future.cancel(force=True)
        self.client.restart_workers(hung, timeout=PATIENCE / 4, raise_for_error=False)

    def _lost(self) -> list[Trial]:
        """All that ran, if the scheduler went away; it may come back under its address."""
        if self.client.status == "running":
            self._require_workers()
            return []
        tasks = [self._over(future) for future in list(self.running)]
        self._leave()
        try:
            self._attach(PATIENCE)
        except UsageError as error:
            raise self._gone(f"its scheduler went away, and now {error}") from error
        return [Trial(task.key, "lost", f"{task.name}: lost with the scheduler") for task in tasks]

    def _require_workers(self) -> None:
        """UsageError where no worker was there for long; `dask worker` may start one meanwhile."""
        if self._workers():
            self.empty_since = None
            return
        self.empty_since = self.empty_since or time.monotonic()
        if time.monotonic() - self.empty_since > PATIENCE:
            raise self._gone("it has no workers any more")

    def _gone(self, why: str) -> UsageError:
        return UsageError(
            f"`on` must be a cluster that stays, got {self.on}: {why}. What was finished is kept, and the same command "
            "goes on from there"
        )


def run_there(attempt: Attempt, task: Task, probe: str, wanted: dict[str, str]) -> str:
    """Run a task on a worker; its key comes back. A worker that came late is looked at now."""
    problem = look(probe, wanted)
    if problem:
        raise FaultyTask("lost", f"{task.name}: {platform.node()} {problem}")
    with ONE_AT_A_TIME:
        trial = attempt(task)
    if trial.fault:
        raise FaultyTask(trial.fault, trial.reason)
    return trial.key


def look(probe: str, wanted: dict[str, str]) -> str:
    """What is wrong with this worker, in words; empty if nothing is."""
    here = versions()
    for name, version in wanted.items():
        if here[name] != version:
            return f"has {name} {here[name]} and not {version}"
    try:
        seen = (Path(probe) / "probe").read_text()
    except OSError as error:
        return f"does not see the store at {Path(probe).parents[1]} ({error.strerror})"
    if seen != Path(probe).name:
        return f"sees another store at {Path(probe).parents[1]}"
    return ""


def versions() -> dict[str, str]:
    """What must be the same everywhere, since numbers depend on it."""
    return {"forsooth": forsooth.__version__, "torch": torch.__version__.partition("+")[0]}


def declared(name: str, dask_scheduler: Any = None) -> dict[str, float]:
    """How much of a resource each worker declares; asked on the scheduler."""
    return {place: state.resources.get(name, 0) for place, state in dask_scheduler.workers.items()}


def _of_error(task: Task, error: BaseException) -> Trial:
    if isinstance(error, FaultyTask):
        fault: Fault = error.args[0]
        return Trial(task.key, fault, error.args[1])
    if type(error).__name__ == "KilledWorker":
        why = "the workers that had it died: they ran out of memory, or its code ended them"
        return Trial(task.key, "died", f"{task.name}: {why}")
    if type(error).__name__ in ("FutureCancelledError", "CancelledError"):
        return Trial(task.key, "lost", f"{task.name}: lost by the cluster")
    return Trial(task.key, "raised", f"{task.name}: {type(error).__name__}: {_first_line(error)}")


def _imported() -> Any:
    """Dask, whose shutdown is told in many lines that help nobody."""
    try:
        dask = importlib.import_module("distributed")
    except ImportError as error:
        raise UsageError(
            "`on` needs Dask, which is not installed: pip install 'forsooth[cluster]', here and on all workers"
        ) from error
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    return dask


def _parsed(on: str) -> dict[str, Any]:
    """The words of a client: `local:N`, a scheduler file, or an address."""
    kind, _, rest = on.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest) > 0:
        return {"local": int(rest)}
    if Path(on).is_file():
        return {"scheduler_file": on}
    if rest and kind != "local":
        return {"address": on}
    raise UsageError(
        f"`on` must be an address (tcp://host:port), local:N or the file of a scheduler that is there, got {on!r}"
    )


def _short(root: Path) -> str:
    """Two runs may ask one cluster for the same task in two stores."""
    return hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:8]


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return next(iter(lines), type(error).__name__)
