"""Bias without ground truth: how far are the top and the bottom of a map from their Shapley values? M_bias."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.engine import make_task
from forsooth.models import MODELS
from forsooth.records import Choice, Method, Metric, Plan, Suite, Task, UsageError
from forsooth.scores import METRICS
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data as sources
from forsooth.suites.bias import tasks as anchored

END = "shapley"  # the other end of the scale: Shapley values of another seed, or the same ones where they are exact
PUBLISHED = (
    "grad_cam",
    "gradient",
    "gradient_x_input",
    "guided_backprop",
    "deep_shap",
    "lime_superpixels",
    "lrp_epsilon_1",
    "integrated_gradients",
)
NULLS = ("random", "constant", "sobel", "laplace", "rectified_input")
AT_ONCE = 8  # inputs played in one task, so that little is lost when a run is stopped


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    datasets      what is played on; data given with `--data` come on top
    players       "input": parts of the input; "units": places of the layer that Grad-CAM reads
    grid          images are cut into grid × grid patches; None: each pixel plays
    permutations  random orders of joining
    exact_up_to   players up to which all coalitions are played instead: with 12 they cost less than a thousand orders
    samples       test inputs explained per network: those that all its trainings get right
    trainings     of each network from different starts; weights from a file are one
    same_game     methods that take a baseline or players are given those of the game; else their own, as published
    channels      how the colours of a gradient become one number (the paper: the one of largest magnitude)
    one_colour    whose colours become one in this way: gradients, since the other maps are sums by nature, or all maps
    ties          who of equal players is in the group at its edge
    layer         whose units play; None: that of the architecture's Grad-CAM
    side          of generated and cropped images
    """

    datasets: tuple[str, ...] = sources.GENERATED
    models: tuple[str, ...] = ("mlp5", "mlp", "lenet", *sources.RESNETS, *sources.VISION)
    players: tuple[str, ...] = ("input", "units")
    methods: tuple[str, ...] = (*PUBLISHED, *NULLS, END)
    ends: tuple[str, ...] = ("top", "bottom")
    fractions: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    grid: int | None = None
    permutations: int = 1000
    exact_up_to: int = 12
    antithetic: bool = False
    samples: int = 50
    trainings: int = 1
    baseline: Literal["mean", "channel_mean", "zero", "blur"] = "mean"
    output: Literal["logits", "probabilities"] = "logits"
    same_game: bool = False
    channels: Literal["signed_max", "max_abs", "sum"] = "signed_max"
    one_colour: Literal["gradients", "all"] = "gradients"
    ties: Literal["share", "first"] = "share"
    layer: str | None = None
    side: int = 32


MORE = ("saliency", "smooth_grad", "deep_lift", "lrp", "gradient_shap", "kernel_shap", "lime", "shapley_sampling")
QUICK = Settings(
    models=("mlp5", "mlp", "lenet"),
    methods=(*PUBLISHED, *MORE, *NULLS, END),
    grid=8,
    permutations=400,
    samples=20,
    trainings=3,
    same_game=True,
)
DEMO = dataclasses.replace(QUICK, permutations=60, samples=8, trainings=2)
PAPER = Settings()


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every network, play its games, ask every method, hold what it says against the anchor."""
    methods = list(choice.methods or settings.methods)
    tasks: list[Task] = []
    skips: list[dict[str, Any]] = []
    for panel in chosen_panels(settings, choice):
        trained = training_tasks(panel, choice)
        anchor = playing_tasks(panel, trained, settings, choice, "anchor")
        tasks += [*trained, *anchor]
        for name in methods:
            reason = unable(name, panel)
            if reason:
                about = {**anchored.factors(panel), **NO_SAMPLE, "model_seed": panel["training"]}
                skips.append({**about, "method": name, "message": reason})
            else:
                tasks += judging_tasks(name, panel, trained, anchor, settings, choice)
    unique = {task.key: task for task in tasks}
    return Plan(tasks=tuple(unique.values()), skips=tuple(skips), facts=facts(settings, choice))


NO_SAMPLE = {
    **{"part": "scores", "suite": "bias", "metric": "", "sample": -1, "value": None},
    **{"status": "skipped", "end": "", "fraction": None},
}


def chosen_panels(settings: Settings, choice: Choice) -> Iterator[dict[str, Any]]:
    """Every dataset, network, kind of player and training that was not left out, as plain values a task can be given.

    A panel knows how many trainings its network has (`trainings`) and which of them it is about (`training`).
    """
    if settings.trainings < 1:
        raise UsageError(f"`trainings` must be at least 1, got {settings.trainings}")
    names.check_factors(choice.only, ("dataset", "model", "player", "end", "fraction"))
    here = sources.found(choice.data)
    for name in names.kept(list(dict.fromkeys([*settings.datasets, *here])), choice.only, "dataset"):
        entry = sources.played(name)
        nets = [net for net in entry.models if net in settings.models]
        asked = choice.only.get("model", nets)
        about = sources.spec(name, here.get(name), seed=seeds.derive(choice.seed, "data"), side=settings.side)
        for net, player in itertools.product([n for n in nets if n in asked], settings.players):
            if player in choice.only.get("player", settings.players) and not (player == "units" and not layer(net)):
                count = 1 if net in about["weights"] else settings.trainings
                panel = {"source": about, "net": net, "player": player, "trainings": count}
                yield from ({**panel, "training": number} for number in range(count))


def layer(net: str) -> str | None:
    return names.find(net, MODELS, argument="models").layer


def training_tasks(panel: dict[str, Any], choice: Choice) -> list[Task]:
    """All trainings of the panel's network: what is explained are inputs that all of them get right."""
    return [training_task({**panel, "training": number}, choice) for number in range(panel["trainings"])]


def training_task(panel: dict[str, Any], choice: Choice) -> Task:
    entry = sources.played(panel["source"]["name"])
    recipe = dataclasses.asdict(dataclasses.replace(entry.recipe, gate=entry.gate))
    about = {name: panel[name] for name in ("source", "net", "training")}  # the same for all players and any number
    arguments = {
        "panel": {**about, "player": "input"},
        "recipe": recipe,
        "seed": seeds.derive(choice.seed, "training", panel["training"]),
        "device": choice.device,
    }
    name = f"train {panel['source']['name']}, {panel['net']}{anchored.numbered(panel)}"
    return make_task(anchored.train_network, arguments, name=name, version=2)


def the_game(settings: Settings) -> dict[str, Any]:
    """What decides the Shapley values, as plain values a task can be given."""
    fields = ("grid", "permutations", "exact_up_to", "antithetic", "baseline", "output", "layer", "same_game")
    return {name: getattr(settings, name) for name in fields}


def playing_tasks(
    panel: dict[str, Any], trained: list[Task], settings: Settings, choice: Choice, role: str
) -> list[Task]:
    """Shapley values of all explained inputs, a few at a time; every training has permutations of its own."""
    tasks = []
    for first in range(0, settings.samples, AT_ONCE):
        last = min(first + AT_ONCE, settings.samples)
        arguments = {
            "panel": panel,
            "game": the_game(settings),
            "first": first,
            "last": last,
            "seed": seeds.derive(choice.seed, role, panel["training"]),
            "device": choice.device,
        }
        name = f"play {anchored.title(panel)}, inputs {first} to {last - 1}"
        tasks.append(make_task(anchored.play, arguments, trained, name=name, version=2))
    return tasks


def judging_tasks(
    name: str, panel: dict[str, Any], trained: list[Task], anchor: list[Task], settings: Settings, choice: Choice
) -> list[Task]:
    """Tasks that make what a method says of the players, and one that judges it."""
    judged = {
        "panel": panel,
        "method": name,
        "ends": names.kept(list(settings.ends), choice.only, "end"),
        "fractions": [float(f) for f in names.kept([f"{f:g}" for f in settings.fractions], choice.only, "fraction")],
        "ties": settings.ties,
        "played": len(anchor),
    }
    what = f"{name}, {anchored.title(panel)}"
    if name == END:
        made = playing_tasks(panel, trained, settings, choice, "other end")
    else:
        method = plugins.method(name, METHODS)
        own = ":" in name
        asked = {
            "panel": panel,
            "game": the_game(settings),
            "method": name,
            "version": method.version,
            "code": plugins.fingerprint(plugins.load(name, argument="methods")) if own else "",
            "channels": settings.channels if settings.one_colour == "all" or name in anchored.GRADIENTS else "sum",
            "samples": settings.samples,
            "seed": seeds.derive(choice.seed, "method", panel["training"]),
            "device": choice.device,
        }
        made = [make_task(anchored.attribute, asked, trained, name=f"explain: {what}", version=3)]
    return [*made, make_task(anchored.judge, judged, [*anchor, *made], name=f"judge: {what}", version=2)]


def unable(name: str, panel: dict[str, Any]) -> str:
    """Why method and panel cannot meet; empty where they can."""
    if name == END:
        return ""
    method: Method = plugins.method(name, METHODS)
    table = sources.is_table(panel["source"]["name"])
    if panel["player"] == "units":
        if method.null and name not in ("random", "constant"):
            return f"{name} reads an image, and units of a layer are none"
        if "superpixels" in name or ("layer" in method.needs and name != "grad_cam"):
            return f"{name} reads an image, and units of a layer are none"
        return ""
    if "layer" in method.needs and layer(panel["net"]) is None:
        return f"{name} reads a convolutional layer, and {panel['net']} has none"
    if name == "grad_cam":
        return "grad_cam is judged on the units of its layer, as in the paper"
    if table and name in ("sobel", "laplace", "lime_superpixels"):
        return f"{name} reads an image, and this is a table"
    return ""


def chosen_metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in anchors.METRIC_NAMES)


def facts(settings: Settings, choice: Choice) -> tuple[str, ...]:
    said = [
        f"Absent players are replaced by the {settings.baseline.replace('_', ' ')} of the training data; games are "
        f"played on {settings.output}.",
        "relative_bias is M_bias times the root of the number of players: 1 is what a constant map says of each.",
    ]
    idle = [name for name in sources.found(choice.data) if not set(sources.played(name).models) & set(settings.models)]
    if idle:
        said.append(
            f"Found and not played: {', '.join(idle)}; its networks are in the preset paper, for an accelerator."
        )
    if choice.data is None:
        said.append("All data are generated; CIFAR-10, Pascal VOC and tables are read from --data.")
    return tuple(said)


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.bias.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="bias",
    title="Bias without ground truth",
    question="Where no truth is known: which methods give their top and bottom players what the Shapley values give?",
    presets={"demo": DEMO, "quick": QUICK, "paper": PAPER},
    plan=plan,
    figures=figures,
    factors=("dataset", "model", "player", "end", "fraction"),
    metrics=chosen_metrics,
    exhibits=("bias_curves", "accuracies"),
    cite="anonymous2023evaluation",
)
