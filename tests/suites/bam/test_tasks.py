"""The tasks of BAM that ask no method: trainings, what networks need, patches, the example."""

import itertools

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from suites.bam.small import FEW, PANEL, TINY, carried_out, flat, of, tasks, trained_facts

from forsooth import api, report
from forsooth.models import RESIDUAL_SMALL, normalising, weights
from forsooth.models.weights import WeightsFile
from forsooth.plain import from_plain, to_plain
from forsooth.records import Cell, UsageError
from forsooth.store import Store
from forsooth.suites import networks
from forsooth.suites.bam import data
from forsooth.suites.bam import tasks as bam_tasks
from forsooth.suites.bam.data import DataSpec
from forsooth.suites.bam.plan import F_0, F_O, F_S
from forsooth.suites.bam.specs import NetSpec
from forsooth.suites.bam.tasks import RARE, facts_of, verification_rows
from forsooth.suites.choose import SHOWN

FINE = NetSpec("f_s_0.1", "scene", "os", 0.1)
TEMPLATE = PANEL.row("verification")


@pytest.fixture
def begun(tmp_path):
    """A file of weights for 1000 classes."""
    net = RESIDUAL_SMALL.function(size=32, classes=1000)
    save_file(net.state_dict(), tmp_path / "begun.safetensors")
    return net, str(tmp_path / "begun.safetensors")


def test_a_training_begins_with_the_weights_of_the_file(begun):
    net, path = begun
    task = tasks({**FEW, "initial_weights": path})["train f_o, residual_small"]
    still = {**task.arguments["recipe"], "learning_rate": 1e-12}
    cell = carried_out(task, recipe=bam_tasks.Recipe(**still))
    for name, value in net.named_parameters():
        if name.startswith("linear"):
            assert cell.tensors[name].shape[0] == 10
        else:
            torch.testing.assert_close(cell.tensors[name], value.detach(), atol=1e-8, rtol=0)


def test_weights_of_another_network_are_refused(tmp_path):
    save_file({"other.weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    task = tasks({**FEW, "initial_weights": str(tmp_path / "other.safetensors")})["train f_o, residual_small"]
    with pytest.raises(UsageError, match=r"missing: conv1\.weight.*unexpected: other\.weight"):
        carried_out(task)


def test_weights_of_the_user_are_taken_and_not_trained(tmp_path, run):
    task = tasks(TINY)["train f_s_0.1, residual_small"]
    trained = Store(run.folder / "store").read(task.key)
    save_file(dict(trained.tensors), tmp_path / "f_s_0.1.safetensors")
    again = tasks({**TINY, "weights": str(tmp_path)})
    assert again["train f_o, residual_small"].key == tasks(TINY)["train f_o, residual_small"].key
    cell = carried_out(again["train f_s_0.1, residual_small"])
    assert cell.facts["accuracy"] == trained.facts["accuracy"] and "epochs" not in cell.facts


def test_a_file_of_weights_is_found_by_the_name_of_its_network(tmp_path):
    assert weights.weights_in(None, "f_o") is None and weights.weights_in(str(tmp_path), "f_o") is None
    save_file({"a": torch.zeros(2)}, tmp_path / "f_o.safetensors")
    first = weights.weights_in(str(tmp_path), "f_o")
    assert isinstance(first, WeightsFile) and first.path == str(tmp_path / "f_o.safetensors")
    save_file({"a": torch.ones(3)}, tmp_path / "f_o.safetensors")
    assert weights.weights_in(str(tmp_path), "f_o") != first
    assert weights.weights_file(None, argument="initial_weights") is None


def test_two_trainings_are_two_networks_on_the_same_images(tmp_path):
    settings = {**FEW, "trainings": 2, "methods": ("gradient",)}
    run = api.run("bam", settings=settings, out=tmp_path / "run", page=False)
    assert set(run.rows["model_seed"]) == {0, 1}
    for part in ("training", "verification", "samples", "fine"):
        own = run.rows[run.rows["part"].eq(part)]
        first, second = (own[own["model_seed"].eq(number)] for number in (0, 1))
        assert first["sample"].tolist() == second["sample"].tolist() and len(first)
    store = Store(run.folder / "store")
    trained = run.rows[run.rows["part"].eq("training") & run.rows["net"].eq("f_o")]["cell"]
    one, two = (store.read(key).tensors["conv1.weight"] for key in trained)
    assert not torch.equal(one, two)


def test_a_model_below_its_gate_is_not_explained(tmp_path):
    run = api.run("bam", methods=["gradient", "constant"], settings={**FEW, "gate": 0.999}, out=tmp_path / "run")
    assert set(of(run.rows, part="training")["status"]) == {"below gate"}
    messages = of(run.rows, part="training").set_index("net")["message"]
    assert messages["f_o"].endswith("`--set same_objects=true` makes it easier")
    assert messages["f_s"].endswith("below the gate of 100%")
    scores = of(run.rows, part="scores")
    assert set(scores["status"]) == {"below gate"} and (tmp_path / "run" / "report.html").is_file()


def test_facts_of_a_training_come_back_as_a_record():
    facts = trained_facts(FINE, accuracy=0.7)
    cell = Cell(facts={**to_plain(facts), "epochs": 3, "said": []})
    assert facts_of(cell) == facts and facts_of(cell).net.k == 0.1


def test_a_network_for_images_in_0_to_1_says_what_it_said_of_normalised_ones():
    net = RESIDUAL_SMALL.function(size=32, classes=10).eval()
    cell = Cell(tensors=networks.weights_of(net), facts=to_plain(trained_facts(F_S)))
    x = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    mean, spread = (normalising.column(v) for v in (normalising.IMAGENET_MEAN, normalising.IMAGENET_SPREAD))
    model = bam_tasks.explained_network(cell, device="cpu")
    torch.testing.assert_close(model(x), net((x - mean) / spread), atol=1e-4, rtol=1e-4)
    assert not model.training and not any(p.requires_grad for p in model.parameters())
    torch.testing.assert_close(bam_tasks.probabilities(model, x).sum(1), torch.ones(2))


# Of four images with classes 0, 1, 0, 1; the first column is the probability of class 0.
LABEL = torch.tensor([0, 1, 0, 1])


def said(*of_class_0: float) -> torch.Tensor:
    first = torch.tensor(of_class_0)
    return torch.stack([first, 1 - first], 1)


def test_verification_by_hand():
    outputs = {"os": said(0.9, 0.2, 0.8, 0.6), "s": said(0.95, 0.3, 0.7, 0.4), "og": said(0.5, 0.5, 0.5, 0.5)}
    rows = flat(verification_rows(TEMPLATE, F_S, outputs, LABEL)).set_index(["shown", "metric"])
    assert rows["value"]["os", "accuracy"] == 0.75 and rows["value"]["s", "accuracy"] == 1
    assert rows["value"]["og", "accuracy"] == 0.5  # of equals the first class is taken
    # right with the object are the first three: without it the first is surer, the others are not
    assert rows["value"]["s", "confidence_rises"] == pytest.approx(1 / 3)
    assert rows["n"]["s", "confidence_rises"] == 3 and rows["n"]["os", "accuracy"] == 4
    assert set(rows["net"]) == {"f_s"} and ("s", "drop") not in rows.index


def test_confidence_of_a_network_of_objects_is_without_scenes():
    outputs = {"os": said(0.9, 0.2, 0.8, 0.4), "s": said(0.5, 0.5, 0.5, 0.5), "og": said(0.99, 0.1, 0.9, 0.3)}
    rows = flat(verification_rows(TEMPLATE, F_O, outputs, LABEL))
    assert of(rows, metric="confidence_rises")[["shown", "value"]].to_numpy().tolist() == [["og", 1.0]]


def test_a_network_without_objects_has_no_confidence_to_gain():
    outputs = {shown: said(0.9, 0.2, 0.8, 0.4) for shown in ("os", "s", "og")}
    assert "confidence_rises" not in {row.metric for row in verification_rows(TEMPLATE, F_0, outputs, LABEL)}
    wrong = {shown: said(0.1, 0.8, 0.2, 0.9) for shown in ("os", "s", "og")}
    assert "confidence_rises" not in {row.metric for row in verification_rows(TEMPLATE, F_S, wrong, LABEL)}


def test_the_drop_by_hand():
    outputs = {"os": said(0.9, 0.2, 0.8, 0.4), "s": said(0.2, 0.3, 0.3, 0.4)}
    rows = flat(verification_rows(TEMPLATE, FINE, outputs, LABEL))
    assert of(rows, metric="drop")[["shown", "value", "k"]].to_numpy().tolist() == [["s", 0.5, 0.1]]
    assert bam_tasks.sets_of(FINE) == ("os", "s") and bam_tasks.sets_of(F_S) == ("os", "s", "og")


def test_a_set_is_strange_where_the_network_is_more_unsure_than_ever():
    sure = said(*[0.95] * 19, 0.8)
    unsure = said(*[0.6] * 10, *[0.95] * 10)
    outputs = {"os": sure, "s": unsure, "og": sure}
    rows = flat(verification_rows(TEMPLATE, F_S, outputs, torch.zeros(20, dtype=torch.int64)))
    strange = of(rows, metric="unfamiliar").set_index("shown")["value"]
    assert strange["s"] == 0.5 and strange["os"] <= RARE


def test_strange_sets_are_named():
    row = TEMPLATE.having(metric="unfamiliar", net="f_s", shown="og", value=0.4)
    (sentence,) = bam_tasks.unfamiliar_sets([row, row.having(value=0.05)])
    assert sentence.startswith("Out of distribution") and sentence.endswith("alone: f_s on X_og (40%).")
    assert bam_tasks.unfamiliar_sets([row.having(value=0.1)]) == []
    assert bam_tasks.unfamiliar_sets([row.having(metric="accuracy")]) == []


def test_verification_is_part_of_every_run(rows):
    shares = of(rows, part="verification").set_index(["net", "shown", "metric"])["value"]
    for shown in ("os", "s", "og"):
        assert 0 <= shares["f_o", shown, "accuracy"] <= 1
    assert shares["f_s", "s", "accuracy"] > shares["f_s", "og", "accuracy"]  # the scene is what f_s reads
    assert shares["f_s_0.1", "s", "drop"] == pytest.approx(
        shares["f_s_0.1", "os", "accuracy"] - shares["f_s_0.1", "s", "accuracy"]
    )
    assert ("f_s", "s", "confidence_rises") in shares.index and ("f_o", "og", "unfamiliar") in shares.index


def data_of(task) -> DataSpec:
    return from_plain(task.arguments["spec"], DataSpec)


def test_patches_leave_the_outputs_and_stay_in_their_mask(run):
    task = tasks(TINY)["functionless patches"]
    patched = Store(run.folder / "store").read(task.key)
    seen = data.images(data_of(task), 1.0, count=60)
    outside = ~seen.mask[:, None].expand_as(seen.s)
    assert torch.equal(patched.tensors["x"][outside], seen.s[outside])
    assert patched.tensors["x"].min() >= 0 and patched.tensors["x"].max() <= 1
    assert patched.facts["found"] >= 0.95


def test_patches_have_three_rows_each(rows):
    own = of(rows, part="patches")
    wide = own.pivot(index="sample", columns="metric", values="value")
    assert len(wide) == 60 and set(own["net"]) == {"f_0"} and set(wide) == {"ratio", "change", "found"}
    enough = (wide["ratio"] < 0.05) & (wide["change"] >= 0.1)
    assert (wide["found"].eq(1) == enough).all()


def test_the_examples_are_the_first_images_for_both_networks(run):
    task = tasks(TINY)["example"]
    cell = Store(run.folder / "store").read(task.key)
    seen = data.images(data_of(task), None, count=60)
    pictures = pd.DataFrame(cell.facts["pictures"])
    counts = pictures.groupby(["kind", "label"])["place"].agg(list).to_dict()
    assert counts == {pair: list(range(SHOWN)) for pair in itertools.product(("input", "truth"), (0, 1))}
    assert set(pictures["model"]) == {"none"} and len(cell.tensors) == 2 * SHOWN
    for picture in cell.facts["pictures"]:
        source = {"input": seen.os, "truth": seen.mask}[picture["kind"]]
        assert torch.equal(cell.tensors[picture["tensor"]], source[picture["place"]].half())


def test_every_shown_map_has_its_image(run):
    pictures = pd.DataFrame(report.read(run.folder).run["pictures"])
    places = pictures.groupby(["kind", "label"])["place"].agg(set)
    assert set(map(tuple, places)) == {tuple(range(SHOWN))}
    assert set(places.index) == set(itertools.product(("input", "truth", "example"), (0, 1)))
