"""LeNet for images and MLP-5 for tables, as in [anonymous2023evaluation], and a linear model for tables."""

from collections import OrderedDict

from torch import nn

from forsooth.models import checks
from forsooth.models.builders import of_images, of_tables
from forsooth.records import Architecture


def lenet(*, size: int = 32, variant: str = "paper", channels_in: int = 3, classes: int = 10) -> nn.Module:
    """LeNet-5 in the form in use today: x (n, channels_in, size, size) to logits (n, classes).

    Two 5×5 convolutions of 6 and 16 filters, each with ReLU and 2×2 max-pool, then layers of 120 and 84 units.
    Any size from 16 goes; the width of the first linear layer follows from it. [lecun1998gradient]

    Departure: ReLU for the scaled tanh, max-pool for trained subsampling, all 16 filters read all 6 maps, and a linear
    head for radial basis functions.
    """
    checks.check("lenet", size=size, least=16, variant=variant, channels_in=channels_in, classes=classes)
    side = ((size - 4) // 2 - 4) // 2  # after two convolutions without padding, each followed by a pool
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv1=nn.Conv2d(channels_in, 6, 5),
        relu1=nn.ReLU(),
        pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(6, 16, 5),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        linear1=nn.Linear(16 * side * side, 120),
        relu3=nn.ReLU(),
        linear2=nn.Linear(120, 84),
        relu4=nn.ReLU(),
        head=nn.Linear(84, classes),
    )
    return nn.Sequential(layers)


def mlp5(*, features: int = 10, classes: int = 2, width: int = 100) -> nn.Module:
    """Five fully connected layers with ReLU between them: x (n, features) to logits (n, classes).

    [anonymous2023evaluation] names the net MLP-5 and explains tables of ten variables. It gives no widths: 100 is ours.
    """
    checks.positive({"features": features, "classes": classes, "width": width})
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    width_in = features
    for i in range(1, 5):
        layers[f"linear{i}"] = nn.Linear(width_in, width)
        layers[f"relu{i}"] = nn.ReLU()
        width_in = width
    layers["head"] = nn.Linear(width_in, classes)
    return nn.Sequential(layers)


def linear(*, features: int = 2, classes: int = 2) -> nn.Module:
    """One matrix: x (n, features) to logits (n, classes), without bias."""
    checks.positive({"features": features, "classes": classes})
    return nn.Sequential(OrderedDict(head=nn.Linear(features, classes, bias=False)))


LENET = Architecture("lenet", lenet, layer="relu2", cite="lecun1998gradient", version=1)
MLP5 = Architecture("mlp5", mlp5, layer=None, cite="anonymous2023evaluation", version=1)
LINEAR = Architecture("linear", linear, layer=None, cite="haufe2014interpretation", version=1)
BUILDERS = {"lenet": of_images(lenet), "mlp5": of_tables(mlp5), "linear": of_tables(linear)}
