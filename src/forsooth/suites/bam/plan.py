"""Relative importance: an object matters more to one model, or in one input, than in another [yang2019benchmarking]."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS, concepts
from forsooth.engine import make_task
from forsooth.models import MODELS, recipes
from forsooth.records import Choice, Metric, Plan, Suite, Task, UsageError
from forsooth.scores import METRICS, functionless
from forsooth.suites.bam import contrasts
from forsooth.suites.bam import data as worlds
from forsooth.suites.bam import tasks as relative
from forsooth.suites.bam.settings import DEAR, DEMO, PAPER, QUICK, RELEASED_SETTINGS, Settings

SEARCHES = {"ours": functionless.DEFAULT, "printed": functionless.PRINTED, "released": functionless.RELEASED}
# ResNet-50 from nothing, where the paper fine-tunes ImageNet weights; optimiser and rates are stated nowhere.
PAPER_RECIPE = replace(recipes.RESIDUAL, gate=0.5)
QUICK_RECIPE = replace(recipes.PLANTED_QUICK, stop_at=None, checkpoints=None, gate=0.5)
RECIPES = {"paper": PAPER_RECIPE, "quick": QUICK_RECIPE}
AT_LEAST = 5  # images of a trial: the share of hits of one image is 0 or 1
FACTORS = ("placing", "model")


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train f_o, f_s, f_∅ and every f_{s,k}, verify them, find patches, ask TCAV and every method."""
    names.check_factors(choice.only, FACTORS)
    check(settings)
    tasks: list[Task] = []
    world = worlds.spec(
        choice.data,
        side=settings.side,
        scenes=settings.scenes if choice.data or settings.scenes else settings.cutouts,
        cutouts=settings.cutouts,
        feature=settings.feature,
        same_objects=settings.same_objects,
        first=settings.first,
        seed=seeds.derive(choice.seed, "bam"),
    )
    methods = [plugins.method(name, METHODS).name for name in choice.methods or settings.methods]
    for arch in names.kept(settings.models, choice.only, "model"):
        names.find(arch, MODELS, argument="models")
        for number in range(settings.trainings):
            about = {"suite": "bam", "model": arch, "model_seed": number, "placing": "as_built"}
            shared = {"world": world, "sizes": sizes(settings), "about": about}
            tasks += training(shared, methods, settings, choice)
    return Plan(tasks=tuple(tasks), facts=facts(settings))


def training(shared: Mapping[str, Any], methods: Sequence[str], settings: Settings, choice: Choice) -> list[Task]:
    """All networks trained once, and all that is asked of them."""
    start = relative.file_of(settings.start, argument="start")
    trained = [training_task(net, start, settings, choice, shared) for net in networks(settings)]
    patches = patching_task(trained[2], settings, choice, shared)
    told = make_task(relative.verify, {**shared, "device": choice.device}, trained, name="verify", version=2)
    tasks = [*trained, told, patches, tcav_task(trained, settings, choice, shared)]
    if not shared["about"]["model_seed"]:
        tasks.append(make_task(contrasts.show, {**shared, "samples": settings.samples}, name="example", version=2))
    return tasks + [explaining_task(name, [*trained, patches], settings, choice, shared) for name in methods]


def check(settings: Settings) -> None:
    """Refuse what cannot be, before any work."""
    if 1.0 not in settings.ks:
        raise UsageError(f"`ks` must hold 1.0, which the others are set against, got {settings.ks}")
    for name in ("samples", "few", "fine", "robust", "trials", "trainings"):
        if getattr(settings, name) < 1:
            raise UsageError(f"`{name}` must be at least 1, got {getattr(settings, name)}")
    if settings.sets < 2:
        raise UsageError(f"`sets` must be at least 2, got {settings.sets}")
    for name in settings.placings:
        worlds.variant(name)
    if "as_built" not in settings.placings:
        raise UsageError(f"`placings` must hold as_built, which is ranked, got {settings.placings}")


def sizes(settings: Settings) -> dict[str, Any]:
    splits = ("train", "val", "test")
    return {
        "per_pair": {split: getattr(settings, split) for split in splits},
        "per_class": {split: getattr(settings, f"fine_{split}") for split in splits},
        "pairing": settings.pairing,
    }


def networks(settings: Settings) -> list[dict[str, Any]]:
    """Names, labels and sets of all networks; f_0 is f_∅."""
    coarse = [("f_o", "object", "os"), ("f_s", "scene", "os"), ("f_0", "scene", "s")]
    found: list[dict[str, Any]] = [{"name": n, "label": y, "shown": shown, "k": None} for n, y, shown in coarse]
    return found + [{"name": f"f_s_{k:g}", "label": "scene", "shown": "os", "k": k} for k in settings.ks]


def training_task(
    net: Mapping[str, Any],
    start: Mapping[str, str] | None,
    settings: Settings,
    choice: Choice,
    shared: Mapping[str, Any],
) -> Task:
    arch, number = shared["about"]["model"], shared["about"]["model_seed"]
    known = RECIPES[settings.recipe]
    recipe = replace(known, gate=settings.gate, restarts=0, epochs=settings.epochs or known.epochs)
    recipe = replace(recipe, stop_at=known.stop_at if settings.stop_at is None else settings.stop_at)
    arguments = {
        **shared,
        "net": dict(net),
        "arch": arch,
        "recipe": asdict(recipe),
        "given": relative.weights_of(settings.weights, net["name"]),
        "start": start,
        # the first has no number in its seed, so that it is the same whether others follow or not
        "seed": seeds.derive(choice.seed, "training", net["name"], *([number] if number else [])),
        "device": choice.device,
    }
    return make_task(relative.train_network, arguments, name=f"train {net['name']}, {arch}", version=3)


def patching_task(trained: Task, settings: Settings, choice: Choice, shared: Mapping[str, Any]) -> Task:
    search = asdict(SEARCHES[settings.search])
    arguments = {**shared, "search": search, "count": settings.samples, "device": choice.device}
    return make_task(relative.find_patches, arguments, [trained], name="functionless patches", version=2)


def tcav_task(trained: list[Task], settings: Settings, choice: Choice, shared: Mapping[str, Any]) -> Task:
    known = concepts.RELEASED if settings.tcav == "sgd" else concepts.CLOSED_FORM
    ask = {
        "examples": settings.examples,
        "sets": settings.sets,
        "count": settings.fine,
        "level": settings.level,
        "settings": asdict(known),
        "seed": seeds.derive(choice.seed, "tcav"),
        "device": choice.device,
    }
    return make_task(relative.ask_tcav, {**shared, "ask": ask}, trained, name="TCAV", version=4)


def explaining_task(
    name: str, needs: list[Task], settings: Settings, choice: Choice, shared: Mapping[str, Any]
) -> Task:
    """One task makes the maps and scores them, since maps are not stored."""
    own, few = ":" in name, settings.few if name in DEAR else settings.samples
    ask = {
        "method": name,
        "version": plugins.method(name, METHODS).version,
        "code": plugins.fingerprint(plugins.load(name, argument="methods")) if own else "",
        "samples": min(few, settings.samples),
        "fine": min(few, settings.fine),
        "robust": min(few, settings.robust),
        "placings": ["as_built"] if name in DEAR else names.kept(settings.placings, choice.only, "placing"),
        "trials": min(settings.trials, max(1, min(few, settings.samples) // AT_LEAST)),
        "percentile": settings.percentile,
        "lowest": settings.lowest,
        "zero": settings.zero,
        "metrics": {m.name: m.version for m in chosen_metrics(settings)},
        "seed": seeds.derive(choice.seed, "method"),
        "device": choice.device,
    }
    return make_task(contrasts.explain_network, {**shared, "ask": ask}, needs, name=f"explain: {name}", version=3)


def chosen_metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in settings.metrics)


def facts(settings: Settings) -> tuple[str, ...]:
    said = [
        "mcs: the object's mean saliency in f_o, which needs it, less that in f_s, which does not. idr: how often the "
        "object is given less than the part of the scene that it covers. iir: how often a patch that changes no output "
        "changes the saliency of its place by less than 10 %.",
        f"A line of the ranking is the mean over one of {settings.trials} trials without common images; single images "
        "are in the rows of the part samples. Counted are images that both sides classify correctly (X_corr). Maps are "
        "of the predicted class, their positive part, channel mean, cut at the 99th percentile.",
        "A constant map has mcs 0 and idr 0 and the best iir: no single score of the three tells whether a method is "
        "good.",
        "In the examples y=1 is f_o and y=0 is f_s, on one image; truth is the object.",
    ]
    dear = [name for name in settings.methods if name in DEAR]
    if dear and settings.few < settings.samples:
        said.append(
            f"{', '.join(dear)} takes hundreds of gradients for a map and is asked about {settings.few} images."
        )
    return tuple(said)


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.bam.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="bam",
    title="Relative importance",
    question="An object matters to one model and not to another: which methods see the difference?",
    presets={"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED_SETTINGS},
    plan=plan,
    figures=figures,
    factors=FACTORS,
    metrics=chosen_metrics,
    exhibits=("examples", "bam_verification", "bam_contrasts", "bam_series", "bam_patches"),
    cite="yang2019benchmarking",
)
