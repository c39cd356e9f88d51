"""A method asked about one network and one set: what it says, and what is the matter with it."""

from dataclasses import replace

import pytest
import torch
from suites.bam.small import spec_of, trained_facts
from suites.bam.test_specs import ASK

from forsooth.models import RESIDUAL_SMALL
from forsooth.plain import to_plain
from forsooth.records import BROKEN, Cell
from forsooth.scores.contrast import reduced
from forsooth.suites import networks
from forsooth.suites.bam import data, questions
from forsooth.suites.bam.plan import F_0, F_O, F_S
from forsooth.suites.bam.questions import SaliencyProbe, map_state, map_states


@pytest.fixture(scope="module")
def nets():
    """Three networks that nobody has trained."""
    torch.manual_seed(0)
    module = RESIDUAL_SMALL.function(size=32, classes=10)
    weights = networks.weights_of(module)
    return {net.name: Cell(tensors=weights, facts=to_plain(trained_facts(net))) for net in (F_O, F_S, F_0)}


def probe_of(nets, method: str) -> SaliencyProbe:
    return SaliencyProbe(replace(ASK, method=method), spec_of(), nets)


def test_a_side_is_the_reduced_map_of_the_predicted_class(nets):
    probe = probe_of(nets, "gradient")
    seen = data.images(probe.spec, None, count=4)
    side = probe.side("f_o", seen, seen.os, which="os")
    question = probe.question("f_o", seen, seen.os, which="os")
    x = seen.os.clone().requires_grad_()
    logits = question.model(x)
    (gradient,) = torch.autograd.grad(logits.amax(1).sum(), x)
    torch.testing.assert_close(side.saliency, reduced(gradient, percentile=99.0, lowest="zero"), atol=1e-4, rtol=1e-3)
    assert side.correct.tolist() == (logits.argmax(1) == seen.kind).tolist()
    assert side.status == ("ok",) * 4 and side.message == "" and side.name == "f_o"
    torch.testing.assert_close(probe.notes["f_o os"].maps, gradient, atol=1e-5, rtol=1e-3)


def test_correct_is_what_the_network_should_say(nets):
    probe = probe_of(nets, "constant")
    seen = data.images(probe.spec, None, count=5)
    predicted = probe.question("f_s", seen, seen.s, which="s").target
    assert probe.side("f_s", seen, seen.s, which="s").correct.tolist() == (predicted == seen.scene).tolist()


def test_a_question_has_the_background_and_the_layer_of_its_network(nets):
    probe = probe_of(nets, "grad_cam")
    seen = data.images(probe.spec, None, count=2)
    scenes, both = (probe.question(name, seen, seen.os, which="os") for name in ("f_0", "f_s"))
    assert scenes.layer == f"1.{RESIDUAL_SMALL.layer}" and torch.equal(scenes.samples, seen.rows)
    assert torch.equal(scenes.background, data.background(probe.spec, F_0, count=questions.BACKGROUND)[1])
    assert not torch.equal(scenes.background, both.background) and scenes.seed != both.seed


def test_draws_follow_the_network_and_the_set(nets):
    probe = probe_of(nets, "random")
    seen = data.images(probe.spec, None, count=3)
    one, same, other = (probe.side("f_s", seen, seen.os, which=which).saliency for which in ("a", "a", "b"))
    assert torch.equal(one, same) and not torch.equal(one, other)


def test_a_method_that_breaks_leaves_a_side_without_saliency(nets):
    probe = probe_of(nets, "own_methods:raises")
    seen = data.images(probe.spec, None, count=3)
    side = probe.side("f_s", seen, seen.os, which="os")
    assert side.saliency.isnan().all() and side.saliency.shape == (3, 32, 32)
    assert side.status == ("error",) * 3 and "no map today" in side.message
    assert probe.notes["f_s os"].maps is None


def test_a_promise_is_noted(nets):
    probe = probe_of(nets, "deep_lift")
    seen = data.images(probe.spec, None, count=3)
    probe.side("f_s", seen, seen.os, which="os")
    gap = probe.notes["f_s os"].gap
    assert gap is not None and gap.shape == (3,) and gap.max() < 1e-2


@pytest.mark.parametrize(
    "value, saliency_value, state",
    [
        (1.0, 0.5, "ok"),
        (float("nan"), 0.5, "not finite"),
        (float("inf"), 0.5, "not finite"),
        (0.0, 0.5, "zero map"),
        (-1.0, 0.5, "zero map"),
        (1.0, float("nan"), "undefined"),
    ],
)
def test_states_of_a_map(value, saliency_value, state):
    one = torch.zeros(3, 2, 2)
    one[0, 0, 0] = value
    assert map_state(one, torch.full((2, 2), saliency_value), torch.tensor(0.0)) == state


def test_a_broken_promise_is_the_state_of_a_map_that_has_a_score():
    maps = torch.ones(4, 3, 2, 2)
    maps[2] = 0
    gap = torch.tensor([0.01, 0.5, 0.5, float("nan")])
    assert map_states(maps, torch.ones(4, 2, 2), gap) == ("ok", BROKEN, "zero map", "ok")
    assert map_states(maps, torch.ones(4, 2, 2), None) == ("ok", "ok", "zero map", "ok")
