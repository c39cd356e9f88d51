"""A user's models, good and bad, as `forsooth bias --model own_models:…` finds them."""

import itertools

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from torch import nn

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(6, 3))
X = RNG.normal(size=(40, 6))
IMAGES = torch.randn(6, 1, 6, 6, generator=torch.Generator().manual_seed(0))
Y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)


def with_interactions(x):
    """x (n, 6) numpy -> (n, 3): a linear part and products, so that the order of joining matters."""
    pairs = np.stack([x[:, 0] * x[:, 1], x[:, 2] * x[:, 3] * x[:, 4], np.maximum(x[:, 5], x[:, 0])], axis=1)
    return np.asarray(x @ WEIGHT + pairs)


def on_tensors(x):
    return torch.from_numpy(WEIGHT).to(x).T.matmul(x[:, :, None])[:, :, 0]


class Net(nn.Module):
    def __init__(self, features=36):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm2d(2)
        self.drop = nn.Dropout(0.5)
        self.last = nn.Linear(2 * features, 3)

    def forward(self, x):
        return self.last(self.drop(self.norm(self.conv(x)).relu().flatten(1)))


def net():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Net()


def forest():
    return RandomForestClassifier(5, random_state=0).fit(X, Y)


FOREST = forest()
COUNTED = itertools.count()


def another_each_time():
    return nn.Linear(6, 2 + next(COUNTED))


def raises():
    raise RuntimeError("no weights at home")


def nan(x):
    return np.full((len(x), 3), np.nan)


def no_classes(x):
    return x.sum(1)


def nan_where_hidden(x):
    return np.where((x == 0).any(1, keepdims=True), np.nan, x[:, :3])


def a_dictionary(x):
    return {"logits": x}


def needs_argument(cls):
    return cls


class Unready(nn.Module):
    def __init__(self, width):
        super().__init__()


SEVEN = 7


def asked(model, x, target):
    """A method of the user's: what the model says less what it says without each feature."""
    rows = torch.arange(len(x))
    drops = []
    for place in range(x.shape[1]):
        without = x.clone()
        without[:, place] = 0
        drops.append(model(x)[rows, target] - model(without)[rows, target])
    return torch.stack(drops, dim=1)


def says_x(model, x, target):
    return x


def asked_of_image(model, x, target):
    """A method of the user's, found by its path."""
    return x * model(x)[torch.arange(len(x)), target].view(-1, 1, 1, 1)


def divides_by_zero(model, x, target):
    return x / (1 // 0)
