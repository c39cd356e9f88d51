"""From the user's words to what is explained; all that cannot be is refused here."""

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from forsooth.adapters import inputs, models, tables
from forsooth.games import layers, players
from forsooth.games.baselines import KINDS, baseline
from forsooth.games.values import Model
from forsooth.names import unknown
from forsooth.plain import remembered
from forsooth.records import Facts, UsageError
from forsooth.suites import choose
from forsooth.user.bias.request import BiasRequest
from forsooth.user.bias.seats import is_exact, large_image, seated, with_anchor
from forsooth.user.bias.subject import Stage, Subject
from forsooth.user.requests import rebuilt

REFERENCES = 1_000  # of the data: averaged into the baseline, and given to methods that read training inputs
PREDICTED = 10_000  # of the data: asked for their predicted class, so that all classes are among the references
GRID = 8  # and how many of these along each axis
MEANS = ("mean", "channel_mean", "blur")  # baselines between the numbers of the data
WHOLE = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
SHARED = ("mean", "channel_mean", "zero")  # baselines that are the same for all inputs


@dataclass(frozen=True)
class Given:
    """The inputs and the data that the user gave, read from their files where they are tables.

    data     None: the inputs
    columns  names of the columns of the inputs; None where they have none
    left_out columns that play no part, since the model was not fitted on them
    table    both, where they are played as a table of values; None where they are numbers
    """

    inputs: Any
    data: Any
    columns: list[Any] | None
    left_out: list[str]
    table: tables.Table | None


def prepare(thing: Any, request: BiasRequest) -> Subject:
    """The subject of a request. `thing` is the model, in eval mode. All that cannot be is refused here."""
    request.check()
    given = given_of(thing, request)
    request = replace(request, baseline=named_baseline(request.baseline, given))
    adapted, x, outputs = asked(thing, given, request)
    check_means(request.baseline, given, adapted)
    data = data_of(request, x, given, adapted)
    stage = cut(adapted, request.players)
    request = replace(request, players=by_default(request.players, adapted, stage.reached(x[:1])))
    seats = seated(request.players, stage.reached(x[:1]))
    request = with_anchor(request, seats, x.shape[1:])
    references = stage.reached(references_of(request, adapted.model, data, outputs))
    stage = behind_rows(stage, references, request.baseline)
    request = replace(request, baseline=token_or_kind(request.baseline, adapted, x))
    stand_in, hidden, used = stand_in_of(request, stage, x, references)
    target = inputs.targets(request.target, outputs)
    model = models.digest(thing, str(request.model), outputs)
    if given.table is not None:
        model += given.table.digest
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
        told={
            "left_out": given.left_out,
            "hidden": hidden,
            "used": used,
            "data": len(data),
            "own_data": request.data is not None,
            "probabilities": "estimator" in adapted.kind or models.are_probabilities(outputs),
        },
        digest=digest(request, model, x, target, data),
    )


def given_of(thing: Any, request: BiasRequest) -> Given:
    """The inputs and the data of a request, for the model `thing`."""
    everything = tables.loaded(request.inputs, "inputs")
    own = tables.known(everything, thing)
    data = tables.known(tables.loaded(request.data, "data"), thing)
    columns = inputs.columns_of(own)
    left_out = [str(name) for name in inputs.columns_of(everything) or [] if name not in (columns or [])]
    table = None
    if tables.wanted(own, data, request.baseline):
        table = tables.read(thing, own, data)
    else:
        inputs.check_columns(thing, columns)
    return Given(own, data, columns, left_out, table)


def named_baseline(baseline: Any, given: Given) -> Any:
    """The baseline with its columns in the order of the inputs, and what `auto` stands for."""
    if given.table is not None:
        return f"{tables.ROWS}:{tables.rows_of(baseline)}"
    if inputs.word(baseline) == "auto":
        return "mean"
    return inputs.in_order(baseline, "baseline", given.columns)


def check_means(baseline: Any, given: Given, adapted: models.Adapted) -> None:
    """UsageError where numbers between token ids would stand for what is hidden: nobody looked these ids up."""
    if adapted.kind != "a function" or given.columns is not None or inputs.word(baseline) not in MEANS:
        return
    values = inputs.numbers(given.inputs, "inputs")[0]
    if values.ndim == 2 and values.dtype in WHOLE:
        raise UsageError(
            "`baseline` must be named where a function is given whole numbers, got a mean of what may be token ids: "
            "write baseline=PAD, an array with the id of the padding at each place, or baseline='rows' for the values "
            "of other rows; where they are quantities, write inputs.astype(float)"
        )


def asked(thing: Any, given: Given, request: BiasRequest) -> tuple[models.Adapted, Tensor, Tensor]:
    """The model ready to be asked, the inputs (n, *shape) as it takes them, and its outputs (n, classes)."""
    if given.table is not None:
        return models.asked_table(thing, given.table, output=request.output)
    return models.asked_inputs(thing, given.inputs, device=request.device, output=request.output)


def behind_rows(stage: Stage, references: Tensor, baseline: Any) -> Stage:
    """The stage on which the first of the references (k, columns) give their values to what is hidden in a table."""
    if stage.table is None:
        return stage
    return replace(stage, model=stage.table.behind(references[: tables.rows_of(baseline)]))


def data_of(request: BiasRequest, x: Tensor, given: Given, adapted: models.Adapted) -> Tensor:
    """What means are taken over, (k, *shape): the inputs x (n, *shape), or others that the user gave."""
    if given.data is None:
        data = x
    elif given.table is not None:
        data = given.table.data
    elif adapted.embed is not None:
        data = adapted.embed(given.data)
    else:
        data = inputs.like(inputs.in_order(given.data, "data", given.columns), "data", x)
    if len(data) == 1 and inputs.word(request.baseline) == "mean":
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
    if not inputs.word(given).startswith("units:"):
        return Stage(adapted.model, framed=adapted.framed)
    check_cut(adapted, given)
    assert adapted.module is not None
    name = given.removeprefix("units:")
    inner = [part for part, _ in adapted.module.named_modules() if part and part.startswith(adapted.inner)]
    parts = [part.removeprefix(adapted.inner) for part in inner]
    if name not in parts:
        raise unknown(name, parts, argument="players units:")
    layer = f"{adapted.inner}{name}"
    head, tail = layers.split(adapted.module, layer)
    return Stage(tail, head, layer)


def check_cut(adapted: models.Adapted, given: str) -> None:
    """UsageError where a model has no layers to be played on."""
    if adapted.framed is not None:
        raise UsageError(f"`players` {given} must be asked of texts without padding: take players words")
    if adapted.module is None:
        raise UsageError(f"`players` {given} must be asked of a torch module, got {adapted.kind}")


def by_default(given: Any, adapted: models.Adapted, shown: Tensor) -> Any:
    """Who plays where the user said auto: words, else pixels or features, else patches of an image of many pixels."""
    if inputs.word(given) != "auto":
        return given
    if adapted.embed is not None:
        return "words"
    shape = tuple(shown.shape[1:])
    if large_image(shape):
        return f"grid:{min(GRID, *players.spatial(shape))}"
    return "pixels"


def stand_in_of(request: BiasRequest, stage: Stage, x: Tensor, references: Tensor) -> tuple[Tensor, str, int]:
    """What stands for a hidden player of the inputs x (n, *shape), what that is, and how many data it was made from.

    references  (k, *played shape), drawn from the data
    """
    kind = inputs.word(request.baseline)
    if stage.table is not None:
        return torch.full_like(x[0], tables.HIDDEN), tables.ROWS, stage.rows
    if not kind:
        values, _ = inputs.numbers(request.baseline, "baseline")
        if not bool(values.isfinite().all()):
            raise UsageError("`baseline` must be finite numbers, got nan or infinity")
        return baseline(values, stage.reached(x), references), "own", 0
    if kind not in KINDS:
        raise unknown(kind, (*KINDS, tables.ROWS, "file.npy"), argument="baseline")
    if kind in SHARED:
        x = x[:1]  # the same for all inputs, so the layer need not see them
    return baseline(kind, stage.reached(x), references), kind, len(references)


def token_or_kind(baseline: Any, adapted: models.Adapted, x: Tensor) -> Any:
    """The embedding of the token of `token:ID` at every place of x (n, length, dims); any other baseline as it is."""
    if not inputs.word(baseline).startswith("token:"):
        return baseline
    number = baseline.removeprefix("token:")
    if adapted.token is None or not number.isdecimal():
        raise UsageError(
            f"`baseline` token:ID must be that of a classifier of texts, with a whole number, got {baseline}"
        )
    return adapted.token(int(number)).expand(x.shape[1:])


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
def prepare_again(words: Facts, digest: str) -> Subject:
    """The subject of a task's words in this process: read and built once, and the same as where the work began."""
    return rebuilt(prepare, BiasRequest.of_words(words), digest)
