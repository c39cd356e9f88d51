"""The one way to keep a trained network in a cell, to judge it by its gate, and to load it as it is explained."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.models.gates import below_gate
from forsooth.records import Cell, Dataset, Facts, Row, Tensors

NOT_EXPLAINED = "the network is below its gate: not explained"
BELOW_GATE = {"status": "below gate", "message": NOT_EXPLAINED}
AT_ONCE = 256  # images in one forward


@dataclass(frozen=True)
class NetSpec:
    """A network to train: its architecture, the version of that, and its variant: a size, or as printed or released."""

    name: str
    version: int
    variant: str


def accuracy_row(template: Row, accuracy: float, *, gate: float, passed: bool | None = None) -> Row:
    """The row of a training: its test accuracy, and whether it is enough to be explained.

    passed  whether it is; by default whether the accuracy reaches the gate
    """
    row = template.having(method="", metric="accuracy", sample=-1, value=accuracy)
    if accuracy >= gate if passed is None else passed:
        return row
    return row.having(status="below gate", message=below_gate(accuracy, gate))


def refusal(passed: Sequence[bool], index: int) -> Facts:
    """Status and message where nobody is explained; empty where somebody is.

    passed  of each network of a panel whether it counts
    index   of the network that is asked about; -1: a null is, which has nothing to be compared with where none counts
    """
    if index >= 0 and not passed[index]:
        return BELOW_GATE
    if not any(passed):
        return {"status": "no model", "message": NOT_EXPLAINED}
    return {}


def weights_of(module: nn.Module, prefix: str = "") -> Tensors:
    """The tensors of a cell that keeps the network."""
    return {f"{prefix}{name}": value for name, value in module.state_dict().items()}


def loaded(module: nn.Module, tensors: Tensors, *, device: str, prefix: str = "") -> nn.Module:
    """The network with the weights that a cell keeps under `prefix`, in eval mode and without gradients of weights."""
    own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    module.load_state_dict(own)
    return module.eval().requires_grad_(False).to(device)


def inside(layer: str | None, place: str) -> str | None:
    """The name of a layer of a network that became the part `place` of a larger module."""
    return None if layer is None else f"{place}.{layer}"


def with_output(module: nn.Module, layer: str | None, output: str) -> tuple[nn.Module, str | None]:
    """The network that gives logits or probabilities, and the name of its layer there."""
    if output == "logits":
        return module, layer
    return nn.Sequential(module, nn.Softmax(1)).train(module.training), inside(layer, "0")


def agreed(trained: Sequence[Cell], rows: Tensor) -> Tensor:
    """Those of the rows (n,) that every network above its gate gets right; none where none is above. (k,)

    trained  their cells: `correct` (m,) is of the first m rows
    """
    correct = [cell.tensors["correct"] for cell in trained if cell.facts["passed"]]
    if not correct:
        return rows[:0]
    return rows[: len(correct[0])][torch.stack(correct).all(0)]


@torch.no_grad()
def predicted(model: nn.Module, x: Tensor, *, size: int = AT_ONCE) -> Tensor:
    """The class of the largest output. (n,)"""
    return chunks.over(lambda part: model(part).argmax(1), x, size=size)


@torch.no_grad()
def correct(model: nn.Module, dataset: Dataset, rows: Tensor, *, device: str, size: int = AT_ONCE) -> Tensor:
    """Which of the rows (k,) of a dataset the network gets right. (k,) bool"""
    named = chunks.over(lambda part: model(dataset.x[part].to(device)).argmax(1).cpu(), rows, size=size)
    return named == dataset.y[rows]
