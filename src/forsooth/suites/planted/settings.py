"""What the planted suite asks, at the scale of a demo, a laptop and the paper. [zhou2022feature]"""

from dataclasses import dataclass, replace
from typing import Literal

from forsooth.datasets.manipulations import NAMES

PUBLISHED = ("saliency", "smooth_grad", "grad_cam", "lime_superpixels", "gradient_shap_200")
# The paper prints the mean of signed gradients, and LIME as its package comes, with 1,000 masks; its code has others.
RELEASED_MAPS = {"smooth_grad": "smooth_grad_50", "lime_superpixels": "lime_quickshift_200"}
MORE = (
    *("gradient_x_input", "integrated_gradients", "guided_backprop", "guided_grad_cam", "deconvolution"),
    *("deep_lift", "lrp", "lrp_epsilon_1", "deep_taylor"),
)
NULLS = ("random", "constant", "sobel", "laplace", "rectified_input", "oracle")
ENDS = ("random", "constant", "oracle")
EXPERIMENTS = ("5.1", "5.2", "5.3", "5.4", "border")


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    experiments  sections of the paper; "border": Attr% of the non-informative features F_N
    methods      asked in 5.1; `traced` are asked in the other experiments
    trainings    5.1: trainings of a manipulation, each with a region and a pair of classes of its own
    followed     5.2: how many of them are explained at their checkpoints, too
    deeper       manipulations of 5.3, 5.4 and border
    groups       5.3 and border: regions of a manipulation
    levels       5.3: numbers of the levels of visibility, 0 to 4, each trained in every group
    rs           5.4: chances to keep a label
    kinds, pairs 5.4: kinds of pairs of classes, and how many pairs of each
    level        5.1: the level of visibility, 0 to 4, that is planted; None: the paper's own, often less than level 0
    strength     times the paper's visibility: small images need more
    maps         settings of SmoothGrad and LIME, where the paper's text and the released code part: "printed" is the
                 mean of signed gradients and 1,000 masks, "released" that of absolute ones and 200 masks
    variant      of the artefacts, where the paper's text and the released code part
    samples      test images with the artefact and as many without that are explained; None: all
    per_class    images of a class: so many are generated, or read at most (None: all)
    classes      kinds of generated images; of the user's all are taken
    gate         least test accuracy of a model that is explained
    luck         largest probability of that accuracy for a model that does not know the artefact
    epochs       of a training at most; None: as in the recipe
    batch        images of a step; None: as in the recipe. Few images need small ones, or there are few steps
    restarts     new beginnings of a training that stays below the gate
    lime_output  what LIME explains; `output` is for all others
    """

    experiments: tuple[str, ...] = EXPERIMENTS
    manipulations: tuple[str, ...] = NAMES
    presences: tuple[str, ...] = ("with", "without")
    models: tuple[str, ...] = ("resnet34",)
    methods: tuple[str, ...] = (*PUBLISHED, *MORE, *NULLS)
    traced: tuple[str, ...] = (*PUBLISHED, *ENDS)
    metrics: tuple[str, ...] = ("attr", "precision_top", "recall_top")
    trainings: int = 20
    followed: int = 20
    deeper: tuple[str, ...] = NAMES
    groups: int = 4
    levels: tuple[int, ...] = (0, 1, 2, 3, 4)
    rs: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    kinds: tuple[str, ...] = ("similar", "distinct")
    pairs: int = 2
    level: int | None = None
    strength: float = 1.0
    variant: Literal["printed", "released"] = "printed"
    maps: Literal["printed", "released"] = "printed"
    samples: int | None = None
    side: int = 224
    per_class: int | None = 1200
    classes: int = 6
    recipe: Literal["quick", "paper"] = "paper"
    gate: float = 0.95
    luck: float = 1e-3
    epochs: int | None = None
    batch: int | None = None
    restarts: int = 0
    output: Literal["logits", "probabilities"] = "logits"
    lime_output: Literal["logits", "probabilities"] = "probabilities"


PAPER = Settings()
RELEASED = replace(PAPER, variant="released", maps="released")
QUICK = Settings(
    models=("residual_small",),
    traced=("saliency", "grad_cam", "gradient_shap", "guided_grad_cam", *ENDS),
    trainings=3,  # two tell next to nothing apart
    followed=1,
    deeper=("watermark", "striped_hue"),
    groups=1,
    levels=(0, 2, 4),
    rs=(0.5, 0.75, 1.0),
    kinds=("similar",),
    pairs=1,
    level=3,
    strength=2.0,
    maps="released",  # a fifth of the masks
    samples=10,
    side=64,
    per_class=800,
    classes=2,
    recipe="quick",
    gate=0.9,
    epochs=15,
    restarts=1,
)
DEMO = replace(
    QUICK,
    experiments=("5.1", "5.3"),
    manipulations=("striped_hue", "striped_noise", "watermark"),
    methods=tuple("gradient_shap" if name == "gradient_shap_200" else name for name in QUICK.methods),
    traced=("saliency", "grad_cam", "guided_grad_cam", *ENDS),
    trainings=2,
    deeper=("watermark",),
    levels=(3, 4),
    samples=4,
)
