"""The training loop against torch's own Adam and a pencil; the kept state, the gate, restarts and bad input."""

from dataclasses import replace
from math import log, sqrt

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from forsooth import seeds
from forsooth.models.small import cnn, llr, mlp
from forsooth.models.train import Recipe, fit, initialise
from forsooth.records import Dataset, UsageError

QUICK = Recipe(learning_rate=0.01, batch=32, epochs=5, restarts=0)


def toy(n=200, *, noise=1.0, seed=0, dtype=torch.float64):
    """Images of 8×8 whose first row is shifted up for class 1; `noise` 0 makes the label plain."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (n,), generator=g)
    x = noise * torch.randn(n, 1, 8, 8, generator=g, dtype=torch.float64)
    x[:, 0, 0] += y[:, None].double() - 0.5
    third = n // 4
    splits = {"train": torch.arange(2 * third, n), "val": torch.arange(third), "test": torch.arange(third, 2 * third)}
    return Dataset("toy", x.to(dtype), y, None, splits)


def small_mlp():
    return mlp(size=8)


def small_llr():
    return llr(size=8)


def weights(trained):
    return torch.cat([p.detach().flatten() for p in trained.module.parameters()])


def test_one_step_of_adam_by_hand():
    """The first step of Adam moves every weight by the learning rate against the sign of its gradient, here the
    closed form mean (softmax(x w) - onehot(y)) x, up to its epsilon."""
    data = toy()
    trained = fit(small_llr, data, replace(QUICK, batch=10_000, epochs=1), seed=3)
    start = initialise(llr(size=8), seeds.generator(seeds.derive(3, 0), "init")).head.weight.detach().double()
    x, y = data.x[data.splits["train"]].flatten(1), data.y[data.splits["train"]]
    gradient = ((x @ start.T).softmax(1) - F.one_hot(y, 2)).T @ x / len(x)
    expected = start - 0.01 * gradient / (gradient.abs() + 1e-8)
    torch.testing.assert_close(trained.module.head.weight.detach(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("build", [small_mlp, lambda: cnn(size=8, variant="released")], ids=["mlp", "cnn"])
@pytest.mark.parametrize("double_softmax", [False, True])
def test_the_loop_written_plainly(build, double_softmax):
    data = toy(noise=0.3)
    recipe = replace(QUICK, double_softmax=double_softmax)
    trained = fit(build, data, recipe, seed=1)
    net = initialise(build(), seeds.generator(seeds.derive(1, 0), "init")).double()
    adam, shuffle = torch.optim.Adam(net.parameters(), lr=0.01), seeds.generator(seeds.derive(1, 0), "shuffle")
    kept, curve = [], []

    def loss_of(rows):
        logits = net(data.x[rows])
        return F.cross_entropy(logits.softmax(1) if double_softmax else logits, data.y[rows])

    for _ in range(5):
        order = data.splits["train"][torch.randperm(100, generator=shuffle)]
        for start in range(0, 100, 32):
            adam.zero_grad()
            loss_of(order[start : start + 32]).backward()
            adam.step()
        curve.append(loss_of(data.splits["val"]).item())
        kept.append(torch.cat([p.detach().flatten() for p in net.parameters()]))
    assert trained.val_loss == pytest.approx(curve, rel=1e-9)
    torch.testing.assert_close(weights(trained), kept[curve.index(min(curve))], rtol=1e-8, atol=1e-10)


def test_the_state_of_least_validation_loss_is_kept():
    data = toy(noise=3.0)  # hardly any signal: a long training overfits
    trained = fit(small_mlp, data, replace(QUICK, epochs=60), seed=0)
    best = min(trained.val_loss)
    assert trained.val_loss[-1] > best + 0.1
    val = data.splits["val"]
    with torch.no_grad():
        assert F.cross_entropy(trained.module(data.x[val]), data.y[val]).item() == pytest.approx(best, rel=1e-12)


def test_patience_stops_and_no_patience_goes_on():
    data = toy(noise=3.0)
    whole = fit(small_mlp, data, replace(QUICK, epochs=40), seed=0)
    short = fit(small_mlp, data, replace(QUICK, epochs=40, patience=4), seed=0)
    best = whole.val_loss.index(min(whole.val_loss))
    assert whole.epochs == 40
    assert short.epochs == len(short.val_loss) <= best + 5
    assert short.val_loss == whole.val_loss[: short.epochs]
    assert short.epochs - 1 - short.val_loss.index(min(short.val_loss)) == 4


def test_same_seed_same_bits_and_the_global_generator_is_left_alone():
    data = toy(dtype=torch.float32)

    def build():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 2))

    torch.random.default_generator.manual_seed(7)
    before = torch.random.get_rng_state()
    first = fit(build, data, QUICK, seed=5)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.random.default_generator.manual_seed(8)
    again, other = fit(build, data, QUICK, seed=5), fit(build, data, QUICK, seed=6)
    assert torch.equal(weights(first), weights(again)) and first.val_loss == again.val_loss
    assert not torch.equal(weights(first), weights(other))


def test_dtype_mode_and_own_storage():
    trained = fit(small_mlp, toy(), QUICK, seed=0)
    assert not trained.module.training
    assert {p.dtype for p in trained.module.parameters()} == {torch.float64}
    assert len({p.untyped_storage().data_ptr() for p in trained.module.parameters()}) == 8  # as safetensors wants it
    assert fit(small_mlp, toy(), replace(QUICK, evaluate_in_train_mode=True), seed=0).module.training


def test_evaluation_in_train_mode_keeps_dropout_on():
    """With dropout on, the validation loss is that of a thinned network: it cannot be found again in eval mode."""
    data = toy()

    def build():
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 2))

    val = data.splits["val"]
    for switch in (False, True):
        trained = fit(build, data, replace(QUICK, epochs=1, evaluate_in_train_mode=switch), seed=0)
        with torch.no_grad():
            again = F.cross_entropy(trained.module.eval()(data.x[val]), data.y[val]).item()
        assert (again == pytest.approx(trained.val_loss[0], rel=1e-12)) is not switch


def test_gate_and_accuracy():
    easy, hard = toy(noise=0.01), replace(toy(), y=torch.arange(200) % 2)
    good = fit(small_llr, easy, replace(QUICK, epochs=30), seed=0)
    assert (good.test_accuracy, good.passed, good.restarts) == (1.0, True, 0)
    bad = fit(small_llr, hard, replace(QUICK, epochs=1), seed=0)
    rows = hard.splits["test"]
    assert bad.test_accuracy == (bad.module(hard.x[rows]).argmax(1) == hard.y[rows]).double().mean().item()
    assert bad.test_accuracy < 0.8 and not bad.passed
    assert fit(small_llr, hard, replace(QUICK, epochs=1, gate=0.0), seed=0).passed


class Broken(nn.Module):
    """Multiplies what it is given before a linear layer: 0 makes it blind, nan makes it nan."""

    def __init__(self, factor):
        super().__init__()
        self.factor, self.linear = factor, nn.Linear(64, 2)

    def forward(self, x):
        return self.linear(x.flatten(1) * self.factor)


@pytest.mark.parametrize(("factors", "restarts"), [([1.0], 0), ([0.0, 1.0], 1), ([0.0, float("nan"), 1.0], 2)])
def test_collapsed_trainings_are_begun_anew(factors, restarts):
    given = iter(factors)
    trained = fit(lambda: Broken(next(given)), toy(noise=0.1), replace(QUICK, epochs=30, restarts=5), seed=0)
    assert trained.restarts == restarts
    assert trained.passed


def test_restarts_end_and_use_other_seeds():
    starts = []

    def build():
        starts.append(Broken(0.0))
        return starts[-1]

    trained = fit(build, toy(), replace(QUICK, epochs=2, restarts=3), seed=0)
    assert (len(starts), trained.restarts, trained.passed) == (4, 3, False)
    assert len(trained.attempts) == 4
    assert len({net.linear.weight.sum().item() for net in starts}) == 4


def test_the_best_of_collapsed_trainings_is_given():
    """A gate of 1 on noisy data: all collapse, and the second, the only one that sees, is the best."""
    given = iter([0.0, 1.0, 0.0])
    trained = fit(lambda: Broken(next(given)), toy(), replace(QUICK, epochs=20, restarts=2, gate=1.0), seed=0)
    assert trained.module.factor == 1.0
    assert (trained.restarts, trained.passed) == (2, False)
    assert trained.test_accuracy == trained.attempts[1] == max(trained.attempts)


def test_a_training_that_met_a_nan_never_passes():
    assert not fit(lambda: Broken(float("nan")), toy(), replace(QUICK, gate=0.0), seed=0).passed


def test_nan_ends_a_training_at_once():
    trained = fit(lambda: Broken(float("nan")), toy(), replace(QUICK, restarts=0), seed=0)
    assert trained.epochs == 1 and not trained.passed
    assert all(p.isfinite().all() for p in trained.module.parameters())  # the last finite state


def test_he_normal():
    net = initialise(nn.Sequential(nn.Conv2d(3, 400, 5), nn.Linear(900, 500)), seeds.generator(0, "init"))
    for layer, fan_in in ((net[0], 75), (net[1], 900)):
        assert layer.weight.std().item() == pytest.approx(sqrt(2 / fan_in), rel=0.02)
        assert layer.weight.mean().item() == pytest.approx(0, abs=3 * sqrt(2 / fan_in / layer.weight.numel()))
        assert not layer.bias.any()


def test_double_softmax_cannot_go_below_its_floor():
    trained = fit(small_llr, toy(noise=0.01), replace(QUICK, epochs=200, double_softmax=True), seed=0)
    assert log(1 + 1 / torch.e) < min(trained.val_loss) < 0.35


def test_batch_norm_buffers_are_part_of_the_state():

    def build():
        return nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(64, 2))

    data = toy(noise=3.0)
    trained = fit(build, data, replace(QUICK, epochs=30), seed=0)
    val = data.splits["val"]
    with torch.no_grad():
        again = F.cross_entropy(trained.module(data.x[val]), data.y[val]).item()
    assert again == pytest.approx(min(trained.val_loss), rel=1e-12)


def test_bad_data():
    data = toy()
    lacking = replace(data, splits={"train": data.splits["train"], "val": torch.tensor([], dtype=torch.long)})
    with pytest.raises(UsageError, match="`dataset` must have a split 'val' with samples, got the splits train, val"):
        fit(small_llr, lacking, QUICK, seed=0)
    with pytest.raises(UsageError, match="`dataset` must have a split 'train' with samples, got the splits none"):
        fit(small_llr, replace(data, splits={}), QUICK, seed=0)
    x = data.x.clone()
    x[3, 0, 1, 1], x[4, 0, 0, 0] = float("nan"), float("inf")
    with pytest.raises(UsageError, match=r"`dataset.x` must be finite, got 2 nan or infinite values"):
        fit(small_llr, replace(data, x=x), QUICK, seed=0)
    with pytest.raises(UsageError, match=r"`dataset.y` must have one label for each of 200 x, got 9"):
        fit(small_llr, replace(data, y=data.y[:9]), QUICK, seed=0)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("learning_rate", 0.0, "`learning_rate` must be above 0, got 0.0"),
        ("batch", 0, "`batch` must be at least 1, got 0"),
        ("epochs", 0, "`epochs` must be at least 1, got 0"),
        ("patience", 0, "`patience` must be at least 1 or None, got 0"),
        ("restarts", -1, "`restarts` must be at least 0, got -1"),
        ("gate", 80, r"`gate` must lie in \[0, 1\], got 80"),
        ("weight_decay", -0.1, "`weight_decay` must be at least 0, got -0.1"),
        ("stop_at", 97, r"`stop_at` must lie in \[0, 1\], got 97"),
        ("checkpoints", -0.05, r"`checkpoints` must lie in \[0, 1\], got -0.05"),
        ("augment", "rotate", "`augment` must be one of none, flip, flip_shift, got 'rotate'"),
    ],
)
def test_bad_recipe(field, value, message):
    with pytest.raises(UsageError, match=message):
        fit(small_llr, toy(), replace(QUICK, **{field: value}), seed=0)
