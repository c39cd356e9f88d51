"""Networks to be explained: what they are, how they are trained, and when they are good enough."""

from forsooth.models.resnet import RESNET20, RESNET32, RESNET44, RESNET56
from forsooth.models.small import CNN, LLR, MLP

MODELS = (LLR, MLP, CNN, RESNET20, RESNET32, RESNET44, RESNET56)
