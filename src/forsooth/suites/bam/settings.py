"""What the BAM suite asks, at the scale of a demo, a laptop and the paper, and as released. [yang2019benchmarking]"""

from dataclasses import dataclass, replace
from typing import Literal

from forsooth.attributions import concepts

# GC, VG, SG, IG, IG-SG, GxI, GB, GGC of the paper; then SmoothGrad's other two, and others that apply
PUBLISHED = (
    *("grad_cam", "gradient", "smooth_grad", "integrated_gradients", "integrated_gradients_smooth"),
    *("gradient_x_input", "guided_backprop", "guided_grad_cam"),
)
MORE = (
    *("smooth_grad_absolute", "smooth_grad_squared", "saliency", "deconvolution", "gradient_shap"),
    *("deep_lift", "lrp", "lrp_epsilon_1", "deep_taylor"),
)
NULLS = ("random", "constant", "sobel", "laplace", "absolute_input")
RELEASED = tuple(
    {"smooth_grad": "smooth_grad_squared", "integrated_gradients_smooth": "integrated_gradients_smooth_squared"}.get(
        m, m
    )
    for m in PUBLISHED
)
DEAR = ("integrated_gradients_smooth", "integrated_gradients_smooth_squared")  # hundreds of gradients for one map
KS = tuple(k / 10 for k in range(1, 11))


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    ks           commonalities of the common feature, each with a network of its own; 1.0 is what they are set against
    samples      test images that are explained for MCS and IDR, and as many for IIR; methods of hundreds of gradients
                 are asked about `few`, as built
    fine         images for each k, of the class that always has the common feature
    placings     sizes and places of the objects; as_built is ranked, the others show robustness on `robust` images
    trials       parts into which the images are divided; the mean of each part is ranked
    scenes, cutouts  of a class, where they are generated; of the user's scenes at most so many (None: all)
    train, val, test           images of a pair of classes in X_{o,s}
    fine_train, fine_val, fine_test  images of a scene class in X^k
    feature      class of objects that is the common feature; empty: dog or disc
    first        class of scenes that always has the common feature; empty: the first by name. One that is hard to tell
                 makes the network need the feature
    same_objects test images show cut-outs of training, in new scenes, sizes and places: with some hundred cut-outs a
                 network cannot learn what a dog is, but it can learn these dogs, and then it needs them all the same
    pairing      see `datasets.pasted.pairs`
    trainings    of every network: all is asked of each
    stop_at      accuracy on val at which a training ends; None: as in the recipe
    start        file of weights, of ImageNet for example, that all layers but the last begin a training with (None:
                 drawn)
    weights      folder with a file for each trained network: f_o, f_s, f_0, f_s_0.1 … (.safetensors or .npz)
    search       for functionless patches: ours, or as printed, or as released
    percentile, lowest  of the reduction of a map to [0, 1]
    zero         what IIR is where a place has no attribution before and after
    sets, examples, level  random sets of TCAV, images in each, and the p that a layer must reach
    tcav         how concept vectors are found
    """

    models: tuple[str, ...] = ("resnet50",)
    methods: tuple[str, ...] = (*PUBLISHED, *MORE, *NULLS)
    metrics: tuple[str, ...] = ("mcs", "idr", "iir")
    ks: tuple[float, ...] = KS
    samples: int = 1000
    few: int = 100
    fine: int = 100
    placings: tuple[str, ...] = ("as_built", "smaller", "larger", "centre", "top_left", "bottom_right")
    robust: int = 200
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
    first: str = ""
    same_objects: bool = False
    pairing: Literal["spread", "released"] = "spread"
    recipe: Literal["quick", "paper"] = "paper"
    epochs: int | None = None
    gate: float = 0.5
    stop_at: float | None = None
    trainings: int = 1
    start: str | None = None
    weights: str | None = None
    search: Literal["ours", "printed", "released"] = "ours"
    percentile: float = 99.0
    lowest: Literal["minimum", "zero"] = "zero"
    zero: Literal["undefined", "failure"] = "undefined"
    sets: int = 20
    examples: int = 100
    level: float = concepts.LEVEL
    tcav: Literal["ridge", "sgd"] = "ridge"


PAPER = Settings()
RELEASED_SETTINGS = replace(
    PAPER,
    methods=(*RELEASED, *NULLS),
    pairing="released",
    search="released",
    lowest="minimum",
    zero="failure",
    tcav="sgd",
    sets=2,
)
QUICK = Settings(
    models=("residual_small",),
    ks=(0.1, 0.3, 0.6, 1.0),
    methods=tuple(name for name in (*PUBLISHED, *MORE, *NULLS) if name != "gradient_shap"),
    samples=40,
    few=10,
    fine=30,
    placings=("as_built", "smaller", "centre"),
    robust=15,
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
    sets=10,
    examples=50,
)
DEMO = replace(
    QUICK,
    ks=(0.1, 1.0),
    methods=tuple(name for name in QUICK.methods if name not in DEAR and not name.startswith("smooth_grad")),
    samples=20,
    fine=10,
    placings=("as_built",),
    epochs=12,
    stop_at=0.8,
    sets=6,
)
