"""A method's rows: two sides compared image by image, X_corr, trials, and the ends of the scale."""

import dataclasses

import numpy as np
import pytest
import torch
from suites.bam.small import METHODS, PANEL, TINY, carried_out, flat, of, spec_of, tasks, trained_facts
from suites.bam.test_specs import ASK

from forsooth.plain import to_plain
from forsooth.records import BROKEN, Cell
from forsooth.scores.contrast import g_c
from forsooth.store import Store
from forsooth.suites.bam import contrasts
from forsooth.suites.bam.plan import F_0, F_O, F_S
from forsooth.suites.bam.questions import NOTHING, Note, SaliencyProbe, Side

TEMPLATE = PANEL.row("samples", method="gradient").having(metric="mcs")
NAN = float("nan")


def side(saliency: torch.Tensor, name: str = "f_s", **changes: object) -> Side:
    count = len(saliency)
    whole = Side(name, saliency, torch.ones(count, dtype=torch.bool), ("ok",) * count)
    return dataclasses.replace(whole, **changes)


def probe_with(*nets, **changes) -> SaliencyProbe:
    cells = {net.name: Cell(facts=to_plain(trained_facts(net, **changes))) for net in nets}
    return SaliencyProbe(ASK, spec_of(), cells)


def test_every_part_has_its_rows(rows):
    parts = {"training", "verification", "patches", "concepts", "samples", "random", "robustness", "fine", "scores"}
    parts |= {"promises"}
    assert set(rows["part"]) - {"concept_inputs", "concept_sets"} == parts
    samples = of(rows, part="samples", method="gradient")
    assert samples.groupby("metric").size().to_dict() == {"mcs": 60, "idr": 60, "iir": 60}
    assert {"ok", "no correct input"} == set(samples["status"])
    assert of(rows, part="scores", method="gradient").groupby("metric").size().eq(5).all()
    assert set(of(rows, part="robustness")["placing"]) == {"centre"}
    assert set(of(rows, part="fine")["k"]) == {0.1, 1.0}


def test_what_is_not_in_x_corr_is_a_row_with_its_reason(rows):
    lost = of(rows, part="samples", method="gradient", status="no correct input")
    own = lost[lost["metric"].ne("iir")]
    assert (own["right_first"] * own["right_second"]).eq(0).all()
    assert own["message"].str.startswith("wrong class: f_").all()


def test_a_constant_map_has_mcs_0_idr_0_and_iir_1(rows):
    own = rows[rows["method"].eq("constant") & rows["status"].eq("ok")]
    ends = own.groupby("metric")["value"].agg(["min", "max"])
    assert ends.loc["mcs"].tolist() == [0, 0] and ends.loc["idr"].tolist() == [0, 0]
    assert ends.loc["iir"].tolist() == [1, 1]


def test_maps_that_never_look_at_the_model_have_no_contrast(rows):
    """The input's own size is the same for both models; random maps differ by chance only."""
    still = rows[rows["method"].eq("absolute_input") & rows["metric"].eq("mcs") & rows["status"].eq("ok")]
    assert (still["value"] == 0).all()
    noise = rows[rows["method"].eq("random") & rows["metric"].eq("mcs") & rows["status"].eq("ok")]["value"]
    assert 0 < noise.abs().max() < 0.2 and abs(noise.mean()) < 0.05


def test_a_model_against_itself_has_mcs_0(rows):
    same = of(rows, part="fine", k=1.0, status="ok")
    assert (same["value"] == 0).all()


def test_values_are_those_of_g_c(rows):
    mcs = rows[rows["metric"].eq("mcs") & rows["status"].eq("ok") & rows["sample"].ge(0) & rows["part"].ne("scores")]
    np.testing.assert_allclose(mcs["value"], mcs["first"] - mcs["second"], atol=1e-12)
    idr = of(rows, metric="idr", part="samples", status="ok")
    assert (idr["value"].eq(1) == (idr["first"] < idr["second"])).all()
    iir = of(rows, metric="iir", part="samples", status="ok")
    assert (iir["value"].eq(1) == ((iir["first"] - iir["second"]).abs() < 0.1 * iir["second"])).all()


def test_trials_are_means_without_common_images(rows):
    own = of(rows, part="samples", method="gradient", metric="idr").reset_index(drop=True)
    trial = of(rows, part="scores", method="gradient", metric="idr", sample=2)["value"].item()
    kept = own.iloc[2::5]
    assert trial == pytest.approx(kept[kept["status"].eq("ok")]["value"].mean())


def test_a_method_that_breaks_is_at_the_bottom_of_every_board(run):
    for metric in ("mcs", "idr", "iir"):
        board = run.leaderboard(metric).set_index("method")
        assert set(board.index) == set(METHODS)
        assert board.loc["own_methods:raises", "failed"] == 1
    assert board.loc["constant", "score"] == 1


def test_promised_sums_are_checked_on_every_image(rows):
    gaps = of(rows, metric="gap")
    assert set(gaps["method"]) == {"deep_lift"} and set(gaps["part"]) == {"promises"}
    assert gaps["value"].max() < 1e-3 and {"f_o os as_built", "f_s os as_built"} <= set(gaps["comparison"])


def test_only_what_needs_a_failed_network_is_left_out(run):
    task = tasks(TINY)["explain: gradient"]
    store = Store(run.folder / "store")
    cells = [store.read(key) for key in task.needs]
    failed = [dataclasses.replace(c, facts=c.facts | {"passed": c.facts.get("name") != "f_o"}) for c in cells]
    left, whole = (carried_out(task, *given).rows for given in (failed, cells))
    (lost,) = [row for row in left if row.metric == "mcs" and row.columns["k"] is None]
    assert lost.status == "below gate" and "f_o" in lost.message
    others = [row for row in whole if row.metric != "mcs" or row.columns["k"] is not None]
    assert [row for row in left if row is not lost] == others


def test_a_reversed_pair_reverses_idr():
    one, two = torch.rand(2, 6, 4, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(6, 4, 4, dtype=torch.bool)
    template = TEMPLATE.having(metric="idr")
    there = contrasts.compare(template, (side(one), side(two)), mask, torch.arange(6))
    back = contrasts.compare(template, (side(two), side(one)), mask, torch.arange(6))
    assert [a.value + b.value for a, b in zip(there, back, strict=True)] == [1] * 6
    assert there[0].columns["first"] == pytest.approx(g_c(one, mask)[0].item())
    assert there[0].columns["comparison"] == "f_s/f_s"


def test_compared_by_hand():
    high, low = torch.full((2, 2, 2), 0.75), torch.full((2, 2, 2), 0.25)
    mask = torch.ones(2, 2, 2, dtype=torch.bool)
    wrong = side(low, "f_s", correct=torch.tensor([True, False]))
    first, second = contrasts.compare(TEMPLATE, (side(high, "f_o"), wrong), mask, torch.tensor([7, 9]))
    assert (first.sample, first.value, first.status, first.message) == (7, 0.5, "ok", "")
    assert (second.sample, second.status) == (9, "no correct input") and second.message == "wrong class: f_s"
    assert dict(first.columns) | {"placing": ""} == {
        **{"placing": "", "comparison": "f_o/f_s", "first": 0.75, "second": 0.25, "right_first": 1},
        "right_second": 1,
    }


@pytest.mark.parametrize("zero, value, status", [("undefined", NAN, "undefined"), ("failure", 0.0, "ok")])
def test_nothing_before_and_after_is_as_the_settings_say(zero, value, status):
    nothing = torch.zeros(1, 2, 2)
    mask = torch.ones(1, 2, 2, dtype=torch.bool)
    pair = (side(nothing), side(nothing))
    (row,) = contrasts.compare(TEMPLATE.having(metric="iir"), pair, mask, torch.tensor([0]), zero=zero)
    assert row.value == pytest.approx(value, nan_ok=True) and row.status == status


@pytest.mark.parametrize(
    "states, wrong, value, expected",
    [
        (("ok", "ok"), (), 0.1, ()),
        (("ok", BROKEN), (), 0.1, (BROKEN, "a map misses the sum that its method promises")),
        (("zero map", BROKEN), (), NAN, ("zero map", "")),
        (("ok", "ok"), (), NAN, ("undefined", "nothing of the map is positive there before and after")),
        (("zero map", "ok"), (0,), NAN, ("no correct input", "wrong class: f_o")),
        (("ok", "ok"), (0, 1), 0.1, ("no correct input", "wrong class: f_o and f_s")),
    ],
)
def test_status_of_a_pair(states, wrong, value, expected):
    pair = []
    for place, (name, state) in enumerate(zip(("f_o", "f_s"), states, strict=True)):
        pair.append(side(torch.ones(1, 2, 2), name, status=(state,), correct=torch.tensor([place not in wrong])))
    assert tuple(contrasts.pair_status(tuple(pair), 0, "mcs", value).values()) == expected


def test_the_message_of_a_method_that_broke_is_kept():
    broken = side(torch.ones(1, 2, 2), status=("error",), message="no map today")
    reason = contrasts.pair_status((side(torch.ones(1, 2, 2)), broken), 0, "mcs", NAN)
    assert reason == {"status": "error", "message": "no map today"}
    patch = side(torch.ones(1, 2, 2), "f_0", correct=torch.tensor([False]))
    assert contrasts.pair_status((patch, patch), 0, "iir", 1.0)["message"] == "no patch was found, or wrong class: f_0"


def made(values: list[tuple[float, str]]) -> list:
    return [TEMPLATE.having(sample=k, value=value, status=status) for k, (value, status) in enumerate(values)]


def test_a_map_that_says_nothing_counts_as_the_worst_in_its_trial():
    rows = made([(0.5, "ok"), (NAN, "zero map"), (NAN, "no correct input"), (NAN, "zero map")])
    one, two = contrasts.trial_rows(rows, 2)
    assert one.value == 0.5 and two.value == -1 and two.status == "zero map"
    assert contrasts.trial_rows(rows, 1)[0].value == pytest.approx((0.5 - 1 - 1) / 3)
    assert contrasts.trial_rows(rows, 1)[0].status == "ok"


def test_a_trial_says_that_a_promise_is_broken():
    (trial,) = contrasts.trial_rows(made([(0.4, "ok"), (0.6, BROKEN), (NAN, "zero map")]), 1)
    assert trial.status == BROKEN and trial.value == pytest.approx(0.0)


def test_a_trial_without_correct_images_has_no_value():
    trials = contrasts.trial_rows(made([(0.4, "ok"), (NAN, "no correct input")]), 5)
    assert [trial.status for trial in trials] == ["ok", "no correct input"] and np.isnan(trials[1].value)
    assert trials[1].message == "no image in X_corr" and [trial.sample for trial in trials] == [0, 1]
    assert all(trial.part == "scores" and trial.columns["first"] is None for trial in trials)


def test_trials_are_of_each_metric():
    rows = made([(0.5, "ok")] * 4) + [row.having(metric="idr", value=1.0) for row in made([(0.5, "ok")] * 4)]
    assert [(row.metric, row.value) for row in contrasts.trial_rows(rows, 2)] == [
        *[("mcs", 0.5)] * 2,
        *[("idr", 1.0)] * 2,
    ]


def test_who_cannot_be_compared():
    assert contrasts.why_not(probe_with(F_O, F_S), ("f_o", "f_s")) == {}
    lost = contrasts.why_not(probe_with(F_S), ("f_o", "f_s"))
    assert lost == {"status": "skipped", "message": "f_o not trained"}
    below = contrasts.why_not(probe_with(F_O, F_S, passed=False), ("f_o", "f_s"))
    assert below == {"status": "below gate", "message": "f_o, f_s below the gate: not explained"}


def test_nobody_to_ask_is_a_row_for_each_metric():
    probe = probe_with(F_O, F_S, F_0, passed=False)
    rows = contrasts.coarse(probe, TEMPLATE) + contrasts.independent(probe, None, TEMPLATE)
    assert [(row.metric, row.part, row.sample, row.status) for row in rows] == [
        (name, "scores", -1, "below gate") for name in ("mcs", "idr", "iir")
    ]
    assert contrasts.fine(probe, TEMPLATE) == []


def test_without_patches_there_is_no_iir():
    (row,) = contrasts.independent(probe_with(F_0), None, TEMPLATE)
    assert (row.status, row.message) == ("skipped", "no patches were asked for") and np.isnan(row.value)


def test_gaps_are_rows_by_network_and_set():
    probe = probe_with(F_S)
    probe.notes["f_s os"] = Note(torch.ones(3, 2, 2), torch.tensor([0.25, 0.5]))
    probe.notes["f_s s"] = NOTHING
    rows = flat(contrasts.gap_rows(probe, TEMPLATE.having(part="promises")))
    assert rows[["metric", "sample", "value", "comparison"]].to_numpy().tolist() == [
        ["gap", 0, 0.25, "f_s os"],
        ["gap", 1, 0.5, "f_s os"],
    ]


def test_the_first_maps_of_the_first_training_are_shown():
    probe = probe_with(F_O, F_S)
    first = torch.tensor([[[1.0, -2.0]], [[3.0, 0.0]]])
    probe.notes["f_o os as_built"] = Note(torch.stack([first, first.flip(-1)]), None)
    probe.notes["f_s os as_built"] = NOTHING
    album = contrasts.album_of(probe, PANEL)
    assert {name: one.tolist() for name, one in album.tensors.items()} == {
        "f_o os as_built": [[1.0, 0.0]],
        "f_o os as_built 1": [[0.0, 1.0]],
    }
    assert [(one["label"], one["place"], one["tensor"]) for one in album.pictures] == [
        (1, 0, "f_o os as_built"),
        (1, 1, "f_o os as_built 1"),
    ]
    assert {one["method"] for one in album.pictures} == {probe.ask.method}
    second = contrasts.album_of(probe, dataclasses.replace(PANEL, model_seed=1))
    assert second.tensors == {} and second.pictures == []
