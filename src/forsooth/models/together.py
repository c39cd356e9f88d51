"""Many trainings of one architecture in one step: their weights are rows of one matrix, their losses one sum.

Every training has the beginning, the order of its images and the kept state of `train.fit` under its seed, and the
result is the same but for the order of sums; the gradient of a sum of losses is that of each. What dropout leaves out
is drawn for each training by itself, so that its company changes nothing, but they are not the draws of `fit`.

On an accelerator the step is recorded once as a graph and played: small networks then wait for no launches.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forsooth import chunks, seeds
from forsooth.models.chain import Drops, Link, Way, chain, is_chain, ways_for
from forsooth.models.keeper import Keeper
from forsooth.models.recipes import Recipe, check
from forsooth.models.recorded import Steps
from forsooth.models.samples import Pool
from forsooth.models.stacked_adam import StackedAdam
from forsooth.models.train import (
    Attempt,
    Run,
    Trained,
    accuracy_on,
    best_of,
    initialise,
    learning,
    loss_of,
    own_randomness,
    share_right,
)

ON_ACCELERATORS = 4  # so many batches are validated at once there
TRIES = 4  # steps by which a way is judged
Build = Callable[[], nn.Module]
Tell = Callable[[str], None]


class Member(NamedTuple):
    """One training: the place of its dataset, and its seed."""

    dataset: int
    seed: int


@dataclass(frozen=True)
class Options:
    """How the trainings are computed, which changes nothing but the order of sums.

    way       None: the quickest, tried out on an accelerator
    graph     whether steps on an accelerator are played from a graph
    compiled  whether forward passes are compiled, which takes a minute first
    """

    way: Way | None = None
    graph: bool = True
    compiled: bool = False


USUAL = Options()


def can(build: Build, recipe: Recipe) -> bool:
    """Whether trainings of this network by this recipe can be stacked."""
    return is_chain(build()) and recipe.augment == "none"


def fit_together(
    build: Build, pool: Pool, members: Sequence[Member], recipe: Recipe, *, options: Options = USUAL, tell: Tell = print
) -> list[Trained]:
    """What `train.fit` gives for each of the members, in their order. Those that collapse begin again together."""
    check(recipe)
    attempts: list[list[Attempt]] = [[] for _ in members]
    pending = list(range(len(members)))
    for number in range(recipe.restarts + 1):
        stack = Stack(build, [members[k] for k in pending], number, pool, recipe, options)
        for k, attempt in zip(pending, stack.trained(tell), strict=True):
            attempts[k].append(attempt)
        pending = [k for k in pending if attempts[k][-1].val_accuracy < recipe.gate]
        if not pending:
            break
    return [best_of(tries, recipe) for tries in attempts]


class Stack:
    """Trainings of one architecture while they run.

    modules  whose parameters are pieces of the rows of `adam.flat` (k, all)
    rows     name of a split -> (k, m) rows of the pool
    """

    def __init__(
        self, build: Build, members: Sequence[Member], number: int, pool: Pool, recipe: Recipe, options: Options
    ) -> None:
        self.pool = pool
        self.recipe = recipe
        self.options = options
        self.members = members
        self.seeds = [seeds.derive(member.seed, number) for member in members]
        device = pool.x.device
        self.modules = [self._begun(build, seed) for seed in self.seeds]
        self.names = [name for name, _ in self.modules[0].named_parameters()]
        self.adam = StackedAdam(self.modules, recipe)
        places = torch.tensor([member.dataset for member in members], device=device)
        self.rows = {name: rows[places] for name, rows in pool.splits.items()}
        self.shuffles = [seeds.generator(seed, "shuffle") for seed in self.seeds]
        drawn = [seeds.derive(seed, "dropout") for seed in self.seeds]
        self.chances = [torch.Generator(device).manual_seed(seed) for seed in drawn]
        self.dropouts = self._dropouts()
        self.forward: Link = chain(self.modules[0], "plain")
        self.way = Way()
        self.follow(options.way or ways_for(self.modules[0])[0])

    def _begun(self, build: Build, seed: int) -> nn.Module:
        with own_randomness(seed, self.pool.x.device):
            module = initialise(build(), seeds.generator(seed, "init"))
        return module.to(self.pool.x.device, self.pool.x.dtype)

    def _dropouts(self) -> list[tuple[float, torch.Size]]:
        """The chance to be kept and the shape of what is dropped, for each dropout layer."""
        seen: list[tuple[float, torch.Size]] = []
        x = self.pool.x[:1]
        assert isinstance(self.modules[0], nn.Sequential)
        with torch.no_grad():
            for layer in self.modules[0]:
                if isinstance(layer, nn.Dropout):
                    seen.append((1 - layer.p, x.shape[1:]))
                else:
                    x = layer(x)
        return seen

    def follow(self, way: Way) -> None:
        """Compute the networks this way from now on."""
        self.way = way
        self.forward = chain(self.modules[0], way.convolution)
        if way.stack == "vmap":
            self.forward = torch.vmap(self.forward)
        if self.options.compiled:
            self.forward = torch.compile(self.forward, dynamic=False)

    def logits(self, x: Tensor, drops: Drops) -> Tensor:
        """Logits (k, n, classes) of x (k, n, *shape); a gradient flows to `adam.flat`."""
        weights = dict(zip(self.names, self.adam.pieces(), strict=True))
        if self.way.stack == "vmap":
            return self.forward(x, weights, list(drops))
        alone = []
        for k in range(len(x)):
            own = {name: weight[k] for name, weight in weights.items()}
            alone.append(self.forward(x[k], own, [drop[k] for drop in drops]))
        return torch.stack(alone)

    def loss(self, rows: Tensor, drops: Drops) -> Tensor:
        """The sum over the networks of their mean losses on rows (k, n) of the pool."""
        logits = learning(lambda x: self.logits(x, drops), self.pool.x[rows], self.recipe)
        # One mean over all times their number: each has as many images.
        return loss_of(logits.flatten(0, 1), self.pool.y[rows].flatten(), self.recipe) * len(rows)

    def trained(self, tell: Tell) -> list[Attempt]:
        """Train them all, and judge each as `fit` does."""
        with _kernels_tried_out():
            if self.options.way is None and self.pool.x.device.type == "cuda":
                self.follow(self._quickest(tell))
            keepers = self._train(tell)
        self.adam.release()
        return [self._judged(k, keeper) for k, keeper in enumerate(keepers)]

    def _judged(self, k: int, keeper: Keeper) -> Attempt:
        module = self.modules[k]
        module.load_state_dict(keeper.state)
        module.train(self.recipe.evaluate_in_train_mode)
        samples = self.pool.each[self.members[k].dataset]
        with own_randomness(self.seeds[k], self.pool.x.device):
            val_accuracy = accuracy_on(module, samples, "val") if keeper.sound else -1.0
            test_accuracy = accuracy_on(module, samples, "test")
        return Attempt(Run(module, keeper.curve, keeper.saved), val_accuracy, test_accuracy)

    def _train(self, tell: Tell) -> list[Keeper]:
        keepers = [Keeper(module, self.recipe) for module in self.modules]
        graph = self.options.graph and self.pool.x.device.type == "cuda"
        steps = Steps(self._step, self.adam, graph=graph)
        begun = time.perf_counter()
        while not all(keeper.over for keeper in keepers):
            rows = self._shuffled()
            drops = self.drawn(rows.shape[1], training=True)
            for start in range(0, rows.shape[1], self.recipe.batch):
                part = slice(start, start + self.recipe.batch)
                steps.take(rows[:, part], [drop[:, part] for drop in drops])
            for keeper, (loss, accuracy) in zip(keepers, self._validated(), strict=True):
                if not keeper.over:
                    keeper.see(loss, accuracy)
        tell(self._said(time.perf_counter() - begun))
        return keepers

    def _said(self, seconds: float) -> str:
        """How long a training took."""
        way = f"{self.way.convolution}, {self.way.stack}"
        count = self.adam.steps
        each = 1e3 * seconds / max(1, count)
        took = f"{count:,} steps, {seconds:.1f} s, {each:.2f} ms a step with validation"
        return f"{len(self.modules)} networks ({way}): {took}"

    def _step(self, rows: Tensor, drops: Drops) -> None:
        self.adam.step(torch.autograd.grad(self.loss(rows, drops), self.adam.flat)[0])

    def _shuffled(self) -> Tensor:
        """The training rows (k, n) in a new order for each network."""
        rows = self.rows["train"]
        orders = torch.stack([torch.randperm(rows.shape[1], generator=shuffle) for shuffle in self.shuffles])
        return rows.gather(1, orders.to(rows.device))

    def drawn(self, n: int, *, training: bool) -> list[Tensor]:
        """What each dropout layer keeps of n images (k, n, *values); none where dropout is off."""
        if not training and not self.recipe.evaluate_in_train_mode:
            return []
        drops = []
        for kept, shape in self.dropouts:
            device = self.pool.x.device
            draws = [torch.rand((n, *shape), generator=chance, device=device) for chance in self.chances]
            drops.append(torch.stack([draw < kept for draw in draws]))
        return drops

    @torch.no_grad()
    def _validated(self) -> list[tuple[float, float]]:
        """Loss and accuracy of each network on its `val`."""
        rows = self.rows["val"]
        logits = self._predicted(rows)
        losses = torch.stack([loss_of(own, self.pool.y[r], self.recipe) for own, r in zip(logits, rows, strict=True)])
        right = share_right(logits.flatten(0, 1), self.pool.y[rows].flatten(), groups=len(rows))
        found = zip(losses.tolist(), right.tolist(), strict=True)
        return [(loss, share if loss == loss and abs(loss) != float("inf") else -1.0) for loss, share in found]

    def _predicted(self, rows: Tensor) -> Tensor:
        """Logits (k, n, classes) on rows (k, n), some batches at a time."""
        drops = self.drawn(rows.shape[1], training=False)
        size = self.recipe.batch
        if rows.device.type != "cpu":
            size *= ON_ACCELERATORS
        parts = []
        for start in range(0, rows.shape[1], size):
            part = slice(start, start + size)
            parts.append(self.logits(self.pool.x[rows[:, part]], [drop[:, part] for drop in drops]))
        return torch.cat(parts, 1)

    def _quickest(self, tell: Tell) -> Way:
        """The way whose step takes the least time here; the weights stay as they were."""
        rows = self.rows["train"][:, : self.recipe.batch]
        drops = self.drawn(rows.shape[1], training=True)
        found: dict[Way, float] = {}
        for way in ways_for(self.modules[0]):
            self.follow(way)
            try:
                found[way] = self._milliseconds(rows, drops)
            except RuntimeError as error:
                if not chunks.is_full(error):
                    raise
                tell(f"{way.convolution}, {way.stack}: too large for the accelerator")
                torch.cuda.empty_cache()
        for way, each in found.items():
            tell(f"{way.convolution}, {way.stack}: {each:.2f} ms a step of {len(rows)} networks, tried out")
        if not found:
            raise torch.OutOfMemoryError(f"no way to train {len(rows)} networks together fits")
        return min(found, key=lambda way: found[way])

    def _milliseconds(self, rows: Tensor, drops: Drops) -> float:
        """Of one forward and backward pass."""
        start = 0.0
        for number in range(TRIES + 2):
            if number == 2:  # the first are slow
                torch.cuda.synchronize()
                start = time.perf_counter()
            torch.autograd.grad(self.loss(rows, drops), self.adam.flat)
        torch.cuda.synchronize()
        return 1e3 * (time.perf_counter() - start) / TRIES


@contextmanager
def _kernels_tried_out() -> Iterator[None]:
    """Let the library of convolutions try its kernels: shapes stay the same for thousands of steps."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
