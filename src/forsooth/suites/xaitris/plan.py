"""XAI-TRIS: do methods find the pixels that are known to matter, or only edges and suppressors? [clark2024xaitris]"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS
from forsooth.datasets import folders
from forsooth.datasets import settings as tetromino
from forsooth.engine import make_task
from forsooth.models import MODELS, recipes
from forsooth.records import Architecture, Choice, Method, Metric, Plan, Suite, Task
from forsooth.scores import METRICS
from forsooth.suites.xaitris import strategies
from forsooth.suites.xaitris import tasks as tetrominoes

NETS = ("llr", "mlp", "cnn")

# The sixteen of Table B1 in settings that can work, two more, and the ends of every scale.
SOUND = [
    "pfi",
    "integrated_gradients",
    "saliency",
    "guided_backprop",
    "guided_grad_cam",
    "deconvolution",
    "deep_lift",
    "shapley_sampling",
    "gradient_shap",
    "kernel_shap",
    "deep_shap",
    "lime",
    "lrp",
    "deep_taylor",
    "pattern_net",
    "pattern_attribution",
    "gradient_x_input",
    "smooth_grad",
    "sobel",
    "laplace",
    "random",
    "rectified_input",
    "constant",
    "oracle",
]
# The same sixteen as Table B1 sets them: library defaults, zero baselines, 25 samples.
PUBLISHED = [
    "pfi",
    "integrated_gradients",
    "saliency",
    "guided_backprop",
    "guided_grad_cam",
    "deconvolution",
    "deep_lift",
    "shapley_sampling",
    "gradient_shap_5",
    "kernel_shap_25",
    "deep_shap_zero",
    "lime_25",
    "lrp",
    "deep_taylor",
    "pattern_net",
    "pattern_attribution",
    "sobel",
    "laplace",
    "random",
    "rectified_input",
    "constant",
    "oracle",
]
RELEASED_NULLS = {"sobel": "sobel_released", "rectified_input": "absolute_input"}


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    trainings  networks trained per setting and architecture
    samples    test images explained per setting at most; None: all that every model predicts correctly
    gate       test accuracy below which a network is not explained
    n, alpha   images per dataset and signal-to-noise ratio; None: as published for the size
    output     what is explained of a network: its logits, or the probabilities behind its softmax
    logits_for methods that explain logits whatever `output` says
    softmax    where probabilities are explained: each method's own rule, or the plain gradient as in the released code
    sweep      values of alpha at which accuracy is measured, as in Fig. B2, with one short training each
    """

    sizes: tuple[int, ...] = (8,)
    scenarios: tuple[str, ...] = tetromino.SCENARIOS
    backgrounds: tuple[str, ...] = tetromino.BACKGROUNDS
    models: tuple[str, ...] = NETS
    methods: tuple[str, ...] = tuple(PUBLISHED)
    metrics: tuple[str, ...] = ("emd", "ima", "precision")
    trainings: int = 5
    samples: int | None = None
    n: int | None = None
    alpha: float | None = None
    data: tetromino.Variant = tetromino.PAPER
    network: Literal["paper", "released"] = "paper"
    recipe: Literal["quick", "paper", "released"] = "paper"
    gate: float = 0.8
    output: Literal["logits", "probabilities"] = "logits"
    logits_for: tuple[str, ...] = ()
    softmax: Literal["rule", "gradient"] = "rule"
    sweep: tuple[float, ...] = ()


# The released code multiplies by the raw pattern; the printed equation 2 has no signal (see Table B2 reproduced).
QUICK = Settings(
    backgrounds=("WHITE", "CORR"),
    methods=(*SOUND, "lime_25", "kernel_shap_25"),
    trainings=3,  # with two, nothing can be claimed of a single panel
    samples=100,
    data=dataclasses.replace(tetromino.RELEASED, positions="all"),
    network="released",
    recipe="quick",
    sweep=(0.05, 0.2),
)
DEMO = dataclasses.replace(QUICK, scenarios=("LIN", "XOR"), trainings=2, samples=50, sweep=())
# Section 2.2 prints networks that end in a softmax, and says of no method that it is left out.
PAPER = Settings(sizes=(8, 64), output="probabilities")
RELEASED = Settings(
    sizes=(8, 64),
    methods=tuple(RELEASED_NULLS.get(name, name) for name in PUBLISHED),
    metrics=("emd_released", "ima", "precision"),
    data=tetromino.RELEASED,
    network="released",
    recipe="released",
    output="probabilities",
    logits_for=("deep_taylor", "pattern_net", "pattern_attribution"),  # the authors ran these three without softmax
    softmax="gradient",
)


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train every network of a setting, then explain what all of them get right, method by method."""
    methods = [plugins.method(name, METHODS) for name in choice.methods or settings.methods]
    panels = list(chosen_panels(settings, choice))
    tasks: list[Task] = []
    skips: list[dict[str, Any]] = []
    for panel in panels:
        nets = [(net, k) for net in chosen_nets(settings, choice, panel) for k in range(settings.trainings)]
        trained = [training_task(panel, net, k, settings, choice) for net, k in nets]
        shown = {"panel": panel, "samples": settings.samples, "sampling_seed": sampling_seed(choice)}
        tasks += [*trained, make_task(tetrominoes.show, shown, trained, name="examples", version=2)]
        for method, index in itertools.product(methods, range(-1, len(nets))):
            if method.null != (index == -1):
                continue  # a null ignores the model, so it is asked once for all of them
            net, k = nets[index] if index >= 0 else (None, -1)
            about = {**tetrominoes.factors(panel), "model": net.name if net else "none", "model_seed": k}
            reason = unable(method, net)
            if reason:
                skips.append({**about, "method": method.name, "status": "skipped", "message": reason, **NO_SAMPLE})
            else:
                tasks += explaining_tasks(method, index, about, trained, panel, settings, choice)
    tasks += sweep_tasks(panels, settings, choice)
    sizes = sorted({panel["setting"]["size"] for panel in panels})
    for size in sizes:
        asked = {"size": size, "metrics": list(settings.metrics)}
        tasks.append(make_task(strategies.compare, asked, name="strategies of Fig. B3", version=1))
    return Plan(tasks=tuple(tasks), skips=tuple(skips), facts=facts(panels))


NO_SAMPLE = {"part": "scores", "suite": "xaitris", "dataset": "tetromino", "metric": "", "sample": -1, "value": None}


def chosen_panels(settings: Settings, choice: Choice) -> Iterator[dict[str, Any]]:
    """Every size, scenario and background that was not left out, as plain values a task can be given."""
    names.check_factors(choice.only, ("size", "scenario", "background", "model"))
    sizes = names.kept([str(s) for s in settings.sizes], choice.only, "size")
    scenarios = names.kept(settings.scenarios, choice.only, "scenario")
    known = dict.fromkeys([*settings.backgrounds, "IMAGENET"] if choice.data else settings.backgrounds)
    backgrounds = names.kept(list(known), choice.only, "background")  # photographs are given in order to be used
    photos = {"path": choice.data, "digest": folders.digest(choice.data) if choice.data else None}
    for size, scenario, background in itertools.product(sizes, scenarios, backgrounds):
        setting = tetromino.resolve(
            tetromino.Setting(scenario, background, int(size), settings.alpha, settings.n, settings.data)
        )
        yield {
            "setting": dataclasses.asdict(setting),
            "photos": photos if background == "IMAGENET" else None,
            "seed": seeds.derive(choice.seed, "data"),
        }


def chosen_nets(settings: Settings, choice: Choice, panel: dict[str, Any]) -> list[Architecture]:
    """The networks to be explained: the linear model on the linear problem only, as in the paper."""
    linear = panel["setting"]["scenario"] == "LIN"
    return [net for net in admitted_nets(settings, choice) if linear or net.name != "llr"]


def admitted_nets(settings: Settings, choice: Choice) -> list[Architecture]:
    """Every network that was not left out."""
    return [names.find(net, MODELS, argument="models") for net in names.kept(settings.models, choice.only, "model")]


def training_task(
    panel: dict[str, Any], net: Architecture, k: int, settings: Settings, choice: Choice, part: str = "training"
) -> Task:
    setting = panel["setting"]
    recipe = recipes.recipe(settings.recipe, size=setting["size"], scenario=setting["scenario"])
    # In a sweep over alpha, chance is a result and no collapse.
    recipe = dataclasses.replace(recipe, gate=settings.gate, restarts=0 if part == "sweep" else recipe.restarts)
    arguments = {
        "panel": panel,
        "net": {"name": net.name, "version": net.version, "variant": settings.network},
        "recipe": dataclasses.asdict(recipe),
        "model_seed": k,
        "seed": seeds.derive(choice.seed, "training", k),
        "device": choice.device,
        "part": part,
    }
    name = f"train {net.name} {k}, {tetrominoes.title(panel)}"
    return make_task(tetrominoes.train_network, arguments, name=name, version=2)


def explaining_tasks(
    method: Method,
    index: int,
    about: dict[str, Any],
    trained: Sequence[Task],
    panel: dict[str, Any],
    settings: Settings,
    choice: Choice,
) -> list[Task]:
    """One task that makes the maps, one that scores them: a new score needs no new maps."""
    own = ":" in method.name
    asked = {
        "panel": panel,
        "index": index,
        "method": method.name,
        "version": method.version,
        "code": plugins.fingerprint(plugins.load(method.name, argument="methods")) if own else "",
        "samples": settings.samples,
        "output": "logits" if method.name in settings.logits_for else settings.output,
        "softmax": settings.softmax,
        "seed": seeds.derive(choice.seed, "method", about["model_seed"]),
        "sampling_seed": sampling_seed(choice),
        "device": choice.device,
    }
    what = f"{method.name}, {about['model']}, {tetrominoes.title(panel)}"
    maps = make_task(tetrominoes.attribute, asked, trained, name=f"explain: {what}", version=2)
    metrics = {m.name: m.version for m in chosen_metrics(settings)}
    judged = {"panel": panel, "about": about, "method": method.name, "metrics": metrics}
    return [maps, make_task(tetrominoes.score, judged, [maps], name=f"score: {what}", version=2)]


def sweep_tasks(panels: Sequence[dict[str, Any]], settings: Settings, choice: Choice) -> list[Task]:
    """Accuracy against alpha, as in Fig. B2, where the linear model is at chance but for the linear problem."""
    tasks = []
    for panel, alpha in itertools.product(panels, settings.sweep):
        moved = {**panel, "setting": {**panel["setting"], "alpha": alpha}}
        for net in admitted_nets(settings, choice):
            tasks.append(training_task(moved, net, 0, settings, choice, part="sweep"))
    return tasks


def sampling_seed(choice: Choice) -> int:
    """The seed by which images are drawn to be explained or given as references, one for the whole run."""
    return seeds.derive(choice.seed, "choose")


def unable(method: Method, net: Architecture | None) -> str:
    """Why the two cannot meet; empty where they can."""
    if "layer" in method.needs and net is not None and net.layer is None:
        return f"{method.name} reads a convolutional layer, and {net.name} has none"
    return ""


def chosen_metrics(settings: Settings) -> tuple[Metric, ...]:
    return tuple(names.find(name, METRICS, argument="metrics") for name in settings.metrics)


def facts(panels: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    said = []
    if any(
        panel["setting"]["scenario"] == "MULT" and panel["setting"]["variant"]["product"] == "pattern"
        for panel in panels
    ):
        said.append("MULT follows the printed equation 2, whose signal vanishes: networks stay at chance there.")
    return tuple(said)


def figures() -> Mapping[str, Callable[..., Any]]:
    from forsooth.suites.xaitris.figures import FIGURES  # matplotlib takes a second to import: only who draws pays

    return FIGURES


SUITE = Suite(
    name="xaitris",
    title="XAI-TRIS",
    question="Which methods find the pixels that are known to matter, and which are beaten by an edge detector?",
    presets={"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED},
    plan=plan,
    figures=figures,
    factors=("size", "scenario", "background", "model"),
    metrics=chosen_metrics,
    exhibits=("boxes", "examples", "globals", "accuracies", "accuracy_by_alpha", "strategies"),
    cite="clark2024xaitris",
)
