"""What decides a run of the bias suite, and its presets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forsooth.games.shapley import MOST_PLAYERS
from forsooth.records import UsageError
from forsooth.settings import ABOVE_0, BELOW_1, SIDES, check_range

SHAPLEY = "shapley"  # the other end of the scale: Shapley values of another seed, or the same where they are exact
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
NOT_PUBLISHED = (
    "saliency",
    "smooth_grad",
    "deep_lift",
    "lrp",
    "gradient_shap",
    "kernel_shap",
    "lime",
    "shapley_sampling",
)
SMALL_NETWORKS = ("mlp5", "mlp", "lenet")
RESNETS = ("resnet20", "resnet32", "resnet44", "resnet56")
VISION = ("resnet50", "resnet101", "alexnet", "vgg16", "vgg19")
LARGE_NETWORKS = (*RESNETS, *VISION)


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    datasets      what is played on; data given with `--data` come on top
    models        networks that are explained, each on the datasets it is made for
    players       "input": parts of the input; "units": places of the layer that Grad-CAM reads
    methods       who is judged; "shapley" are the Shapley values themselves, sampled a second time
    ends          which players of a map are judged: its highest or its lowest
    fractions     share of the players that is judged, at each end
    grid          images are cut into grid × grid patches; None: each pixel plays
    permutations  random orders of joining
    exact_up_to   players up to which all coalitions are played instead: with 12 they cost less than a thousand orders
    antithetic    each order is played backwards, too
    samples       test inputs explained per network: those that all its trainings get right
    trainings     of each network from different starts (the paper: 1); weights from a file are one
    baseline      what takes the place of absent players: mean or mean of a channel over training data, zero, or a blur
    output        what the players earn: logits or probabilities of the class
    same_game     methods that take a baseline or players are given those of the game; else their own, as published
    channels      how the colours of a gradient become one number (the paper: the one of largest magnitude)
    one_colour    whose colours become one in this way: gradients, since the other maps are sums by nature, or all maps
    ties          who of equal players is in the group at its edge
    layer         whose units play; None: that of the architecture's Grad-CAM
    side          of generated and cropped images
    """

    datasets: tuple[str, ...] = ("interactions", "tetromino", "leaves")
    models: tuple[str, ...] = (*SMALL_NETWORKS, *LARGE_NETWORKS)
    players: tuple[str, ...] = ("input", "units")
    methods: tuple[str, ...] = (*PUBLISHED, *NULLS, SHAPLEY)
    ends: tuple[str, ...] = ("top", "bottom")
    fractions: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    grid: int | None = None
    permutations: int = 1000
    exact_up_to: int = 12
    antithetic: bool = False
    samples: int = 50
    trainings: int = 2
    baseline: Literal["mean", "channel_mean", "zero", "blur"] = "mean"
    output: Literal["logits", "probabilities"] = "logits"
    same_game: bool = False
    channels: Literal["signed_max", "max_abs", "sum"] = "signed_max"
    one_colour: Literal["gradients", "all"] = "gradients"
    ties: Literal["share", "first"] = "share"
    layer: str | None = None
    side: int = 32


PAPER = Settings()
QUICK = Settings(
    models=SMALL_NETWORKS,
    methods=(*PUBLISHED, *NOT_PUBLISHED, *NULLS, SHAPLEY),
    grid=8,
    permutations=400,
    samples=20,
    trainings=3,
    same_game=True,
)
DEMO = replace(QUICK, permutations=60, samples=8, trainings=2)
PRESETS: Mapping[str, Settings] = {"demo": DEMO, "quick": QUICK, "paper": PAPER}
RENAMED: Mapping[str, str] = {}


def check(settings: Settings) -> None:
    """A UsageError that names the field, where no run could follow from the settings."""
    check_range(settings, ("trainings", "samples", "permutations", "grid"), 1)
    if settings.antithetic and settings.permutations % 2:
        raise UsageError(f"`permutations` must be even where each is played backwards, got {settings.permutations:,}")
    check_range(settings, ("exact_up_to",), 0, MOST_PLAYERS)
    check_range(settings, ("fractions",), ABOVE_0, BELOW_1, what="shares strictly between 0 and 1")
    check_range(settings, ("side",), *SIDES)
