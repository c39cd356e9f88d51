"""What the door plays on: the user's model and inputs, the players, and what stands for an absent one."""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import chunks
from forsooth.engine import one_thread
from forsooth.games import layers, players
from forsooth.games.baselines import KINDS, baseline
from forsooth.games.shapley import MOST_PLAYERS
from forsooth.games.values import Game, Model, game
from forsooth.names import unknown
from forsooth.records import UsageError
from forsooth.suites import choose
from forsooth.user import inputs, models

REFERENCES = 1_000  # of the data: averaged into the baseline, and given to methods that read training inputs
PREDICTED = 10_000  # of the data: asked for their predicted class, so that all classes are among the references
OUTPUTS = ("logits", "probabilities")
CHANNELS = ("signed_max", "max_abs", "sum")


@dataclass(frozen=True)
class Asked:
    """The user's words. Where all of them are text and numbers, the finished work can be kept on disk.

    model         package.module:name, or a torch module, an estimator, a function
    inputs        (n, *shape): a file, an array or a tensor
    target        None: the predicted class; a class; one for each input (n,), in memory or in a file
    players       pixels, features, grid:N, units:LAYER, or integer labels (*spatial) or (*shape)
    permutations  random orders of joining, or "exact"
    baseline      mean, channel_mean, zero, blur, or values (*shape) or (n, *shape)
    data          (k, *shape), what means are taken over and what methods read as background; None: the inputs
    output        logits: the outputs as they are; probabilities: their softmax
    channels      how the channels of a gradient become one number
    device        auto, cpu or cuda
    """

    model: Any
    inputs: Any
    target: Any = None
    players: Any = "pixels"
    permutations: int | str = 1000
    baseline: Any = "mean"
    data: Any = None
    output: str = "logits"
    channels: str = "signed_max"
    device: str = "auto"
    seed: int = 0

    def words(self) -> dict[str, Any] | None:
        """The same as plain values that a task can carry, files by their full path; None where something is live."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in found.items():
            if isinstance(value, Path) or (name != "model" and inputs.is_file(value)):
                found[name] = str(Path(value).resolve())
            elif not isinstance(value, str | int | None):
                return None
        return found if isinstance(self.model, str) else None


@dataclass(frozen=True)
class Subject:
    """All that is fixed before the first game.

    whole       the model on the inputs; `module` the same as a torch module, or None
    model       what is played: the whole model, or the part of it behind a layer; `open` where methods may look into it
    head        the part before the layer; None where the players are parts of the input
    layer       dotted name of that layer in `module`
    x, target   (n, *shape), (n,): the inputs and the explained classes
    labels      who owns which entry of what is played on, (*spatial) or (*played shape)
    count       number of players; `noun` says what they are
    references  (k, *played shape)
    baseline    (*played shape) or (n, *played shape)
    exact       all coalitions are played, instead of `permutations` random orders
    kind        the model, in words
    said        sentences that a reader of the answer must know
    digest      tells this subject from any other
    """

    asked: Asked
    module: nn.Module | None
    model: Model
    open: bool
    head: Model | None
    layer: str | None
    x: Tensor
    target: Tensor
    labels: Tensor
    count: int
    noun: str
    references: Tensor
    baseline: Tensor
    exact: bool
    kind: str
    said: tuple[str, ...]
    digest: str

    @property
    def step(self) -> int:
        """Most inputs at a time: a part behind a layer that could not be cut off knows one input only."""
        return len(self.x) if self.head is None or isinstance(self.model, nn.Module) else 1

    def part(self, start: int, stop: int) -> tuple[Tensor, Tensor, Tensor]:
        """What is played on for the inputs `start` … `stop` - 1, their targets and their baseline."""
        x = self.x[start:stop]
        if self.head is not None:
            with torch.no_grad():
                x = self.head(x)
        own = self.baseline.ndim == x.ndim
        return x, self.target[start:stop], self.baseline[start:stop] if own else self.baseline

    def game(self, start: int, stop: int) -> Game:
        x, target, stands = self.part(start, stop)
        return game(self.model, x, target, players=self.labels, baseline=stands)

    def forwards(self) -> int:
        """Calls of the model that the Shapley values of one input take."""
        return 2**self.count if self.exact else int(self.asked.permutations) * (self.count - 1) + 2


def prepared(thing: Any, asked: Asked) -> Subject:
    """The subject of the user's words. `thing` is the model, in eval mode. All that cannot be is refused here."""
    known(asked)
    columns = inputs.columns_of(asked.inputs)
    inputs.of_model(thing, columns)
    raw, arrays = inputs.batch(asked.inputs, "inputs")
    adapted, x = models.adapt(thing, raw, arrays=arrays, device=asked.device, output=asked.output)
    with one_thread():  # a digest must not depend on the number of threads
        found = models.outputs(adapted.model, x)
    target = inputs.targets(asked.target, found)
    data = x if asked.data is None else inputs.like(inputs.in_order(asked.data, "data", columns), "data", x)
    if isinstance(asked.baseline, str) and asked.baseline == "mean" and len(data) == 1:
        raise UsageError("`data` must hold more than one input for the baseline mean, got one: nothing would be hidden")
    model, head, layer = cut(adapted, asked.players)
    shown = x[:1] if head is None else played_on(head, x[:1])
    labels, noun = seated(asked.players, tuple(shown.shape[1:]))
    count = players.seats(shown, labels)[1]
    if count < 2:
        raise UsageError(f"`players` must be at least 2, got {count}: there is nothing to rank")
    classes = found.argmax(1) if asked.data is None else None
    chosen = data[referred(adapted.model, data, classes, seed=asked.seed)]
    references = chosen if head is None else played_on(head, chosen)
    shared = isinstance(asked.baseline, str) and asked.baseline in (
        "mean",
        "channel_mean",
        "zero",
    )  # one for all inputs, so the layer need not see them
    asked = replace(asked, baseline=inputs.in_order(asked.baseline, "baseline", columns))
    stands, said = stand_in(
        asked, x if head is None else shown if shared else played_on(head, x), references, of=len(data)
    )
    return Subject(
        asked=asked,
        module=adapted.module,
        model=model,
        open=isinstance(model, nn.Module),
        head=head,
        layer=layer,
        x=x,
        target=target,
        labels=labels,
        count=count,
        noun=noun,
        references=references,
        baseline=stands,
        exact=exactly(asked.permutations, count),
        kind=adapted.kind,
        said=(said, *on_outputs(asked, adapted, found)),
        digest=digest(thing, asked, found, x, target, data),
    )


def referred(model: Model, data: Tensor, classes: Tensor | None, *, seed: int) -> Tensor:
    """Which of the data (k, *shape) are averaged into the baseline and given to methods: at most `REFERENCES`, (m,).

    The user's data have no labels, so they are drawn evenly over the classes that the explained model predicts, which
    costs one forward each; of more than `PREDICTED` so many are drawn at random first. Each beginning of what is
    drawn is as even, and methods get a beginning as their background.

    classes  (k,) the predictions, where they are known already
    """
    tried = torch.arange(len(data))
    if len(data) > PREDICTED:
        tried = choose.evenly(torch.zeros(len(data)), PREDICTED, seed=seed, role="tried")
    predicted = models.outputs(model, data[tried]).argmax(1) if classes is None else classes[tried]
    return tried[choose.evenly(predicted, REFERENCES, seed=seed, role="baseline")]


def known(asked: Asked) -> None:
    """Refuse words that are on no list."""
    for argument, words in (("output", OUTPUTS), ("channels", CHANNELS), ("device", ("auto", "cpu", "cuda"))):
        if getattr(asked, argument) not in words:
            raise unknown(str(getattr(asked, argument)), words, argument=argument)
    count = asked.permutations
    if count != "exact" and not (isinstance(count, int) and not isinstance(count, bool) and count >= 2):
        raise UsageError(f"`permutations` must be a whole number of at least 2, or exact, got {count!r}")


def cut(adapted: models.Adapted, given: Any) -> tuple[Model, Model | None, str | None]:
    """What is played, what runs before it, and the layer between them: units:LAYER cuts the module in two."""
    if not (isinstance(given, str) and given.startswith("units:")):
        return adapted.model, None, None
    if adapted.module is None:
        raise UsageError(f"`players` {given} must be asked of a torch module, got {adapted.kind}")
    inner = adapted.module.get_submodule(adapted.inner.rstrip(".")) if adapted.inner else adapted.module
    name = given.removeprefix("units:")
    names = [found for found, _ in inner.named_modules() if found]
    if name not in names:
        raise unknown(name, names, argument="players units:")
    layer = f"{adapted.inner}{name}"
    head, tail = layers.split(adapted.module, layer)
    return tail, head, layer


def played_on(head: Model, x: Tensor) -> Tensor:
    """What a layer gives for x (n, *shape), a few inputs at a time: a network that was not cut keeps the last ones."""
    with torch.no_grad():
        found = chunks.over(head, x, size=256)
    if not isinstance(found, Tensor) or found.ndim < 2 or len(found) != len(x):
        raise UsageError(f"`players` units must be of a layer that gives (n, c, …), got {type(found).__name__}")
    return found


def seated(given: Any, shape: tuple[int, ...]) -> tuple[Tensor, str]:
    """The labels of the players of one input of this shape, and what a player is called."""
    if not isinstance(given, str) or inputs.is_file(given):
        labels, _ = inputs.numbers(given, "players")
        return labels, "players"
    if given.startswith("units:"):
        return players.pixels(shape), "units"
    labels = players.parse(given, shape)
    noun = "patches" if given.startswith("grid") else "pixels" if given == "pixels" and len(shape) > 1 else "features"
    return labels, noun


def exactly(permutations: int | str, count: int) -> bool:
    """Whether all coalitions are played: if asked, and where they cost no more than the random orders."""
    if permutations == "exact" and count > MOST_PLAYERS:
        most = f"at most {MOST_PLAYERS} players to be exact"
        raise UsageError(
            f"`permutations` exact must have {most}, got {count}: take a number, or larger players (grid:4)"
        )
    cheaper = count <= MOST_PLAYERS and permutations != "exact" and 2**count <= int(permutations) * (count - 1) + 2
    return permutations == "exact" or cheaper


def stand_in(asked: Asked, x: Tensor, references: Tensor, *, of: int) -> tuple[Tensor, str]:
    """What stands for an absent player of x (n, *played shape), and a sentence on it; `of`: how many data there are."""
    kind: str | Tensor = asked.baseline
    whose = "the inputs" if asked.data is None else "the data"
    if len(references) < of:
        whose = f"{len(references):,} of {whose}, drawn evenly over the predicted classes"
    if not isinstance(kind, str) or inputs.is_file(kind):
        kind, said = inputs.numbers(kind, "baseline")[0], "values of your own"
        if not bool(kind.isfinite().all()):
            raise UsageError("`baseline` must be finite numbers, got nan or infinity")
    elif kind not in KINDS:
        raise unknown(kind, (*KINDS, "file.npy"), argument="baseline")
    else:
        told = {"mean": f"the mean of {whose}", "channel_mean": f"the mean of each channel of {whose}"}
        said = told.get(kind, {"zero": "zeros", "blur": "the blurred input"}.get(kind, kind))
    return baseline(kind, x, references), f"Absent players take {said}."


def on_outputs(asked: Asked, adapted: models.Adapted, found: Tensor) -> list[str]:
    """A sentence on what the games are worth."""
    if "estimator" in adapted.kind or models.probabilities(found):
        return ["The games are played on probabilities."]
    return ["The games are played on the model's outputs as they are."]


def digest(thing: Any, asked: Asked, found: Tensor, x: Tensor, target: Tensor, data: Tensor) -> str:
    """A hash of the model and of all numbers that came from outside; empty where something is live."""
    words = asked.words()
    if words is None:
        return ""
    total = hashlib.sha256(models.digest(thing, str(asked.model), found).encode())
    files = [inputs.numbers(words[name], name)[0] for name in ("players", "baseline") if inputs.is_file(words[name])]
    for tensor in (x, target, data, *files):
        total.update(str(tuple(tensor.shape)).encode() + models.raw(tensor))
    return total.hexdigest()[:32]


def again(words: Mapping[str, Any], digest: str) -> Subject:
    """The subject of a task's words in this process: read and built once, and the same as where the work began."""
    return _again(json.dumps(words, sort_keys=True), digest)


@functools.lru_cache(maxsize=1)
def _again(text: str, digest: str) -> Subject:
    asked = Asked(**json.loads(text))
    thing = models.given(asked.model)
    if isinstance(thing, nn.Module):
        thing.eval()
    subject = prepared(thing, asked)
    models.check_same(subject.digest, digest, asked.model)
    return subject


def forget() -> None:
    """Let go of what `again` keeps."""
    _again.cache_clear()
