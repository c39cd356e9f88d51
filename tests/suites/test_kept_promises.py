"""Who promises a sum is held to it in every suite and door, and a broken promise is seen on the row and in words."""

import dataclasses

import pytest
import torch
from attributions import nets
from report.by_hand import run_of, scores
from report.made_up import row
from torch import Tensor, nn
from user import own_models

import forsooth
from forsooth.attributions import METHODS
from forsooth.attributions.differences import DEEP_LIFT
from forsooth.records import BROKEN, Cell, Row
from forsooth.report.aggregate import took_part
from forsooth.report.leaderboard import leaderboard
from forsooth.report.medians import all_medians
from forsooth.report.verdict import verdict
from forsooth.suites import explain
from forsooth.suites.bam.contrasts import pair_status, trial_rows
from forsooth.suites.bam.questions import Side

X = nets.inputs(6, 1, 8, 8).float()


def question(model: nn.Module, **more: object) -> explain.Question:
    background = nets.inputs(4, 1, 8, 8, seed=5).float()
    target = torch.tensor([0, 1] * 3)
    known = {"background": background, "fit": background, "truth": torch.zeros(6, 8, 8), "layer": None, "seed": 0}
    return explain.Question(model=model, x=X, target=target, **{**known, **more})


@pytest.mark.parametrize("name", [method.name for method in METHODS if method.promise])
def test_every_promise_is_kept_on_a_network_with_biases(name: str) -> None:
    gap = explain.gaps(explain.attribute(name, question(nets.drawn(nets.cnn()).float())))
    assert gap is not None and gap.median() < (0.05 if name == "integrated_gradients" else 1e-3)


def test_the_promise_is_about_the_baseline_that_a_method_was_given() -> None:
    asked = question(nets.drawn(nets.cnn()).float(), game={"baseline": torch.ones(1, 8, 8)})
    gap = explain.gaps(explain.attribute("deep_lift", asked))
    assert gap is not None and gap.max() < 1e-3


def test_a_method_without_a_promise_has_no_gap() -> None:
    made = explain.attribute("gradient", question(nets.drawn(nets.cnn()).float()))
    assert explain.gaps(made) is None and explain.promise_rows(Row("s", "scores"), [], None, [0]) == []


def test_a_broken_promise_changes_the_status_and_not_the_value() -> None:
    made = Cell(tensors={"maps": torch.tensor([[1.0], [1.0], [0.0]]), "promised": torch.tensor([1.05, 2.0, 2.0])})
    template = Row("s", "scores", metric="ima")
    plain = [template.having(sample=sample, value=0.25) for sample in (7, 8)]
    zero = template.having(sample=9, value=float("nan"), status="zero map", message="…")
    rows = explain.promise_rows(template.having(er=None), [*plain, zero], explain.gaps(made), [7, 8, 9])
    assert [(one.status, one.metric) for one in rows[:3]] == [("ok", "ima"), (BROKEN, "ima"), ("zero map", "ima")]
    assert rows[1].value == 0.25 and rows[1].message == "the map misses the sum that its method promises by 50%"
    assert [one.value for one in rows[3:]] == pytest.approx([0.05 / 1.05, 0.5, 1.0])
    assert all(one.metric == "gap" and one.columns == {"er": None} for one in rows[3:])


def test_boards_count_it_and_verdicts_name_it() -> None:
    marked = [one | {"status": BROKEN} for one in scores("a", [0.9] * 4)]
    gaps = [
        row("scores", method="a", model="CNN", data="a", metric="gap", sample=k, value=v)
        for k, v in enumerate([0.3, 0.3, 0.01, 0.3])
    ]
    made = run_of([*marked, *gaps, *scores("b", [0.5] * 4)])
    counted = took_part(made, "m")
    assert counted[counted["method"].eq("a")]["value"].eq(0.9).all() and not counted["failed"].any()
    board = leaderboard(made, "m").set_index("method")
    assert board.loc["a", "broken"] == 0.75 and board.loc["a", "gap"] == 0.3 and board["broken"].isna()["b"]
    words = verdict(made, all_medians(made), {"m": leaderboard(made, "m")})
    assert "a does not keep its promised sum on 75 % of samples (median gap 0.3)" in " ".join(words)


def status_of(first: str, second: str) -> str:
    """The status of a pair of maps, of one image that both networks get right."""
    sides = [Side("f_o", torch.ones(1, 2, 2), torch.tensor([True]), (state,)) for state in (first, second)]
    return pair_status(tuple(sides), 0, "mcs", 0.5).get("status", "ok")


def test_a_pair_of_maps_is_as_good_as_its_worse_one() -> None:
    assert status_of("ok", "ok") == "ok"
    assert status_of(BROKEN, "ok") == BROKEN
    assert status_of(BROKEN, "zero map") == "zero map"
    members = [Row("bam", "samples", metric="mcs", value=v, status=s) for v, s in ((0.4, "ok"), (0.6, BROKEN))]
    (trial,) = trial_rows(members, 1)
    assert trial.value == 0.5 and trial.status == BROKEN


def half(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    return DEEP_LIFT(model, x, target) / 2


LIAR = dataclasses.replace(DEEP_LIFT, name="half", function=half)


def test_the_door_of_bias_stores_gaps_and_recommends_nobody_without_a_word() -> None:
    found = forsooth.bias(
        own_models.net(), own_models.IMAGES, players="grid:2", permutations="exact", methods=[LIAR, "lrp", "deep_lift"]
    )
    gaps = found.rows[found.rows["metric"].eq("gap")].groupby("method")["value"].max()
    assert gaps["half"] > 0.1 and gaps["lrp"] < 1e-3 and gaps["deep_lift"] < 1e-3
    assert "half does not keep its promised sum on 100 % of samples" in found.words
    if "half" in found.words.rsplit("\n\n", 1)[-1].split(";")[0]:
        assert "half (whose promised sum is not kept)" in found.words


def test_the_door_of_independence_stores_gaps_too() -> None:
    found = forsooth.independence(own_models.net(), own_models.IMAGES, methods=[LIAR, "lrp"])
    gaps = found.rows.groupby("method")["gap"].max()
    assert gaps["half"] > 0.1 and gaps["lrp"] < 1e-3
    assert "half does not keep its promised sum" in found.words and "lrp does not keep" not in found.words
