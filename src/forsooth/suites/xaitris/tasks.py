"""The tasks of XAI-TRIS: train a network, make maps, score them. Arguments are plain values; results are cells."""

import functools
import json
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import seeds
from forsooth.datasets import folders
from forsooth.datasets.settings import Setting, Variant
from forsooth.datasets.tetromino import tetromino
from forsooth.engine import known_as
from forsooth.models import MODELS, train
from forsooth.models.recipes import Recipe
from forsooth.names import find
from forsooth.records import Cell, Dataset
from forsooth.scores import METRICS
from forsooth.suites import choose, explain

BACKGROUND_IMAGES = 100  # training images given to methods as references
FIT_IMAGES = 2_000  # training images given to methods that fit patterns


def data(panel: dict[str, Any]) -> Dataset:
    """The panel's dataset, made again from its recipe; the last two are kept, since tasks come in their order."""
    return _data(json.dumps(panel, sort_keys=True))


@functools.lru_cache(maxsize=2)
def _data(text: str) -> Dataset:
    panel = json.loads(text)
    setting = Setting(**{**panel["setting"], "variant": Variant(**panel["setting"]["variant"])})
    path = panel["photos"] and panel["photos"]["path"]
    photos = folders.photographs(path, side=folders.photo_side(setting.size)) if path else None
    return tetromino(setting, seed=panel["seed"], photos=photos)


def factors(panel: dict[str, Any]) -> dict[str, Any]:
    """The panel's columns. Generated stand-ins for photographs carry that in their name, in every table."""
    setting = panel["setting"]
    found = {name: setting[name] for name in ("size", "scenario", "background", "alpha")}
    stands_in = setting["background"] == "IMAGENET" and not panel["photos"]["path"]
    return {**found, "background": "IMAGENET (dead leaves)"} if stands_in else found


def title(panel: dict[str, Any]) -> str:
    setting = panel["setting"]
    return f"{setting['scenario']}-{setting['background']} {setting['size']}×{setting['size']}"


@known_as("xaitris.train")
def train_network(
    *,
    panel: dict[str, Any],
    net: dict[str, Any],
    recipe: dict[str, Any],
    model_seed: int,
    seed: int,
    device: str,
    part: str,
) -> Cell:
    """One training. The cell holds the weights and which test images the network gets right."""
    dataset, size = data(panel), panel["setting"]["size"]
    trained = train.fit(lambda: _untrained(net, size), dataset, Recipe(**recipe), seed=seed, device=device)
    correct = _correct(trained.module, dataset, device)
    row = {
        **factors(panel),
        "suite": "xaitris",
        "part": part,
        "dataset": "tetromino",
        "model": net["name"],
        "model_seed": model_seed,
        "method": "",
        "metric": "accuracy",
        "sample": -1,
        "value": trained.test_accuracy,
        "status": "ok" if trained.passed else "below gate",
        "message": ""
        if trained.passed
        else f"accuracy {trained.test_accuracy:.1%}, below the gate of {recipe['gate']:.0%}",
    }
    facts = {
        "passed": trained.passed,
        "epochs": trained.epochs,
        "restarts": trained.restarts,
        "attempts": list(trained.attempts),
        "net": net,
        "train_mode": recipe["evaluate_in_train_mode"],
        "said": _said(dataset),
    }
    weights = {} if part == "sweep" else {f"net.{k}": v for k, v in trained.module.state_dict().items()}
    return Cell(rows=(row,), tensors={**weights, "correct": correct}, facts=facts)


@known_as("xaitris.show")
def show(*trained: Cell, panel: dict[str, Any], samples: int | None, sampling_seed: int) -> Cell:
    """The image whose maps are shown, its truth, and how many images of each kind take part in the panel."""
    dataset = data(panel)
    chosen = explained(trained, dataset, samples, seed=sampling_seed)
    if not len(chosen):
        return Cell()
    rows = {"explained": chosen, **references(dataset, seed=sampling_seed)}
    drawn = [line for role in rows for line in counts(dataset, rows[role], role=role, where=factors(panel))]
    i = int(chosen[0])
    assert dataset.truth is not None
    shared = {**factors(panel), "model": "none", "method": "", "label": int(dataset.y[i])}
    pictures = [{**shared, "tensor": kind, "kind": kind} for kind in ("input", "truth")]
    tensors = {"input": dataset.x[i].sum(0), "truth": dataset.truth[i].float()}
    return Cell(tensors=tensors, facts={"pictures": pictures, "drawn": drawn})


@known_as("xaitris.explain")
def attribute(
    *trained: Cell,
    panel: dict[str, Any],
    index: int,
    method: str,
    version: int,
    code: str,
    samples: int | None,
    output: str,
    softmax: str,
    seed: int,
    sampling_seed: int,
    device: str,
) -> Cell:
    """The maps of one method for one network (index -1: a method that ignores it) over the test images all get right.

    `version` and `code` are here to change the key when the method changes. `sampling_seed` is one for the whole run:
    every method and network of a panel explains the same images with the same references. `softmax` is "rule" (each
    method's own, or it refuses) or "gradient": DeepLIFT and LRP pass a softmax by the plain gradient, as the published
    maps did.
    """
    dataset = data(panel)
    if index >= 0 and not trained[index].facts["passed"]:
        return Cell(facts={"status": "below gate", "message": "the network is below its gate: not explained"})
    chosen = explained(trained, dataset, samples, seed=sampling_seed)
    if not len(chosen):
        return Cell(facts={"status": "no sample", "message": "no test image is predicted correctly by every network"})
    network = trained[index] if index >= 0 else None
    asked = question(network, panel, chosen, output=output, seed=seed, sampling_seed=sampling_seed, device=device)
    if softmax == "gradient":
        asked = replace(asked, game={"softmax": softmax})
    cell = explain.attribute(method, asked)
    return Cell(tensors={**cell.tensors, "samples": chosen}, facts=cell.facts)


def question(
    network: Cell | None,
    panel: dict[str, Any],
    chosen: Tensor,
    *,
    output: str,
    seed: int,
    sampling_seed: int,
    device: str,
) -> explain.Question:
    """What a method is asked of a trained network (None: of none, for methods that ignore it) on chosen images (k,)."""
    dataset = data(panel)
    model, layer = (nn.Identity(), None) if network is None else _model(network, panel, output, device)
    images = {role: dataset.x[rows].to(device) for role, rows in references(dataset, seed=sampling_seed).items()}
    assert dataset.truth is not None
    return explain.Question(
        model=model,
        x=dataset.x[chosen].to(device),
        target=dataset.y[chosen].to(device),
        background=images["background"],
        fit=images["fit"],
        truth=dataset.truth[chosen].to(device),
        layer=layer,
        seed=seed,
        samples=chosen,
    )


def explained(trained: tuple[Cell, ...], dataset: Dataset, samples: int | None, *, seed: int) -> Tensor:
    """Test images that every network above its gate gets right, at most `samples`, as many of each kind. (k,)"""
    gated = [cell.tensors["correct"] for cell in trained if cell.facts["passed"]]
    if not gated:
        return torch.empty(0, dtype=torch.int64)
    right = dataset.splits["test"][torch.stack(gated).all(0)]
    return choose.rows_of(dataset, right, samples, seed=seed, role="explained")


def references(dataset: Dataset, *, seed: int) -> dict[str, Tensor]:
    """Training images that methods are given, drawn for each role on its own. role -> (k,)"""
    wanted = {"background": BACKGROUND_IMAGES, "fit": FIT_IMAGES}
    there = dataset.splits["train"]
    return {role: choose.rows_of(dataset, there, wanted[role], seed=seed, role=role) for role in wanted}


def counts(dataset: Dataset, rows: Tensor, *, role: str, where: dict[str, Any]) -> list[dict[str, Any]]:
    """How many of the rows (k,) are of each kind, by name."""
    assert dataset.strata is not None
    return choose.classes_of(dataset.strata[rows], role=role, names=dataset.facts["kinds"], where=where)


@known_as("xaitris.score")
def score(made: Cell, *, panel: dict[str, Any], about: dict[str, Any], method: str, metrics: dict[str, int]) -> Cell:
    """Rows of every metric for the maps of one cell, and the maps that the page shows."""
    shared = {**about, "suite": "xaitris", "part": "scores", "dataset": "tetromino", "method": method}
    told = {"status": made.facts["status"], "message": made.facts["message"]}
    if "maps" not in made.tensors:
        samples = made.tensors["samples"].tolist() if "samples" in made.tensors else [-1]
        rows = [
            {**shared, **told, "metric": name, "sample": sample, "value": float("nan")}
            for name in metrics
            for sample in samples
        ]
        return Cell(rows=tuple(rows), facts={"failed": True} if made.facts.get("failed") else {})
    dataset, chosen, maps = data(panel), made.tensors["samples"], made.tensors["maps"]
    assert dataset.truth is not None
    flat = maps.abs().sum(1)  # the papers score |s|; one channel here, so the sum changes nothing
    judged = [find(name, METRICS, argument="metrics") for name in metrics]
    rows = explain.score(flat, {"truth": dataset.truth[chosen]}, judged, chosen.tolist())
    rows = explain.with_gaps(rows, explain.gaps(made), chosen.tolist())
    pictures = [{**about, "method": method, "tensor": "example", "kind": "example", "label": int(dataset.y[chosen[0]])}]
    if about["scenario"] != "RIGID":  # nothing stays in its place there, so a mean map shows nothing
        pictures.append({**about, "method": method, "tensor": "global", "kind": "global"})
    return Cell(
        rows=tuple({**shared, **row} for row in rows),
        tensors={"example": flat[0], "global": flat.nan_to_num(0.0, 0.0, 0.0).mean(0)},
        facts={"pictures": pictures},
    )


def _said(dataset: Dataset) -> list[str]:
    """Sentences on the backgrounds that a reader of the results must know."""
    if dataset.facts["background"] != "IMAGENET":
        return []
    said = [f"IMAGENET backgrounds are {dataset.facts['background_from']}."]
    broken = dataset.facts["unreadable"]
    return [*said, f"{len(broken)} image files could not be used: {'; '.join(broken[:5])}."] if broken else said


def _untrained(net: dict[str, Any], size: int) -> nn.Module:
    return find(net["name"], MODELS, argument="models").function(size=size, variant=net["variant"])


def _model(cell: Cell, panel: dict[str, Any], output: str, device: str) -> tuple[nn.Module, str | None]:
    """The trained network as it is explained, and the name of its last convolution."""
    net = cell.facts["net"]
    module = _untrained(net, panel["setting"]["size"])
    module.load_state_dict({name[4:]: value for name, value in cell.tensors.items() if name.startswith("net.")})
    module.train(cell.facts["train_mode"]).requires_grad_(False).to(device)
    layer = find(net["name"], MODELS, argument="models").layer
    if output == "logits":
        return module, layer
    whole = nn.Sequential(module, nn.Softmax(1))
    return whole.train(cell.facts["train_mode"]), None if layer is None else f"0.{layer}"


@torch.no_grad()
def _correct(module: nn.Module, dataset: Dataset, device: str) -> Tensor:
    """Which images of the test split the network predicts correctly. (k,) bool"""
    test = dataset.splits["test"]
    with explain.lent_randomness(seeds.derive(0, "dropout")):
        predicted = torch.cat([module(dataset.x[part].to(device)).argmax(1).cpu() for part in test.split(512)])
    return predicted == dataset.y[test]
