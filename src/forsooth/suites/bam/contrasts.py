"""The task that asks a method: maps of two networks or of two inputs, and how much each gives to the object."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch
from pandas import DataFrame
from torch import Tensor

from forsooth.counted import counted
from forsooth.engine import FLAT, task
from forsooth.frames import only, without
from forsooth.records import BROKEN, SCORED, Cell, Facts, Row, Status
from forsooth.scores import metric as metric_of
from forsooth.scores.contrast import g_c, random_masks
from forsooth.seeds import generator
from forsooth.suites import explain
from forsooth.suites.album import Album, scaled
from forsooth.suites.bam import data
from forsooth.suites.bam.data import DataSpec, Images
from forsooth.suites.bam.questions import BACKGROUND, NOTHING, SaliencyProbe, Side
from forsooth.suites.bam.settings import AS_BUILT
from forsooth.suites.bam.specs import Ask, Panel
from forsooth.suites.bam.tasks import facts_of

NO_CORRECT_INPUT: Status = "no correct input"
PARTS = {(AS_BUILT, "object"): "samples", (AS_BUILT, "random"): "random"}  # of other places: robustness
SIDES = ("first", "second", "right_first", "right_second")  # columns on the two sides of a contrast
EXAMPLES = {f"f_s os {AS_BUILT}": 0, f"f_o os {AS_BUILT}": 1}  # question whose maps are shown -> y on the page
Pair = tuple[Side, Side]
Reason = Mapping[str, str]  # status and message of what has no score or a broken promise; empty of all else


@task("bam.explain", version=3, spec=FLAT, panel="about")
def explain_network(*cells: Cell, spec: DataSpec, panel: Panel, ask: Ask) -> Cell:
    """Rows of one method: MCS, IDR, IIR, with random masks, in other places and for every k; and a few maps to show."""
    nets = {cell.facts["name"]: cell for cell in cells if "name" in cell.facts}
    patches = next((cell for cell in cells if "found" in cell.facts), None)
    probe = SaliencyProbe(ask, spec, nets)
    rows = contrast_rows(probe, patches, panel.row("samples", method=ask.method).having(k=None))
    return album_of(probe, panel).cell(rows, **probe_facts(probe))


def probe_facts(probe: SaliencyProbe) -> Facts:
    """Who took part; and whether the method failed somewhere, so that it is asked again in the next run."""
    notes = probe.notes.values()
    said = itertools.chain.from_iterable(note.leftovers for note in notes)
    failed = any(note.maps is None for note in notes)
    return {"drawn": class_counts(probe), "failed": failed, "said": list(dict.fromkeys(said))}


def contrast_rows(probe: SaliencyProbe, patches: Cell | None, template: Row) -> list[Row]:
    """The rows of all contrasts, and how well promises are kept in them."""
    of_object = template.having(mask="object")
    rows = coarse(probe, template)
    rows += independent(probe, patches, of_object)
    rows += fine(probe, of_object.having(part="fine"))
    return rows + gap_rows(probe, of_object.having(part="promises"))


def gap_rows(probe: SaliencyProbe, template: Row) -> list[Row]:
    """A row per image and network of how far a method is from the sum that it promises."""
    rows: list[Row] = []
    for which, note in probe.notes.items():
        if note.gap is not None:
            rows += explain.promise_rows(template.having(comparison=which), [], note.gap, range(len(note.gap)))
    return rows


def class_counts(probe: SaliencyProbe) -> list[Facts]:
    """Who took part in each role, by the class of the scene and of the object, for the run to keep."""
    count = probe.ask.samples
    world = probe.spec.world
    # an expensive method explains fewer images, so its set has a name of its own
    where = {"placing": AS_BUILT, "set": f"X_os, {count} images"}
    _, seen = data.explained(probe.spec, None, count=count)
    counts = data.class_counts(world, seen, role="explained", where=where)
    for name, cell in probe.nets.items():
        net = facts_of(cell).net
        if net.k is None:
            _, chosen = data.learned_from(probe.spec, net, count=BACKGROUND)
            counts += data.class_counts(world, chosen, role="background", where={**where, "set": name})
    return counts


def coarse(probe: SaliencyProbe, template: Row) -> list[Row]:
    """f_o against f_s, and f_s with and without the object; then the same in other sizes and places."""
    lost = {"mcs": why_not(probe, ("f_o", "f_s")), "idr": why_not(probe, ("f_s",))}
    rows: list[Row] = []
    for placing in probe.ask.placings:
        if placing == AS_BUILT:
            rows += [without_score(template, metric, why) for metric, why in lost.items() if why]
        if lost["idr"]:
            continue  # f_s is one of both pairs
        seen = data.images(probe.spec, None, count=probe.ask.count(placing), placing=placing)
        pairs = coarse_pairs(probe, seen, placing, with_objects=not lost["mcs"])
        rows += placing_rows(probe, template.having(placing=placing), pairs, seen)
    return rows


def coarse_pairs(probe: SaliencyProbe, seen: Images, placing: str, *, with_objects: bool) -> dict[str, Pair]:
    """The two sides of each metric. with_objects: whether f_o can be asked"""
    both = f"os {placing}"
    pairs = {}
    scenes = probe.side("f_s", seen, seen.os, which=both)
    if with_objects:
        pairs["mcs"] = (probe.side("f_o", seen, seen.os, which=both), scenes)
    pairs["idr"] = (scenes, probe.side("f_s", seen, seen.s, which=f"s {placing}"))
    return pairs


def placing_rows(probe: SaliencyProbe, template: Row, pairs: Mapping[str, Pair], seen: Images) -> list[Row]:
    """Rows with the mask of the object and with a random one; of objects as built also the means of trials."""
    placing = str(template.columns["placing"])
    draw = generator(probe.ask.seed, "random mask", placing)
    masks = {"object": seen.mask, "random": random_masks(seen.mask, generator=draw)}
    rows: list[Row] = []
    for kind, mask in masks.items():
        own = template.having(mask=kind, part=PARTS.get((placing, kind), "robustness"))
        compared: list[Row] = []
        for metric, pair in pairs.items():
            compared += compare(own.having(metric=metric), pair, mask, seen.rows)
        rows += compared
        if own.part == "samples":
            rows += trial_rows(compared, probe.ask.trials)
    return rows


def independent(probe: SaliencyProbe, patches: Cell | None, template: Row) -> list[Row]:
    """f_∅ on scenes with a functionless patch, and without."""
    lost = why_not(probe, ("f_0",))
    if lost:
        return [without_score(template, "iir", lost)]
    if patches is None:
        return [without_score(template, "iir", {"status": "skipped", "message": "no patches were asked for"})]
    seen = data.images(probe.spec, 1.0, count=min(probe.ask.samples, len(patches.tensors["x"])))
    pair = patched_pair(probe, seen, patches)
    rows = compare(template.having(metric="iir"), pair, seen.mask, seen.rows, zero=probe.ask.zero)
    return rows + trial_rows(rows, probe.ask.trials)


def patched_pair(probe: SaliencyProbe, seen: Images, patches: Cell) -> Pair:
    """f_∅ on scenes with a patch and without. X_corr is of those without, and of patches that were found."""
    x, found = (patches.tensors[name][: len(seen.rows)] for name in ("x", "found"))
    before = probe.side("f_0", seen, seen.s, which="s")
    after = probe.side("f_0", seen, x, which="s + patch")
    return replace(after, correct=found.bool()), before


def fine(probe: SaliencyProbe, template: Row) -> list[Row]:
    """Every f_{s,k} against f_{s,1.0}, on images of the class that always has the common feature."""
    nets = [facts_of(cell).net for cell in probe.nets.values()]
    names = {net.k: net.name for net in nets if net.k is not None}
    if 1.0 not in names:
        return []
    seen = data.images(probe.spec, 1.0, count=probe.ask.samples_per_k, first_only=True)
    sides = {k: probe.side(name, seen, seen.os, which="os") for k, name in names.items()}
    rows = []
    for k, side in sides.items():
        rows += compare(template.having(metric="mcs", k=k), (side, sides[1.0]), seen.mask, seen.rows)
    return rows


def why_not(probe: SaliencyProbe, names: Sequence[str]) -> Reason:
    """Why these networks cannot be compared; empty where they can."""
    absent = [name for name in names if name not in probe.nets]
    if absent:
        return {"status": "skipped", "message": f"{', '.join(absent)} not trained"}
    below = [name for name in names if not facts_of(probe.nets[name]).passed]
    if below:
        return {"status": "below gate", "message": f"{', '.join(below)} below the gate: not explained"}
    return {}


def without_score(template: Row, metric: str, why: Reason) -> Row:
    """The row of a metric that nobody can be asked for."""
    return template.having(why, part="scores", metric=metric, value=torch.nan)


def compare(template: Row, sides: Pair, mask: Tensor, samples: Tensor, *, zero: str = "undefined") -> list[Row]:
    """One row per image, with g_c of both sides. Images that one side gets wrong are no part of X_corr.

    mask (n, h, w) bool, samples (n,) numbers of the images
    """
    one, two = sides
    metric = str(template.metric)
    score = metric_of(metric).function
    if metric == "iir":
        score = partial(score, zero=zero)
    rows = explain.rows_by_sample(
        template.having(comparison=f"{one.name}/{two.name}"),
        samples,
        value=score(one.saliency, two.saliency, mask),
        first=g_c(one.saliency, mask),
        second=g_c(two.saliency, mask),
        right_first=one.correct.int(),
        right_second=two.correct.int(),
    )
    return [row.having(pair_status(sides, place, metric, row.value)) for place, row in enumerate(rows)]


def pair_status(sides: Pair, place: int, metric: str, value: float | None) -> Reason:
    """What is the matter with one image of two sides."""
    wrong = [side.name for side in sides if not bool(side.correct[place])]
    if wrong:
        why = "no patch was found, or wrong class" if metric == "iir" else "wrong class"
        return {"status": NO_CORRECT_INPUT, "message": f"{why}: {' and '.join(dict.fromkeys(wrong))}"}
    states = [side.status[place] for side in sides]
    silent = [state for state in states if state not in SCORED]
    if silent:
        return {"status": silent[0], "message": next((side.message for side in sides if side.message), "")}
    if value != value:
        return {"status": "undefined", "message": "nothing of the map is positive there before and after"}
    if BROKEN in states:
        return {"status": BROKEN, "message": "a map misses the sum that its method promises"}
    return {}


def trial_rows(rows: Sequence[Row], trials: int) -> list[Row]:
    """Means over the images of each trial, which are ranked: a share of one image would be 0 or 1.

    Trials have no image in common.
    """
    means = []
    for metric in dict.fromkeys(row.metric for row in rows):
        own = [row for row in rows if row.metric == metric]
        for trial in range(min(trials, len(own))):
            template = own[0].having(part="scores", sample=trial, **dict.fromkeys(SIDES))
            means.append(trial_mean(template, own[trial::trials]))
    return means


def trial_mean(template: Row, rows: Sequence[Row]) -> Row:
    """The mean of one trial. Who has no score in X_corr counts as the worst."""
    members = counted(DataFrame([row.flat() for row in rows]), metric_of(str(template.metric)))
    if members.empty:
        return template.having(value=torch.nan, status=NO_CORRECT_INPUT, message="no image in X_corr")
    mean = template.having(value=sum(members["value"]) / len(members), status="ok", message="")
    # that a promise is broken somewhere, or, where nobody has a score, why the first has none
    speaking = without(only(members, failed=members["failed"].all()), status="ok")
    if len(speaking):
        return mean.having(**speaking[["status", "message"]].iloc[0])
    return mean


def album_of(probe: SaliencyProbe, panel: Panel) -> Album:
    """The first maps of f_s and of f_o on the same images, positive part: (h, w) each; those of the first training."""
    album = Album({"model": panel.model, "placing": panel.placing, "method": probe.ask.method, "kind": "example"})
    if panel.model_seed:
        return album
    for key, label in EXAMPLES.items():
        first = probe.notes.get(key, NOTHING).maps
        if first is not None:
            for place, flat in enumerate(first.clamp(min=0).sum(1)):
                album.add(scaled(flat), key, place, label=label)
    return album
