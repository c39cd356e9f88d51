"""A method asked about one network and one set of images, and what it says as saliency in [0, 1]."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from forsooth import models
from forsooth.records import BROKEN, TOLERANCE, Cell, Status
from forsooth.scores.contrast import reduced
from forsooth.seeds import derive
from forsooth.suites import explain, networks
from forsooth.suites.bam import data
from forsooth.suites.bam.data import DataSpec, Images
from forsooth.suites.bam.specs import Ask
from forsooth.suites.bam.tasks import explained_network, facts_of
from forsooth.suites.choose import SHOWN

BACKGROUND = 100  # training images that stand for the background, and are fitted on


@dataclass(frozen=True)
class Side:
    """What a method says of one network and one set of images.

    saliency  (n, h, w) in [0, 1], nan where there is none
    correct   (n,) bool, X_corr
    status    (n,) "ok", that the method's promise is broken, or why there is no saliency
    """

    name: str
    saliency: Tensor
    correct: Tensor
    status: tuple[Status, ...]
    message: str = ""


class Note(NamedTuple):
    """What is kept of one question.

    maps       (k, 3, h, w), the first few; None: the method gave no maps
    gap        (n,) how far maps are from the sum that they promise; None: they promise nothing
    leftovers  sentences for the page on what the method left behind
    """

    maps: Tensor | None
    gap: Tensor | None
    leftovers: tuple[str, ...] = ()


NOTHING = Note(None, None)


@dataclass(frozen=True)
class SaliencyProbe:
    """A method and all that it is asked with.

    nets   name -> trained network
    notes  network and set -> what is kept of the question
    """

    ask: Ask
    spec: DataSpec
    nets: Mapping[str, Cell]
    notes: dict[str, Note] = field(default_factory=dict)

    def side(self, name: str, seen: Images, x: Tensor, *, which: str) -> Side:
        """Saliency of the class that the network `name` predicts for x (n, 3, h, w), one of the states of `seen`.

        Each network, set (`which`) and image, by its row, has draws of its own.
        """
        question = self.question(name, seen, x, which=which)
        correct = question.target.cpu() == data.labels_of(facts_of(self.nets[name]).net, seen)
        answer = explain.attribute(self.ask.method, question)
        maps = answer.tensors.get("maps")
        gap = explain.gaps(answer)
        shown = None if maps is None else maps[:SHOWN]
        self.notes[f"{name} {which}"] = Note(shown, gap, tuple(answer.facts.get("said", ())))
        if maps is None:
            nothing = torch.full_like(seen.mask, torch.nan, dtype=torch.float32)
            states = (answer.facts["status"],) * len(x)
            return Side(name, nothing, correct, states, answer.facts["message"])
        saliency = reduced(maps, percentile=self.ask.percentile, lowest=self.ask.lowest)
        return Side(name, saliency, correct, map_states(maps, saliency, gap))

    def question(self, name: str, seen: Images, x: Tensor, *, which: str) -> explain.Question:
        device = self.ask.device
        facts = facts_of(self.nets[name])
        model = explained_network(self.nets[name], device=device)
        background = data.background(self.spec, facts.net, count=BACKGROUND)[1].to(device)
        x = x.to(device)
        return explain.Question(
            model=model,
            x=x,
            target=networks.predicted(model, x),
            background=background,
            fit=background,
            truth=seen.mask.to(device),
            layer=networks.inside(models.architecture(facts.arch).layer, "1"),
            seed=derive(self.ask.seed, name, which),
            samples=seen.rows,
        )


def map_states(maps: Tensor, saliency: Tensor, gap: Tensor | None) -> tuple[Status, ...]:
    """What is the matter with each map. maps (n, c, h, w), saliency (n, h, w), gap (n,) or None"""
    if gap is None:
        gap = torch.zeros(len(maps))
    return tuple(map(map_state, maps, saliency, gap))


def map_state(one: Tensor, saliency: Tensor, gap: Tensor) -> Status:
    """What is the matter with one map (c, h, w), whose saliency is (h, w) and whose promise is missed by `gap` ()."""
    if not bool(one.isfinite().all()):
        return "not finite"
    if not bool((one > 0).any()):
        return "zero map"  # nothing positive: there is nothing to scale
    if bool(saliency.isnan().any()):
        return "undefined"
    if float(gap) > TOLERANCE:
        return BROKEN
    return "ok"
