"""Networks to be explained: what they are, how they are trained, and when they are good enough."""

from collections.abc import Mapping

from torch import nn

from forsooth.models import efficient, lenet, residual, resnet, small, vision, vit
from forsooth.models.attention import ATTENTION
from forsooth.models.builders import Builder
from forsooth.models.efficient import EFFICIENTNET_LITE0
from forsooth.models.lenet import LENET, LINEAR, MLP5
from forsooth.models.rationale import REINFORCE, RELAXED
from forsooth.models.residual import RESNET34, RESNET50, RESNET101
from forsooth.models.resnet import RESIDUAL_SMALL, RESNET20, RESNET32, RESNET44, RESNET56
from forsooth.models.small import CNN, LLR, MLP
from forsooth.models.text_encoder import TEXT_ENCODER
from forsooth.models.vision import ALEXNET, VGG16, VGG19
from forsooth.models.vit import VIT
from forsooth.names import find, unknown
from forsooth.records import Architecture

MODELS = (
    LLR,
    MLP,
    CNN,
    LENET,
    MLP5,
    LINEAR,
    RESIDUAL_SMALL,
    RESNET20,
    RESNET32,
    RESNET44,
    RESNET56,
    RESNET34,
    RESNET50,
    RESNET101,
    ALEXNET,
    VGG16,
    VGG19,
    EFFICIENTNET_LITE0,
    VIT,
    ATTENTION,
    REINFORCE,
    RELAXED,
    TEXT_ENCODER,
)
BUILDERS: Mapping[str, Builder] = {
    **small.BUILDERS,
    **lenet.BUILDERS,
    **resnet.BUILDERS,
    **residual.BUILDERS,
    **vision.BUILDERS,
    **efficient.BUILDERS,
    **vit.BUILDERS,
}


def build(name: str, *, shape: tuple[int, ...], classes: int, variant: str | None = None) -> nn.Module:
    """The network called `name`, untrained: x (n, *shape) to logits (n, classes).

    name     of any network of images or tables in `MODELS`
    shape    (channels, side, side) of images, (features,) of tables
    variant  None: the only one there is; of llr, mlp and cnn "released", as the code that comes with XAI-TRIS trains
             them (at 64×64 the paper's cnn keeps all pixels through four blocks, and takes a minute an epoch)

    Networks of text (attention, rationale_reinforce, rationale_relaxed, text_encoder) are not among them: these are
    built for a vocabulary and perhaps its word vectors, which no shape of inputs says, and keep their own functions.
    """
    if name not in BUILDERS:
        raise unknown(name, BUILDERS, argument="name")
    return BUILDERS[name](shape, classes, variant)


def architecture(name: str) -> Architecture:
    """The network called `name`; an unknown one is answered with the nearest known."""
    return find(name, MODELS, argument="models")
