"""Does a network need a feature? Its outputs on images with it and without. [yang2019benchmarking, section 3.4]

All outputs are probabilities (n, classes), and labels (n,).
"""

from torch import Tensor

RARE = 0.05  # share of a network's own test set that is as unsure as what is called unfamiliar


def share(hits: Tensor) -> float:
    """Of hits (n,) bool."""
    return hits.double().mean().item()


def accuracy(outputs: Tensor, label: Tensor) -> float:
    return share(outputs.argmax(1) == label)


def unfamiliar(outputs: Tensor, own: Tensor) -> float:
    """The share of outputs that are as unsure as the strangest 5 % of `own`, those on the network's own test set."""
    return share(outputs.amax(1) < own.amax(1).double().quantile(RARE))


def accuracy_drop(before: Tensor, after: Tensor, label: Tensor) -> float:
    """What is lost of the accuracy: counted, so that equal drops are equal."""
    lost = (before.argmax(1) == label).sum() - (after.argmax(1) == label).sum()
    return int(lost) / len(label)


def confidence_rises(before: Tensor, after: Tensor, label: Tensor) -> Tensor:
    """Of the outputs that were correct, which are surer of their class now. (k,) bool"""
    correct = before.argmax(1) == label
    gain = after.gather(1, label[:, None]) > before.gather(1, label[:, None])
    return gain[:, 0][correct]
