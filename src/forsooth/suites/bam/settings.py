"""What the BAM suite asks, at the scale of a demo, a laptop and the paper, and as released. [yang2019benchmarking]"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forsooth.attributions import concepts
from forsooth.datasets.pasted import VARIANTS
from forsooth.records import UsageError
from forsooth.settings import ABOVE_0, SIDES, check_range, check_words

# GC, VG, SG, IG, IG-SG, GxI, GB, GGC of the paper; then SmoothGrad's other two, and others that apply
PUBLISHED = (
    "grad_cam",
    "gradient",
    "smooth_grad",
    "integrated_gradients",
    "integrated_gradients_smooth",
    "gradient_x_input",
    "guided_backprop",
    "guided_grad_cam",
)
MORE = (
    "smooth_grad_absolute",
    "smooth_grad_squared",
    "saliency",
    "deconvolution",
    "gradient_shap",
    "deep_lift",
    "lrp",
    "lrp_epsilon_1",
    "deep_taylor",
)
NULLS = ("random", "constant", "sobel", "laplace", "absolute_input")
RELEASED_MAPS = (  # under two names of the paper the released code has squares
    "grad_cam",
    "gradient",
    "smooth_grad_squared",
    "integrated_gradients",
    "integrated_gradients_smooth_squared",
    "gradient_x_input",
    "guided_backprop",
    "guided_grad_cam",
)
KS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
AS_BUILT = "as_built"
METRICS = ("mcs", "idr", "iir")  # of two maps each, whereas other scores take one
COUNTS = (
    *("samples", "samples_expensive", "samples_per_k", "samples_robustness", "trials", "trainings", "epochs"),
    *("scenes", "cutouts", "train", "val", "test", "fine_train", "fine_val", "fine_test", "examples"),
)


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    models              architectures, each trained on every set
    methods             names of the catalogue, or package.module:name
    metrics             scores of the board
    ks                  commonalities of the common feature, a network for each; 1.0 is what the others are set against
    samples             test images that are explained for MCS and IDR, and as many for IIR
    samples_expensive   as many for methods of hundreds of gradients a map, with objects as built alone
    samples_per_k       images for each k, of the class that always has the common feature
    placings            sizes and places of the objects; as_built is ranked, the others show robustness
    samples_robustness  images for each other size or place
    trials              parts into which the images are divided; the mean of each part is ranked
    side                of the images, px
    scenes              of a class, where they are generated; of the user's scenes at most so many (None: all)
    cutouts             of a class, where they are generated
    train               training images of a pair of classes in X_{o,s}
    val                 validation images of such a pair
    test                test images of such a pair
    fine_train          training images of a scene class in X^k
    fine_val            validation images of such a class
    fine_test           test images of such a class
    feature             class of objects that is the common feature; empty: dog or disc
    first_scene         class of scenes that always has the common feature; empty: the first by name. One that is hard
                        to recognise makes the network need the feature
    same_objects        test images show cut-outs of training, in new scenes, sizes and places: with some hundred
                        cut-outs a network cannot learn what a dog is, but it can learn these dogs
    pairing             how cut-outs meet scenes, see `datasets.pasted.pairs`
    recipe              how networks are trained: quick, or paper, which takes an accelerator
    epochs              of a training (None: as in the recipe)
    gate                test accuracy from which a network is explained
    stop_at             accuracy on val at which a training ends (None: as in the recipe)
    trainings           of every network (the paper: 1): all is asked of each; with `weights` there is one
    initial_weights     file of weights, of ImageNet for example, for all layers but the last (None: drawn)
    weights             folder with a file for each trained network: f_o, f_s, f_0, f_s_0.1 … (.safetensors or .npz)
    search              for functionless patches: ours, or as printed, or as released
    percentile          at which a map is cut before it is scaled to [0, 1]
    lowest              what becomes 0 in it: its own minimum, or zero
    zero                what IIR is where a place has no attribution before and after
    random_sets         of TCAV, which the concept is set against
    examples            images of the concept, and of each random set
    level               p-value that a layer must reach in TCAV
    tcav                how concept vectors are found: ridge in closed form, or sgd as released
    """

    models: tuple[str, ...] = ("resnet50",)
    methods: tuple[str, ...] = (*PUBLISHED, *MORE, *NULLS)
    metrics: tuple[str, ...] = METRICS
    ks: tuple[float, ...] = KS
    samples: int = 1000
    samples_expensive: int = 100
    samples_per_k: int = 100
    placings: tuple[str, ...] = (AS_BUILT, "smaller", "larger", "centre", "top_left", "bottom_right")
    samples_robustness: int = 200
    trials: int = 10
    side: int = 128
    scenes: int | None = None
    cutouts: int = 1000
    train: int = 900
    val: int = 50
    test: int = 50
    fine_train: int = 900
    fine_val: int = 50
    fine_test: int = 100
    feature: str = ""
    first_scene: str = ""
    same_objects: bool = False
    pairing: Literal["spread", "released"] = "spread"
    recipe: Literal["quick", "paper"] = "paper"
    epochs: int | None = None
    gate: float = 0.5
    stop_at: float | None = None
    trainings: int = 2
    initial_weights: str | None = None
    weights: str | None = None
    search: Literal["ours", "printed", "released"] = "ours"
    percentile: float = 99.0
    lowest: Literal["minimum", "zero"] = "zero"
    zero: Literal["undefined", "failure"] = "undefined"
    random_sets: int = 20
    examples: int = 100
    level: float = concepts.LEVEL
    tcav: Literal["ridge", "sgd"] = "ridge"


RENAMED: Mapping[str, str] = {
    "few": "samples_expensive",
    "fine": "samples_per_k",
    "robust": "samples_robustness",
    "sets": "random_sets",
    "first": "first_scene",
    "start": "initial_weights",
}

PAPER = Settings()
RELEASED = replace(
    PAPER,
    methods=(*RELEASED_MAPS, *NULLS),
    pairing="released",
    search="released",
    lowest="minimum",
    zero="failure",
    tcav="sgd",
    random_sets=2,
)
QUICK = Settings(
    models=("residual_small",),
    ks=(0.1, 0.3, 0.6, 1.0),
    methods=(
        *PUBLISHED,
        "smooth_grad_absolute",
        "smooth_grad_squared",
        "saliency",
        "deconvolution",
        "deep_lift",
        "lrp",
        "lrp_epsilon_1",
        "deep_taylor",
        *NULLS,
    ),
    samples=40,
    samples_expensive=10,
    samples_per_k=30,
    placings=(AS_BUILT, "smaller", "centre"),
    samples_robustness=15,
    side=48,
    scenes=300,
    cutouts=300,  # as many as are shown in training: a network that sees them twice learns them by heart
    train=16,
    val=2,
    test=3,
    fine_train=100,
    fine_val=20,
    fine_test=60,
    recipe="quick",
    epochs=15,
    gate=0.5,
    stop_at=0.9,
    trainings=2,
    random_sets=10,
    examples=50,
)
DEMO = replace(
    QUICK,
    ks=(0.1, 1.0),
    methods=(  # of the quick ones those without many noisy copies
        "grad_cam",
        "gradient",
        "integrated_gradients",
        "gradient_x_input",
        "guided_backprop",
        "guided_grad_cam",
        "saliency",
        "deconvolution",
        "deep_lift",
        "lrp",
        "lrp_epsilon_1",
        "deep_taylor",
        *NULLS,
    ),
    samples=20,
    samples_per_k=10,
    placings=(AS_BUILT,),
    epochs=12,
    stop_at=0.8,
    random_sets=6,
)
PRESETS: Mapping[str, Settings] = {"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED}


def check(settings: Settings) -> None:
    """Refuse what cannot be, before any work."""
    if 1.0 not in settings.ks:
        raise UsageError(f"`ks` must hold 1.0, which the others are set against, got {settings.ks}")
    check_range(settings, COUNTS, 1)
    check_range(settings, ("random_sets",), 2)
    check_range(settings, ("side",), *SIDES)
    check_range(settings, ("ks",), ABOVE_0, 1, what="shares above 0 and at most 1")
    check_range(settings, ("gate", "stop_at"), 0, 1, what="an accuracy from 0 to 1")
    check_range(settings, ("percentile",), ABOVE_0, 100, what="above 0 and at most 100")
    check_range(settings, ("level",), ABOVE_0, 1, what="a probability above 0 and at most 1")
    check_words(settings, {"placings": VARIANTS, "metrics": METRICS})
    if AS_BUILT not in settings.placings:
        raise UsageError(f"`placings` must hold {AS_BUILT}, which is ranked, got {settings.placings}")
