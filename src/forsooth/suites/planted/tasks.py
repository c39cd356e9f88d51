"""The tasks of the planted suite: plant, train, explain, score. Arguments are plain values; results are cells.

No picture is stored: a task makes its data again from their recipe, and scores its maps before it forgets them.
"""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.datasets.planted import luck
from forsooth.engine import known_as
from forsooth.models import MODELS, train
from forsooth.models.recipes import Recipe
from forsooth.names import find
from forsooth.records import Cell, Dataset
from forsooth.scores import METRICS
from forsooth.suites import choose, explain
from forsooth.suites.planted import data as plots

MEAN, SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as the paper normalises
BACKGROUND, FIT = 200, 500  # training images that stand for the background, and that are fitted on
AT_ONCE = 256  # images in one forward


@known_as("planted.train")
def train_network(
    *,
    plot: dict[str, Any],
    net: str,
    recipe: dict[str, Any],
    gate: dict[str, float],
    keep: bool,
    about: dict[str, Any],
    seed: int,
    device: str,
) -> Cell:
    """One training. The cell holds the weights and, if `keep`, those of the checkpoints on the way.

    gate  accuracy: the least; luck: the largest probability to be so good without the artefact
    """
    dataset = plots.data(plot)
    given = dataclasses.replace(dataset, x=(dataset.x - _column(MEAN)) / _column(SPREAD))
    trained = train.fit(lambda: untrained(net, dataset), given, Recipe(**recipe), seed=seed, device=device)
    row = verified(dataset, trained.test_accuracy, gate, {**about, "model": net})
    final = trained.module.state_dict()
    kept = [c for c in trained.checkpoints if keep and not all(torch.equal(c.state[k], v) for k, v in final.items())]
    states = [c.state for c in kept] + [final]
    right = [accuracy(wrapped(net, dataset, state, device=device), dataset, device) for state in states]
    epochs = [*(c.epoch for c in kept), trained.epochs]
    told = [{"epoch": epoch, "accuracy": value} for epoch, value in zip(epochs, right, strict=True)]
    facts = {
        "passed": row["status"] == "ok",
        "net": net,
        "states": told,
        "attempts": list(trained.attempts),
        "said": plots.said(plot),
    }
    tensors = {f"{k}.{name}": value for k, state in enumerate(states) for name, value in state.items()}
    return Cell(rows=(row,), tensors=tensors, facts=facts)


def verified(dataset: Dataset, found: float, gate: Mapping[str, float], about: Mapping[str, Any]) -> dict[str, Any]:
    """The row of a training whose test accuracy is `found`; its status says whether the model uses the artefact."""
    p_star = dataset.facts["p_star"]
    chance = luck(found, len(dataset.splits["test"]), p_star)
    reason = why_not(found, chance, p_star=p_star, gate=gate)
    told = {"value": found, "status": "below gate" if reason else "ok", "message": reason}
    return {
        **{**about, "suite": "planted", "dataset": dataset.facts["base"], "sample": -1, **told},
        **{"p_star": p_star, "luck": chance, "er": dataset.facts["er"], "metric": "accuracy", "method": ""},
    }


def why_not(found: float, chance: float, *, p_star: float, gate: Mapping[str, float]) -> str:
    """Why a model of this accuracy proves nothing; empty if it counts.

    Where p* is 1 no accuracy can prove that the artefact is used: there a good model is enough.
    """
    if p_star < 1 and chance > gate["luck"]:
        return f"accuracy {found:.1%} is within luck of p* = {p_star:.0%}: it need not use the artefact"
    if found < gate["accuracy"]:
        return f"accuracy {found:.1%}, below the gate of {gate['accuracy']:.0%}"
    return ""


@known_as("planted.show")
def show(*, plot: dict[str, Any], about: dict[str, Any]) -> Cell:
    """An image with the artefact, one without, and the effective region."""
    dataset, tensors, pictures = plots.data(plot), {}, []
    assert dataset.truth is not None
    for presence, rows in plots.chosen(dataset, plot, samples=1).items():
        for row, (kind, of) in itertools.product(rows, (("input", dataset.x), ("truth", dataset.truth))):
            name = f"{kind} {presence}"
            tensors[name] = of[row].half()
            here = {**about, "model": "none", "method": "", "label": label(presence), "kind": kind}
            pictures.append({**here, "tensor": name})
    return Cell(tensors=tensors, facts={"pictures": pictures})


def label(presence: str) -> int:
    """The class of the images in the figure of examples: 1 has the artefact."""
    return int(presence == plots.PRESENCES[True])


@known_as("planted.explain")
def explain_network(
    *trained: Cell, plot: dict[str, Any], index: int, ask: dict[str, Any], about: dict[str, Any]
) -> Cell:
    """Rows of one method for one network (index -1: a method that ignores it), and the maps that the page shows.

    ask  method, version, code, seed, device; samples of each presence; presences; metrics (name -> version); output;
         every: all checkpoints, whatever their accuracy, and not only the network that passed; show: keep two maps
    """
    dataset, shared = plots.data(plot), {**about, "suite": "planted", "method": ask["method"]}
    groups = {k: v for k, v in plots.chosen(dataset, plot, samples=ask["samples"]).items() if k in ask["presences"]}
    shared["dataset"] = dataset.facts["base"]
    passed = [cell.facts["passed"] or ask["every"] for cell in trained]
    if not (passed[index] if index >= 0 else any(passed)):
        who = "below gate" if index >= 0 else "no sample"
        told = {"status": who, "message": "the network is below its gate: not explained"}
        return Cell(rows=tuple(unsaid(groups, ask, {**shared, **told}, whole=True)))
    states = trained[index].facts["states"] if index >= 0 else [{"epoch": -1, "accuracy": None}]
    rows: list[dict[str, Any]] = []
    maps, failed = None, False
    for k in range(0 if ask["every"] else len(states) - 1, len(states)):
        question = asked(trained[index] if index >= 0 else None, k, plot, groups, ask)
        made = explain.attribute(ask["method"], question)
        maps, failed = made.tensors.get("maps"), failed or bool(made.facts.get("failed"))
        here = {**shared, "epoch": states[k]["epoch"], "accuracy": states[k]["accuracy"]}
        if maps is None:
            rows += unsaid(groups, ask, {**here, **{n: made.facts[n] for n in ("status", "message")}}, whole=False)
        else:
            rows += judged(made.tensors, dataset, plot, groups, ask, here)
    tensors, pictures = map_pictures(maps, groups, {**about, "method": ask["method"]}) if ask["show"] else ({}, [])
    facts: dict[str, Any] = {"drawn": drawn(dataset, groups, about)}
    if pictures:
        facts["pictures"] = pictures
    if failed:
        facts["failed"] = True
    return Cell(rows=tuple(rows), tensors=tensors, facts=facts)


def drawn(dataset: Dataset, groups: Mapping[str, Tensor], about: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Who took part in each role, by class and presence, for the run to keep; of ranked panels alone."""
    if about["part"] != "scores":
        return []
    where = {name: about[name] for name in ("manipulation", "model_seed")}
    rows = {"explained": torch.cat(list(groups.values())), **learned_from(dataset)}
    return [line for role, own in rows.items() for line in plots.drawn(dataset, own, role=role, where=where)]


def learned_from(dataset: Dataset) -> dict[str, Tensor]:
    """Training images (k,) that stand for the background, and those that are fitted on: even over labels and kinds."""
    train, seed = dataset.splits["train"], dataset.facts["seed"]
    sizes = {"background": BACKGROUND, "fit": FIT}
    return {role: choose.rows_of(dataset, train, size, seed=seed, role=role) for role, size in sizes.items()}


def asked(
    cell: Cell | None, k: int, plot: Mapping[str, Any], groups: Mapping[str, Tensor], ask: Mapping[str, Any]
) -> explain.Question:
    """The question on state k of a network (None: there is none), for the class that it predicts."""
    dataset, device = plots.data(plot), ask["device"]
    if cell is None:
        return question(None, None, dataset, groups, ask)
    state = {name.partition(".")[2]: v for name, v in cell.tensors.items() if name.startswith(f"{k}.")}
    model = wrapped(cell.facts["net"], dataset, state, device=device, output=ask["output"])
    own = find(cell.facts["net"], MODELS, argument="models").layer
    return question(model, None if own is None else f"1.{own}", dataset, groups, ask)


def question(
    model: nn.Module | None, layer: str | None, dataset: Dataset, groups: Mapping[str, Tensor], ask: Mapping[str, Any]
) -> explain.Question:
    """What a method is asked of a model that takes the images of `dataset` (None: it looks at none)."""
    assert dataset.truth is not None
    device, rows = ask["device"], torch.cat(list(groups.values()))
    x, target = dataset.x[rows].to(device), dataset.y[rows].to(device)
    shown = {role: dataset.x[own].to(device) for role, own in learned_from(dataset).items()}
    return explain.Question(
        model=nn.Identity() if model is None else model,
        x=x,
        target=target if model is None else predicted(model, x),
        background=shown["background"],
        fit=shown["fit"],
        truth=dataset.truth[rows].to(device),
        layer=layer,
        seed=ask["seed"],
        samples=rows,
    )


def judged(
    made: Mapping[str, Tensor],
    dataset: Dataset,
    plot: Mapping[str, Any],
    groups: Mapping[str, Tensor],
    ask: Mapping[str, Any],
    shared: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """One row per image and metric. The channel sum of |map| is scored; `er` is the share of the scored region."""
    maps, samples = made["maps"], torch.cat(list(groups.values())).tolist()
    flat, rows = maps.abs().sum(1), []
    for name in ask["metrics"]:
        region = plots.region_of(name, dataset, plot)
        metric = find(name, METRICS, argument="metrics")
        found = explain.score(flat, {"truth": region.expand(len(flat), -1, -1)}, [metric], samples)
        rows += [{**row, "er": region.double().mean().item()} for row in found]
    if shared["part"] == "scores":
        rows = explain.with_gaps(rows, explain.gaps(Cell(tensors=made)), samples, er=None)
    presence = {int(sample): name for name, own in groups.items() for sample in own}
    return [in_part({**shared, **row, "presence": presence[row["sample"]]}) for row in rows]


def in_part(row: dict[str, Any]) -> dict[str, Any]:
    """Only images that have the artefact are ranked; the others are a part of their own."""
    ranked = row["part"] != "scores" or row["presence"] == plots.PRESENCES[True]
    return row if ranked else {**row, "part": "absence"}


def unsaid(
    groups: Mapping[str, Tensor], ask: Mapping[str, Any], shared: dict[str, Any], *, whole: bool
) -> list[dict[str, Any]]:
    """Rows without a value: one for each image, or one for all of them."""
    nothing = {**shared, "value": float("nan"), "er": None}
    return [
        in_part({**nothing, "presence": presence, "metric": metric, "sample": int(sample)})
        for presence, own in groups.items()
        for metric in ask["metrics"]
        for sample in ([-1] if whole else own)
    ]


def map_pictures(
    maps: Tensor | None, groups: Mapping[str, Tensor], about: dict[str, Any]
) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The first map of each presence, its largest value 1, so that half precision can hold it."""
    tensors, pictures, first = {}, [], 0
    for presence, rows in groups.items():
        if maps is not None and len(rows):
            flat = maps[first].abs().sum(0)
            tensors[presence] = (flat / flat.amax().clamp(min=1e-30)).half()
            pictures.append({**about, "tensor": presence, "kind": "example", "label": label(presence)})
        first += len(rows)
    return tensors, pictures


def untrained(net: str, dataset: Dataset) -> nn.Module:
    return find(net, MODELS, argument="models").function(size=dataset.x.shape[-1], classes=2)


def wrapped(
    net: str, dataset: Dataset, state: Mapping[str, Tensor], *, device: str, output: str = "logits"
) -> nn.Module:
    """The network for images in [0, 1]: it is normalised by a convolution in front, which every method can read."""
    module, scale = untrained(net, dataset), nn.Conv2d(3, 3, 1, groups=3)
    module.load_state_dict(dict(state))
    scale.load_state_dict({"weight": 1 / _column(SPREAD)[:, None], "bias": -torch.tensor(MEAN) / torch.tensor(SPREAD)})
    end = [nn.Softmax(1)] if output == "probabilities" else []
    return nn.Sequential(scale, module, *end).eval().requires_grad_(False).to(device)


@torch.no_grad()
def predicted(model: nn.Module, x: Tensor) -> Tensor:
    """(n,) the class of the largest output."""
    return chunks.over(lambda part: model(part).argmax(1), x, size=AT_ONCE)


def accuracy(model: nn.Module, dataset: Dataset, device: str) -> float:
    """The share of the test split that is predicted right."""
    test = dataset.splits["test"]
    return (predicted(model, dataset.x[test].to(device)).cpu() == dataset.y[test]).double().mean().item()


def _column(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values)[:, None, None]
