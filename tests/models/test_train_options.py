"""What a recipe may add to the training loop: decay, augmentation, bfloat16, an early end, checkpoints."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from forsooth import seeds
from forsooth.models import MODELS, train, vision
from forsooth.models.augment import augmented
from forsooth.models.recipes import Recipe
from forsooth.models.small import cnn, llr
from forsooth.models.train import fit, initialise
from forsooth.names import find
from forsooth.records import Dataset, UsageError

PLAIN = Recipe(learning_rate=0.01, batch=32, epochs=3, restarts=0, gate=0.0)


def toy(n=200, *, shape=(1, 8, 8), train=100, dtype=torch.float32):
    """Inputs whose first quarter of values is shifted up for class 1."""
    g = torch.Generator().manual_seed(0)
    y = torch.arange(n) % 2
    x = torch.randn(n, *shape, generator=g, dtype=torch.float64)
    flat = x.view(n, -1)
    flat[:, : max(1, flat.shape[1] // 4)] += y[:, None].double() - 0.5
    rest = (n - train) // 2
    splits = dict(zip(("val", "test", "train"), torch.arange(n).split([rest, n - train - rest, train]), strict=True))
    return Dataset("toy", x.to(dtype), y, None, splits)


def state_loss(trained, data):
    """Validation loss of the network that was kept, measured anew."""
    val = data.splits["val"]
    with torch.no_grad():
        return F.cross_entropy(trained.module(data.x[val]), data.y[val]).item()


@pytest.mark.parametrize(("decay", "augment"), [(0.3, "none"), (0.0, "flip"), (0.1, "flip_shift")])
def test_the_loop_written_plainly(decay, augment):
    data = toy(dtype=torch.float64)
    trained = fit(lambda: llr(size=8), data, replace(PLAIN, weight_decay=decay, augment=augment), seed=1)
    seed = seeds.derive(1, 0)
    net = initialise(llr(size=8), seeds.generator(seed, "init")).double()
    adam = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=decay)
    shuffle, changes = seeds.generator(seed, "shuffle"), seeds.generator(seed, "augment")
    curve = []
    for _ in range(3):
        for rows in data.splits["train"][torch.randperm(100, generator=shuffle)].split(32):
            adam.zero_grad()
            x = augmented(data.x[rows], augment, generator=changes)
            F.cross_entropy(net(x), data.y[rows]).backward()
            adam.step()
        curve.append(F.cross_entropy(net(data.x[data.splits["val"]]), data.y[data.splits["val"]]).item())
    assert trained.val_loss == pytest.approx(curve, rel=1e-9)


def test_images_alone_are_augmented():
    with pytest.raises(UsageError, match="`augment` must be 'none' where x is not"):
        fit(lambda: nn.Linear(5, 2), toy(shape=(5,)), replace(PLAIN, augment="flip"), seed=0)


class Spy(nn.Module):
    """A linear network that writes down how it was called: mode, precision of its hidden layer, batch size."""

    def __init__(self, *, norm=False):
        super().__init__()
        self.hidden, self.head = nn.Linear(64, 8), nn.Linear(8, 2)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.calls = []

    def forward(self, x):
        h = self.hidden(x.flatten(1))
        self.calls.append((self.training, h.dtype, len(x)))
        return self.head(self.norm(h).relu())


def test_autocast_trains_in_bfloat16_and_judges_in_full_precision(monkeypatch):
    monkeypatch.setattr(train, "HALVED", ("cpu",))
    data = toy()
    half, full = (fit(Spy, data, replace(PLAIN, autocast=switch), seed=0) for switch in (True, False))
    assert {dtype for training, dtype, _ in half.module.calls if training} == {torch.bfloat16}
    assert {dtype for training, dtype, _ in half.module.calls if not training} == {torch.float32}
    assert {dtype for _, dtype, _ in full.module.calls} == {torch.float32}
    assert {p.dtype for p in half.module.parameters()} == {torch.float32}
    assert state_loss(half, data) == pytest.approx(min(half.val_loss), rel=1e-6)
    assert half.val_loss != full.val_loss
    assert half.val_loss == pytest.approx(full.val_loss, rel=0.05)


def test_autocast_is_for_accelerators():
    half, full = (fit(Spy, toy(), replace(PLAIN, autocast=switch), seed=0) for switch in (True, False))
    assert half.val_loss == full.val_loss


def test_autocast_where_convolutions_run_as_matrices(monkeypatch):
    monkeypatch.setattr(train, "HALVED", ("cpu",))
    trained = fit(lambda: cnn(size=8), toy(), replace(PLAIN, autocast=True), seed=0)
    assert all(p.isfinite().all() and p.dtype == torch.float32 for p in trained.module.parameters())


@pytest.mark.parametrize(("norm", "sizes"), [(True, {32, 33}), (False, {32, 1})])
def test_a_last_batch_of_one_joins_where_batches_are_normalised(norm, sizes):
    trained = fit(lambda: Spy(norm=norm), toy(train=97), PLAIN, seed=0)
    assert {size for training, _, size in trained.module.calls if training} == sizes


class Scripted(nn.Module):
    """After each epoch it is right on so many of the validation rows, and as sure of itself as the script says.

    x (n, 2) holds the number of the row and its label.
    """

    def __init__(self, right, scale):
        super().__init__()
        self.right, self.scale, self.linear = right, scale, nn.Linear(2, 2)
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        if self.training:
            self.seen += 1
            return self.linear(x)
        epoch = int(self.seen) - 1
        answer = torch.where(x[:, 0] < self.right[epoch], x[:, 1], 1 - x[:, 1]).long()
        return self.scale[epoch] * F.one_hot(answer, 2).float()


def scripted(right, scale, recipe):
    y = torch.arange(100) % 2
    x = torch.stack([torch.arange(100.0), y.float()], dim=1)
    splits = dict(zip(("val", "train", "test"), torch.arange(100).split([50, 30, 20]), strict=True))
    return fit(lambda: Scripted(right, scale), Dataset("script", x, y, None, splits), recipe, seed=0)


@pytest.mark.parametrize(("stop_at", "epochs"), [(None, 4), (0.9, 2), (0.92, 4), (0.5, 1)])
def test_the_state_that_reaches_the_goal_is_kept_though_its_loss_is_high(stop_at, epochs):
    trained = scripted([25, 45, 40, 30], [0.1, 50.0, 50.0, 50.0], replace(PLAIN, epochs=4, stop_at=stop_at))
    assert trained.epochs == epochs
    assert int(trained.module.seen) == (2 if stop_at == 0.9 else 1)


def test_checkpoints_by_hand():
    right = [25, 27, 28, 30, 31, 45, 20]  # of 50: 0.50 0.54 0.56 0.60 0.62 0.90 0.40
    recipe = replace(PLAIN, epochs=7, checkpoints=0.05)
    trained = scripted(right, [1.0] * 7, recipe)
    assert [(epoch, accuracy) for epoch, accuracy, _ in trained.checkpoints] == [
        (1, 0.50),
        (3, 0.56),
        (5, 0.62),
        (6, 0.90),
    ]
    assert [int(saved.state["seen"]) for saved in trained.checkpoints] == [1, 3, 5, 6]
    weights = [saved.state["linear.weight"] for saved in trained.checkpoints]
    assert not torch.equal(weights[0], weights[1])
    assert len({w.untyped_storage().data_ptr() for w in weights}) == 4
    assert scripted(right, [1.0] * 7, replace(recipe, checkpoints=None)).checkpoints == ()
    assert trained.val_loss == scripted(right, [1.0] * 7, replace(recipe, checkpoints=None)).val_loss


def test_a_nan_is_neither_a_goal_nor_a_checkpoint():
    """Logits that are nan have an argmax all the same, and are right on half of the rows."""
    trained = scripted([25] * 4, [float("nan")] * 4, replace(PLAIN, stop_at=0.1, checkpoints=0.0))
    assert trained.checkpoints == () and not trained.passed and int(trained.module.seen) == 0


NETS = {
    "lenet": dict(size=16, classes=2),
    "mlp5": dict(features=10, classes=2),
    "residual_small": dict(size=32),
    "resnet20": dict(),
    "resnet34": dict(size=32, classes=2),
    "alexnet": dict(size=64, classes=2),
    "vgg16": dict(size=64, classes=2),
}


@pytest.mark.parametrize("name", NETS)
def test_every_network_trains_and_its_best_state_is_kept(name, monkeypatch):
    """Dropout is off and batch statistics are those of the kept epoch: the validation loss is found again."""
    monkeypatch.setattr(vision, "UNITS", 16)
    side = 32 if name == "resnet20" else NETS[name].get("size")
    data = toy(n=14, train=5, shape=(3, side, side) if side else (10,))
    build = find(name, MODELS, argument="models").function
    recipe = replace(PLAIN, learning_rate=1e-4, batch=4, epochs=2)
    trained = fit(lambda: build(**NETS[name]), data, recipe, seed=0)
    assert not trained.module.training
    assert state_loss(trained, data) == pytest.approx(min(trained.val_loss), rel=1e-4)
