"""The task that asks a method: maps of two networks or of two inputs, and how much each gives to the object."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from forsooth.engine import known_as
from forsooth.models import MODELS
from forsooth.names import find
from forsooth.records import BROKEN, SCORED, Cell
from forsooth.scores import METRICS
from forsooth.scores.contrast import g_c, iir, random_masks, reduced
from forsooth.seeds import derive, generator
from forsooth.suites import explain
from forsooth.suites.bam import data as worlds
from forsooth.suites.bam import tasks as relative

BACKGROUND = 100  # training images that stand for the background, and are fitted on
Values = Mapping[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Side:
    """What a method says of one network and one set of images.

    saliency  (n, h, w) in [0, 1], nan where there is none
    right     (n,) bool, X_corr
    status    (n,) "ok", that the method's promise is broken, or why there is no saliency
    """

    name: str
    saliency: Tensor
    right: Tensor
    status: tuple[str, ...]
    message: str = ""


@dataclass(frozen=True)
class Asker:
    """A method and all that it is asked with.

    ask   method, version, code, samples, fine, robust, placings, trials, percentile, lowest, zero, seed, device
    nets  name -> trained network
    gaps  network and images -> (n,) how far the maps are from the sum that the method promises
    """

    ask: Values
    world: Values
    sizes: Values
    nets: Mapping[str, Cell]
    failed: list[str] = field(default_factory=list)
    first_map: dict[str, Tensor] = field(default_factory=dict)
    gaps: dict[str, Tensor] = field(default_factory=dict)

    def side(self, net: str, x: Tensor, label: Tensor, *, which: str, mask: Tensor, rows: Tensor) -> Side:
        """Saliency of the predicted class. Each network, set and image, by its row (n,), has draws of its own."""
        cell, device = self.nets[net], self.ask["device"]
        model, x = relative.wrapped(cell, device=device), x.to(device)
        target = relative.predicted(model, x)
        right = target.cpu() == label
        layer = find(cell.facts["arch"], MODELS, argument="models").layer
        behind = worlds.background(self.world, self.sizes, cell.facts["net"], count=BACKGROUND).x.to(device)
        question = explain.Question(
            model=model,
            x=x,
            target=target,
            background=behind,
            fit=behind,
            truth=mask.to(device),
            layer=None if layer is None else f"1.{layer}",
            seed=derive(self.ask["seed"], net, which),
            samples=rows,
        )
        made = explain.attribute(self.ask["method"], question)
        maps = made.tensors.get("maps")
        if maps is None:
            self.failed.append(made.facts["message"])
            nothing = torch.full((len(x), *x.shape[2:]), torch.nan)
            return Side(net, nothing, right, (made.facts["status"],) * len(x), made.facts["message"])
        self.first_map.setdefault(f"{net} {which}", maps[:1])
        saliency = reduced(maps, percentile=self.ask["percentile"], lowest=self.ask["lowest"])
        states = [_state(one, said) for one, said in zip(maps, saliency, strict=True)]
        gap = explain.gaps(made)
        if gap is not None:
            self.gaps[f"{net} {which}"] = gap
            plain = ({"status": state, "message": ""} for state in states)
            states = [explain.broken(row, own)["status"] for row, own in zip(plain, gap.tolist(), strict=True)]
        return Side(net, saliency, right, tuple(states))


def _state(one: Tensor, saliency: Tensor) -> str:
    """What is the matter with one map (c, h, w)."""
    if not bool(one.isfinite().all()):
        return "not finite"
    if not bool((one > 0).any()):
        return "zero map"  # nothing positive: there is nothing to scale
    return "undefined" if bool(saliency.isnan().any()) else "ok"


@known_as("bam.explain")
def explain_network(*cells: Cell, world: Values, sizes: Values, ask: dict[str, Any], about: Values) -> Cell:
    """Rows of one method: MCS, IDR, IIR, with random masks, in other places and for every k; and one map to show."""
    nets = {cell.facts["name"]: cell for cell in cells if "name" in cell.facts}
    patches = next((cell for cell in cells if "found" in cell.facts), None)
    asker = Asker(ask, world, sizes, nets)
    shared = {**about, "method": ask["method"], "dataset": "pasted"}
    rows = coarse(asker, shared)
    rows += independent(asker, patches, shared)
    rows += fine(asker, shared)
    rows += gap_rows(asker, shared)
    tensors, pictures = _pictures(asker, about)
    facts: dict[str, Any] = {"drawn": drawn(asker)}
    if pictures:
        facts["pictures"] = pictures
    if asker.failed:
        facts["failed"] = True
    return Cell(rows=tuple(rows), tensors=tensors, facts=facts)


def drawn(asker: Asker) -> Rows:
    """Who took part in each role, by the class of the scene and of the object, for the run to keep."""
    count = asker.ask["samples"]
    where = {"placing": "as_built", "set": f"X_os, {count} images"}  # a dear method explains fewer of them
    seen = worlds.images(asker.world, asker.sizes, None, count=count)
    found = worlds.drawn(asker.world, seen, role="explained", where=where)
    for name, cell in asker.nets.items():
        if cell.facts["net"]["k"] is None:
            behind = worlds.background(asker.world, asker.sizes, cell.facts["net"], count=BACKGROUND)
            found += worlds.drawn(asker.world, behind, role="background", where={**where, "set": name})
    return found


def coarse(asker: Asker, shared: Values) -> Rows:
    """f_o against f_s, and f_s with and without the object; then the same in other sizes and places."""
    rows: Rows = []
    for placing in asker.ask["placings"]:
        built = placing == "as_built"
        count = asker.ask["samples"] if built else asker.ask["robust"]
        seen = worlds.images(asker.world, asker.sizes, None, count=count, placing=placing)
        here = {**shared, "placing": placing, "k": None, "part": "samples" if built else "robustness"}
        lost = {"mcs": gone(asker, ("f_o", "f_s")), "idr": gone(asker, ("f_s",))}
        for metric, why in lost.items():
            rows += [{**here, **why, "metric": metric, "sample": -1, "part": "scores"}] if why and built else []
        if lost["idr"]:
            continue  # f_s is one of both pairs
        sides = {}
        scenes = asker.side("f_s", seen.os, seen.scene, which=f"os {placing}", mask=seen.mask, rows=seen.rows)
        if not lost["mcs"]:
            sides["mcs"] = (
                asker.side("f_o", seen.os, seen.kind, which=f"os {placing}", mask=seen.mask, rows=seen.rows),
                scenes,
            )
        sides["idr"] = (
            scenes,
            asker.side("f_s", seen.s, seen.scene, which=f"s {placing}", mask=seen.mask, rows=seen.rows),
        )
        draw = generator(asker.ask["seed"], "random mask", placing)
        masks = {"object": seen.mask, "random": random_masks(seen.mask, generator=draw)}
        for kind, mask in masks.items():
            told = here if kind == "object" else {**here, "part": "random" if built else "robustness"}
            told = {**told, "mask": kind}
            found = [row for name, pair in sides.items() for row in compared(name, pair, mask, seen.rows, told)]
            rows += found + (grouped(found, asker.ask["trials"]) if told["part"] == "samples" else [])
    return rows


def independent(asker: Asker, patches: Cell | None, shared: Values) -> Rows:
    """f_∅ on scenes with a functionless patch, and without."""
    here = {**shared, "placing": "as_built", "k": None, "part": "samples", "mask": "object"}
    lost = gone(asker, ("f_0",))
    if lost or patches is None:
        none = lost or {"status": "skipped", "message": "no patches were asked for", "value": float("nan")}
        return [{**here, **none, "metric": "iir", "sample": -1, "part": "scores"}]
    count = min(asker.ask["samples"], len(patches.tensors["x"]))
    seen = worlds.images(asker.world, asker.sizes, 1.0, count=len(patches.tensors["x"]))
    x, scene, mask = seen.s[:count], seen.scene[:count], seen.mask[:count]
    found = patches.tensors["found"][:count].bool()
    before = asker.side("f_0", x, scene, which="s", mask=mask, rows=seen.rows[:count])
    after = asker.side("f_0", patches.tensors["x"][:count], scene, which="s + patch", mask=mask, rows=seen.rows[:count])
    kept = Side(after.name, after.saliency, found, after.status, after.message)  # X_corr is of x alone
    rows = compared("iir", (kept, before), mask, seen.rows[:count], here, zero=asker.ask["zero"])
    return rows + grouped(rows, asker.ask["trials"])


def fine(asker: Asker, shared: Values) -> Rows:
    """Every f_{s,k} against f_{s,1.0}, on images of the class that always has the common feature."""
    ks = {cell.facts["net"]["k"]: name for name, cell in asker.nets.items() if cell.facts["net"]["k"] is not None}
    if 1.0 not in ks:
        return []
    seen = worlds.images(asker.world, asker.sizes, 1.0, count=asker.ask["fine"], first_only=True)
    here = {**shared, "placing": "as_built", "part": "fine", "mask": "object"}
    sides = {
        k: asker.side(name, seen.os, seen.scene, which="os", mask=seen.mask, rows=seen.rows) for k, name in ks.items()
    }
    rows: Rows = []
    for k, side in sides.items():
        rows += compared("mcs", (side, sides[1.0]), seen.mask, seen.rows, {**here, "k": k})
    return rows


def gone(asker: Asker, names: Sequence[str]) -> dict[str, Any]:
    """Why these networks cannot be compared; empty where they can."""
    absent = [name for name in names if name not in asker.nets]
    below = [name for name in names if name in asker.nets and not asker.nets[name].facts["passed"]]
    if not absent and not below:
        return {}
    status = "skipped" if absent else "below gate"
    why = f"{', '.join(absent)} not trained" if absent else f"{', '.join(below)} below the gate: not explained"
    return {"status": status, "message": why, "value": float("nan")}


def compared(
    metric: str, sides: tuple[Side, Side], mask: Tensor, samples: Tensor, shared: Values, *, zero: str = "undefined"
) -> Rows:
    """One row per image, with g_c of both sides. Images that one side gets wrong are no part of X_corr."""
    one, two = sides
    function: Callable[..., Tensor] = find(metric, METRICS, argument="metrics").function
    if metric == "iir":
        function = partial(iir, zero=zero)  # type: ignore[arg-type]
    values = function(one.saliency, two.saliency, mask).tolist()
    first, second = (g_c(side.saliency, mask).tolist() for side in sides)
    rows = []
    for place, sample in enumerate(samples.tolist()):
        wrong = [side.name for side in sides if not bool(side.right[place])]
        state = worst_state([side.status[place] for side in sides])
        told = {"status": state, "message": next((side.message for side in sides if side.message), "")}
        if state == BROKEN:
            told["message"] = "a map misses the sum that its method promises"
        if state in SCORED and values[place] != values[place]:
            told = {"status": "undefined", "message": "nothing of the map is positive there before and after"}
        if wrong:
            what = "no patch was found, or wrong class" if metric == "iir" else "wrong class"
            told = {"status": "no sample", "message": f"{what}: {' and '.join(dict.fromkeys(wrong))}"}
        row = {**shared, **told, "metric": metric, "comparison": f"{one.name}/{two.name}", "sample": sample}
        row |= {"value": values[place], "first": first[place], "second": second[place]}
        rows.append({**row, "right_first": int(one.right[place]), "right_second": int(two.right[place])})
    return rows


def worst_state(states: Sequence[str]) -> str:
    """The first state that leaves no score; else that of a broken promise, if any."""
    lost = [state for state in states if state not in SCORED]
    return next(iter(lost), BROKEN if BROKEN in states else "ok")


def gap_rows(asker: Asker, shared: Values) -> Rows:
    """A row per image and network of how far a method is from the sum that it promises."""
    here = {**shared, "placing": "as_built", "k": None, "part": "promises", "mask": "object"}
    rows: Rows = []
    for which, gap in asker.gaps.items():
        found = explain.with_gaps([], gap, range(len(gap)), comparison=which)
        rows += [{**here, **row} for row in found]
    return rows


def grouped(rows: Rows, trials: int) -> Rows:
    """Means over the images of each trial, which are ranked: a share of one image would be 0 or 1.

    Trials have no image in common. Who has no score in X_corr counts as the worst.
    """
    found: Rows = []
    metrics = dict.fromkeys(row["metric"] for row in rows)
    for name in metrics:
        own = [row for row in rows if row["metric"] == name]
        worst = find(name, METRICS, argument="metrics").bounds[0]
        for trial in range(min(trials, len(own))):
            members = [row for row in own[trial::trials] if row["status"] != "no sample"]
            told = {**own[0], "part": "scores", "sample": trial, "status": "ok", "message": ""}
            told |= dict.fromkeys(("first", "second", "right_first", "right_second"))
            if not members:
                nothing = {"value": float("nan"), "status": "no sample", "message": "no image in X_corr"}
                found.append({**told, **nothing})
                continue
            values = [row["value"] if row["status"] in SCORED else worst for row in members]
            first_broken = [row for row in members if row["status"] == BROKEN][:1]
            lost = members[:1] if all(row["status"] not in SCORED for row in members) else first_broken
            for row in lost:
                told |= {"status": row["status"], "message": row["message"]}
            found.append({**told, "value": sum(values) / len(values)})
    return found


def _pictures(asker: Asker, about: Values) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The first map of f_o and of f_s on one image, positive part, its largest value 1."""
    tensors, pictures = {}, []
    if about["model_seed"]:
        return {}, []  # those of the first training are shown
    for label, key in enumerate(("f_s os as_built", "f_o os as_built")):
        if key in asker.first_map:
            flat = asker.first_map[key][0].clamp(min=0).sum(0)
            tensors[key] = (flat / flat.amax().clamp(min=1e-30)).half()
            here = {
                "model": about["model"],
                "placing": about["placing"],
                "method": asker.ask["method"],
                "kind": "example",
                "label": label,
            }
            pictures.append({**here, "tensor": key})
    return tensors, pictures


@known_as("bam.show")
def show(*, world: Values, sizes: Values, about: Values, samples: int) -> Cell:
    """The image whose maps the page shows, and where its object is."""
    seen = worlds.images(world, sizes, None, count=samples)
    tensors = {"input": seen.os[0].half(), "truth": seen.mask[0].half()}
    pictures = [
        {
            "model": "none",
            "placing": about["placing"],
            "method": "",
            "kind": kind,
            "label": label,
            "tensor": kind,
        }
        for kind in tensors
        for label in (0, 1)
    ]
    return Cell(tensors=tensors, facts={"pictures": pictures})
