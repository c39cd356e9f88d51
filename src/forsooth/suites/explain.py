"""What every suite does with a method: ask it for maps, note what went wrong, score what came."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from forsooth import chunks, isolation, plugins, scores, seeds, surroundings
from forsooth.attributions import METHODS
from forsooth.attributions.intercept import rows_at_once
from forsooth.records import (
    BROKEN,
    TOLERANCE,
    WHOLE,
    Cell,
    Dataset,
    Facts,
    Method,
    Metric,
    Row,
    Status,
    Tensors,
    UsageError,
)
from forsooth.scores.bounds import emd_between
from forsooth.scores.promises import completeness_gap
from forsooth.scores.transport import Normaliser
from forsooth.surroundings import lent_randomness as lent_randomness

Wrap = Callable[[Method], Method]
Values = Tensor | Sequence[Any]
BOUNDED: Mapping[str, Normaliser] = {"emd": "largest", "emd_released": "released"}  # what each divides by
VALUES_AT_ONCE = 2**20  # input values handed to a method at once: 256 images of 64×64


@dataclass(frozen=True)
class Question:
    """What a method is asked: the model, the inputs and all that a method may declare to need.

    x (n, *shape), target (n,), background (k, *shape), fit (m, *shape), truth (n, *map); layer a dotted name
    game     keywords for methods that take them: the baseline, (*shape) or (n, *shape), and the players of a game, to
             ask all alike
    samples  (n,) the inputs' numbers, by which each has draws of its own; None: 0 … n - 1
    whole    all inputs are handed over at once, however many they are
    units    (*places) of the layer, where a method is asked about its units; None: about the inputs
    """

    model: Callable[..., Tensor]
    x: Tensor
    target: Tensor
    background: Tensor
    fit: Tensor
    truth: Tensor | None
    layer: str | None
    seed: int
    game: Mapping[str, Any] = field(default_factory=dict)
    samples: Tensor | None = None
    whole: bool = False
    units: tuple[int, ...] | None = None

    @property
    def numbers(self) -> Tensor:
        """The inputs' numbers, (n,)."""
        return torch.arange(len(self.x)) if self.samples is None else self.samples

    def at(self, rows: Tensor) -> "Question":
        """The same about some of the inputs, rows (k,): copies, since a user's method may write into them."""
        game = dict(self.game)
        baseline = game.get("baseline")
        if isinstance(baseline, Tensor) and baseline.ndim == self.x.ndim:  # each input has one of its own
            game["baseline"] = baseline[rows]
        truth = None if self.truth is None else self.truth[rows]
        own = replace(self, x=self.x[rows], target=self.target[rows], samples=self.numbers[rows])
        return replace(own, truth=truth, game=game)


def about(
    dataset: Dataset,
    rows: Tensor,
    references: Tensors,
    *,
    device: str,
    **rest: Any,
) -> Question:
    """The question about rows (k,) of a dataset with a truth, for their labels.

    references  role, "background" or "fit" -> (m,), the rows that methods are given in it
    """
    others: Facts = {role: dataset.x[own].to(device) for role, own in references.items()}
    return Question(
        x=dataset.x[rows].to(device),
        target=dataset.y[rows].to(device),
        truth=truth_of(dataset, rows).to(device),
        samples=rows,
        **others,
        **rest,
    )


def truth_of(dataset: Dataset, rows: Tensor) -> Tensor:
    """What matters in the inputs rows (k,) of a dataset where that is known. (k, *map) bool"""
    assert dataset.truth is not None
    return dataset.truth[rows]


class WrongShape(Exception):
    """A method gave something else than a map for each input; the message says what."""


def attribute(asked: str | Method, question: Question) -> Cell:
    """The maps of one method, or why there are none. The run goes on whatever a method does.

    asked  a name of the catalogue, `package.module:name`, or a record: one of the catalogue with other settings
    """
    record = asked if isinstance(asked, Method) else plugins.method(asked, METHODS)
    made = answered(record, question, seed=seeds.derive(question.seed, record.name))
    if made.facts["status"] != "ok":
        return made
    return replace(made, tensors={**made.tensors, "maps": made.tensors["maps"].float()})


def answered(
    method: Method, question: Question, *, seed: int, stream: str | None = None, wrap: Wrap | None = None
) -> Cell:
    """The tensors `maps` (n, *shape) of a method and `promised` (n,) of one that promises a sum, or why there are none.

    This is the one way to ask a method, since it may be other people's code: what it says of units and of its promise
    is asked here, too. About units the maps are (n, 1, *places).
    A user's method named by its path is asked in a process of its own. What cannot be sent there is asked here.
    wrap  a module-level function, applied to the record first
    """
    rest = (question, seed, stream, wrap)
    if plugins.is_movable(method):
        with suppress(isolation.Unmovable):
            return _unless_full(isolation.asked(_answer_to, method.name, *rest))
    return _unless_full(_answer_to(method, *rest))


def _unless_full(answer: Cell) -> Cell:
    """The answer. One that an accelerator had no memory for is an error where the task will be tried again."""
    facts = dict(answer.facts)
    if facts.pop(isolation.NO_MEMORY, False) and chunks.PRESSURE.again:
        raise torch.OutOfMemoryError(facts["message"])
    return replace(answer, facts=facts)


def _answer_to(asked: str | Method, question: Question, seed: int, stream: str | None, wrap: Wrap | None) -> Cell:
    """The answer of a method that is asked in this process; what a user's left behind is named and put back."""
    left: list[str] = []
    method = asked if isinstance(asked, Method) else plugins.method(asked, METHODS)
    foreign = plugins.is_foreign(method)
    facts: Facts = {"status": "ok", "message": ""}
    tensors: Facts = {}
    try:
        with lent_randomness(seed), surroundings.watched(foreign, question, left) as copied:
            maps = maps_of(wrap(method) if wrap else method, copied, stream=stream)
            told = {"maps": maps.to_dense().detach().cpu()}
        if method.promise and question.units is None:
            with lent_randomness(seed), surroundings.watched(foreign, question, left) as copied:  # another copy
                told["promised"] = promised_of(method, copied).detach().cpu()
        tensors = told
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's method may raise anything or leave; it is a row, and tried again
        facts = {**refusal(error), **isolation.memory_facts(error)}
    return Cell(tensors=tensors, facts={**facts, **surroundings.facts(method.name, left)})


def refusal(error: BaseException) -> Facts:
    """What a cell notes of a method that gave no maps: it is a row, and tried again by the next run."""
    if isinstance(error, WrongShape):
        return {"failed": True, "status": "wrong shape", "message": str(error)}
    return {"failed": True, "status": "error", "message": plugins.describe_error(error)}


def misshapen(maps: Any, x: Tensor) -> str:
    """What is wrong with maps that are no tensor with the shape of x."""
    shape = tuple(x.shape)
    if not isinstance(maps, Tensor):
        return f"the map must be a torch tensor with the shape of x {shape}, got {type(maps).__name__}"
    if maps.is_complex():
        return f"the map must be real numbers, got {maps.dtype}"
    cure = ""
    if len(shape) > 2 and maps.shape == (shape[0], *shape[2:]):
        cure = ": maps[:, None].expand_as(x) gives all channels of a place its value"
    return f"the map must have the shape of x {shape}, got {tuple(maps.shape)}{cure}"


def with_game(method: Method, game: Mapping[str, Any]) -> Method:
    """The method, given those keywords of a game that it takes and that its settings leave open."""
    takes = inspect.signature(method.function).parameters
    given = {name: value for name, value in game.items() if name in takes}
    return replace(method, settings={**given, **method.settings})


def maps_of(method: Method, question: Question, *, stream: str | None = None) -> Tensor:
    """Maps in slices that fit the memory. What is drawn goes by the method and by the input, never by the slice.

    stream   from which inputs draw; None: that of the method's name
    returns  (n, *shape), or (n, 1, *places) of units; WrongShape where the method gives anything else
    """
    if question.units is not None:
        return maps_of_units(method, question, question.units)

    def ask(rows: Tensor) -> Tensor:
        part = question.at(rows)
        # As written unless asked otherwise: another order of sums would be other bytes in everybody's runs.
        ready = with_game(method, {"rewrite_model": False, **part.game})
        drawn = draws(part.seed, stream or method.name, part.numbers)
        shared = {"background": part.background, "fit": part.fit, "layer": part.layer, "truth": part.truth}
        return ready(part.model, part.x, part.target, **shared, **drawn)

    rows = torch.arange(len(question.x))
    # A user's method or null sees all images at once, since it may fit on them or draw for all of them in turn.
    if question.whole or method.null or plugins.is_users(method):
        maps = ask(rows)
    elif "fit" in method.needs:
        maps = chunks.over(ask, rows, size=max(1, len(rows)))
    else:
        maps = chunks.over(ask, rows, size=at_once(question.x))
    if not isinstance(maps, Tensor) or maps.shape != question.x.shape or maps.is_complex():
        raise WrongShape(misshapen(maps, question.x))
    return maps


def maps_of_units(method: Method, question: Question, places: tuple[int, ...]) -> Tensor:
    """What a method says of the units of a layer, in slices that fit the memory. (n, 1, *places)"""
    assert method.units is not None
    tell = method.units

    def ask(rows: Tensor) -> Tensor:
        part = question.at(rows)
        values = tell(part.model, part.x, part.target, layer=part.layer)
        shape = (len(rows), *places)
        if not isinstance(values, Tensor) or values.shape != shape or values.is_complex():
            came = f"{values.dtype} {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
            raise WrongShape(f"`units` must give real numbers of shape {shape}, got {came}")
        return values[:, None]

    # As many at once as our own methods ask a network about: to cut otherwise would be other bytes in the last place.
    return chunks.over(ask, torch.arange(len(question.x)), size=rows_at_once(question.x))


def draws(seed: int, name: str, samples: Tensor) -> Facts:
    """What a method draws from: a generator for what inputs share, and one for each input by its number (n,)."""
    return {
        "generator": seeds.generator(seed, name),
        "generators": seeds.generators(seed, name, samples.tolist()),
    }


def promised_of(method: Method, question: Question) -> Tensor:
    """`promised` of all inputs, in slices that fit the memory. (n,)"""

    def of(rows: Tensor) -> Tensor:
        part = question.at(rows)
        return promised(with_game(method, part.game), part.model, part.x, part.target, background=part.background)

    return chunks.over(of, torch.arange(len(question.x)), size=at_once(question.x))


def at_once(x: Tensor) -> int:
    """How many of the inputs x (n, *shape) are handed over together."""
    return max(1, VALUES_AT_ONCE // max(1, x[:1].numel()))


@torch.no_grad()
def promised(
    method: Method, model: Callable[[Tensor], Tensor], x: Tensor, target: Tensor, *, background: Tensor | None = None
) -> Tensor:
    """What the map promises to sum to: f(x), less f(baseline) for a method that explains a difference. (n,)

    The baseline is the one that the method was given (*shape) or (n, *shape), see `with_game`; zeros where none was.
    Where a method conserves, what biases keep (`Method.retained`) is no part of the promise.
    """
    rows = torch.arange(len(x), device=x.device)
    total = model(x)[rows, target]
    if method.promise == "complete":
        given = method.settings.get("baseline")
        absent = given.to(x) if isinstance(given, Tensor) else torch.zeros_like(x[0])
        own = absent.ndim == x.ndim
        empty = model(absent if own else absent[None])
        total = total - empty[rows if own else 0, target]
    elif method.promise == "complete to background":
        if background is None:
            raise UsageError(f"`background` must be given to check what `{method.name}` promises, got none")
        answers = chunks.over(lambda part: model(part.to(x)), background, size=at_once(background))
        total = total - answers[:, target].mean(0)
    elif method.retained is not None:
        total = total - method.retained(model, x, target, **method.settings).to(total)
    return total


def gaps(made: Cell) -> Tensor | None:
    """How far each map of `attribute` is from the sum that its method promises, (n,); None without a promise."""
    if "promised" not in made.tensors:
        return None
    return completeness_gap(made.tensors["maps"], made.tensors["promised"])


def score_rows(
    template: Row,
    maps: Tensor,
    reads: Tensors,
    metrics: Iterable[Metric],
    samples: Values,
    emd_tolerance: float | None = None,
) -> Iterator[Row]:
    """One row per metric and sample; a map that says nothing or is not finite is a row with that status.

    template       what all rows share: suite, part, panel and method
    maps           (n, *map), channels already reduced
    reads          what metrics read beside the map, by name
    samples        (n,) the samples' numbers
    emd_tolerance  that an earth mover's score may be off, whose rows then have the column `emd_error`; None: exact
    """
    states = [state_of(one) for one in maps]
    messages = [MAP_MESSAGES.get(state, "") for state in states]
    for metric in metrics:
        own = template.having(metric=metric.name)
        values = values_of(metric, maps, reads, emd_tolerance)
        yield from map(unless_undefined, rows_by_sample(own, samples, **values, status=states, message=messages))


def values_of(metric: Metric, maps: Tensor, reads: Tensors, emd_tolerance: float | None) -> Tensors:
    """The scores of maps, and of an earth mover's between proven bounds how far each may be off. column -> (n,)"""
    if emd_tolerance is None or metric.name not in BOUNDED:
        return {"value": metric.function(maps, *(reads[name] for name in metric.reads))}
    normaliser = BOUNDED[metric.name]
    middle, error = emd_between(maps, reads["truth"], tolerance=emd_tolerance, normaliser=normaliser)
    return {"value": middle, "emd_error": error}


def unless_undefined(row: Row) -> Row:
    """The row, which says so where nothing is the matter with it and its value is no number."""
    if row.status == "ok" and row.value != row.value:
        return row.having(status="undefined")
    return row


def metric_rows(
    template: Row,
    maps: Tensor,
    reads: Tensors,
    metrics: Iterable[str],
    samples: Values,
    emd_tolerance: float | None = None,
) -> Iterator[Row]:
    """As `score_rows`, of metrics by their names."""
    return score_rows(template, maps, reads, scores.metrics(metrics), samples, emd_tolerance)


MAP_MESSAGES: Mapping[str, str] = {
    "not finite": "the map holds nan or infinity",
    "zero map": "the map is zero everywhere",
}


def state_of(one: Tensor) -> Status:
    """What is the matter with one map of any shape."""
    if not bool(one.isfinite().all()):
        return "not finite"
    if bool((one == 0).all()):
        return "zero map"
    return "ok"


def rows_by_sample(template: Row, samples: Values, **columns: Values) -> list[Row]:
    """A row for each sample (n,), with its own value in each of the columns, (n,) each."""
    given = {"sample": samples, **columns}
    lists = [values.tolist() if isinstance(values, Tensor) else values for values in given.values()]
    return [template.having(**dict(zip(given, own, strict=True))) for own in zip(*lists, strict=True)]


def skipped(template: Row, reason: str) -> Row:
    """The row of a method and a model that cannot meet."""
    return template.having(metric="", sample=WHOLE, status="skipped", message=reason)


def no_scores(template: Row, metrics: Iterable[str], samples: Values, facts: Mapping[str, Any]) -> list[Row]:
    """A row without a value for each metric and sample of a method that gave no maps, with the status and message."""
    lost = template.having(value=float("nan"), status=facts["status"], message=facts.get("message", ""))
    return [lost.having(metric=metric, sample=int(sample)) for metric, sample in itertools.product(metrics, samples)]


def without_maps(template: Row, metrics: Iterable[str], made: Cell) -> Cell:
    """The score cell of a method that gave no maps: a row for each sample it was asked about, or one for all."""
    samples = made.tensors.get("samples", torch.tensor([WHOLE]))
    facts = {"failed": True} if made.facts.get("failed") else {}
    return Cell(rows=tuple(no_scores(template, metrics, samples, made.facts)), facts=facts)


def promise_rows(template: Row, rows: Iterable[Row], gap: Tensor | None, samples: Values) -> list[Row]:
    """The score rows, and a row `gap` for each sample of a method that promises a sum.

    template  of the rows of gaps
    rows      of some metrics; those of a sample whose promise is broken get that status and keep their value
    gap       (n,) as from `gaps`; None: the method promises nothing
    samples   (n,) the samples' numbers
    """
    if gap is None:
        return list(rows)
    beside = rows_by_sample(template.having(metric="gap", status="ok", message=""), samples, value=gap)
    missed = {row.sample: row.value for row in beside}
    checked = [with_promise(row, missed.get(row.sample) or 0.0) for row in rows]
    return checked + [row for row in beside if row.value == row.value]


def with_promise(row: Row, gap: float) -> Row:
    """The row, with another status where its map has a score and misses the promised sum by more than rounding."""
    if row.status != "ok" or not gap > TOLERANCE:
        return row
    message = f"the map misses the sum that its method promises by {gap:.0%}"
    return row.having(status=BROKEN, message=message)
