"""The tasks of the bias suite: train or load a network, play its games, make maps, hold them against the anchor."""

import functools
import json
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import chunks, seeds
from forsooth.attributions import cam
from forsooth.engine import known_as
from forsooth.games import layers, players
from forsooth.games.baselines import baseline as stand_in
from forsooth.games.shapley import Estimate, exact, permutation
from forsooth.games.values import Game, Model, game
from forsooth.models import MODELS, train, weights
from forsooth.models.recipes import Recipe
from forsooth.names import find
from forsooth.records import Cell, Dataset, UsageError
from forsooth.scores import convergence
from forsooth.scores.promises import completeness_gap
from forsooth.suites import choose, explain
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data as sources

REFERENCES = 1_000  # training inputs averaged into the baseline and handed to methods that fit something
BACKGROUND = 100  # of these, handed to methods as background
TESTED = 2_000  # test inputs asked whether the network gets them right
# Their channels say the same thing three times, so the paper keeps one of them; the others are sums by their nature.
GRADIENTS = ("gradient", "saliency", "smooth_grad", "guided_backprop", "deconvolution")


def data(panel: dict[str, Any]) -> Dataset:
    """The panel's dataset, made or read again; the last two are kept, since tasks come in their order."""
    return _data(json.dumps(panel["source"], sort_keys=True))


@functools.lru_cache(maxsize=2)
def _data(text: str) -> Dataset:
    return sources.read(json.loads(text))


def factors(panel: dict[str, Any]) -> dict[str, Any]:
    return {"dataset": panel["source"]["name"], "model": panel["net"], "player": panel["player"]}


def title(panel: dict[str, Any]) -> str:
    words = f"{panel['source']['name']}, {panel['net']}{numbered(panel)}"
    return f"{words}, units of a layer" if panel["player"] == "units" else words


def numbered(panel: dict[str, Any]) -> str:
    """Which training of several, in words; empty for the first."""
    return f", training {panel['training'] + 1}" if panel["training"] else ""


@known_as("bias.train")
def train_network(*, panel: dict[str, Any], recipe: dict[str, Any], seed: int, device: str) -> Cell:
    """One training, or weights from a file. The cell holds the weights and which test inputs it gets right.

    The panel's `training` is the number of this training; `correct` (k,) belongs to the rows of `tested`.
    """
    dataset = data(panel)
    file = panel["source"]["weights"].get(panel["net"])
    if file:
        module = weights.load(untrained(panel, dataset), file)
        told = {"epochs": 0, "weights": file}
    else:
        trained = train.fit(lambda: untrained(panel, dataset), dataset, Recipe(**recipe), seed=seed, device=device)
        module, told = trained.module, {"epochs": trained.epochs, "restarts": trained.restarts}
    correct = _correct(module.to(device).eval(), dataset, tested(panel, dataset), device)
    accuracy, gate = correct.double().mean().item(), recipe["gate"]
    row = {
        **factors(panel),
        **{"player": "", "suite": "bias", "part": "training", "method": "", "metric": "accuracy"},
        "model_seed": panel["training"],
        **{"sample": -1, "value": accuracy, "status": "ok" if accuracy >= gate else "below gate"},
        "message": "" if accuracy >= gate else f"accuracy {accuracy:.1%}, below the gate of {gate:.0%}",
    }
    state = {f"net.{name}": value for name, value in module.state_dict().items()}
    facts = {**told, "passed": accuracy >= gate, "said": sources.said(dataset)}
    return Cell(rows=(row,), tensors={**state, "correct": correct}, facts=facts)


@known_as("bias.play")
def play(
    *trained: Cell,
    panel: dict[str, Any],
    game: dict[str, Any],
    first: int,
    last: int,
    seed: int,
    device: str,
) -> Cell:
    """Shapley values of the inputs number `first` to `last` that are explained.

    trained  all trainings of the network: they are explained on the inputs that all of them get right
    game     as from `bias.the_game`: grid, permutations, exact_up_to, antithetic, baseline, output, layer
    """
    if not trained[panel["training"]].facts["passed"]:
        return Cell(facts={"status": "below gate"})
    stage = Stage(trained, panel, game, device)
    chosen = stage.samples[first:last]
    if not len(chosen):
        return Cell(facts={"status": "no sample"})
    estimate = stage.estimate(chosen, seed=seed)
    facts = {"status": "ok", "permutations": estimate.permutations, "players": estimate.values.shape[1]}
    return Cell(tensors=anchors.packed(estimate, chosen), facts=facts)


class Stage:
    """A trained network made ready to be played: what is hidden, from whom, and what stands for the absent."""

    def __init__(self, trained: tuple[Cell, ...], panel: dict[str, Any], game: dict[str, Any], device: str) -> None:
        self.panel = panel
        self.game = game
        self.device = device
        self.dataset = data(panel)
        self.samples = explained(trained, panel, self.dataset)
        self.known = drawn(panel, self.dataset, "train", REFERENCES, role="baseline")
        references = self.dataset.x[self.known].to(device)
        whole, layer = network(trained[panel["training"]], panel, game, device)
        self.whole = whole
        self.layer = layer
        self.model: Model = whole
        self.head: Model | None = None
        if panel["player"] == "units":
            assert layer is not None
            self.head, self.model = layers.split(whole, layer)
            references = self.shown(references)
        self.references = references

    def shown(self, x: Tensor) -> Tensor:
        """What the players are parts of: the input itself, or the output of the layer. (n, *shape)"""
        head = self.head
        if head is None:
            return x
        with torch.no_grad():
            return chunks.over(head, x, size=256)

    def inputs(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        return self.dataset.x[chosen].to(self.device), self.dataset.y[chosen].to(self.device)

    def classes(self, chosen: Tensor) -> list[dict[str, Any]]:
        """How many of each class take part: explained (the chosen ones), as background and in the baseline."""
        roles = {"explained": chosen, "background": self.known[:BACKGROUND], "baseline": self.known}
        counted = [
            choose.classes_of(self.dataset.y[rows], role=role, where=factors(self.panel))
            for role, rows in roles.items()
        ]
        return [line for lines in counted for line in lines]

    def labels(self, shape: tuple[int, ...]) -> Tensor:
        grid = self.game["grid"]
        small = self.head is not None or grid is None or len(shape) < 3 or min(shape[1:]) <= grid
        return players.pixels(shape) if small else players.patches(shape, grid)

    def game_of(self, chosen: Tensor) -> Game:
        """The games of the chosen inputs, numbers (k,) of the dataset."""
        x, target = self.inputs(chosen)
        x = self.shown(x)
        absent = stand_in(self.game["baseline"], x, self.references)
        return game(self.model, x, target, players=self.labels(tuple(x.shape[1:])), baseline=absent)

    def estimate(self, chosen: Tensor, *, seed: int) -> Estimate:
        played = self.game_of(chosen)
        if played.count <= self.game["exact_up_to"]:
            return exact(played)
        return permutation(
            played,
            permutations=self.game["permutations"],
            generator=seeds.generator(seed, "permutations"),
            antithetic=self.game["antithetic"],
        )


@known_as("bias.explain")
def attribute(
    *trained: Cell,
    panel: dict[str, Any],
    game: dict[str, Any],
    method: str,
    version: int,
    code: str,
    channels: players.Channels,
    samples: int,
    seed: int,
    device: str,
) -> Cell:
    """What a method says of every player, (n, players). `version` and `code` change the key with the method."""
    if not trained[panel["training"]].facts["passed"]:
        return Cell(facts={"status": "below gate", "message": "the network is below its gate: not explained"})
    stage = Stage(trained, panel, game, device)
    chosen = stage.samples[:samples]
    if not len(chosen):
        return Cell(facts={"status": "no sample", "message": "no test input is predicted correctly"})
    x, target = stage.inputs(chosen)
    shown = stage.shown(x)
    if panel["player"] == "units" and method == "grad_cam":
        assert stage.layer is not None
        made = Cell(tensors={"maps": cam.grad_cam_units(stage.whole, x, target, layer=stage.layer)[:, None]})
        made = Cell(tensors=made.tensors, facts={"status": "ok", "message": ""})
    else:
        made = explain.attribute(method, question(stage, shown, target, seed=seed, samples=chosen))
    facts = {**made.facts, "drawn": stage.classes(chosen)}
    if "maps" not in made.tensors:
        return Cell(tensors={"samples": chosen}, facts=facts)
    maps = made.tensors["maps"].to(device)
    labels, count = players.seats(maps, stage.labels(tuple(shown.shape[1:])))
    reduced = players.collect(maps, labels, count, channels=channels)
    tensors = {"players": reduced.double().cpu(), "samples": chosen}
    if "promised" in made.tensors:
        tensors["gap"] = completeness_gap(made.tensors["maps"], made.tensors["promised"])
    return Cell(tensors=tensors, facts=facts)


def question(stage: Stage, x: Tensor, target: Tensor, *, seed: int, samples: Tensor | None = None) -> explain.Question:
    model = stage.model if isinstance(stage.model, nn.Module) else stage.whole
    game = {}
    if stage.game["same_game"]:
        absent = stand_in(stage.game["baseline"], x, stage.references)
        shared = {"baseline": absent} if absent.ndim == x.ndim - 1 else {}  # a blurred input is no one else's
        game = {**shared, "players": stage.labels(tuple(x.shape[1:])).to(x.device)}
    return explain.Question(
        game=game,
        model=model,
        x=x,
        target=target,
        background=stage.references[:BACKGROUND],
        fit=stage.references,
        truth=torch.ones_like(x, dtype=torch.bool),
        layer=None if stage.head is not None else stage.layer,
        seed=seed,
        samples=samples,
    )


@known_as("bias.judge")
def judge(
    *cells: Cell, panel: dict[str, Any], method: str, ends: list[str], fractions: list[float], ties: str, played: int
) -> Cell:
    """Rows of every end and fraction. The first `played` cells are the anchor, the others what the method says.

    A method that promises a sum has a row `gap` for each sample beside: how far it is from what it promises.
    """
    said = cells[played]
    shared = {**factors(panel), "suite": "bias", "part": "scores", "model_seed": panel["training"], "method": method}
    if "players" not in said.tensors and "values" not in said.tensors:
        told = {"status": said.facts["status"], "message": said.facts.get("message", "")}
        samples = said.tensors["samples"].tolist() if "samples" in said.tensors else [-1]
        none = [
            {**shared, **told, "metric": m, "sample": s, "value": float("nan"), "end": end, "fraction": f}
            for m in anchors.METRIC_NAMES
            for s in samples
            for end in ends
            for f in fractions
        ]
        return Cell(rows=tuple(none), facts={"failed": True} if said.facts.get("failed") else {})
    estimate, samples, noise = anchors.joined(list(cells[:played]))
    attribution = (
        said.tensors["players"] if "players" in said.tensors else anchors.joined(list(cells[played:]))[0].values
    )
    rows = anchors.biases(attribution, estimate, ends=ends, fractions=fractions, ties=ties)
    warned = convergence.warning(estimate)
    for row in rows:
        place = row["sample"]
        row |= {**shared, "sample": samples[place], "noise": noise[place]}
        row["message"] = row["message"] or warned[place]
    beside = {**shared, "end": "", "fraction": None, "players": attribution.shape[1]}
    return Cell(rows=tuple(explain.with_gaps(rows, said.tensors.get("gap"), samples, **beside)))


def untrained(panel: dict[str, Any], dataset: Dataset) -> nn.Module:
    """The network for this dataset: its inputs and classes decide the ends."""
    return sources.build(panel["net"], tuple(dataset.x.shape[1:]), int(dataset.y.max()) + 1)


def network(trained: Cell, panel: dict[str, Any], game: dict[str, Any], device: str) -> tuple[nn.Module, str | None]:
    """The trained network as it is explained, and the name of the layer that Grad-CAM reads."""
    module = untrained(panel, data(panel))
    module.load_state_dict({name[4:]: value for name, value in trained.tensors.items() if name.startswith("net.")})
    module.eval().requires_grad_(False).to(device)
    if device == "cuda" and panel["net"] in sources.RESNETS:  # 1.6 times the rate there; for small nets it does not pay
        for weight in module.parameters():
            if weight.ndim == 4:
                weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        module.register_forward_pre_hook(lambda _, x: (x[0].contiguous(memory_format=torch.channels_last),))
    layer = game["layer"] or find(panel["net"], MODELS, argument="models").layer
    if game["output"] == "logits":
        return module, layer
    return nn.Sequential(module, nn.Softmax(1)).eval(), None if layer is None else f"0.{layer}"


def drawn(panel: dict[str, Any], dataset: Dataset, split: str, count: int | None, *, role: str) -> Tensor:
    """At most `count` rows of a split, evenly over its classes; the same ones in every task of the dataset. (k,)"""
    return choose.rows_of(dataset, dataset.splits[split], count, seed=panel["source"]["seed"], role=role)


def tested(panel: dict[str, Any], dataset: Dataset) -> Tensor:
    """The test inputs that networks are asked about, before it is known who gets them right. (k,)"""
    return drawn(panel, dataset, "test", TESTED, role="tested")


def explained(trained: tuple[Cell, ...], panel: dict[str, Any], dataset: Dataset) -> Tensor:
    """The tested inputs that every training above its gate gets right, each beginning of them even over classes. (k,)

    All trainings are asked about the same inputs, so that inputs and trainings can be told apart as sources of chance.
    """
    correct = [cell.tensors["correct"] for cell in trained if cell.facts["passed"]]
    if not correct:
        return torch.empty(0, dtype=torch.int64)
    agreed = torch.stack(correct).all(0)
    rows = tested(panel, dataset)[: len(agreed)][agreed]
    return choose.rows_of(dataset, rows, None, seed=panel["source"]["seed"], role="explained")


@torch.no_grad()
def _correct(module: nn.Module, dataset: Dataset, rows: Tensor, device: str) -> Tensor:
    """Which of the rows (k,) the network gets right. (k,) bool"""
    if not len(rows):
        raise UsageError(f"`data` must hold test inputs, and {dataset.name} has none")
    predicted = torch.cat([module(dataset.x[part].to(device)).argmax(1).cpu() for part in rows.split(250)])
    return predicted == dataset.y[rows]
