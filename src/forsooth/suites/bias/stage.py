"""A trained network made ready to be played: what is hidden, from whom, and what stands for the absent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from forsooth import chunks, models, seeds
from forsooth.games import layers, players
from forsooth.games.baselines import baseline as stand_in
from forsooth.games.draws import shuffled
from forsooth.games.shapley import Estimate, exact, of_players, permutation
from forsooth.games.values import Game, Model, game
from forsooth.models import layout
from forsooth.records import Cell, Dataset, Facts, Row
from forsooth.suites import choose, explain, networks
from forsooth.suites.bias import data
from forsooth.suites.bias.data import DataSpec

REFERENCES = 1_000  # training inputs averaged into the baseline and handed to methods that fit something
BACKGROUND = 100  # of these, handed to methods as background
TESTED = 2_000  # test inputs asked whether the network gets them right
AT_ONCE = 256  # inputs for which a layer is computed at once
PREFIX = "net."  # of the weights in a cell


@dataclass(frozen=True)
class Network:
    """One training of a network.

    source    what it is trained on
    net       name of the architecture
    training  number of the training
    player    of trainings always "input", since all players share them
    """

    source: DataSpec
    net: str
    training: int = 0
    player: str = "input"

    @property
    def where(self) -> Facts:
        """The factors of the panel."""
        return {"dataset": self.source.name, "model": self.net, "player": self.player}


@dataclass(frozen=True)
class Panel(Network):
    """A network, and who plays: parts of the input, or units of a layer.

    trainings  how many the network has: all are asked about the same inputs
    """

    trainings: int = 1


@dataclass(frozen=True)
class GameSpec:
    """What decides the Shapley values; the fields are those of `Settings`."""

    grid: int | None
    permutations: int
    exact_up_to: int
    antithetic: bool
    baseline: Literal["mean", "channel_mean", "zero", "blur"]
    output: Literal["logits", "probabilities"]
    layer: str | None
    same_game: bool


def row_of(panel: Network, part: str = "scores") -> Row:
    """What all rows of a panel share."""
    return Row("bias", part).having(**panel.where, model_seed=panel.training, method="")


def title(panel: Network) -> str:
    words = f"{panel.source.name}, {panel.net}{which(panel.training)}"
    return f"{words}, units of a layer" if panel.player == "units" else words


def which(training: int) -> str:
    """Which training of several, in words; empty for the first."""
    return f", training {training + 1}" if training else ""


class Stage:
    """The network of a panel, the inputs that are explained, and the games that are played on them.

    samples     (k,) the inputs that every training above its gate gets right
    references  (m, *shape) training inputs, or what the layer makes of them
    whole       the network; `model` is the part of it that the players feed
    """

    def __init__(self, trained: Sequence[Cell], panel: Panel, spec: GameSpec, device: str) -> None:
        self.panel = panel
        self.spec = spec
        self.device = device
        self.dataset = data.dataset(panel.source)
        self.samples = explained(trained, panel, self.dataset)
        self.reference_rows = drawn(panel, self.dataset, "train", REFERENCES, role="baseline")
        self.whole, self.layer = explained_network(trained[panel.training], panel, spec, device)
        self.model: Model = self.whole
        self.head: Model | None = None
        if panel.player == "units":
            assert self.layer is not None
            self.head, self.model = layers.split(self.whole, self.layer)
        self.references = self.shown(self.dataset.x[self.reference_rows].to(device))

    def shown(self, x: Tensor) -> Tensor:
        """What the players are parts of: the input itself, or the output of the layer. (n, *shape)"""
        if self.head is None:
            return x
        with torch.no_grad():
            return chunks.over(self.head, x, size=AT_ONCE)

    def inputs(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        return self.dataset.x[chosen].to(self.device), self.dataset.y[chosen].to(self.device)

    def classes(self, chosen: Tensor) -> list[Facts]:
        """How many of each class take part: explained (the chosen ones), as background and in the baseline."""
        references = self.dataset.y[self.reference_rows]
        roles = {"explained": self.dataset.y[chosen], "background": references[:BACKGROUND], "baseline": references}
        return choose.classes_of(roles, where=self.panel.where)

    def labels(self, shape: tuple[int, ...]) -> Tensor:
        """Which player each place of an input belongs to."""
        grid = self.spec.grid
        if self.head is not None or grid is None or len(shape) < 3 or min(shape[1:]) <= grid:
            return players.pixels(shape)
        return players.patches(shape, grid)

    def absent(self, x: Tensor) -> Tensor:
        """What absent players take. (*shape) or, of a blur, (n, *shape)"""
        return stand_in(self.spec.baseline, x, self.references)

    def game_of(self, chosen: Tensor) -> Game:
        """The games of the chosen inputs, numbers (k,) of the dataset."""
        x, target = self.inputs(chosen)
        x = self.shown(x)
        return game(self.model, x, target, players=self.labels(x.shape[1:]), baseline=self.absent(x))

    def estimate(self, chosen: Tensor, *, seed: int) -> Estimate:
        """Shapley values of the chosen inputs (k,).

        Each input walks orders of its own: errors are independent, and an interval over inputs holds them.
        """
        played = self.game_of(chosen)
        if played.count <= self.spec.exact_up_to:
            return exact(played)
        played = shuffled(played, seeds.generators(seed, "roles", chosen.tolist()))
        assert played.roles is not None
        found = permutation(
            played,
            permutations=self.spec.permutations,
            generator=seeds.generator(seed, "permutations"),
            antithetic=self.spec.antithetic,
        )
        return of_players(found, played.roles)

    def question(self, x: Tensor, target: Tensor, *, seed: int, samples: Tensor) -> explain.Question:
        """What methods are asked about x (n, *shape), which are as from `shown`."""
        return explain.Question(
            game=self.shared_game(x),
            model=self.model if isinstance(self.model, nn.Module) else self.whole,
            x=x,
            target=target,
            background=self.references[:BACKGROUND],
            fit=self.references,
            truth=torch.ones_like(x, dtype=torch.bool),
            layer=None if self.head is not None else self.layer,
            seed=seed,
            samples=samples,
        )

    def question_on_units(self, x: Tensor, target: Tensor, *, seed: int, samples: Tensor) -> explain.Question:
        """What methods that speak of units are asked about the inputs x (n, *shape) and the whole network."""
        return explain.Question(
            model=self.whole,
            x=x,
            target=target,
            background=x[:0],
            fit=x[:0],
            truth=None,
            layer=self.layer,
            seed=seed,
            samples=samples,
            units=tuple(self.references.shape[2:]),
        )

    def shared_game(self, x: Tensor) -> dict[str, Tensor]:
        """The players and the baseline for methods that take them; nothing where each keeps its own."""
        if not self.spec.same_game:
            return {}
        seats = {"players": self.labels(x.shape[1:]).to(x.device)}
        absent = self.absent(x)
        # a blurred input is no one else's
        return seats if absent.ndim == x.ndim else {"baseline": absent, **seats}


def explained_network(trained: Cell, panel: Network, spec: GameSpec, device: str) -> tuple[nn.Module, str | None]:
    """The trained network as it is explained, and the name of the layer that Grad-CAM reads."""
    module = data.untrained(panel.net, data.dataset(panel.source))
    networks.loaded(module, trained.tensors, device=device, prefix=PREFIX)
    net = models.architecture(panel.net)
    if device == "cuda" and net.channels_last:
        layout.channels_last(module)
    return networks.with_output(module, spec.layer or net.layer, spec.output)


def drawn(panel: Network, dataset: Dataset, split: str, count: int | None, *, role: str) -> Tensor:
    """At most `count` rows of a split, evenly over its classes; the same ones in every task of the dataset. (k,)"""
    return choose.rows_of(dataset, dataset.splits[split], count, seed=panel.source.seed, role=role)


def tested(panel: Network, dataset: Dataset) -> Tensor:
    """The test inputs that networks are asked about, before it is known who gets them right. (k,)"""
    return drawn(panel, dataset, "test", TESTED, role="tested")


def explained(trained: Sequence[Cell], panel: Network, dataset: Dataset) -> Tensor:
    """The tested inputs that every training above its gate gets right, each beginning of them even over classes. (k,)

    All trainings are asked about the same inputs, so that inputs and trainings can be told apart as sources of chance.
    """
    rows = networks.agreed(trained, tested(panel, dataset))
    return choose.rows_of(dataset, rows, None, seed=panel.source.seed, role="explained")
