"""The tasks of the bias suite: train or load a network, play its games, make maps, hold them against the anchor."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from torch import Tensor, nn

from forsooth import plugins
from forsooth.attributions import METHODS
from forsooth.engine import task
from forsooth.games import players
from forsooth.models import train as training
from forsooth.models import weights
from forsooth.models.recipes import Recipe
from forsooth.records import Cell, Dataset, Facts, Row, UsageError
from forsooth.scores import convergence
from forsooth.scores.verification import share
from forsooth.suites import choose, networks
from forsooth.suites import explain as asking
from forsooth.suites.album import Album
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data
from forsooth.suites.bias.stage import PREFIX, GameSpec, Network, Panel, Stage, row_of, tested

AT_ONCE = 250  # test inputs in one forward
NO_CORRECT_INPUT = {"status": "no correct input", "message": "no test input is predicted correctly"}


@task("bias.train", version=2)
def train(*, panel: Network, recipe: Recipe, seed: int, device: str) -> Cell:
    """One training, or weights from a file. The cell holds the weights and which test inputs it gets right.

    `correct` (k,) belongs to the rows of `tested`.
    """
    dataset = data.dataset(panel.source)
    module, facts = trained_network(panel, dataset, recipe, seed=seed, device=device)
    module.to(device).eval()
    correct = networks.correct(module, dataset, rows_to_test(panel, dataset), device=device, size=AT_ONCE)
    template = row_of(panel, "training").having(player="")
    row = networks.accuracy_row(template, share(correct), gate=recipe.gate)
    tensors = {**networks.weights_of(module, PREFIX), "correct": correct}
    return Cell((row,), tensors, {**facts, "passed": row.status == "ok", "said": data.notes(dataset)})


def trained_network(
    panel: Network, dataset: Dataset, recipe: Recipe, *, seed: int, device: str
) -> tuple[nn.Module, Facts]:
    """The network with weights from a file, where there is one, or trained; and how it came by them."""
    file = panel.source.weights.get(panel.net)
    if file:
        loaded = weights.load(data.untrained(panel.net, dataset), file)
        data.require_unchanged(panel.source)  # once more: they lie beside the data, and were read after them
        return loaded, {"epochs": 0, "weights": file}
    fitted = training.fit(lambda: data.untrained(panel.net, dataset), dataset, recipe, seed=seed, device=device)
    return fitted.module, {"epochs": fitted.epochs, "restarts": fitted.restarts}


def rows_to_test(panel: Network, dataset: Dataset) -> Tensor:
    """The rows (k,) of `tested`; a UsageError where there are none."""
    rows = tested(panel, dataset)
    if not len(rows):
        raise UsageError(f"`data` must hold test inputs, and {dataset.name} has none")
    return rows


@task("bias.play", version=3, spec="game")
def play(*trained: Cell, panel: Panel, spec: GameSpec, first: int, last: int, seed: int, device: str) -> Cell:
    """Shapley values of the inputs number `first` to `last` that are explained.

    trained  all trainings of the network: they are explained on the inputs that all of them get right
    """
    if not trained[panel.training].facts["passed"]:
        return Cell(facts={"status": "below gate"})
    stage = Stage(trained, panel, spec, device)
    chosen = stage.samples[first:last]
    if not len(chosen):
        return Cell(facts={"status": "no correct input"})
    estimate = stage.estimate(chosen, seed=seed)
    facts = {"status": "ok", "permutations": estimate.permutations, "players": estimate.values.shape[1]}
    return Cell(tensors=anchors.packed(estimate, chosen), facts=facts)


@task("bias.explain", version=3, spec="game")
def explain(
    *trained: Cell,
    panel: Panel,
    spec: GameSpec,
    method: str,
    version: int,
    code: str,
    channels: players.Channels,
    samples: int,
    seed: int,
    device: str,
) -> Cell:
    """What a method says of every player, (n, players). `version` and `code` change the key with the method."""
    if not trained[panel.training].facts["passed"]:
        return Cell(facts=networks.BELOW_GATE)
    stage = Stage(trained, panel, spec, device)
    chosen = stage.samples[:samples]
    if not len(chosen):
        return Cell(facts=NO_CORRECT_INPUT)
    answer = maps_of(method, stage, chosen, seed=seed)
    tensors = {"samples": chosen}
    if "maps" in answer.tensors:
        tensors["players"] = by_player(answer.tensors["maps"], stage, channels)
    gap = asking.gaps(answer)
    if gap is not None:
        tensors["gap"] = gap
    return Cell(tensors=tensors, facts={**answer.facts, "drawn": stage.classes(chosen)})


def maps_of(method: str, stage: Stage, chosen: Tensor, *, seed: int) -> Cell:
    """The method's maps of the chosen inputs (n,), or why there are none."""
    x, target = stage.inputs(chosen)
    record = plugins.method(method, METHODS)
    if stage.head is not None and record.units is not None:
        return asking.attribute(record, stage.question_on_units(x, target, seed=seed, samples=chosen))
    return asking.attribute(record, stage.question(stage.shown(x), target, seed=seed, samples=chosen))


def by_player(maps: Tensor, stage: Stage, channels: players.Channels) -> Tensor:
    """What maps (n, *shape) say of every player. (n, players)"""
    maps = maps.to(stage.device)
    labels, count = players.seats(maps, stage.labels(stage.references.shape[1:]))
    return players.collect(maps, labels, count, channels=channels).double().cpu()


@task("bias.judge", version=2)
def score(
    *cells: Cell,
    panel: Panel,
    method: str,
    ends: tuple[str, ...],
    fractions: tuple[float, ...],
    ties: str,
    played: int,
) -> Cell:
    """Rows of every end and fraction. The first `played` cells are the anchor, the others what the method says.

    A method that promises a sum has a row `gap` for each sample beside: how far it is from what it promises.
    """
    answer = cells[played]
    template = row_of(panel).having(method=method)
    if not {"players", "values"} & set(answer.tensors):
        return without_maps(template, answer, ends, fractions)
    anchor = anchors.joined(cells[:played])
    attribution = anchors.players_of(cells[played:])
    rows = anchors.biases(template, attribution, anchor.estimate, ends=ends, fractions=fractions, ties=ties)
    of_gaps = template.having(end="", fraction=None, players=attribution.shape[1])
    numbered = list(numbered_rows(rows, anchor))
    return Cell(rows=tuple(asking.promise_rows(of_gaps, numbered, answer.tensors.get("gap"), anchor.samples)))


def numbered_rows(rows: Sequence[Row], anchor: anchors.Anchor) -> Iterator[Row]:
    """The rows with the numbers that samples have in their dataset, and with what there is to know of their anchors."""
    warnings = convergence.warning(anchor.estimate)
    for row in rows:
        place = row.sample or 0
        message = row.message or warnings[place]
        yield row.having(sample=anchor.samples[place], noise=anchor.noise[place], message=message)


@task("bias.show", version=1, spec="game")
def show(
    *cells: Cell, panel: Panel, spec: GameSpec, methods: tuple[str, ...], trained: int, played: int, device: str
) -> Cell:
    """What the page shows of the first inputs: each as it is, its Shapley values, and what methods say of its players.

    cells  `trained` trainings, `played` parts of the anchor, and one cell for each of the methods
    """
    played_cells = cells[trained : trained + played]
    if not any("values" in cell.tensors for cell in played_cells):
        return Cell()
    stage = Stage(cells[:trained], panel, spec, device)
    anchor = anchors.joined(played_cells)
    seats = stage.labels(stage.dataset.x.shape[1:])
    of_players = {("truth", ""): anchor.estimate.values}
    for method, answer in zip(methods, cells[trained + played :], strict=True):
        if "players" in answer.tensors:
            of_players["example", method] = answer.tensors["players"]
    album = Album(panel.where)
    for place, row in enumerate(anchor.samples[: choose.SHOWN]):
        seen = {name: values[place][seats] for name, values in of_players.items()}
        for (kind, method), picture in {("input", ""): stage.dataset.x[row], **seen}.items():
            label = int(stage.dataset.y[row])
            album.add(picture.half(), f"{kind} {method}".strip(), place, kind=kind, method=method, label=label)
    return album.cell()


def without_maps(template: Row, answer: Cell, ends: tuple[str, ...], fractions: tuple[float, ...]) -> Cell:
    """Rows without a value for every metric, sample, end and fraction of a method that gave no maps."""
    silent = asking.without_maps(template, anchors.METRIC_NAMES, answer)
    rows = [row.having(end=end, fraction=f) for row, end, f in itertools.product(silent.rows, ends, fractions)]
    return replace(silent, rows=tuple(rows))
