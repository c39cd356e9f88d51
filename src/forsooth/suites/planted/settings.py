"""What the planted suite asks, at the scale of a demo, a laptop and the paper. [zhou2022feature]"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forsooth.datasets.leaves import LEAVES
from forsooth.datasets.manipulations import NAMES
from forsooth.records import Names
from forsooth.settings import ABOVE_0, SIDES, check_range, check_words

PUBLISHED = ("saliency", "smooth_grad", "grad_cam", "lime_superpixels", "gradient_shap_200")
# The paper prints the mean of signed gradients, and LIME as its package comes, with 1,000 masks; its code has others.
RELEASED_MAPS = {"smooth_grad": "smooth_grad_50", "lime_superpixels": "lime_quickshift_200"}
MORE = (
    "gradient_x_input",
    "integrated_gradients",
    "guided_backprop",
    "guided_grad_cam",
    "deconvolution",
    "deep_lift",
    "lrp",
    "lrp_epsilon_1",
    "deep_taylor",
)
NULLS = ("random", "constant", "sobel", "laplace", "rectified_input", "oracle")
ENDS = ("random", "constant", "oracle")
EXPERIMENTS = ("5.1", "5.2", "5.3", "5.4", "border")
PRESENCES = ("with", "without")
KINDS = ("similar", "distinct")
LEVELS = (0, 1, 2, 3, 4)
Output = Literal["logits", "probabilities"]
RENAMED: Mapping[str, str] = {
    "luck": "max_p_value",
    "traced": "methods_followup",
    "deeper": "manipulations_followup",
    "followed": "runs_with_checkpoints",
    "rs": "r_values",
    "lime_output": "authors_output",
}


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    experiments            sections of the paper; "border": Attr% of the non-informative features F_N
    manipulations          artefacts of 5.1 and 5.2
    presences              images that are explained: "with" the artefact, "without" it, or both
    models                 networks that are trained
    methods                explain the networks of 5.1
    methods_followup       explain those of all other experiments
    metrics                of 5.1; the others score Attr% alone
    trainings              5.1: trainings of a manipulation, each with a region and a pair of classes of its own
    runs_with_checkpoints  5.2: how many of them are explained at their checkpoints, too
    manipulations_followup artefacts of 5.3, 5.4 and border
    groups                 5.3 and border: regions of a manipulation
    levels                 5.3: numbers of the levels of visibility, 0 to 4, each trained in every group
    r_values               5.4: chances to keep a label
    kinds                  5.4: kinds of pairs of classes, "similar" and "distinct"
    pairs                  5.4: pairs of classes of each kind
    level                  5.1: the level of visibility that is planted; None: the paper's own, often less than level 0
    strength               times the paper's visibility: small images need more
    variant                of the artefacts, where the paper's text and the released code part
    maps                   settings of SmoothGrad and LIME, where they part: "printed" is the mean of signed gradients
                           and 1,000 masks, "released" that of absolute ones and 200 masks
    samples                test images with the artefact that are explained, and as many without; None: all
    side                   of the images, px
    per_class              images of a class: so many are generated, or read at most (None: all)
    classes                kinds of generated images; of the user's all are taken
    recipe                 how networks are trained: "paper", or "quick" for small ones
    gate                   least test accuracy of a model that is explained
    max_p_value            largest probability of that accuracy for a model that does not know the artefact
    epochs                 of a training at most; None: as in the recipe
    batch                  images of a step; None: as in the recipe. Few images need small ones, or there are few steps
    restarts               new attempts allowed to a training that stays below the gate
    output                 of the model that methods explain
    authors_output         whether a method whose authors explain another output (LIME: probabilities) explains theirs
    """

    experiments: Names = EXPERIMENTS
    manipulations: Names = NAMES
    presences: Names = PRESENCES
    models: Names = ("resnet34",)
    methods: Names = (*PUBLISHED, *MORE, *NULLS)
    methods_followup: Names = (*PUBLISHED, *ENDS)
    metrics: Names = ("attr", "precision_top", "recall_top")
    trainings: int = 20
    runs_with_checkpoints: int = 20
    manipulations_followup: Names = NAMES
    groups: int = 4
    levels: tuple[int, ...] = LEVELS
    r_values: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    kinds: Names = KINDS
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
    max_p_value: float = 1e-3
    epochs: int | None = None
    batch: int | None = None
    restarts: int = 0
    output: Output = "logits"
    authors_output: bool = True


PAPER = Settings()
RELEASED = replace(PAPER, variant="released", maps="released")
QUICK = Settings(
    models=("residual_small",),
    methods_followup=("saliency", "grad_cam", "gradient_shap", "guided_grad_cam", *ENDS),
    trainings=3,  # two tell next to nothing apart
    runs_with_checkpoints=1,
    manipulations_followup=("watermark", "striped_hue"),
    groups=1,
    levels=(0, 2, 4),
    r_values=(0.5, 0.75, 1.0),
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
    methods=(*PUBLISHED[:-1], "gradient_shap", *MORE, *NULLS),
    methods_followup=("saliency", "grad_cam", "guided_grad_cam", *ENDS),
    trainings=2,
    manipulations_followup=("watermark",),
    levels=(3, 4),
    samples=4,
)
PRESETS: Mapping[str, Settings] = {"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED}


def check(settings: Settings) -> None:
    """UsageError where a word or number has no meaning, before any work."""
    words = {"experiments": EXPERIMENTS, "presences": PRESENCES, "kinds": KINDS, "manipulations": NAMES}
    check_words(settings, {**words, "manipulations_followup": NAMES})
    check_range(settings, ("level", "levels"), LEVELS[0], LEVELS[-1], what=f"0 to {LEVELS[-1]}")
    check_range(settings, ("trainings", "samples", "groups", "pairs", "per_class", "epochs", "batch"), 1)
    check_range(settings, ("runs_with_checkpoints", "restarts"), 0)
    check_range(settings, ("classes",), 2, len(LEAVES))
    check_range(settings, ("side",), *SIDES)
    check_range(settings, ("r_values", "max_p_value"), 0, 1, what="a probability from 0 to 1")
    check_range(settings, ("gate",), 0, 1, what="an accuracy from 0 to 1")
    check_range(settings, ("strength",), ABOVE_0, 1_000, what="above 0 and at most 1,000")
