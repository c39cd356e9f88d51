"""What the XAI-TRIS suite asks, at the scale of a demo, a laptop and the paper. [clark2024xaitris]"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forsooth.datasets import tetromino_settings as tetromino
from forsooth.records import Names, UsageError
from forsooth.settings import ABOVE_0, check_range, check_some

NETS = ("llr", "mlp", "cnn")

TABLE_B1 = (  # the sixteen, in settings that can work
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
)
# As Table B1 sets them: library defaults, zero baselines, 25 samples.
AS_PRINTED = {
    "gradient_shap": "gradient_shap_5",
    "kernel_shap": "kernel_shap_25",
    "deep_shap": "deep_shap_zero",
    "lime": "lime_25",
}
ENDS = ("sobel", "laplace", "random", "rectified_input", "constant", "oracle")  # of every scale
SOUND = [*TABLE_B1, "gradient_x_input", "smooth_grad", *ENDS]
PUBLISHED = [*(AS_PRINTED.get(name, name) for name in TABLE_B1), *ENDS]
RELEASED_NULLS = {"sobel": "sobel_released", "rectified_input": "absolute_input"}


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    sizes        sides of the images: 8 or 64 pixels
    scenarios    LIN, MULT, RIGID, XOR: how the tetrominoes carry the label
    backgrounds  WHITE, CORR, IMAGENET: what they lie on
    models       networks that are trained and explained
    methods      that are asked; `--methods` takes others
    metrics      that the maps are scored by
    trainings    networks trained per setting and architecture
    samples      test images explained per setting at most; None: all that every model predicts correctly
    n            images of a dataset; None: as published for the size
    alpha        signal-to-noise ratio; None: as published for the size
    data         where the paper's text and its code part in the data: `labels`, `product`, `threshold`, `support`,
                 `rigid`, `positions`, `noise`, `storage`
    network      networks as printed, or as in the released code
    recipe       how they are trained: quickly, as printed, or as in the released code
    restarts     new beginnings of a training that ends below the gate on the validation images; None: as the recipe has
    gate         test accuracy below which a network is not explained
    output       what is explained of a network: its logits, or the probabilities behind its softmax
    logits_for   methods that explain logits whatever `output` says
    softmax      where probabilities are explained: each method's own rule, or the plain gradient, as released
    emd_tolerance  largest error of the earth mover's score above 8×8, by proven bounds; the column `emd_error` has each
                 map's own. None: exact. At 8×8 it is always exact
    sweep        values of alpha at which accuracy is measured, as in Fig. B2, with one short training each
    """

    sizes: tuple[int, ...] = (8,)
    scenarios: Names = tetromino.SCENARIOS
    backgrounds: Names = tetromino.BACKGROUNDS
    models: Names = NETS
    methods: Names = tuple(PUBLISHED)
    metrics: Names = ("emd", "ima", "precision")
    trainings: int = 5
    samples: int | None = None
    n: int | None = None
    alpha: float | None = None
    data: tetromino.Variant = tetromino.PAPER
    network: Literal["paper", "released"] = "paper"
    recipe: Literal["quick", "paper", "released"] = "paper"
    restarts: int | None = None
    gate: float = 0.8
    output: Literal["logits", "probabilities"] = "logits"
    logits_for: Names = ()
    softmax: Literal["rule", "gradient"] = "rule"
    emd_tolerance: float | None = None
    sweep: tuple[float, ...] = ()


# The released code multiplies by the raw pattern; the printed equation 2 has no signal (see Table B2 reproduced).
QUICK = Settings(
    backgrounds=("WHITE", "CORR"),
    methods=(*SOUND, "lime_25", "kernel_shap_25"),
    trainings=3,  # with two, nothing can be claimed of a single panel
    samples=100,
    data=replace(tetromino.RELEASED, positions="all"),
    network="released",
    recipe="quick",
    sweep=(0.05, 0.2),
)
DEMO = replace(QUICK, scenarios=("LIN", "XOR"), trainings=2, samples=50, sweep=())
# Section 2.2 prints networks that end in a softmax, and says of no method that it is left out.
PAPER = Settings(sizes=(8, 64), output="probabilities", emd_tolerance=1e-3)
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
    emd_tolerance=1e-3,
)

LARGE = replace(RELEASED, sizes=(64,))
SMALL = replace(RELEASED, sizes=(8,), backgrounds=("WHITE", "CORR"))
PRESETS: Mapping[str, Settings] = {"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED}


def check(settings: Settings) -> None:
    """UsageError where a number cannot be what it stands for, before any work."""
    check_some(settings, ("sizes", "scenarios"))
    for size in settings.sizes:
        if size not in tetromino.SAMPLES:
            raise UsageError(f"`sizes` must be of {', '.join(map(str, tetromino.SAMPLES))}, got {size:,}")
    check_range(settings, ("trainings", "samples", "n"), 1)
    check_range(settings, ("restarts",), 0)
    check_range(settings, ("gate",), 0, 1, what="an accuracy from 0 to 1")
    check_range(settings, ("alpha", "sweep"), 0, 1, what="a share of signal from 0 to 1")
    check_range(settings, ("emd_tolerance",), ABOVE_0, 1, what="above 0 and at most 1, or none for exact scores")
