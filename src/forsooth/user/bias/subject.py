"""What is explained: the user's model and inputs, the players, and what stands for a hidden one."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.adapters import inputs, models, texts
from forsooth.games import layers, players
from forsooth.games.baselines import KINDS, baseline
from forsooth.games.values import Game, Model, game
from forsooth.names import unknown
from forsooth.plain import remembered
from forsooth.records import UsageError
from forsooth.suites import choose
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.seats import Seats, is_exact, sampled_forwards, seated
from forsooth.user.requests import rebuilt

REFERENCES = 1_000  # of the data: averaged into the baseline, and given to methods that read training inputs
PREDICTED = 10_000  # of the data: asked for their predicted class, so that all classes are among the references
BEFORE_LAYER = 256  # inputs sent through the part before a layer at once
FEW = 64  # players up to which a tenth of the forwards of walks is enough for least squares; a fifth above
SHARE_OF_FEW = 10
SHARE_OF_MANY = 5
LARGE = 64  # pixels from which patches play by default
GRID = 8  # and how many of these along each axis
SHARED = ("mean", "channel_mean", "zero")  # baselines that are the same for all inputs
REPLACED_BY = {
    "mean": "the mean of {data}",
    "channel_mean": "the mean of each channel of {data}",
    "zero": "zeros",
    "blur": "the blurred input",
}


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
    notes       sentences that a reader of the answer must know
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
    notes: tuple[str, ...]
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
        if self.exact:
            return int(2**self.seats.count)
        if self.request.anchor == "leverage":
            return self.samples + 2
        return sampled_forwards(int(self.request.permutations), self.seats.count)

    @property
    def samples(self) -> int:
        """Coalitions of the least squares that stands for so many permutations."""
        share = SHARE_OF_FEW
        if self.seats.count > FEW:
            share = SHARE_OF_MANY
        walks = sampled_forwards(int(self.request.permutations), self.seats.count)
        return max(4 * self.seats.count, walks // share)


def prepare(thing: Any, request: BiasRequest) -> Subject:
    """The subject of a request. `thing` is the model, in eval mode. All that cannot be is refused here."""
    request.check()
    columns = inputs.columns_of(request.inputs)
    inputs.check_columns(thing, columns)
    adapted, x, outputs = models.asked_inputs(thing, request.inputs, device=request.device, output=request.output)
    target = inputs.targets(request.target, outputs)
    data = data_of(request, x, columns, adapted)
    stage = cut(adapted, request.players)
    request = replace(request, players=by_default(request.players, adapted, stage.reached(x[:1])))
    seats = seated(request.players, stage.reached(x[:1]))
    request = replace(request, baseline=inputs.in_order(request.baseline, "baseline", columns))
    references = stage.reached(references_of(request, adapted.model, data, outputs))
    request = replace(request, baseline=token_or_kind(request.baseline, adapted, x))
    stand_in, replacement = stand_in_of(request, stage, x, references, of=len(data))
    return Subject(
        request=request,
        module=adapted.module,
        stage=stage,
        x=x,
        target=target,
        seats=seats,
        references=references,
        baseline=stand_in,
        exact=is_exact(request.permutations, seats.count),
        kind=adapted.kind,
        notes=(f"Hidden {seats.noun} are replaced by {replacement}.", output_note(adapted, outputs)),
        digest=digest(request, models.digest(thing, str(request.model), outputs), x, target, data),
    )


def data_of(request: BiasRequest, x: Tensor, columns: list[Any] | None, adapted: models.Adapted) -> Tensor:
    """What means are taken over, (k, *shape)."""
    data = x
    if request.data is not None and adapted.embed is not None:
        data = adapted.embed(request.data)
    elif request.data is not None:
        data = inputs.like(inputs.in_order(request.data, "data", columns), "data", x)
    if isinstance(request.baseline, str) and request.baseline == "mean" and len(data) == 1:
        raise UsageError("`data` must hold more than one input for the baseline mean, got one: nothing would be hidden")
    return data


def references_of(request: BiasRequest, model: Model, data: Tensor, outputs: Tensor) -> Tensor:
    """Those of the data (k, *shape) that are averaged into the baseline and given to methods: at most `REFERENCES`.

    The user's data have no labels, so they are drawn evenly over the classes that the explained model predicts, which
    costs one forward each; of more than `PREDICTED` so many are drawn at random first. Each beginning of what is
    drawn is as even, and methods get a beginning as their background.

    outputs  (n, classes) for the inputs, which are the data where the user gave none
    """
    seed = request.seed
    tried = torch.arange(len(data))
    if len(data) > PREDICTED:
        tried = choose.evenly(torch.zeros(len(data)), PREDICTED, seed=seed, role="tried")
    if request.data is None:
        predicted = outputs.argmax(1)[tried]
    else:
        predicted = models.outputs(model, data[tried]).argmax(1)
    return data[tried[choose.evenly(predicted, REFERENCES, seed=seed, role="baseline")]]


def cut(adapted: models.Adapted, given: Any) -> Stage:
    """What is played, what runs before it, and the layer between them: units:LAYER cuts the module in two."""
    if not (isinstance(given, str) and given.startswith("units:")):
        return Stage(adapted.model, framed=adapted.framed)
    if adapted.framed is not None:
        raise UsageError(f"`players` {given} must be asked of texts without padding: take players words")
    if adapted.module is None:
        raise UsageError(f"`players` {given} must be asked of a torch module, got {adapted.kind}")
    name = given.removeprefix("units:")
    parts = [part for part, _ in adapted.module.named_modules() if part and part.startswith(adapted.inner)]
    layer = f"{adapted.inner}{name}"
    if layer not in parts:
        raise unknown(name, [part.removeprefix(adapted.inner) for part in parts], argument="players units:")
    head, tail = layers.split(adapted.module, layer)
    return Stage(tail, head, layer)


def by_default(given: Any, adapted: models.Adapted, shown: Tensor) -> Any:
    """Who plays where the user said auto: words, else pixels or features, else patches of an image of many pixels."""
    if not isinstance(given, str) or given != "auto":
        return given
    if adapted.embed is not None:
        return "words"
    shape = tuple(shown.shape[1:])
    axes = players.spatial(shape)
    if len(shape) > 2 and torch.Size(axes).numel() > LARGE:
        return f"grid:{min(GRID, *axes)}"
    return "pixels"


def stand_in_of(request: BiasRequest, stage: Stage, x: Tensor, references: Tensor, *, of: int) -> tuple[Tensor, str]:
    """What stands for a hidden player of the inputs x (n, *shape), and how it is called.

    references  (k, *played shape), drawn from so many data as `of` says
    """
    kind = request.baseline
    if not isinstance(kind, str) or inputs.is_file(kind):
        values, _ = inputs.numbers(kind, "baseline")
        if not bool(values.isfinite().all()):
            raise UsageError("`baseline` must be finite numbers, got nan or infinity")
        return baseline(values, stage.reached(x), references), "values of your own"
    if kind not in KINDS:
        raise unknown(kind, (*KINDS, "file.npy"), argument="baseline")
    if kind in SHARED:
        x = x[:1]  # the same for all inputs, so the layer need not see them
    words = REPLACED_BY[kind].format(data=name_of_data(request, len(references), of))
    return baseline(kind, stage.reached(x), references), words


def token_or_kind(baseline: Any, adapted: models.Adapted, x: Tensor) -> Any:
    """The embedding of the token of `token:ID` at every place of x (n, length, dims); any other baseline as it is."""
    if not isinstance(baseline, str) or not baseline.startswith("token:"):
        return baseline
    number = baseline.removeprefix("token:")
    if adapted.token is None or not number.isdecimal():
        raise UsageError(
            f"`baseline` token:ID must be that of a classifier of texts, with a whole number, got {baseline}"
        )
    return adapted.token(int(number)).expand(x.shape[1:])


def name_of_data(request: BiasRequest, used: int, of: int) -> str:
    whose = "the data"
    if request.data is None:
        whose = "the inputs"
    if used < of:
        return f"{used:,} of {whose}, drawn evenly over the predicted classes"
    return whose


def output_note(adapted: models.Adapted, outputs: Tensor) -> str:
    """A sentence on what is explained, given the outputs (n, classes)."""
    if "estimator" in adapted.kind or models.are_probabilities(outputs):
        return "Shapley values explain the predicted probabilities."
    return "Shapley values explain the model's outputs as they are."


def digest(request: BiasRequest, model: str, *tensors: Tensor) -> str:
    """A hash of the model's own and of all numbers that came from outside; empty where something lives in memory."""
    words = request.words()
    if words is None:
        return ""
    files = [inputs.numbers(words[name], name)[0] for name in ("players", "baseline") if inputs.is_file(words[name])]
    total = hashlib.sha256(model.encode())
    for tensor in (*tensors, *files):
        total.update(str(tuple(tensor.shape)).encode() + models.raw(tensor))
    return total.hexdigest()[:32]


@remembered(1)
def prepare_again(words: Mapping[str, Any], digest: str) -> Subject:
    """The subject of a task's words in this process: read and built once, and the same as where the work began."""
    return rebuilt(prepare, BiasRequest(**words), digest)
