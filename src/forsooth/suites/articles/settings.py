"""What the articles suite asks, at the scale of a demo, a laptop and the paper. [zhou2022feature]"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from forsooth.datasets.articles import KINDS, LEAST_WORDS
from forsooth.settings import ABOVE_0, BELOW_1, check_range

ATTENTION = "attention"
RELAXED = "rationale_relaxed"
REINFORCE = "rationale_reinforce"
ENCODER = "text_encoder"
READERS = (ATTENTION, RELAXED, REINFORCE)
ALL_READERS = (*READERS, ENCODER)  # the transformer is of no preset
PLAIN = (ATTENTION, ENCODER)  # those that select no words
INTRINSIC = ("attention", "rationale")  # what a model says of itself
POST_HOC = (
    "gradient",
    "gradient_x_input",
    "integrated_gradients",
    "smooth_grad",
    "lime",
    "kernel_shap",
    "shapley_sampling",
    "occlusion",
)
NULLS = ("random", "constant", "oracle")
RENAMED: Mapping[str, str] = {"cap": "max_vocabulary", "filtered": "require_articles_in_both_halves"}


@dataclass(frozen=True)
class Settings:
    """Everything that decides the numbers.

    kinds                Article: all articles tell the label; CN: those of the first half; NC: those of the second
    models               attention, rationale_relaxed, rationale_reinforce, text_encoder: who is trained and explained
    methods              of the catalogue, asked where a model can answer
    metrics              of the catalogue, on which methods are ranked
    trainings            of the attention model and of the transformer of each kind
    rationale_trainings  of each rationale model, for each kind and rate (the paper: 1)
    rates_article        target rates of selection in Article, beside `rate_article`
    rates_halves         target rates of selection in CN and NC, beside `rate_halves`
    rate_article         in Article, the rate whose model all methods explain; the others only select
    rate_halves          the same in CN and NC
    sizes                documents in train, val and test; all shrink by one factor where there are fewer
    length               tokens after which a document is cut
    max_vocabulary       words in the vocabulary at most
    require_articles_in_both_halves  leave out documents without an article in each half
    vectors              .npz of word vectors, which then stay as they are; None: learned
    attention_variant    size of the attention model and of the transformer: as in the paper, or small
    rationale_variant    cell and size of the rationale models: as in the paper, fused (an LSTM of that size), or small
    recipe               how they are trained; "released": the regulariser of the rate as in the authors' code
    samples              test documents that are explained; None: all
    gate                 least test accuracy of a model that is explained
    gate_reinforce       the same of one trained by REINFORCE
    epochs               of a training at most; None: as in the recipe
    restarts             how often a training that does not meet its aims is restarted
    """

    kinds: tuple[str, ...] = KINDS
    models: tuple[str, ...] = READERS
    methods: tuple[str, ...] = (*INTRINSIC, *POST_HOC, *NULLS)
    metrics: tuple[str, ...] = ("attr_words", "attr_words_non_correlating")
    trainings: int = 11
    rationale_trainings: int = 2
    rates_article: tuple[float, ...] = (0.07, 0.09, 0.11, 0.13, 0.15)
    rates_halves: tuple[float, ...] = (0.03, 0.05, 0.07, 0.09)
    rate_article: float = 0.09
    rate_halves: float = 0.05
    sizes: tuple[int, int, int] = (10_000, 1_000, 1_000)
    length: int = 256
    max_vocabulary: int = 20_000
    require_articles_in_both_halves: bool = True
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
    # kernel_shap is the most expensive, and shapley_sampling is its like
    methods=tuple(name for name in QUICK.methods if name != "kernel_shap"),
    rates_article=(),
    rates_halves=(),
    samples=6,
)
PRESETS = {"demo": DEMO, "quick": QUICK, "paper": PAPER, "released": RELEASED}


def check(settings: Settings) -> None:
    """UsageError where a number cannot be what it stands for."""
    check_range(settings, ("trainings", "rationale_trainings", "samples", "epochs", "sizes"), 1)
    check_range(settings, ("length",), 2)  # since documents are halved
    check_range(settings, ("max_vocabulary",), LEAST_WORDS)
    check_range(settings, ("restarts",), 0)
    rates = ("rates_article", "rates_halves", "rate_article", "rate_halves")
    check_range(settings, rates, ABOVE_0, BELOW_1, what="shares of words strictly between 0 and 1")
    check_range(settings, ("gate", "gate_reinforce"), 0, 1, what="an accuracy from 0 to 1")
