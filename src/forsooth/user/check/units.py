"""Unit tests for explanations: networks with weights set by hand, where the right answer is known exactly."""

import torch
from torch import Tensor

from forsooth.models.constructed import Unit, on_images
from forsooth.models.specimens import Specimen
from forsooth.records import Method
from forsooth.user.check.evidence import Trial
from forsooth.user.check.verdicts import Verdict

ALIKE = 0.9  # cosine between a map and the right answer from which it counts as right, with room for methods that draw
BY_HAND = "weights by hand"  # stands in the column `input`


def forms_of(unit: Unit) -> list[Unit]:
    """A unit in all forms in which it can be asked: of a table, also of images, for methods that read only these."""
    if unit.x.ndim > 2:
        return [unit]
    return [unit, on_images(unit)]


def specimen_of(unit: Unit, device: str) -> Specimen:
    """A unit as what a method is called on; the background is zeros, which is what absent means."""
    absent = torch.zeros_like(unit.x).repeat(3, *[1] * (unit.x.ndim - 1)).to(device)
    return Specimen(
        name=unit.name,
        model=unit.model.to(device),
        x=unit.x.to(device),
        target=unit.target.to(device),
        background=absent,
        fit=absent,
        layer=None,
        samples=torch.arange(len(unit.x)),
    )


def judged(method: Method, unit: Unit, trial: Trial) -> Verdict:
    """Whether every map points where the right answer does: along the contributions, or along the derivative."""
    if trial.maps is None:
        return Verdict("refused", trial.message)
    best = 0.0
    for answer in (unit.truth, unit.slope):
        if answer is not None:
            best = max(best, alike(trial.maps.cpu(), answer, signed=method.signed))
    if best >= ALIKE:
        return Verdict("pass")
    return Verdict("fail", f"{unit.purpose} Cosine with the right answer: {best:.2f}")


def alike(maps: Tensor, answer: Tensor, *, signed: bool) -> float:
    """The least cosine over all inputs between maps (n, *shape) and answers; of magnitudes where none has a sign."""
    ours = maps.double().flatten(1)
    right = answer.double().flatten(1)
    if not signed or bool((ours >= 0).all()):
        right = right.abs()
    return float(torch.cosine_similarity(ours, right, dim=1).nan_to_num(0).min())
