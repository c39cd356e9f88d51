"""TCAV in the BAM suite: its concept, its layers, its contrasts, and the two sources of its chance."""

import numpy as np
import pytest
import torch
from suites.bam.small import PANEL, TINY, carried_out, flat, of, spec_of, tasks
from torch import nn

from forsooth.attributions import concepts
from forsooth.attributions.concepts import LayerTest
from forsooth.attributions.layer_scores import TcavScore, tcav_score
from forsooth.plain import from_plain
from forsooth.store import Store
from forsooth.suites.bam import data, tcav
from forsooth.suites.bam.data import DataSpec
from forsooth.suites.bam.plan import F_0, F_O, F_S
from forsooth.suites.bam.specs import ConceptAsk, NetSpec

TEMPLATE = PANEL.row("concepts", method="tcav")
ASK = ConceptAsk(examples=5, random_sets=3, count=4, level=0.05, settings=concepts.CLOSED_FORM, seed=1, device="cpu")


def layer(name: str, scores: list[float], p: float) -> LayerTest:
    """A test of two sets and three inputs."""
    values = torch.tensor(scores, dtype=torch.float64)
    return LayerTest(name, values, values / 2, p, torch.ones(2), values.mean().repeat(3))


def score(value: float, *, sets: list[float] | None = None) -> TcavScore:
    return TcavScore(value, 0.5, sets or [], sets or [], [3, 4], "0 of 5")


def test_the_score_is_the_mean_over_layers_that_pass():
    tests = [layer("1.layer1", [0.2, 0.4], 0.01), layer("1.layer2", [0.8, 1.0], 0.02), layer("1.linear", [0, 0], 0.9)]
    found = tcav_score(tests, torch.tensor([7, 8, 9]), level=0.05, inside=tcav.INSIDE)
    assert found.score == pytest.approx(0.6) and found.chance == pytest.approx(0.3) and found.rows == [7, 8, 9]
    assert found.sets == pytest.approx([0.5, 0.7]) and found.inputs == pytest.approx([0.6] * 3)
    assert found.layers == "2 of 3 layers pass p <= 0.05 (layer1 0.30, layer2 0.90, [linear 0.00])"


def test_without_a_layer_that_passes_there_is_chance_alone():
    found = tcav_score([layer("1.layer1", [0.2, 0.4], 0.5)], torch.tensor([7]), level=0.05, inside=tcav.INSIDE)
    assert np.isnan(found.score) and found.chance == pytest.approx(0.15) and found.sets == found.inputs == []


def test_layers_are_the_blocks_and_the_logits():
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in ("conv1", "layer1", "layer2", "pool", "linear"):
                setattr(self, name, nn.Identity())

    assert tcav.layers_of(nn.Sequential(nn.Identity(), Net())) == ["1.layer1", "1.layer2", "1.linear"]


def test_the_concept_has_the_feature_and_random_sets_have_not():
    spec = spec_of()
    concept, *others = tcav.concept_examples(spec, ASK)
    assert len(others) == 3 and all(len(one) == 5 for one in (concept, *others))
    table = data.table(spec, 1.0)
    train = table.splits["train"]
    scenes, with_feature = (data.render(spec, table, train, shown)[0] for shown in ("s", "os"))

    def among(one: torch.Tensor, images: torch.Tensor) -> bool:
        return bool((images == one).flatten(1).all(1).any())

    assert all(among(one, with_feature) and not among(one, scenes) for one in concept)
    assert all(among(one, scenes) for other in others for one in other)
    assert not torch.equal(others[0], others[1])


def test_networks_are_set_against_their_partners():
    nets = [F_O, F_S, F_0, NetSpec("f_s_0.1", "scene", "os", 0.1), NetSpec("f_s_1", "scene", "os", 1.0)]
    scores = {net: score(0.1 * number, sets=[0.1 * number] * 2) for number, net in enumerate(nets)}
    rows = flat(tcav.contrast_rows(TEMPLATE, scores))
    own = of(rows, part="concepts", mask="object")
    assert own["comparison"].tolist() == ["f_o/f_s", "f_s_0.1/f_s_1", "f_s_1/f_s_1"]
    assert own["value"].tolist() == pytest.approx([-0.1, -0.1, 0.0])
    assert own["k"].isna().tolist() == [True, False, False] and set(own["sample"]) == {-1}
    assert of(rows, part="concept_inputs", comparison="f_o/f_s")["sample"].tolist() == [3, 4]
    assert of(rows, part="concept_sets", comparison="f_o/f_s")["sample"].tolist() == [0, 1]


def test_without_a_layer_that_passes_tcav_has_no_rows_by_input():
    rows = list(tcav.contrast_rows(TEMPLATE, {F_O: score(0.9), F_S: score(float("nan"))}))
    assert [(row.part, row.columns["mask"], row.status) for row in rows] == [
        ("concepts", "object", "undefined"),
        ("concepts", "random", "ok"),
    ]
    assert rows[0].message == "f_o: 0 of 5; f_s: 0 of 5"


def test_a_network_without_its_partner_has_no_rows():
    assert not list(tcav.contrast_rows(TEMPLATE, {F_O: score(0.9), F_0: score(0.1)}))


def test_tcav_has_a_contrast_or_says_why_not(rows):
    own = of(rows, part="concepts", method="tcav")
    assert set(own["comparison"]) == {"f_o/f_s", "f_s_0.1/f_s_1", "f_s_1/f_s_1"}
    assert set(own["mask"]) == {"object", "random"}
    by_layer = r"f_o: \d of 4 layers pass p <= 0.01 \(\[?layer1 [01]\.\d\d.*linear [01]\.\d\d\]?\); f_s: "
    assert own[own["k"].isna()]["message"].str.match(by_layer).all() and len(own[own["k"].isna()])
    known = own[own["status"].eq("ok")]
    np.testing.assert_allclose(known["value"], known["first"] - known["second"], atol=1e-12)


def test_tcav_by_input_and_by_set_has_the_mean_of_its_score(run):
    task = tasks(TINY)["TCAV"]
    store = Store(run.folder / "store")
    cells = [store.read(key) for key in task.needs[:2]]  # f_o and f_s
    ask = from_plain({**task.arguments["ask"], "level": 1.0}, ConceptAsk)
    rows = of(flat(carried_out(task, *cells, ask=ask).rows), mask="object")
    whole = of(rows, part="concepts")[["first", "second", "value"]].iloc[0]
    inputs, sets = (of(rows, part=part) for part in ("concept_inputs", "concept_sets"))
    for part in (inputs, sets):
        np.testing.assert_allclose(part[["first", "second", "value"]].mean(), whole, atol=1e-12)
    spec = from_plain(task.arguments["spec"], DataSpec)
    seen = data.images(spec, 1.0, count=15)
    assert inputs["sample"].tolist() == seen.rows.tolist() and sets["sample"].tolist() == [0, 1, 2]
