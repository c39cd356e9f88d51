"""One training loop for every network, and the gate a model must pass to be explained."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth import chunks, seeds
from forsooth.dense import as_matrices
from forsooth.models import weights
from forsooth.models.adam import Adam
from forsooth.models.augment import augmented
from forsooth.models.keeper import Checkpoint, Keeper
from forsooth.models.recipes import Recipe, check
from forsooth.models.samples import Samples, check_splits, moved
from forsooth.quick import as_quick
from forsooth.records import Dataset, UsageError

VALUES_PER_FORWARD = 2**20  # input values evaluated at once: all of a small split, 256 images of 64×64
HALVED = ("cuda",)  # where products in bfloat16 are faster; on a CPU without them ten times slower
ON_ACCELERATORS = 32  # so many times more there: one forward must be worth its launch
SHARED_WORK = 1024  # input values of one sample from which a CPU's threads share the work of a step

States = list[tuple[int, Mapping[str, Tensor]]]  # epoch, weights
Forward = Callable[[Tensor], Tensor]  # x (n, *shape) to logits (n, classes)


@dataclass(frozen=True)
class Trained:
    """A trained network: the state of least validation loss (or the one that reached `stop_at`), in eval mode unless
    the recipe says otherwise.

    val_loss       after each epoch of the training that was kept
    test_accuracy  in [0, 1]
    epochs         epochs of the training that was kept
    restarts       how often it was restarted
    attempts       test accuracy of every training, in order, also of those that were thrown away
    checkpoints    states of the training that was kept, where the recipe asks for them
    """

    module: nn.Module
    val_loss: tuple[float, ...]
    test_accuracy: float
    epochs: int
    restarts: int
    passed: bool
    attempts: tuple[float, ...]
    checkpoints: tuple[Checkpoint, ...] = ()

    def states(self, *, checkpoints: bool) -> States:
        """Epochs and weights: the final ones, and before them those of checkpoints that differ, if they are wanted."""
        final = self.module.state_dict()
        kept: States = []
        for checkpoint in self.checkpoints:
            same = all(torch.equal(checkpoint.state[name], value) for name, value in final.items())
            if checkpoints and not same:
                kept.append((checkpoint.epoch, checkpoint.state))
        return [*kept, (self.epochs, final)]


def fit(
    build: Callable[[], nn.Module],
    dataset: Dataset,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    start: weights.WeightsFile | None = None,
) -> Trained:
    """Train `build()` on the split `train`, keep the state of least loss on `val`, judge it on `test`.

    Where the recipe has a `stop_at`, the state that reaches this accuracy on `val` is kept instead.

    A training has collapsed when it meets a nan or when the accuracy of its kept state on `val` is below the gate. It
    is restarted under its own named seed, at most `recipe.restarts` times. If all collapse, the one of the highest
    accuracy on `val` is returned; the gate itself is applied on `test`, and a training that met a nan never passes.

    start  weights that all layers but the last begin with, from a file that must be as it was; None: all are drawn
    """
    check(recipe)

    def begin(generator: torch.Generator) -> nn.Module:
        module = initialise(build(), generator)
        if start is None:
            return module
        weights.load(module, start.path, but_last=True)
        weights.require_unchanged(start)
        return module

    data = _on_device(dataset, torch.device(device))
    with _few_threads(data.x):
        return _fit(begin, data, recipe, seed=seed)


class Run(NamedTuple):
    """One training: the module in the state that is kept, the validation loss by epoch, and what was saved beside."""

    module: nn.Module
    curve: list[float]
    saved: list[Checkpoint]


class Attempt(NamedTuple):
    """A training and its accuracy in [0, 1] on `val`, -1 where it met a nan, and on `test`."""

    run: Run
    val_accuracy: float
    test_accuracy: float


Begin = Callable[[torch.Generator], nn.Module]  # the untrained network


def _fit(begin: Begin, data: Samples, recipe: Recipe, *, seed: int) -> Trained:
    """Trainings until one does not collapse; the best of them."""
    attempts: list[Attempt] = []
    for number in range(recipe.restarts + 1):
        attempts.append(_attempt(begin, data, recipe, seed=seeds.derive(seed, number)))
        if attempts[-1].val_accuracy >= recipe.gate:
            break
    return best_of(attempts, recipe)


def best_of(attempts: Sequence[Attempt], recipe: Recipe) -> Trained:
    """The training of the highest accuracy on `val`."""
    best = max(attempts, key=lambda attempt: attempt.val_accuracy)
    module, curve, saved = best.run
    return Trained(
        module,
        val_loss=tuple(curve),
        test_accuracy=best.test_accuracy,
        epochs=len(curve),
        restarts=len(attempts) - 1,
        passed=best.val_accuracy >= 0 and best.test_accuracy >= recipe.gate,
        attempts=tuple(attempt.test_accuracy for attempt in attempts),
        checkpoints=tuple(saved),
    )


def _attempt(begin: Begin, data: Samples, recipe: Recipe, *, seed: int) -> Attempt:
    """One training under a seed of its own, and how good it is."""
    with own_randomness(seed, data.x.device):
        run = _train(begin, data, recipe, seed=seed)
        val_accuracy = -1.0
        if isfinite(run.curve[-1]):
            val_accuracy = accuracy_on(run.module, data, "val")
        return Attempt(run, val_accuracy, accuracy_on(run.module, data, "test"))


def initialise(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Draw every convolution and linear weight from N(0, 2 / fan-in), set their biases to 0. [he2015delving]"""
    for layer in module.modules():
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


def _train(begin: Begin, data: Samples, recipe: Recipe, *, seed: int) -> Run:
    """One training, from its initialisation on."""
    module = begin(seeds.generator(seed, "init")).to(data.x.device, data.x.dtype)
    forward = as_matrices(module, data.x.shape[1:]) or as_quick(module) or module
    parameters = [p for p in module.parameters() if p.requires_grad]
    adam = Adam(parameters, rate=recipe.learning_rate, decay=recipe.weight_decay)
    shuffle = seeds.generator(seed, "shuffle")
    changes = seeds.generator(seed, "augment")
    keeper = Keeper(module, recipe)
    while not keeper.over:
        module.train()
        for rows in _batches(data.splits["train"], recipe.batch, module, shuffle=shuffle):
            loss = _step_loss(forward, data, rows, recipe, changes=changes)
            adam.step(torch.autograd.grad(loss, parameters))
        module.train(recipe.evaluate_in_train_mode)
        loss_on_val, accuracy = _validate(forward, data, recipe)
        keeper.see(loss_on_val, accuracy)
    module.load_state_dict(keeper.state)
    adam.release()
    return Run(module, keeper.curve, keeper.saved)


def _step_loss(forward: Forward, data: Samples, rows: Tensor, recipe: Recipe, *, changes: torch.Generator) -> Tensor:
    """The loss of a step on the rows (k,), a scalar; their images are augmented by draws of `changes`."""
    x = _laid_out(augmented(data.x[rows], recipe.augment, generator=changes))
    return loss_of(learning(forward, x, recipe), data.y[rows], recipe)


def _batches(rows: Tensor, size: int, module: nn.Module, *, shuffle: torch.Generator) -> list[Tensor]:
    """The rows (n,) in a new order, cut into those (k,) of each step.

    Batch normalisation has no use for the spread of one sample, so a last one joins the batch before it.
    """
    order = torch.randperm(len(rows), generator=shuffle).to(rows.device)
    parts = list(rows[order].split(size))
    normalised = any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules())
    if normalised and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def _laid_out(x: Tensor) -> Tensor:
    """Images (n, channels, h, w) with channels last in memory on an accelerator, whose convolutions want them so."""
    if x.device.type == "cpu" or x.ndim != 4:
        return x
    return x.contiguous(memory_format=torch.channels_last)


def learning(forward: Forward, x: Tensor, recipe: Recipe) -> Tensor:
    """Logits (n, classes) of a training step, as precise as x; its products in bfloat16 where the recipe says so.

    The range of bfloat16 needs no scaled loss.
    """
    if not recipe.autocast or x.device.type not in HALVED:
        return forward(x)
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        return forward(x).to(x.dtype)


def _validate(forward: Forward, data: Samples, recipe: Recipe) -> tuple[float, float]:
    """Loss and accuracy on `val` in the mode the network is in; the accuracy is -1 where the loss is nan."""
    rows = data.splits["val"]
    logits = _predict(forward, data.x, rows)
    loss = loss_of(logits, data.y[rows], recipe).item()
    if not isfinite(loss):
        return loss, -1.0
    return loss, share_right(logits, data.y[rows]).item()


def loss_of(logits: Tensor, y: Tensor, recipe: Recipe) -> Tensor:
    if recipe.double_softmax:
        logits = logits.softmax(1)
    return F.cross_entropy(logits, y)


@torch.no_grad()
def _predict(forward: Forward, x: Tensor, rows: Tensor) -> Tensor:
    """Logits (k, classes) of x[rows], in the mode the network is in."""
    values = VALUES_PER_FORWARD
    if x.device.type != "cpu":
        values *= ON_ACCELERATORS
    size = max(1, values // x[0].numel())
    return chunks.over(lambda part: forward(_laid_out(x[part])), rows, size=size)


def accuracy_on(module: nn.Module, data: Samples, split: str) -> float:
    rows = data.splits[split]
    return share_right(_predict(module, data.x, rows), data.y[rows]).item()


def share_right(logits: Tensor, y: Tensor, *, groups: int = 1) -> Tensor:
    """The share of logits (n, classes) that are largest at y (n,), in each of so many equal parts of them. (groups,)"""
    return (logits.argmax(1) == y).double().view(groups, -1).mean(1)


@contextmanager
def _few_threads(x: Tensor) -> Iterator[None]:
    """One thread on small inputs: there the work of a step is too little to share, and on a busy machine threads that
    wait for one another make training a hundred times slower."""
    before = torch.get_num_threads()
    if x[0].numel() < SHARED_WORK:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout and default initialisers draw from the global generator: lend them a seeded one, then give it back."""
    on_cuda = device.type == "cuda"
    with torch.random.fork_rng(devices=[device] * on_cuda):
        torch.random.default_generator.manual_seed(seed)
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _on_device(dataset: Dataset, device: torch.device) -> Samples:
    """The dataset, checked, on the device."""
    check_splits(dataset)
    if len(dataset.x) != len(dataset.y):
        raise UsageError(f"`dataset.y` must have one label for each of {len(dataset.x)} x, got {len(dataset.y)}")
    broken = int((~dataset.x.isfinite()).sum())
    if broken:
        raise UsageError(f"`dataset.x` must be finite, got {broken} nan or infinite values")
    return moved(dataset, device)
