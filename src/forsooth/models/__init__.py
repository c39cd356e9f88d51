"""Networks to be explained: what they are, how they are trained, and when they are good enough."""

from forsooth.models.attention import ATTENTION
from forsooth.models.efficient import EFFICIENTNET_LITE0
from forsooth.models.lenet import LENET, LINEAR, MLP5
from forsooth.models.rationale import REINFORCE, RELAXED
from forsooth.models.residual import RESNET34, RESNET50, RESNET101
from forsooth.models.resnet import RESIDUAL_SMALL, RESNET20, RESNET32, RESNET44, RESNET56
from forsooth.models.small import CNN, LLR, MLP
from forsooth.models.vision import ALEXNET, VGG16, VGG19

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
    ATTENTION,
    REINFORCE,
    RELAXED,
)
