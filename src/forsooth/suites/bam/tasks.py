"""The tasks of the BAM suite: train, verify, patch, ask TCAV. Arguments are plain values; results are cells.

No picture is stored but the patched ones: a task makes its images again from their recipe.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.attributions import concepts
from forsooth.engine import known_as
from forsooth.models import MODELS, train, weights
from forsooth.models.recipes import Recipe
from forsooth.names import find
from forsooth.records import Cell
from forsooth.scores.functionless import Search, functionless
from forsooth.seeds import generator
from forsooth.suites import choose
from forsooth.suites.bam import data as worlds
from forsooth.suites.bias import data as sources
from forsooth.suites.networks import IMAGENET_MEAN as MEAN
from forsooth.suites.networks import IMAGENET_SPREAD as SPREAD

AT_ONCE = 256  # images in one forward
ENDS = (".safetensors", ".npz")
RARE = 0.05  # share of a network's own test set that is as unsure as what is called unfamiliar
Values = Mapping[str, Any]


@known_as("bam.train")
def train_network(
    *,
    world: Values,
    sizes: Values,
    net: Values,
    arch: str,
    recipe: dict[str, Any],
    given: Values | None,
    start: Values | None,
    about: Values,
    seed: int,
    device: str,
) -> Cell:
    """One network, trained or read from a file of weights.

    net    name, k, label and shown: the labels and the set on which it is trained
    given  path and digest of its weights; None: it is trained
    start  path and digest of the weights that all layers but the last begin with; None: they are drawn
    """
    data = worlds.dataset(world, sizes, net)
    classes, side = len(data.y.unique()), data.x.shape[-1]

    def build() -> nn.Module:
        return find(arch, MODELS, argument="models").function(size=side, classes=classes)

    scaled = dataclasses.replace(data, x=data.x.sub_(_column(MEAN)).div_(_column(SPREAD)))  # in place: it is large
    facts: dict[str, Any] = {"name": net["name"], "net": dict(net), "arch": arch, "classes": classes, "side": side}
    if given is None:
        begin = None if start is None else start["path"]
        trained = train.fit(build, scaled, Recipe(**recipe), seed=seed, device=device, start=begin)
        module, facts["epochs"] = trained.module.cpu(), trained.epochs
    else:
        module = weights.load(build(), given["path"]).eval()
    test = data.splits["test"]
    right = float((predicted(module.to(device), scaled.x[test].to(device)).cpu() == data.y[test]).double().mean())
    passed = right >= recipe["gate"]
    told = "" if passed else f"accuracy {right:.1%}, below the gate of {recipe['gate']:.0%}"
    if told and net["label"] == "object" and not world["same_objects"]:
        told += "; with some hundred cut-outs `--set same_objects=true` makes it easier"
    row = {**about, "part": "training", "dataset": data.name, "net": net["name"], "k": net["k"], "method": ""}
    row |= {"metric": "accuracy", "sample": -1, "value": right, "status": "ok" if passed else "below gate"}
    state = {name: value.cpu() for name, value in module.state_dict().items()}
    facts |= {"passed": passed, "accuracy": right, "said": worlds.said(world)}
    return Cell(rows=({**row, "message": told},), tensors=state, facts=facts)


def weights_of(folder: str | None, name: str) -> dict[str, str] | None:
    """The file of a network's weights in the folder, by its name: f_o.safetensors, f_s_0.1.npz …"""
    for end in ENDS if folder is not None else ():
        if (Path(str(folder)) / f"{name}{end}").is_file():
            return file_of(str(Path(str(folder)) / f"{name}{end}"), argument="weights")
    return None


def file_of(path: str | None, *, argument: str) -> dict[str, str] | None:
    """A file of weights as plain values that change with it; None: there is none."""
    if path is None:
        return None
    weights.read(path, argument=argument)  # what cannot be read is told before any work
    return {"path": path, "digest": sources.digest(path)}


def wrapped(cell: Cell, *, device: str) -> nn.Sequential:
    """The network for images in [0, 1]: it is normalised by a convolution in front, which every method can read."""
    facts = cell.facts
    module = find(facts["arch"], MODELS, argument="models").function(size=facts["side"], classes=facts["classes"])
    module.load_state_dict(dict(cell.tensors))
    scale = nn.Conv2d(3, 3, 1, groups=3)
    scale.load_state_dict({"weight": 1 / _column(SPREAD)[:, None], "bias": -torch.tensor(MEAN) / torch.tensor(SPREAD)})
    return nn.Sequential(scale, module).eval().requires_grad_(False).to(device)


def _column(values: tuple[float, ...]) -> Tensor:
    return torch.tensor(values)[:, None, None]


@torch.no_grad()
def probabilities(model: nn.Module, x: Tensor) -> Tensor:
    """(n, classes)"""
    return chunks.over(lambda part: model(part).softmax(1), x, size=AT_ONCE)


def predicted(model: nn.Module, x: Tensor) -> Tensor:
    """(n,) the class of the largest output."""
    return probabilities(model, x).argmax(1)


@known_as("bam.verify")
def verify(*trained: Cell, world: Values, sizes: Values, about: Values, device: str) -> Cell:
    """The table of Fig. 2: what becomes of accuracy and confidence without the common feature, or with it alone."""
    rows: list[dict[str, Any]] = []
    pairs = worlds.images(world, sizes, None, count=None)
    for cell in trained:
        net = cell.facts["net"]
        fine = net["k"] is not None
        seen = worlds.images(world, sizes, net["k"], count=None, first_only=True) if fine else pairs
        label = seen.kind if net["label"] == "object" else seen.scene
        rows += _verified(wrapped(cell, device=device), cell, seen, label, device)
    shared = {**about, "part": "verification", "method": "", "sample": -1, "dataset": "pasted"}
    made = [{**shared, **row} for row in rows]
    return Cell(rows=tuple(made), facts={"said": warned(made)})


def _verified(model: nn.Module, cell: Cell, seen: worlds.Images, label: Tensor, device: str) -> list[dict[str, Any]]:
    net = cell.facts["net"]
    shows = ("os", "s") if net["k"] is not None else ("os", "s", "og")
    found = {shown: probabilities(model, getattr(seen, shown).to(device)).cpu() for shown in shows}
    right = {shown: p.argmax(1) == label for shown, p in found.items()}
    sure = {shown: p.gather(1, label[:, None])[:, 0] for shown, p in found.items()}
    unsure = found[net["shown"]].amax(1).double().quantile(RARE)
    here = {"net": cell.facts["name"], "k": net["k"], "n": len(label)}
    rows: list[dict[str, Any]] = []
    for shown in shows:
        rows.append({**here, "shown": shown, "metric": "accuracy", "value": right[shown].double().mean().item()})
        strange = (found[shown].amax(1) < unsure).double().mean().item()
        rows.append({**here, "shown": shown, "metric": "unfamiliar", "value": strange})
    if net["k"] is not None:
        drop = (right["os"].sum() - right["s"].sum()).item() / len(label)  # counted, so that equal drops are equal
        return [*rows, {**here, "shown": "s", "metric": "drop", "value": drop}]
    without = "og" if net["label"] == "object" else "s"
    if net["shown"] == "os" and bool(right["os"].any()):
        own = right["os"]
        risen = (sure[without] > sure["os"])[own].double().mean().item()
        rows.append({**here, "shown": without, "metric": "confidence_rises", "value": risen, "n": int(own.sum())})
    return rows


def warned(rows: Sequence[Values]) -> list[str]:
    """A sentence on sets that a network has not seen in training, and is more unsure of than of its own."""
    strange = [row for row in rows if row["metric"] == "unfamiliar" and row["value"] > 3 * RARE]
    if not strange:
        return []
    told = ", ".join(f"{row['net']} on X_{row['shown']} ({row['value']:.0%})" for row in strange)
    return [
        f"Out of distribution: these networks are as unsure as of their strangest {RARE:.0%} test images on more than "
        f"{3 * RARE:.0%} of a set they were not trained on, so that a drop there is not due to the missing pixels "
        f"alone: {told}."
    ]


@known_as("bam.patches")
def find_patches(
    trained: Cell, *, world: Values, sizes: Values, search: dict[str, Any], count: int, about: Values, device: str
) -> Cell:
    """Scenes with a functionless patch that begins as the common feature, for f_∅."""
    seen = worlds.images(world, sizes, 1.0, count=count)
    model = wrapped(trained, device=device)
    done = functionless(
        model, seen.s.to(device), seen.mask.to(device), start=seen.os.to(device), search=Search(**search)
    )
    found = done.found()
    rows = []
    shared = {**about, "part": "patches", "method": "", "dataset": "pasted", "net": trained.facts["name"]}
    for name, values in (("ratio", done.ratio), ("change", done.change), ("found", found.double())):
        told = zip(seen.rows.tolist(), values.tolist(), strict=True)
        rows += [{**shared, "metric": name, "sample": sample, "value": value} for sample, value in told]
    share = found.double().mean().item()
    said = [
        f"Functionless patches: found for {share:.0%} of {len(found)} scenes (outputs of {shared['net']} differ by "
        "less than 5 % of their length, and the pixels by at least 10 % of their range on average)."
    ]
    tensors = {"x": done.x.cpu(), "found": found.cpu().to(torch.uint8)}
    return Cell(rows=tuple(rows), tensors=tensors, facts={"said": said, "found": share})


@known_as("bam.tcav")
def ask_tcav(*trained: Cell, world: Values, sizes: Values, ask: dict[str, Any], about: Values) -> Cell:
    """TCAV of the common feature in every network, and the contrasts between networks.

    ask  examples (of the concept, and of every random set), sets, count (inputs), level, settings, seed, device
    """
    here, device = worlds.world(world), ask["device"]
    everywhere, first = (worlds.images(world, sizes, 1.0, count=ask["count"], first_only=own) for own in (False, True))
    concept, others = _examples(world, sizes, ask)
    found: dict[str, Asked] = {}
    for cell in trained:
        net, model = cell.facts["net"], wrapped(cell, device=device)
        seen = first if net["k"] is not None else everywhere
        label = torch.full_like(seen.scene, here.feature) if net["label"] == "object" else seen.scene
        tests = concepts.tcav(
            model,
            (seen.os.to(device), label.to(device)),
            (concept.to(device), [one.to(device) for one in others]),
            layers=layers_of(model),
            generator=generator(ask["seed"], "tcav", cell.facts["name"]),
            settings=concepts.Settings(**ask["settings"]),
        )
        passed = [test for test in tests if test.p <= ask["level"]]
        chance = float(torch.tensor([t.random_scores.mean() for t in passed or tests]).mean())
        score = concepts.averaged(tests, level=ask["level"])
        inputs, sets = (part.tolist() for part in concepts.parted(tests, level=ask["level"]))
        told = f"{len(passed)} of {len(tests)} layers pass p <= {ask['level']} ({_layers(tests, ask['level'])})"
        found[cell.facts["name"]] = Asked(score, chance, inputs, sets, seen.rows.tolist(), told)
    return Cell(rows=tuple(_contrasts(trained, found, {**about, "dataset": "pasted"})))


def _layers(tests: Sequence[concepts.LayerTest], level: float) -> str:
    """The score of each layer, in brackets where it does not pass the test."""
    told = []
    for test in tests:
        score = f"{test.layer.removeprefix('1.')} {test.scores.mean():.2f}"
        told.append(score if test.p <= level else f"[{score}]")
    return ", ".join(told)


class Asked(NamedTuple):
    """TCAV of one network, the mean over the layers that pass the test.

    score, chance  of the concept, nan where no layer passes; and of random concepts
    inputs, sets   the score by input and by random set, which have its mean; empty where no layer passes
    rows           numbers of the inputs
    """

    score: float
    chance: float
    inputs: list[float]
    sets: list[float]
    rows: list[int]
    told: str


def _examples(world: Values, sizes: Values, ask: Values) -> tuple[Tensor, list[Tensor]]:
    """Images with the common feature (k, 3, h, w), and random sets of scenes without, from the training split."""
    here, pastes = worlds.world(world), worlds.table(world, sizes, 1.0)
    rows = pastes.splits["train"]
    scene = here.scenes.y[pastes.scene[rows]]
    sets = [
        rows[choose.evenly(scene, ask["examples"], seed=ask["seed"], role=f"examples {number}")]
        for number in range(ask["sets"] + 1)
    ]
    shown = [
        worlds.rendered(pastes, here.scenes.x, here.cutouts, rows=own, shown="s" if i else "os")[0]
        for i, own in enumerate(sets)
    ]
    return shown[0], shown[1:]


def layers_of(model: nn.Sequential) -> list[str]:
    """The blocks and the logits, as in appendix F."""
    names = [name for name, _ in model[1].named_children()]
    return [f"1.{name}" for name in names if name.startswith("layer")] + [f"1.{names[-1]}"]


def _contrasts(trained: Sequence[Cell], found: Mapping[str, Asked], shared: Values) -> list[dict[str, Any]]:
    """f_o against f_s, and every f_{s,k} against f_{s,1.0}: for the concept, and for random concepts.

    Then the concept's contrast again by input and by random set, since both are chance.
    """
    ks = {cell.facts["net"]["k"]: cell.facts["name"] for cell in trained if cell.facts["net"]["k"] is not None}
    pairs = [("f_o", "f_s", None)] + [(name, ks[1.0], k) for k, name in ks.items() if 1.0 in ks]
    rows = []
    for one, two, k in pairs:
        if one not in found or two not in found:
            continue
        first, second = found[one], found[two]
        here = {**shared, "method": "tcav", "metric": "mcs", "comparison": f"{one}/{two}", "k": k}
        why = f"{one}: {first.told}; {two}: {second.told}"
        rows += _lines({**here, "part": "concepts", "mask": "object"}, [-1], [first.score], [second.score], why)
        rows += _lines({**here, "part": "concepts", "mask": "random"}, [-1], [first.chance], [second.chance], why)
        if first.sets and second.sets:
            here["mask"] = "object"
            rows += _lines({**here, "part": "concept_inputs"}, first.rows, first.inputs, second.inputs)
            rows += _lines({**here, "part": "concept_sets"}, range(len(first.sets)), first.sets, second.sets)
    return rows


def _lines(
    shared: Values, samples: Sequence[int], first: Sequence[float], second: Sequence[float], why: str = ""
) -> list[dict[str, Any]]:
    """One row per sample, with both sides and their difference."""
    rows = []
    for sample, one, two in zip(samples, first, second, strict=True):
        value = one - two
        told = {"status": "ok" if value == value else "undefined", "message": why}
        rows.append({**shared, **told, "sample": sample, "value": value, "first": one, "second": two})
    return rows
