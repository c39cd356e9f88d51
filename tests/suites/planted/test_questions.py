"""What a method is asked about planted images, and the rows and pictures of its maps."""

import numpy as np
import pandas as pd
import pytest
import torch
from suites.planted.smallest import ask_of, columns_of, spec_of
from torch import nn

from forsooth import plugins
from forsooth.attributions import METHODS
from forsooth.names import find
from forsooth.plain import from_plain, to_plain
from forsooth.records import Cell
from forsooth.scores.planted import attr_percent
from forsooth.suites import planning
from forsooth.suites.planted import data, questions
from forsooth.suites.planted.questions import Ask
from forsooth.suites.planted.tasks import template

pytestmark = pytest.mark.usefixtures("single")


@pytest.fixture(scope="module")
def images() -> questions.Explained:
    return questions.explained_images(spec_of(), ask_of())


def shared(images, part="scores"):
    return template(images.dataset, columns_of(part, model="m")).having(method="any", epoch=3, accuracy=0.9)


def noise(images) -> torch.Tensor:
    return torch.randn(len(images.rows), 3, 32, 32, generator=torch.Generator().manual_seed(0))


def test_the_words_of_an_ask_in_keys_stay():
    plain = to_plain(ask_of())
    words = ["method", "version", "code", "samples", "presences", "output", "metrics", "every", "show", "seed"]
    assert list(plain) == [*words, "device"]
    assert from_plain(plain, Ask) == ask_of()


def test_only_presences_that_were_asked_for(images):
    assert {name: len(rows) for name, rows in images.groups.items()} == {"with": 4, "without": 4}
    alone = questions.explained_images(spec_of(), ask_of(presences=("without",)))
    assert list(alone.groups) == ["without"]
    assert torch.equal(alone.rows, images.groups["without"])
    assert {images.presence(int(row)) for row in images.groups["with"]} == {"with"}


def test_others_are_learned_from_training_images_alone(images):
    rows = questions.learned_from(images.dataset)
    train = images.dataset.splits["train"]
    assert {role: len(own) for role, own in rows.items()} == {"background": 200, "fit": min(500, len(train))}
    assert all(torch.isin(own, train).all() for own in rows.values())
    assert not torch.isin(images.rows, train).any()


def test_a_model_is_asked_for_the_class_that_it_predicts(images):
    class Always(nn.Module):
        def forward(self, x):
            return torch.tensor([[0.0, 1.0]]).expand(len(x), -1)

    question = questions.question(Always(), "0.body", images, ask_of())
    assert question.target.tolist() == [1] * 8 and question.layer == "0.body"
    assert torch.equal(question.x, images.dataset.x[images.rows]) and torch.equal(question.samples, images.rows)
    assert torch.equal(question.truth, images.dataset.truth[images.rows])
    assert (len(question.background), question.seed) == (200, 3)


def test_a_method_that_ignores_the_model_is_asked_for_the_label(images):
    question = questions.question(None, None, images, ask_of())
    assert torch.equal(question.target, images.dataset.y[images.rows]) and isinstance(question.model, nn.Identity)


def test_rows_are_the_scores_of_the_summed_channels(images):
    maps = noise(images)
    answer = Cell(tensors={"maps": maps}, facts={"status": "ok", "message": ""})
    rows = questions.rows_of(answer, shared(images), images, ask_of(metrics={"attr": 1, "recall_top": 1}))
    assert [row.metric for row in rows] == ["attr"] * 8 + ["recall_top"] * 8
    truth = images.dataset.truth[images.rows]
    expected = attr_percent(maps.abs().sum(1), truth)
    assert [row.value for row in rows[:8]] == pytest.approx(expected.tolist())
    assert [row.sample for row in rows[:8]] == images.rows.tolist()
    assert {row.columns["er"] for row in rows} == {truth[0].double().mean().item()}
    assert [row.part for row in rows[:8]] == ["scores"] * 4 + ["absence"] * 4
    assert [row.columns["presence"] for row in rows[:8]] == ["with"] * 4 + ["without"] * 4
    assert all(row.columns["epoch"] == 3 and row.columns["accuracy"] == 0.9 for row in rows)


def test_a_broken_promise_is_a_status_and_a_row_of_its_own_where_scores_are_ranked(images):
    maps = noise(images)
    promised = maps.flatten(1).sum(1)
    promised[0] += 1000
    answer = Cell(tensors={"maps": maps, "promised": promised}, facts={"status": "ok", "message": ""})
    rows = questions.rows_of(answer, shared(images), images, ask_of())
    gaps = [row for row in rows if row.metric == "gap"]
    assert [row.status for row in rows[:8]] == ["broken promise"] + ["ok"] * 7
    assert len(gaps) == 8 and gaps[0].value > 0.1 > gaps[1].value and gaps[0].columns["er"] is None
    assert [row.part for row in gaps] == ["scores"] * 4 + ["absence"] * 4
    others = questions.rows_of(answer, shared(images, "r"), images, ask_of())
    assert {row.metric for row in others} == {"attr"} and {row.part for row in others} == {"r"}


def test_maps_that_say_nothing(images):
    maps = noise(images)
    maps[0] = 0
    maps[1, 0, 0, 0] = float("nan")
    rows = questions.rows_of(Cell(tensors={"maps": maps}), shared(images), images, ask_of())
    assert [row.status for row in rows][:3] == ["zero map", "not finite", "ok"]


def test_no_map_is_a_row_for_each_image_or_one_for_all(images):
    facts = {"status": "error", "message": "ValueError: no"}
    each = questions.rows_of(Cell(facts=facts), shared(images), images, ask_of())
    assert [row.sample for row in each] == images.rows.tolist()
    assert all(np.isnan(row.value) and row.status == "error" and row.columns["er"] is None for row in each)
    whole = questions.no_rows(shared(images), images, ask_of(), facts, whole=True)
    assert [(row.sample, row.part) for row in whole] == [(-1, "scores"), (-1, "absence")]


def test_the_first_maps_of_each_presence_are_shown(images):
    maps = noise(images)
    tensors = questions.first_maps(Cell(tensors={"maps": maps}), images)
    for presence, place in (("with", 0), ("with 3", 3), ("without", 4), ("without 1", 5)):
        flat = maps[place].abs().sum(0)
        torch.testing.assert_close(tensors[presence], (flat / flat.max()).half())
    assert questions.first_maps(Cell(), images) == {}
    nobody = questions.Explained(images.spec, images.dataset, {"with": images.rows[:0], "without": images.rows})
    assert list(questions.first_maps(Cell(tensors={"maps": maps}), nobody)) == [
        "without",
        "without 1",
        "without 2",
        "without 3",
    ]
    zero = questions.first_maps(Cell(tensors={"maps": 0 * maps}), images)
    assert not zero["with"].any()


def test_pictures_say_what_they_show():
    first, third = questions.map_pictures(["with", "without 2"], {"method": "any"})
    assert first == {"method": "any", "tensor": "with", "kind": "example", "label": 1, "place": 0}
    assert third == {"method": "any", "tensor": "without 2", "kind": "example", "label": 0, "place": 2}


def test_who_took_part_is_kept_of_ranked_panels(images):
    lines = questions.participants(images, columns_of())
    counts = pd.DataFrame(lines).groupby("role")["count"].sum()
    assert counts["explained"] == 8 and counts["background"] == 200
    assert all(line["manipulation"] == "watermark" and line["model_seed"] == 0 for line in lines)
    assert questions.participants(images, columns_of("r")) == []


def test_a_user_s_method_is_known_by_its_code():
    own = plugins.method("own_methods:gradient", METHODS)
    assert len(plugins.identity(own)["code"]) == 16
    assert plugins.identity(find("saliency", METHODS, argument="methods"))["code"] == ""
    assert planning.versions(["attr", data.ON_F_N]) == {"attr": 1, "attr_non_informative": 1}
