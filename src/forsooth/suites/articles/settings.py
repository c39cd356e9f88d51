"""What the articles suite asks, at the scale of a demo, a laptop and the paper. [zhou2022feature]"""

from dataclasses import dataclass, replace
from typing import Literal

from forsooth.datasets.articles import KINDS
from forsooth.models import train_text
from forsooth.records import UsageError

ATTENTION, RELAXED, REINFORCE = "attention", "rationale_relaxed", "rationale_reinforce"
OWN = {"attention": (ATTENTION,), "rationale": (RELAXED, REINFORCE)}  # method -> the models that have it
POST_HOC = (
    *("gradient", "gradient_x_input", "integrated_gradients", "smooth_grad"),
    *("lime", "kernel_shap", "shapley_sampling", "occlusion"),
)
NULLS = ("random", "constant", "oracle")
SELECTIONS = ("precision_selected", "recall_selected")
RECIPES = {
    "quick": dict(
        zip(
            (ATTENTION, RELAXED, REINFORCE),
            (train_text.ATTENTION_QUICK, train_text.RELAXED_QUICK, train_text.REINFORCE_QUICK),
            strict=True,
        )
    ),
    "paper": {ATTENTION: train_text.ATTENTION_PAPER, **dict.fromkeys(OWN["rationale"], train_text.RATIONALE_PAPER)},
    "released": {
        ATTENTION: train_text.ATTENTION_PAPER,
        **dict.fromkeys(OWN["rationale"], train_text.RATIONALE_RELEASED),
    },
}


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    kinds                Article: all articles tell the label; CN: those of the first half; NC: those of the second
    trainings            of the attention model of each kind; `rationale_trainings` of each rationale model and rate
    rates_article        target rates of selection in Article; `rates_halves` in CN and NC
    rate_article         the rate whose model all methods explain, the others are asked for their selection only;
                         `rate_halves` in CN and NC
    sizes                documents in train, val and test; all shrink by one factor where there are fewer
    length               tokens after which a document is cut
    filtered             leave out documents without an article in each half
    vectors              .npz of word vectors, which then stay as they are; None: learned
    recipe               "released": the regulariser of the rate as in the authors' code
    samples              test documents that are explained; None: all
    gate, gate_reinforce least test accuracy of a model that is explained, and of one trained by REINFORCE
    epochs               of a training at most; None: as in the recipe
    restarts             new beginnings of a training that does not meet its aims
    """

    kinds: tuple[str, ...] = KINDS
    models: tuple[str, ...] = (ATTENTION, RELAXED, REINFORCE)
    methods: tuple[str, ...] = (*OWN, *POST_HOC, *NULLS)
    metrics: tuple[str, ...] = ("attr_words", "attr_words_non_correlating")
    trainings: int = 11
    rationale_trainings: int = 1
    rates_article: tuple[float, ...] = (0.07, 0.09, 0.11, 0.13, 0.15)
    rates_halves: tuple[float, ...] = (0.03, 0.05, 0.07, 0.09)
    rate_article: float = 0.09
    rate_halves: float = 0.05
    sizes: tuple[int, int, int] = (10_000, 1_000, 1_000)
    length: int = 256
    cap: int = 20_000
    filtered: bool = True
    vectors: str | None = None
    attention_variant: Literal["paper", "small"] = "paper"
    rationale_variant: Literal["paper", "fused", "small"] = "paper"
    recipe: Literal["quick", "paper", "released"] = "paper"
    samples: int | None = 200
    gate: float = 0.95
    gate_reinforce: float = 0.9
    epochs: int | None = None
    restarts: int = 0


PAPER = Settings()
RELEASED = replace(PAPER, recipe="released")
QUICK = Settings(
    trainings=2,
    rationale_trainings=2,
    rates_article=(0.05, 0.09, 0.13),
    rates_halves=(),
    sizes=(2_000, 400, 400),
    attention_variant="small",
    rationale_variant="small",
    recipe="quick",
    samples=20,
    gate=0.97,
    gate_reinforce=0.9,
)
DEMO = replace(
    QUICK,
    kinds=("Article", "CN"),
    models=(ATTENTION, RELAXED),
    methods=tuple(name for name in QUICK.methods if name != "kernel_shap"),  # the dearest; shapley_sampling is its like
    rates_article=(),
    rates_halves=(),
    samples=6,
)


def check(settings: Settings) -> None:
    """UsageError where a number cannot be what it stands for."""
    for name in ("trainings", "rationale_trainings", "samples", "epochs"):
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise UsageError(f"`{name}` must be at least 1, got {value}")
    for name in ("gate", "gate_reinforce"):
        if not 0 <= getattr(settings, name) <= 1:
            raise UsageError(f"`{name}` must be an accuracy from 0 to 1, got {getattr(settings, name)}")
