"""One training loop for every network, and the gate a model must pass to be explained."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth import chunks, seeds
from forsooth.models.dense import as_matrices
from forsooth.models.recipes import Recipe, check
from forsooth.records import Dataset, UsageError

SPLITS = ("train", "val", "test")
VALUES_PER_FORWARD = 2**20  # input values evaluated at once: all of a small split, 256 images of 64×64


SHARED_WORK = 1024  # input values of one sample from which a CPU's threads share the work of a step


@dataclass(frozen=True)
class Trained:
    """A trained network: the state of least validation loss, in eval mode unless the recipe says otherwise.

    val_loss       after each epoch of the training that was kept
    test_accuracy  in [0, 1]
    epochs         epochs of the training that was kept
    restarts       how often it was begun anew
    attempts       test accuracy of every training, in order, also of those that were thrown away
    """

    module: nn.Module
    val_loss: tuple[float, ...]
    test_accuracy: float
    epochs: int
    restarts: int
    passed: bool
    attempts: tuple[float, ...]


def fit(
    build: Callable[[], nn.Module],
    dataset: Dataset,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
) -> Trained:
    """Train `build()` on the split `train`, keep the state of least loss on `val`, judge it on `test`.

    A training has collapsed when it meets a nan or when the accuracy of its kept state on `val` is below the gate. It
    is begun anew under its own named seed, at most `recipe.restarts` times. If all collapse, the one of the highest
    accuracy on `val` is given; the gate itself is asked on `test`, and a training that met a nan never passes.
    """
    check(recipe)
    x, y = _checked(dataset, torch.device(device))
    with _few_threads(x):
        return _fit(build, x, y, {name: dataset.splits[name].to(x.device) for name in SPLITS}, recipe, seed=seed)


def _fit(
    build: Callable[[], nn.Module], x: Tensor, y: Tensor, splits: dict[str, Tensor], recipe: Recipe, *, seed: int
) -> Trained:
    tried: list[tuple[float, nn.Module, list[float]]] = []  # accuracy on val, module, validation loss by epoch
    attempts: list[float] = []
    for attempt in range(recipe.restarts + 1):
        with _own_randomness(seeds.derive(seed, attempt), x.device):
            module, curve = _train(build, x, y, splits, recipe, seed=seeds.derive(seed, attempt))
            accuracy = _accuracy(module, x, y, splits["val"]) if isfinite(curve[-1]) else -1.0
            attempts.append(_accuracy(module, x, y, splits["test"]))
        tried.append((accuracy, module, curve))
        if accuracy >= recipe.gate:
            break
    best = max(range(len(tried)), key=lambda i: tried[i][0])
    accuracy, module, curve = tried[best]
    passed = accuracy >= 0 and attempts[best] >= recipe.gate
    return Trained(module, tuple(curve), attempts[best], len(curve), len(tried) - 1, passed, tuple(attempts))


def initialise(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Draw every convolution and linear weight from N(0, 2 / fan-in), set their biases to 0. [he2015delving]"""
    for layer in module.modules():
        if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module


def _train(
    build: Callable[[], nn.Module], x: Tensor, y: Tensor, splits: dict[str, Tensor], recipe: Recipe, *, seed: int
) -> tuple[nn.Module, list[float]]:
    """One training, begun at its initialisation: the module in its best state, and the validation loss by epoch."""
    shuffle = seeds.generator(seed, "shuffle")
    train, val = splits["train"], splits["val"]
    module = initialise(build(), seeds.generator(seed, "init")).to(x.device, x.dtype)
    forward = as_matrices(module, x.shape[1:]) or module
    parameters = [p for p in module.parameters() if p.requires_grad]
    flat = _flatten(parameters)
    moments, steps = (torch.zeros_like(flat), torch.zeros_like(flat)), 0
    state, curve, best = _state(module), list[float](), 0
    for epoch in range(recipe.epochs):
        module.train()
        order = train[torch.randperm(len(train), generator=shuffle).to(x.device)]
        for rows in order.split(recipe.batch):
            gradients = torch.autograd.grad(_loss(forward(x[rows]), y[rows], recipe), parameters)
            steps += 1
            _adam(flat, torch.cat([g.flatten() for g in gradients]), moments, rate=recipe.learning_rate, step=steps)
        module.train(recipe.evaluate_in_train_mode)
        curve.append(_loss(_predict(forward, x, val), y[val], recipe).item())
        if curve[epoch] == min(curve):
            state, best = _state(module), epoch
        if not isfinite(curve[epoch]) or (recipe.patience is not None and epoch - best >= recipe.patience):
            break
    module.load_state_dict(state)
    for parameter in parameters:
        parameter.data = parameter.data.clone()  # no longer a piece of `flat`
    return module, curve


def _loss(logits: Tensor, y: Tensor, recipe: Recipe) -> Tensor:
    return F.cross_entropy(logits.softmax(1) if recipe.double_softmax else logits, y)


def _flatten(parameters: list[nn.Parameter]) -> Tensor:
    """One vector of which the parameters are pieces: the optimiser then has one tensor to move instead of many."""
    flat = torch.cat([p.detach().flatten() for p in parameters])
    for parameter, piece in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
        parameter.data = piece.view_as(parameter)
    return flat


def _adam(flat: Tensor, gradient: Tensor, moments: tuple[Tensor, Tensor], *, rate: float, step: int) -> None:
    """Step number `step` (from 1) of Adam with its published constants, in place. [kingma2015adam]

    flat, gradient and both moments  (parameters,)

    Six operations on one vector: torch's own costs a fifth of a whole training step of these networks.
    """
    mean, square = moments
    mean.lerp_(gradient, 1 - 0.9)
    square.lerp_(gradient.square_(), 1 - 0.999)
    scale = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
    flat.addcdiv_(mean, scale, value=-rate / (1 - 0.9**step))


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


@torch.no_grad()
def _predict(forward: Callable[[Tensor], Tensor], x: Tensor, rows: Tensor) -> Tensor:
    """Logits (k, classes) of x[rows], in the mode the network is in."""
    size = max(1, VALUES_PER_FORWARD // x[0].numel())
    return chunks.over(lambda part: forward(x[part]), rows, size=size)


def _accuracy(module: nn.Module, x: Tensor, y: Tensor, rows: Tensor) -> float:
    return (_predict(module, x, rows).argmax(1) == y[rows]).double().mean().item()


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
def _own_randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Dropout and default initialisers draw from the global generator: lend them a seeded one, then give it back."""
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.random.default_generator.manual_seed(seed)
        if cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _checked(dataset: Dataset, device: torch.device) -> tuple[Tensor, Tensor]:
    """x (n, *shape) and y (n,) on the device."""
    for name in SPLITS:
        if name not in dataset.splits or not len(dataset.splits[name]):
            known = ", ".join(sorted(dataset.splits)) or "none"
            raise UsageError(f"`dataset` must have a split '{name}' with samples, got the splits {known}")
    if len(dataset.x) != len(dataset.y):
        raise UsageError(f"`dataset.y` must have one label for each of {len(dataset.x)} x, got {len(dataset.y)}")
    broken = int((~dataset.x.isfinite()).sum())
    if broken:
        raise UsageError(f"`dataset.x` must be finite, got {broken} nan or infinite values")
    return dataset.x.to(device), dataset.y.to(device)
