"""What the model says when some players stay away: masked forwards, in chunks, for any callable.

This is the floor under Shapley values, surrogates and permutation importance, so it is built for rate: one
elementwise pass makes a chunk of hidden inputs, one forward reads them, and the target's output is all that stays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from forsooth.chunks import over
from forsooth.games.players import seats, spread
from forsooth.records import UsageError

Model = Callable[[Tensor], Tensor]  # (n, *shape) -> (n, classes)

# Most entries and rows in one forward. On a processor the chunk should stay in the cache; a GPU wants it large.
CHUNKS = {"cpu": (2**20, 2**13), "cuda": (2**26, 2**20)}


@dataclass(frozen=True)
class Game:
    """One game for each input: the players are parts of it, a coalition is worth what the model says of it.

    x         (n, *shape)
    target    (n,) int64, the explained class
    labels    who owns which entry, ready to broadcast against one input
    count     number of players
    classes   least number of classes that the model must give
    baseline  (1, *shape) or (n, *shape), what stands for an absent player
    room      (rows, *shape) for the hidden inputs of one forward; made once, since fresh memory is slow memory
    roles     (n, count) int64, the column of the masks that each player of each input goes by, and the place of its
              value in what is found for (n, count); None: every player goes by its own label. See `shuffled`
    rewrite_model  it may be asked in a faster way, which says the same but for the order of sums. See `chains`
    """

    model: Model
    x: Tensor
    target: Tensor
    labels: Tensor
    count: int
    classes: int
    baseline: Tensor
    room: Tensor
    roles: Tensor | None = None
    rewrite_model: bool = False

    def masks_at_once(self) -> int:
        """Most masks to hide inputs with, so that neither they nor the values (n, masks) grow large.

        Up to eight inputs share a mask in one forward: the fewer masks, the longer they stay in the cache.
        """
        n = max(1, len(self.x))
        return max(1, min(len(self.room) // min(n, 8), 2**20 // n))

    def map(self, values: Tensor) -> Tensor:
        """A map shaped like x from the values of the players, or of their roles, (n, count)."""
        if self.roles is not None:
            values = values.gather(1, self.roles)
        return spread(values, self.labels, self.x)


def game(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    chunk: int | None = None,
    rewrite_model: bool = False,
) -> Game:
    """The game of every input of x (n, *shape). Arguments as in `coalition_values`; `rewrite_model` as in `Game`."""
    labels, count = seats(x, players)
    if target.shape != x.shape[:1]:
        raise UsageError(f"`target` must have shape {tuple(x.shape[:1])}, got {tuple(target.shape)}")
    if chunk is not None and chunk < 1:
        raise UsageError(f"`chunk` must be at least 1, got {chunk}")
    if chunk is None:
        chunk = rows_at_once(x, model)
    room = x.new_empty((chunk, *x.shape[1:]))
    stands = absent(x, baseline)
    return Game(model, x, target, labels, count, classes_for(target), stands, room, rewrite_model=rewrite_model)


def part_of(played: Game, start: int, stop: int) -> Game:
    """The games of some of the inputs."""
    some = slice(start, stop)
    part = replace(played, x=played.x[some], target=played.target[some])
    if len(played.baseline) > 1:
        part = replace(part, baseline=played.baseline[some])
    if played.roles is not None:
        part = replace(part, roles=played.roles[some])
    return part


def coalition_values(
    model: Model,
    x: Tensor,
    target: Tensor,
    masks: Tensor,
    *,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
    chunk: int | None = None,
) -> Tensor:
    """The value of every coalition for every input: who is not in it is replaced by the baseline.

    x         (n, *shape)
    target    (n,) int64, the explained class
    masks     (m, players) bool or 0/1, who takes part
    players   (*spatial) or (*shape) integer labels; None: each pixel
    baseline  (*shape), or (n, *shape) where every input has its own; None: zeros
    chunk     most inputs in one forward; None: by the device and the size of an input
    returns   (n, m), on the device of x
    """
    return values_of(game(model, x, target, players=players, baseline=baseline, chunk=chunk), masks)


def values_of(played: Game, masks: Tensor) -> Tensor:
    """The value of every coalition of masks (m, players) for every input. Returns (n, m)."""
    if masks.ndim != 2 or masks.shape[1] != played.count:
        raise UsageError(f"`masks` must have shape (m, {played.count}), got {tuple(masks.shape)}")
    columns = []
    for part in masks.to(played.x.device).split(evenly(len(masks), played.masks_at_once())):
        columns.append(played_values(played, part.to(played.x.dtype)))
    return finite(torch.cat(columns, dim=1))


def played_values(played: Game, masks: Tensor) -> Tensor:
    """The values of few masks (m, players) of the dtype of x. Returns (n, m)."""
    if played.roles is None:
        return masked_values(played, masks[:, played.labels])

    def write(some: Game, out: Tensor) -> None:
        torch.index_select(masks, 1, owners(some).flatten(), out=out.view(len(masks), -1))

    return own_values(played, len(masks), write)


def owners(played: Game) -> Tensor:
    """The role of whom every entry of every input belongs to, (n, *shape) int64."""
    assert played.roles is not None
    return played.roles[:, played.labels.expand(played.x.shape[1:])]


def masked_values(played: Game, keep: Tensor, *, baseline: Tensor | None = None) -> Tensor:
    """The target's output when every input is hidden by every mask; the caller chunks the masks.

    keep      (m, *broadcastable to shape) of the dtype of x, 1 where an entry stays and 0 where it is hidden;
              m is at most the rows of `room`
    baseline  (n, *shape), other values for the hidden entries; None: those of the game
    returns   (n, m)
    """

    def forward(keep: Tensor, x: Tensor, target: Tensor, stands: Tensor) -> Tensor:
        hidden = played.room[: len(keep) * len(x)].view(len(keep), *x.shape)
        # lerp is exact for weights 0 and 1, and several times as fast as torch.where
        torch.lerp(stands[None], x[None], keep[:, None], out=hidden)
        return outputs_of(played, hidden, target)

    def all_masks(x: Tensor, target: Tensor, stands: Tensor) -> Tensor:
        return over(lambda k: forward(k, x, target, stands), keep, size=len(keep)).T  # (n, m)

    if baseline is None:
        baseline = played.baseline
    with torch.no_grad():
        size = evenly(len(played.x), len(played.room) // len(keep))
        return over(all_masks, played.x, played.target, baseline.expand_as(played.x), size=size)


def own_values(played: Game, masks: int, write: Callable[[Game, Tensor], None]) -> Tensor:
    """The target's output when every input is hidden by masks of its own.

    masks    for each input, at most the rows of `room`
    write    puts the masks of some of the games into a tensor (masks, n, *shape): 1 where an entry stays, else 0
    returns  (n, masks)
    """

    def forward(places: Tensor, x: Tensor, target: Tensor, stands: Tensor) -> Tensor:
        some = part_of(played, int(places[0]), int(places[-1]) + 1)
        hidden = played.room[: masks * len(x)].view(masks, *x.shape)
        write(some, hidden)
        torch.lerp(stands[None], x[None], hidden, out=hidden)  # in place: other memory would not be in the cache
        return outputs_of(played, hidden, target).T

    if not len(played.x):
        return played.x.new_empty(0, masks)
    places = torch.arange(len(played.x))
    stands = played.baseline.expand_as(played.x)
    with torch.no_grad():
        size = evenly(len(played.x), len(played.room) // masks)
        return over(forward, places, played.x, played.target, stands, size=size)


def outputs_of(played: Game, hidden: Tensor, target: Tensor) -> Tensor:
    """The output of each target (n,) for hidden inputs (m, n, *shape). Returns (m, n)."""
    outputs = class_outputs(played.model, hidden.flatten(0, 1), played.classes).view(*hidden.shape[:2], -1)
    return outputs.gather(2, target[None, :, None].expand(*hidden.shape[:2], 1))[..., 0]


def class_outputs(model: Model, x: Tensor, classes: int) -> Tensor:
    """The model's outputs (n, classes or more) for x (n, *shape), checked to have that shape."""
    outputs = model(x)
    if not isinstance(outputs, Tensor):
        raise UsageError(f"`model` must give a tensor of shape (n, classes), got {type(outputs).__name__}")
    if outputs.ndim != 2 or len(outputs) != len(x):
        came = f"{tuple(outputs.shape)} for n = {len(x)}"
        raise UsageError(f"`model` must give outputs of shape (n, classes), got {came}")
    if outputs.shape[1] < classes:
        raise UsageError(f"`target` must lie below the model's {outputs.shape[1]} classes, got {classes - 1}")
    return outputs


def classes_for(target: Tensor) -> int:
    """The least number of classes of a model in which every target (n,) is a class."""
    if len(target) == 0:
        return 0
    low, high = (int(end) for end in target.aminmax())
    if low < 0:
        raise UsageError(f"`target` must be at least 0, got {low}")
    return high + 1


def finite(values: Tensor) -> Tensor:
    """The same values (n, …) of coalitions; an error where the model said nan or inf."""
    refuse(int((~values.isfinite()).sum()), values.numel())
    return values


def refuse(bad: int, total: int) -> None:
    """An error if `bad` of the `total` outputs are no finite numbers."""
    if bad:
        share = f"{bad:,} of {total:,} outputs of the explained class"
        raise UsageError(f"`model` must give finite numbers, got nan or inf in {share}")


def target_outputs(model: Model, x: Tensor, target: Tensor) -> Tensor:
    """The output of the target class, without gradients. x (n, *shape), target (n,); returns (n,)."""
    classes = classes_for(target)

    def forward(x: Tensor, target: Tensor) -> Tensor:
        return class_outputs(model, x, classes).gather(1, target[:, None])[:, 0]

    with torch.no_grad():
        return over(forward, x, target, size=rows_at_once(x, model))


def ends(played: Game) -> tuple[Tensor, Tensor]:
    """The values of the empty and of the full coalition, each (n,)."""
    empty = played.baseline.expand_as(played.x)
    first, last = finite(torch.stack([target_outputs(played.model, x, played.target) for x in (empty, played.x)]))
    return first, last


def absent(x: Tensor, baseline: Tensor | None) -> Tensor:
    """What stands in place of an absent player, (1, *shape) or (n, *shape): the baseline, checked, or zeros.

    x         (n, *shape)
    baseline  (*shape), or (n, *shape) where every input has its own; None: zeros
    """
    shape = tuple(x.shape[1:])
    if baseline is None:
        return x.new_zeros((1, *shape))
    if baseline.shape not in (x.shape[1:], x.shape):
        expected = f"the shape of one input {shape} or of all {tuple(x.shape)}"
        raise UsageError(f"`baseline` must have {expected}, got {tuple(baseline.shape)}")
    return baseline.to(x).reshape(-1, *shape)


def rows_at_once(x: Tensor, model: Model | None = None) -> int:
    """How many inputs of the size of one row of x (n, *shape) go into one forward on its device.

    A network with convolutions has maps larger than its input: on a processor it gets a quarter of the entries. But
    of large images it gets 32 at once, since below that its wide linear layers are slow.
    """
    entries, rows = CHUNKS.get(x.device.type, CHUNKS["cpu"])
    least = 8
    if x.device.type == "cpu" and isinstance(model, nn.Module) and any(map(convolves, model.modules())):
        entries = entries // 4
        least = 32
    return max(least, min(rows, entries // max(1, math.prod(x.shape[1:]))))


def convolves(module: nn.Module) -> bool:
    """Whether a module is a convolution."""
    return isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d)


def evenly(count: int, size: int) -> int:
    """The size of slices of at most `size` that cut `count` into like pieces, so that no small one is left over.

    >>> evenly(100, 60), evenly(10, 60)
    (50, 10)
    """
    pieces = max(1, -(-count // max(1, size)))
    return max(1, -(-count // pieces))
