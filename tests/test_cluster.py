"""A Dask cluster gives the same bytes as this process, and what it lacks is said before any work."""

import arithmetic
import pytest
import tiny
from test_engine import diamond

from forsooth import api, cluster
from forsooth.cluster import look, versions
from forsooth.engine import execute, make_task
from forsooth.progress import Silent
from forsooth.records import FailedTasks, UsageError
from forsooth.store import Store

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def workers():
    """Three workers, each a process."""
    with distributed.LocalCluster(
        n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as made:
        yield made.scheduler_address


def test_serial_processes_and_a_cluster_leave_the_same_bytes(tmp_path, workers):
    asked = {"methods": tiny.METHODS, "only": tiny.ONLY, "settings": tiny.SETTINGS}
    for name, means in {"serial": {}, "processes": {"workers": 2}, "cluster": {"on": workers}}.items():
        api.run("xaitris", **asked, **means, page=False, out=tmp_path / name)
    found = {(tmp_path / name / "scores.parquet").read_bytes() for name in ("serial", "processes", "cluster")}
    assert len(found) == 1
    assert not list(tmp_path.glob("*/store/unfinished/*"))


class SlowToEnd:
    """Stands for workers of a busy machine that take longer to end than one waits for them."""

    def __init__(self):
        self.waited = []

    def close(self, timeout):
        self.waited.append(timeout)
        raise TimeoutError


@pytest.mark.parametrize("kind, patience", [(None, cluster.CLOSING), (KeyboardInterrupt, cluster.CLOSING_SOON)])
def test_workers_that_are_slow_to_end_are_no_failure_of_the_run(tmp_path, kind, patience):
    ends = SlowToEnd()
    left = cluster.Cluster(None, Store(tmp_path), "local:1", client=ends, local=ends)
    left.probe = Store(tmp_path).unfinished("probe")
    left.probe.mkdir(parents=True)
    left.__exit__(kind)
    assert ends.waited == [patience, patience] and not left.probe.exists()


def test_a_diamond_on_a_cluster(tmp_path, workers):
    tasks = diamond()
    execute(tasks, Store(tmp_path), workers=1, on=workers, progress=Silent())
    assert Store(tmp_path).read(tasks[-1].key).tensors["value"].item() == 36.0


def test_a_task_that_raises_or_ends_its_worker_has_failed_and_no_other(tmp_path, workers):
    broken = make_task(arithmetic.broken, {}, name="broken")
    dies = make_task(arithmetic.dies, {}, name="dies")
    with pytest.raises(FailedTasks, match="2 of 7 tasks failed"):
        execute([broken, dies, *diamond()], Store(tmp_path), workers=1, on=workers, progress=Silent())
    assert "RuntimeError: the task broke" in Store(tmp_path).read(broken.key).facts["message"]
    assert "workers that had it died" in Store(tmp_path).read(dies.key).facts["message"]
    assert Store(tmp_path).read(diamond()[-1].key).tensors["value"].item() == 36.0


def test_a_task_that_hangs_on_a_cluster_is_ended(tmp_path, workers):
    hangs = make_task(arithmetic.hangs_once, {"marker": str(tmp_path / "marker")}, name="hangs once")
    execute([hangs, *diamond()], Store(tmp_path / "s"), workers=1, on=workers, timeout=12.0, progress=Silent())
    assert Store(tmp_path / "s").read(hangs.key).tensors["value"].item() == 1.0


def test_other_versions_are_told_before_any_work(tmp_path, workers, monkeypatch):
    monkeypatch.setattr(cluster, "versions", lambda: {**versions(), "torch": "0.1"})
    with pytest.raises(UsageError, match=r"`on` must be a cluster whose workers fit, got tcp.* has torch .* not 0\.1"):
        execute(diamond(), Store(tmp_path), workers=1, on=workers, progress=Silent())
    assert not (tmp_path / "cells").exists() and not list((tmp_path / "unfinished").iterdir())


def test_a_worker_that_sees_no_store_or_another_one_says_so(tmp_path):
    probe = tmp_path / "store" / "unfinished" / "probe.0"
    assert look(str(probe), versions()).startswith(f"does not see the store at {tmp_path / 'store'} (")
    probe.mkdir(parents=True)
    (probe / "probe").write_text("of another machine")
    assert look(str(probe), versions()) == f"sees another store at {tmp_path / 'store'}"
    (probe / "probe").write_text(probe.name)
    assert look(str(probe), versions()) == ""


@pytest.mark.parametrize("on", ["local:0", "local:many", "nothing", "", "scheduler.json"])
def test_an_address_that_is_none_is_an_error(tmp_path, on):
    with pytest.raises(UsageError, match=r"`on` must be an address \(tcp://host:port\), local:N or the file"):
        execute(diamond(), Store(tmp_path), workers=1, on=on, progress=Silent())


def test_a_cluster_that_does_not_answer_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    with pytest.raises(UsageError, match="`on` must be a Dask cluster that answers and has workers, got tcp"):
        execute(diamond(), Store(tmp_path), workers=1, on="tcp://127.0.0.1:1", progress=Silent())


def test_without_dask_the_line_says_how_to_install_it(tmp_path, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(cluster.importlib, "import_module", missing)
    with pytest.raises(UsageError, match=r"pip install 'forsooth\[cluster\]'"):
        execute(diamond(), Store(tmp_path), workers=1, on="local:1", progress=Silent())
