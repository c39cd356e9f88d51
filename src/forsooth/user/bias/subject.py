"""What is explained: the user's model and inputs, the players, and what stands for a hidden one."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.adapters import tables, texts
from forsooth.games.values import Game, Model, game
from forsooth.records import Facts, UsageError
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.seats import Seats, sampled_forwards

AT_ONCE = 8  # inputs played in one task, so that little is lost when the work is stopped
BACKGROUND = 100  # inputs handed to methods as background
BEFORE_LAYER = 256  # inputs sent through the part before a layer at once
FEW = 64  # players up to which a tenth of the forwards of walks is enough for least squares; a fifth above
SHARE_OF_FEW = 10
SHARE_OF_MANY = 5


@dataclass(frozen=True)
class Stage:
    """The part of the model that the games are played on.

    model  the whole model, or the part of it behind a layer
    head   the part before the layer; None where the players are parts of the input
    layer  dotted name of that layer in the module
    framed what must be told which text is asked about
    """

    model: Model
    head: Model | None = None
    layer: str | None = None
    framed: texts.Framed | None = None

    @property
    def table(self) -> tables.Coded | None:
        """The model where it is asked about a table with text, categories or gaps."""
        if isinstance(self.model, tables.Coded):
            return self.model
        return None

    @property
    def rows(self) -> int:
        """What the model is asked for each coalition: once, or once for every background row."""
        if self.table is None or self.table.background is None:
            return 1
        return len(self.table.background)

    @property
    def open(self) -> bool:
        """Whether methods may look into it."""
        return isinstance(self.model, nn.Module)

    @property
    def one_by_one(self) -> bool:
        """Whether inputs must come singly: a part behind a layer that could not be cut off knows one input only, and
        so does a model that reads padding or a last word from the ids of a text."""
        return self.framed is not None or (self.head is not None and not self.open)

    def reached(self, x: Tensor) -> Tensor:
        """What is played on for the inputs x (n, *shape): (n, *played shape)."""
        if self.head is None:
            return x
        with torch.no_grad():
            values = chunks.over(self.head, x, size=BEFORE_LAYER)
        if not isinstance(values, Tensor) or values.ndim < 2 or len(values) != len(x):
            raise UsageError(f"`players` units must be of a layer that gives (n, c, …), got {type(values).__name__}")
        return values


@dataclass(frozen=True)
class Subject:
    """All that is fixed before the first game.

    module      the user's model as a torch module; None for any other
    x, target   (n, *shape), (n,): the inputs and the explained classes
    references  (k, *played shape)
    baseline    (*played shape) or (n, *played shape)
    exact       all coalitions are played, instead of `permutations` random orders
    kind        the model, in words
    told        what the words say beside: columns that were left out; what stands for hidden players, and from how
                many of the data it was made; whether probabilities are explained
    digest      tells this subject from any other; empty where something lives in memory
    """

    request: BiasRequest
    module: nn.Module | None
    stage: Stage
    x: Tensor
    target: Tensor
    seats: Seats
    references: Tensor
    baseline: Tensor
    exact: bool
    kind: str
    told: Facts
    digest: str

    @property
    def step(self) -> int:
        """Most inputs at a time."""
        if self.stage.one_by_one:
            return 1
        return len(self.x)

    def part(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """What is played on for the inputs `start` … `stop` - 1, their targets and their baseline."""
        x = self.stage.reached(self.x[start:stop])
        if self.stage.framed is not None:
            self.stage.framed.place = start
        stand_in = self.baseline
        if stand_in.ndim == x.ndim:
            stand_in = stand_in[start:stop]
        return x, self.target[start:stop], stand_in

    def game(self, start: int, stop: int) -> Game:
        x, target, stand_in = self.part(start, stop)
        return game(self.stage.model, x, target, players=self.seats.labels, baseline=stand_in)

    def forwards(self) -> int:
        """Calls of the model that the Shapley values of one input take."""
        return self.coalitions() * self.stage.rows

    def coalitions(self) -> int:
        """Those whose worth is asked for one input."""
        if self.exact:
            return int(2**self.seats.count)
        if self.request.anchor == "leverage":
            return self.samples + 2
        return self.walks

    @property
    def walks(self) -> int:
        """Coalitions of so many permutations."""
        return sampled_forwards(int(self.request.permutations), self.seats.count)

    @property
    def samples(self) -> int:
        """Coalitions of the least squares that stands for so many permutations."""
        share = SHARE_OF_FEW
        if self.seats.count > FEW:
            share = SHARE_OF_MANY
        return max(4 * self.seats.count, self.walks // share)
