"""The whole way, from data to a board: what must hold on it, and what must not change its end.

Nothing of the package is called but its public functions; data are changed where a suite makes them.
"""

import functools

import faults
import pandas as pd
import pytest
import spies
import torch
import way
from changes import exchanged, shuffled
from torch import nn

import forsooth
from forsooth.games import values
from forsooth.suites import explain

pytestmark = pytest.mark.usefixtures("single")
DETERMINISTIC = ("gradient", "gradient_x_input", "integrated_gradients", "deep_shap", "deep_lift", "kernel_shap")


@pytest.fixture(scope="module")
def walked(tmp_path_factory, single):
    """suite -> the walk that all others are held against, walked once."""
    return functools.cache(lambda name: way.walk(way.WALKS[name], tmp_path_factory.mktemp(name)))


CHECKS = [(name, check) for name, checks in way.CHECKS.items() for check in checks]


@pytest.mark.parametrize("name, check", CHECKS, ids=lambda value: getattr(value, "__name__", value))
def test_it_holds_on_the_way(walked, name, check):
    check(walked(name))


def numbers(walk: way.Walk, *, without: str = "") -> pd.DataFrame:
    """Every score of a walk by what it is a score of; the watching methods are left out."""
    rows = walk.run.rows
    rows = rows[rows["part"].eq("scores") & ~rows["method"].isin((spies.WATCH, spies.TELL, without))]
    key = [name for name in rows.columns if name not in ("value", "cell", "task", "seconds", "noise")]
    return rows.set_index(key)[["value"]].sort_index()


@pytest.mark.parametrize("name", ["xaitris", "bias", "planted", "articles", "bam"])
def test_the_order_of_the_methods_and_who_else_is_asked_change_no_number(walked, name, tmp_path):
    words = way.WALKS[name]
    catalogue = [method for method in words.methods if isinstance(method, str)]
    again = way.walk(words, tmp_path, methods=catalogue[:0:-1])  # backwards, and the first one left out
    pd.testing.assert_frame_equal(numbers(again), numbers(walked(name), without=catalogue[0]), check_exact=True)


@pytest.mark.parametrize("name", ["xaitris", "bias", "planted", "articles", "bam"])
def test_the_size_of_chunks_changes_no_number(walked, name, tmp_path, monkeypatch):
    monkeypatch.setattr(explain, "VALUES_AT_ONCE", 3 * 64)  # three images, or ninety-six rows of a table
    monkeypatch.setitem(values.CHUNKS, "cpu", (2**12, 2**6))
    again = way.walk(way.WALKS[name], tmp_path)
    pd.testing.assert_frame_equal(numbers(again), numbers(walked(name)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["bias", "articles"])
def test_another_number_of_workers_gives_the_same_bytes(name, tmp_path):
    words = way.WALKS[name]
    known = [method for method in words.methods if isinstance(method, str)]  # another process finds no live one
    runs = [way.walk(words, tmp_path / str(workers), methods=known, workers=workers).run for workers in (1, 2)]
    one, two = ((run.folder / "scores.parquet").read_bytes() for run in runs)
    assert one == two


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no accelerator here")
def test_another_device_gives_the_same_conclusions(walked, tmp_path):
    same_conclusions(walked("xaitris"), way.walk(way.WALKS["xaitris"], tmp_path, device="cuda"))


def same_conclusions(one: way.Walk, two: way.Walk) -> None:
    """Who is clearly better than whom in one walk is not worse in the other, and no score moves far."""
    boards = [walk.run.leaderboard().set_index("method") for walk in (one, two)]
    for board, other in (boards, boards[::-1]):
        for better, worse in ((b, w) for b in board.index for w in board.index if apart(board, b, w)):
            assert other.loc[better, "score"] >= other.loc[worse, "score"], (better, worse)
        assert apart(board, one.words.signal, "random"), "nothing is clear"
    moved = (boards[0]["score"] - boards[1]["score"]).abs()
    assert moved.max() < 0.12, moved.to_dict()


def apart(board: pd.DataFrame, better: str, worse: str) -> bool:
    return bool(board.loc[better, "low"] > board.loc[worse, "high"])


@pytest.mark.parametrize("change", [shuffled, exchanged])
@pytest.mark.parametrize("name", ["xaitris", "planted", "articles", "bam"])
def test_rows_in_another_order_and_classes_under_other_names_end_in_the_same_conclusions(
    walked, name, change, tmp_path, monkeypatch
):
    before = walked(name)
    made = name
    if (name, change) == ("planted", exchanged):  # the new class 1 is the artefact; only old ones can change places
        made = "planted on"
    faults.remake(monkeypatch, made, change)
    again = way.walk(way.WALKS[name], tmp_path)
    same_conclusions(before, again)
    assert not way.failures(name, again)


class Exchanged(nn.Module):
    """The same network, its classes in the other order."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x).flip(1)


@pytest.fixture(scope="module")
def own():
    """A user's network and inputs (12, 5)."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2)).eval()
        return net, torch.randn(12, 5)


def judged(model: nn.Module, x: torch.Tensor, methods: tuple[str, ...] = DETERMINISTIC) -> pd.DataFrame:
    """Every score of methods that draw nothing, by what it is a score of."""
    rows = forsooth.bias(model, x, methods=methods, permutations="exact", device="cpu").rows
    rows = rows[rows["method"].isin(DETERMINISTIC)].fillna({"end": "", "fraction": 0.0})
    return rows.set_index(["method", "metric", "end", "fraction", "sample"])[["value"]].sort_index()


def test_a_users_rows_in_another_order_have_the_same_scores(own):
    net, x = own
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    moved = judged(net, x[order]).rename(index=dict(enumerate(order.tolist())), level="sample").sort_index()
    pd.testing.assert_frame_equal(moved, judged(net, x), rtol=1e-4, atol=1e-6)


def test_a_users_classes_under_other_names_have_the_same_scores(own):
    net, x = own
    pd.testing.assert_frame_equal(judged(Exchanged(net), x), judged(net, x), check_exact=True)


def test_who_else_is_asked_of_a_users_model_changes_no_score(own):
    net, x = own
    fewer = judged(net, x, methods=DETERMINISTIC[:0:-1])
    whole = judged(net, x)
    rest = whole[whole.index.get_level_values("method") != DETERMINISTIC[0]]
    pd.testing.assert_frame_equal(fewer, rest, check_exact=True)
