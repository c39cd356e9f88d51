"""One training loop for every network, and the gate a model must pass to be explained."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth import chunks, seeds
from forsooth.models import weights
from forsooth.models.adam import flatten, move
from forsooth.models.augment import augmented
from forsooth.models.dense import as_matrices
from forsooth.models.recipes import Recipe, check
from forsooth.records import Dataset, UsageError

SPLITS = ("train", "val", "test")
VALUES_PER_FORWARD = 2**20  # input values evaluated at once: all of a small split, 256 images of 64×64
HALVED = ("cuda",)  # where products in bfloat16 are faster; on a CPU without them ten times slower
ON_ACCELERATORS = 32  # so many times more there: one forward must be worth its launch
SHARED_WORK = 1024  # input values of one sample from which a CPU's threads share the work of a step


class Checkpoint(NamedTuple):
    """The network after so many epochs: its accuracy on `val`, in [0, 1], and its state dict."""

    epoch: int
    val_accuracy: float
    state: dict[str, Tensor]


@dataclass(frozen=True)
class Trained:
    """A trained network: the state of least validation loss (or the one that reached `stop_at`), in eval mode unless
    the recipe says otherwise.

    val_loss       after each epoch of the training that was kept
    test_accuracy  in [0, 1]
    epochs         epochs of the training that was kept
    restarts       how often it was begun anew
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


def fit(
    build: Callable[[], nn.Module],
    dataset: Dataset,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
    start: str | None = None,
) -> Trained:
    """Train `build()` on the split `train`, keep the state of least loss on `val`, judge it on `test`.

    Where the recipe has a `stop_at`, the state that reaches this accuracy on `val` is kept instead.

    A training has collapsed when it meets a nan or when the accuracy of its kept state on `val` is below the gate. It
    is begun anew under its own named seed, at most `recipe.restarts` times. If all collapse, the one of the highest
    accuracy on `val` is given; the gate itself is asked on `test`, and a training that met a nan never passes.

    start  file of weights that all layers but the last begin with; None: all are drawn
    """
    check(recipe)

    def begin(generator: torch.Generator) -> nn.Module:
        module = initialise(build(), generator)
        return module if start is None else weights.load(module, start, but_last=True)

    x, y = _checked(dataset, torch.device(device))
    with _few_threads(x):
        return _fit(begin, x, y, {name: dataset.splits[name].to(x.device) for name in SPLITS}, recipe, seed=seed)


Begin = Callable[[torch.Generator], nn.Module]  # the untrained network


def _fit(begin: Begin, x: Tensor, y: Tensor, splits: dict[str, Tensor], recipe: Recipe, *, seed: int) -> Trained:
    tried: list[tuple[float, Run]] = []  # accuracy on val, training
    attempts: list[float] = []
    for attempt in range(recipe.restarts + 1):
        with own_randomness(seeds.derive(seed, attempt), x.device):
            run = _train(begin, x, y, splits, recipe, seed=seeds.derive(seed, attempt))
            accuracy = _accuracy(run.module, x, y, splits["val"]) if isfinite(run.curve[-1]) else -1.0
            attempts.append(_accuracy(run.module, x, y, splits["test"]))
        tried.append((accuracy, run))
        if accuracy >= recipe.gate:
            break
    best = max(range(len(tried)), key=lambda i: tried[i][0])
    accuracy, (module, curve, saved) = tried[best]
    passed = accuracy >= 0 and attempts[best] >= recipe.gate
    return Trained(
        module, tuple(curve), attempts[best], len(curve), len(tried) - 1, passed, tuple(attempts), tuple(saved)
    )


def initialise(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Draw every convolution and linear weight from N(0, 2 / fan-in), set their biases to 0. [he2015delving]"""
    for layer in module.modules():
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


class Run(NamedTuple):
    """One training: the module in the state that is kept, the validation loss by epoch, and what was saved beside."""

    module: nn.Module
    curve: list[float]
    saved: list[Checkpoint]


def _train(begin: Begin, x: Tensor, y: Tensor, splits: dict[str, Tensor], recipe: Recipe, *, seed: int) -> Run:
    """One training, begun at its initialisation."""
    shuffle, changes = seeds.generator(seed, "shuffle"), seeds.generator(seed, "augment")
    train, val = splits["train"], splits["val"]
    module = begin(seeds.generator(seed, "init")).to(x.device, x.dtype)
    forward = as_matrices(module, x.shape[1:]) or module
    learn = _in_bfloat16(forward) if recipe.autocast and x.device.type in HALVED else forward
    parameters = [p for p in module.parameters() if p.requires_grad]
    flat = flatten(parameters)
    moments, steps = (torch.zeros_like(flat), torch.zeros_like(flat)), 0
    state, curve, best, saved = _state(module), list[float](), 0, list[Checkpoint]()
    for epoch in range(recipe.epochs):
        module.train()
        order = train[torch.randperm(len(train), generator=shuffle).to(x.device)]
        for rows in _batches(order, recipe.batch, module):
            given = _laid_out(augmented(x[rows], recipe.augment, generator=changes))
            gradients = torch.autograd.grad(_loss(learn(given), y[rows], recipe), parameters)
            steps += 1
            gradient = torch.cat([g.flatten() for g in gradients])
            move(flat, gradient, moments, rate=recipe.learning_rate, decay=recipe.weight_decay, step=steps)
        module.train(recipe.evaluate_in_train_mode)
        logits = _predict(forward, x, val)
        curve.append(_loss(logits, y[val], recipe).item())
        accuracy = _share_right(logits, y[val]) if isfinite(curve[epoch]) else -1.0
        reached = recipe.stop_at is not None and accuracy >= recipe.stop_at
        if curve[epoch] == min(curve) or reached:
            state, best = _state(module), epoch
        if _is_step_up(accuracy, saved, recipe):
            saved.append(Checkpoint(epoch + 1, accuracy, _state(module)))
        idle = recipe.patience is not None and epoch - best >= recipe.patience
        if reached or idle or not isfinite(curve[epoch]):
            break
    module.load_state_dict(state)
    for parameter in parameters:
        parameter.data = parameter.data.clone()  # no longer a piece of `flat`
    return Run(module, curve, saved)


def _batches(order: Tensor, size: int, module: nn.Module) -> list[Tensor]:
    """Rows (k,) of each step. Batch normalisation has no use for the spread of one sample, so a last one joins."""
    parts = list(order.split(size))
    normalised = any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules())
    if normalised and len(parts) > 1 and len(parts[-1]) == 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def _laid_out(x: Tensor) -> Tensor:
    """Images (n, channels, h, w) with channels last in memory on an accelerator, whose convolutions want them so."""
    if x.device.type == "cpu" or x.ndim != 4:
        return x
    return x.contiguous(memory_format=torch.channels_last)


def _in_bfloat16(forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The same function with its products in bfloat16, whose range needs no scaled loss; logits as precise as x."""

    def half(x: Tensor) -> Tensor:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            return forward(x).to(x.dtype)

    return half


def _is_step_up(accuracy: float, saved: list[Checkpoint], recipe: Recipe) -> bool:
    """Whether this epoch's state is kept beside the best one."""
    last = saved[-1].val_accuracy if saved else 0.0
    return recipe.checkpoints is not None and accuracy > last + recipe.checkpoints


def _loss(logits: Tensor, y: Tensor, recipe: Recipe) -> Tensor:
    return F.cross_entropy(logits.softmax(1) if recipe.double_softmax else logits, y)


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


@torch.no_grad()
def _predict(forward: Callable[[Tensor], Tensor], x: Tensor, rows: Tensor) -> Tensor:
    """Logits (k, classes) of x[rows], in the mode the network is in."""
    values = VALUES_PER_FORWARD * (1 if x.device.type == "cpu" else ON_ACCELERATORS)
    size = max(1, values // x[0].numel())
    return chunks.over(lambda part: forward(_laid_out(x[part])), rows, size=size)


def _accuracy(module: nn.Module, x: Tensor, y: Tensor, rows: Tensor) -> float:
    return _share_right(_predict(module, x, rows), y[rows])


def _share_right(logits: Tensor, y: Tensor) -> float:
    return (logits.argmax(1) == y).double().mean().item()


@contextmanager
def _few_threads(x: Tensor) -> Iterator[None]:
    """One thread on small inputs: there the work of a step is too little to share, and on a busy machine threads that
    wait for one another make training a hundred times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1 if x[0].numel() < SHARED_WORK else before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout and default initialisers draw from the global generator: lend them a seeded one, then give it back."""
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.random.default_generator.manual_seed(seed)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def check_splits(dataset: Dataset) -> None:
    """UsageError unless there is something to train on, to choose by and to judge by."""
    for name in SPLITS:
        if name not in dataset.splits or not len(dataset.splits[name]):
            known = ", ".join(sorted(dataset.splits)) or "none"
            raise UsageError(f"`dataset` must have a split '{name}' with samples, got the splits {known}")


def _checked(dataset: Dataset, device: torch.device) -> tuple[Tensor, Tensor]:
    """x (n, *shape) and y (n,) on the device."""
    check_splits(dataset)
    if len(dataset.x) != len(dataset.y):
        raise UsageError(f"`dataset.y` must have one label for each of {len(dataset.x)} x, got {len(dataset.y)}")
    broken = int((~dataset.x.isfinite()).sum())
    if broken:
        raise UsageError(f"`dataset.x` must be finite, got {broken} nan or infinite values")
    return dataset.x.to(device), dataset.y.to(device)
