"""Training of models of text: attention by cross-entropy, rationale models towards a target rate of selection."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from forsooth import chunks, seeds
from forsooth.models.rationale import Gate, Rationale
from forsooth.models.recurrent import initialise, lengths_of
from forsooth.models.train import SPLITS, check_splits, own_randomness
from forsooth.records import Dataset, UsageError

Regulariser = Literal["paper", "released"]


@dataclass(frozen=True)
class Aim:
    """What a rationale model is asked for beside accuracy.

    rate         share of words to select, %Sel
    tolerance    how near the rate on `val` must be for training to stop
    strength     lambda, the weight of the distance from the rate
    regulariser  "paper": the distance is that of all words of a batch from the rate. "released": REINFORCE takes the
                 distance of each document, the relaxation that of the mean rate of the documents
    samples      draws for each document and step. With several, REINFORCE subtracts from a cost the mean of the
                 others of the same document; with one, as published, nothing
    """

    rate: float
    tolerance: float = 0.01
    strength: float = 1.0
    regulariser: Regulariser = "paper"
    samples: int = 1


@dataclass(frozen=True)
class TextRecipe:
    """How to train.

    clip      length to which the gradient is cut
    stop_at   stop at the first epoch whose accuracy on `val` reaches it (and the rate, where there is an aim). The
              last epoch is kept, as in the released code
    gate      accuracy on `test` from which a model may be explained
    restarts  new beginnings allowed when a training ends without stopping early
    aim       for rationale models, None for the others
    """

    learning_rate: float
    weight_decay: float = 0.0
    batch: int = 256
    epochs: int = 100
    clip: float = 5.0
    stop_at: float = 0.97
    gate: float = 0.9
    restarts: int = 0
    aim: Aim | None = None


# [zhou2022feature]: what the text leaves open is as in the released code.
ATTENTION_PAPER = TextRecipe(learning_rate=1e-3, weight_decay=1e-5, batch=250)
RATIONALE_PAPER = TextRecipe(learning_rate=4e-4, weight_decay=2e-6, batch=256, aim=Aim(0.09))
RATIONALE_RELEASED = replace(RATIONALE_PAPER, aim=Aim(0.09, regulariser="released"))
# Ours, for the variants "small". The rate is that of the suite: replace it.
ATTENTION_QUICK = TextRecipe(learning_rate=3e-3, batch=64, epochs=15, stop_at=0.99)
RELAXED_QUICK = TextRecipe(learning_rate=3e-3, batch=64, epochs=20, stop_at=0.98, aim=Aim(0.09, tolerance=0.02))
REINFORCE_QUICK = replace(RELAXED_QUICK, aim=Aim(0.09, tolerance=0.02, samples=4))


class Epoch(NamedTuple):
    """Where a training stood: mean loss of its steps, accuracy and share of words selected (nan without) on `val`."""

    loss: float
    accuracy: float
    rate: float


@dataclass(frozen=True)
class TrainedText:
    """A trained model of text, in eval mode.

    history   of each epoch of the training that was kept
    reached   whether that training met its aims and stopped by itself
    restarts  how often it was begun anew
    attempts  test accuracy of every training, in order
    """

    module: nn.Module
    history: tuple[Epoch, ...]
    test_accuracy: float
    test_rate: float
    reached: bool
    passed: bool
    restarts: int
    attempts: tuple[float, ...]


def fit_text(
    build: Callable[[], nn.Module],
    dataset: Dataset,
    recipe: TextRecipe,
    *,
    seed: int,
    device: torch.device | str = "cpu",
) -> TrainedText:
    """Train `build()` on token ids x (n, length) int64 of the split `train`, watch `val`, judge on `test`.

    A training that does not stop by itself is begun anew under its own named seed, at most `recipe.restarts` times;
    if none does, the one of the highest accuracy on `val` is given. On one kind of machine the same seed gives the
    same numbers.
    """
    check(recipe)
    x, y = _checked(dataset, torch.device(device))
    splits = {name: dataset.splits[name].to(x.device) for name in SPLITS}
    tried: list[tuple[nn.Module, list[Epoch], bool]] = []
    judged: list[tuple[float, float]] = []
    for attempt in range(recipe.restarts + 1):
        own = seeds.derive(seed, "text", attempt)
        with own_randomness(own, x.device):
            tried.append(_train(build, x, y, splits, recipe, seed=own))
            judged.append(judge(tried[-1][0], x[splits["test"]], y[splits["test"]]))
        if tried[-1][2]:
            break
    best = max(range(len(tried)), key=lambda k: (tried[k][2], tried[k][1][-1].accuracy))
    module, history, reached = tried[best]
    accuracy, rate = judged[best]
    passed = accuracy >= recipe.gate and isfinite(history[-1].loss)
    attempts = tuple(accuracy for accuracy, _ in judged)
    return TrainedText(module, tuple(history), accuracy, rate, reached, passed, len(tried) - 1, attempts)


def _train(
    build: Callable[[], nn.Module],
    x: Tensor,
    y: Tensor,
    splits: dict[str, Tensor],
    recipe: TextRecipe,
    *,
    seed: int,
) -> tuple[nn.Module, list[Epoch], bool]:
    """One training: the module, its epochs, and whether it met its aims."""
    module = initialise(build(), seeds.generator(seed, "init")).to(x.device)
    shuffle = seeds.generator(seed, "shuffle")
    draws = torch.Generator(x.device).manual_seed(seeds.derive(seed, "draws"))
    parameters = [p for p in module.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    train, val = splits["train"], splits["val"]
    history: list[Epoch] = []
    for _ in range(recipe.epochs):
        module.train()
        losses = []
        for rows in train[torch.randperm(len(train), generator=shuffle).to(x.device)].split(recipe.batch):
            tokens, aim = x[rows], recipe.aim
            u = None if aim is None else uniform(tokens, aim.samples, draws)
            loss = loss_of(module, tokens, y[rows], aim, u)
            adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, recipe.clip)
            adam.step()
            losses.append(loss.detach())
        module.eval()
        accuracy, rate = judge(module, x[val], y[val])
        history.append(Epoch(torch.stack(losses).mean().item(), accuracy, rate))
        if not isfinite(history[-1].loss):
            break
        if accuracy >= recipe.stop_at and _on_target(rate, recipe.aim):
            return module, history, True
    return module, history, False


def _on_target(rate: float, aim: Aim | None) -> bool:
    return aim is None or abs(rate - aim.rate) <= aim.tolerance


def uniform(tokens: Tensor, samples: int, generator: torch.Generator) -> Tensor:
    """Draws (samples * n, longest) in [0, 1) for tokens (n, length), made on their device."""
    shape = (samples * len(tokens), int(lengths_of(tokens).max()))
    return torch.rand(shape, generator=generator, device=tokens.device)


def loss_of(module: nn.Module, tokens: Tensor, y: Tensor, aim: Aim | None, u: Tensor | None) -> Tensor:
    """The loss of one step, a scalar, for tokens (n, length) and labels y (n,).

    u  uniform draws (samples * n, longest) that the choices are made by; None where there is no aim

    Without an aim it is the cross-entropy. The relaxation adds the distance of the expected rate. REINFORCE adds a
    term whose gradient is, on average over u, that of the expected cost with regard to the selector.
    """
    if aim is None:
        return F.cross_entropy(module(tokens), y)
    if not isinstance(module, Rationale):
        raise UsageError(f"`aim` needs a rationale model, got {type(module).__name__}")
    lengths = lengths_of(tokens)
    logits, gate = module.rationalise(tokens, u)
    errors = F.cross_entropy(logits, y.repeat(aim.samples), reduction="none")  # (samples * n,)
    if module.kind == "relaxed":
        return errors.mean() + aim.strength * distances(gate.expected, lengths, aim, each=False).mean()
    each = aim.regulariser == "released"
    shared = 1 if each else len(tokens)  # the choices of all documents answer for the distance of the batch
    cost = errors.detach() + aim.strength * shared * distances(gate.z, lengths, aim, each=each)
    return errors.mean() + (advantage(cost, aim.samples) * gate.log_prob.sum(1)).mean()


def distances(z: Tensor, lengths: Tensor, aim: Aim, *, each: bool) -> Tensor:
    """|rate - target| of selections z (samples * n, length) of documents of lengths (n,).

    each     the distance of each document, (samples * n,); else one for each sample of the batch, seen n times:
             of all words together (paper) or of the mean over documents (released)
    """
    n = len(lengths)
    chosen = z.sum(1).view(aim.samples, n)
    rates = chosen / lengths.clamp(min=1)
    if not each:
        pooled = chosen.sum(1, keepdim=True) / lengths.sum().clamp(min=1)
        rates = (pooled if aim.regulariser == "paper" else rates.mean(1, keepdim=True)).expand(-1, n)
    return (rates - aim.rate).abs().reshape(-1)


def advantage(cost: Tensor, samples: int) -> Tensor:
    """Costs (samples * n,) less the mean of the other samples of the same document; as they are where there is one."""
    if samples == 1:
        return cost
    table = cost.view(samples, -1)
    return ((table - table.mean(0)) * (samples / (samples - 1))).reshape(-1)


@torch.no_grad()
def judge(module: nn.Module, x: Tensor, y: Tensor, *, size: int = 256) -> tuple[float, float]:
    """Accuracy of a model on tokens x (n, length) and y (n,), and the share of all words it selects, nan without."""

    def answer(tokens: Tensor) -> Tensor:  # (k, 2): class, words selected
        if not isinstance(module, Rationale):
            return torch.stack([module(tokens).argmax(1), torch.zeros(len(tokens), device=x.device).long()], dim=1)
        logits, gate = module.rationalise(tokens)
        return torch.stack([logits.argmax(1), selected(gate)], dim=1)

    found = chunks.over(answer, x, size=size)
    words = lengths_of(x).sum().clamp(min=1)
    rate = (found[:, 1].sum() / words).item() if isinstance(module, Rationale) else float("nan")
    return (found[:, 0] == y).double().mean().item(), rate


def selected(gate: Gate) -> Tensor:
    """(n,) how many words of each row have a z that is not 0."""
    return (gate.z > 0).sum(1)


def check(recipe: TextRecipe) -> None:
    """UsageError where a recipe cannot be followed."""
    for name, least in (("batch", 1), ("epochs", 1), ("restarts", 0)):
        if getattr(recipe, name) < least:
            raise UsageError(f"`{name}` must be at least {least}, got {getattr(recipe, name)}")
    if not recipe.learning_rate > 0 or not recipe.clip > 0:
        raise UsageError(f"`learning_rate` and `clip` must be above 0, got {recipe.learning_rate} and {recipe.clip}")
    aim = recipe.aim
    if aim is not None and not 0 < aim.rate <= 1:
        raise UsageError(f"`rate` must lie in (0, 1], got {aim.rate}")
    if aim is not None and aim.samples < 1:
        raise UsageError(f"`samples` must be at least 1, got {aim.samples}")
    if aim is not None and aim.regulariser not in ("paper", "released"):
        raise UsageError(f"`regulariser` must be 'paper' or 'released', got {aim.regulariser!r}")


def _checked(dataset: Dataset, device: torch.device) -> tuple[Tensor, Tensor]:
    """Tokens x (n, length) and y (n,) on the device."""
    check_splits(dataset)
    if dataset.x.is_floating_point() or dataset.x.ndim != 2:
        raise UsageError(f"`dataset.x` must be token ids (n, length), got {dataset.x.dtype} {tuple(dataset.x.shape)}")
    return dataset.x.to(device), dataset.y.to(device)
