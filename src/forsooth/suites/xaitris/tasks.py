"""The tasks of XAI-TRIS: train a network, make maps, score them. Results are cells."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from forsooth import models
from forsooth.engine import task
from forsooth.models.recipes import Recipe
from forsooth.models.train import fit
from forsooth.records import NO_MODEL, Cell, Dataset, Facts
from forsooth.suites import explain as explaining
from forsooth.suites import networks
from forsooth.suites.choose import SHOWN, placed
from forsooth.suites.networks import NetSpec
from forsooth.suites.xaitris import data, training
from forsooth.suites.xaitris.data import DataSpec, Panel

SMALL = 8  # pixels; so small an image is quickly explained by networks as they are written
NO_INPUT = "no test image is predicted correctly by every network"


@dataclass(frozen=True)
class Ask:
    """What a method is asked.

    version, code  are here to change the key when the method changes
    samples        images at most; None: all that every network gets right
    softmax        "rule": each method's own, or it refuses; "gradient": DeepLIFT and LRP pass a softmax by the plain
                   gradient, as the published maps did
    sampling_seed  one for the whole run: every method and network of a panel explains the same images with the same
                   references
    """

    method: str
    version: int
    code: str
    samples: int | None
    output: str
    softmax: str
    seed: int
    sampling_seed: int
    device: str


@task("xaitris.train", version=2, together=training.TOGETHER, spec="panel")
def train(*, spec: DataSpec, net: NetSpec, recipe: Recipe, model_seed: int, seed: int, device: str, part: str) -> Cell:
    """One training. The cell holds the weights and which test images the network gets right."""
    dataset = data.dataset(spec)
    build = partial(training.untrained, net, spec)
    trained = fit(build, dataset, recipe, seed=seed, device=device)
    return training.cell(trained, dataset, spec, net, recipe, model_seed=model_seed, device=device, part=part)


@task("xaitris.show", version=2, spec="panel")
def show(*trained: Cell, spec: DataSpec, samples: int | None, sampling_seed: int) -> Cell:
    """The images whose maps are shown, their truths, and how many images of each kind take part in the panel."""
    dataset = data.dataset(spec)
    chosen = data.explained(trained, dataset, samples, seed=sampling_seed)
    if not len(chosen):
        return Cell()
    where = data.panel(spec).factors
    rows = {"explained": chosen, **data.references(dataset, seed=sampling_seed)}
    drawn = [line for role in rows for line in data.counts(dataset, rows[role], role=role, where=where)]
    return shown(dataset, chosen[:SHOWN], where, drawn)


def shown(dataset: Dataset, rows: Tensor, where: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]]) -> Cell:
    """The cell with the images at rows (k,) of the dataset and their truths."""
    assert dataset.truth is not None
    tensors = {}
    pictures = []
    for place, row in enumerate(rows.tolist()):
        shared = {**where, "model": NO_MODEL, "method": "", "label": int(dataset.y[row]), "place": place}
        for kind, picture in {"input": dataset.x[row].sum(0), "truth": dataset.truth[row].float()}.items():
            name = placed(kind, place)
            tensors[name] = picture
            pictures.append({**shared, "tensor": name, "kind": kind})
    return Cell(tensors=tensors, facts={"pictures": pictures, "drawn": list(drawn)})


@task("xaitris.explain", version=2, spec="panel", ask="*")
def explain(*trained: Cell, spec: DataSpec, index: int, ask: Ask) -> Cell:
    """The maps of one method for one network (index -1: it ignores them) over the test images all get right."""
    network = None
    if index >= 0:
        network = trained[index]
        if not network.facts["passed"]:
            return Cell(facts=networks.BELOW_GATE)
    chosen = data.explained(trained, data.dataset(spec), ask.samples, seed=ask.sampling_seed)
    if not len(chosen):
        return Cell(facts={"status": "no correct input", "message": NO_INPUT})
    cell = explaining.attribute(ask.method, question(network, spec, chosen, ask))
    return Cell(tensors={**cell.tensors, "samples": chosen}, facts=cell.facts)


def question(network: Cell | None, spec: DataSpec, chosen: Tensor, ask: Ask) -> explaining.Question:
    """What a method is asked of a trained network (None: of none, for methods that ignore it) on chosen images (k,)."""
    dataset = data.dataset(spec)
    model: nn.Module = nn.Identity()
    layer = None
    if network is not None:
        model, layer = explained_network(network, spec, ask)
    rows = data.references(dataset, seed=ask.sampling_seed)
    game: Facts = {"rewrite_model": spec.setting.size > SMALL}
    if ask.softmax == "gradient":
        game["softmax"] = ask.softmax
    return explaining.Question(
        model=model,
        x=dataset.x[chosen].to(ask.device),
        target=dataset.y[chosen].to(ask.device),
        background=dataset.x[rows["background"]].to(ask.device),
        fit=dataset.x[rows["fit"]].to(ask.device),
        truth=truth_of(dataset, chosen).to(ask.device),
        layer=layer,
        seed=ask.seed,
        samples=chosen,
        game=game,
    )


@task("xaitris.score", version=2, spec="panel", panel="about")
def score(
    made: Cell,
    *,
    spec: DataSpec,
    panel: Panel,
    method: str,
    metrics: dict[str, int],
    emd_tolerance: float | None = None,
) -> Cell:
    """Rows of every metric for the maps of one cell, and the maps that the page shows.

    emd_tolerance  of the earth mover's score, see `Settings`; None: exact
    """
    template = panel.row("scores", method)
    if "maps" not in made.tensors:
        return explaining.without_maps(template, metrics, made)
    dataset = data.dataset(spec)
    chosen = made.tensors["samples"]
    flat = made.tensors["maps"].abs().sum(1)  # the papers score |s|; one channel here, so the sum changes nothing
    reads = {"truth": truth_of(dataset, chosen)}
    scored = list(explaining.metric_rows(template, flat, reads, metrics, chosen.tolist(), emd_tolerance))
    rows = explaining.promise_rows(template, scored, explaining.gaps(made), chosen.tolist())
    labels = dataset.y[chosen[:SHOWN]].tolist()
    return Cell(rows=tuple(rows), tensors=shown_maps(flat), facts={"pictures": pictures(panel, method, labels)})


def shown_maps(maps: Tensor) -> dict[str, Tensor]:
    """The first few of maps (n, side, side), and the mean of all."""
    first = {placed("example", place): one.clone() for place, one in enumerate(maps[:SHOWN])}
    return {**first, "global": maps.nan_to_num(0.0, 0.0, 0.0).mean(0)}


def truth_of(dataset: Dataset, rows: Tensor) -> Tensor:
    """Which pixels matter in the images rows (k,). (k, side, side) bool"""
    assert dataset.truth is not None
    return dataset.truth[rows]


def pictures(panel: Panel, method: str, labels: Sequence[int]) -> list[Facts]:
    """What the page shows of a method in a panel; where nothing stays in its place, a mean map shows nothing.

    labels  of the samples that are shown
    """
    shared: Mapping[str, Any] = {**asdict(panel), "method": method}
    shown: list[Facts] = []
    for place, label in enumerate(labels):
        shown.append({**shared, "tensor": placed("example", place), "kind": "example", "label": label, "place": place})
    if panel.scenario != "RIGID":
        shown.append({**shared, "tensor": "global", "kind": "global"})
    return shown


def explained_network(cell: Cell, spec: DataSpec, ask: Ask) -> tuple[nn.Module, str | None]:
    """The trained network as it is explained, and the name of its last convolution.

    On a processor gradients take half the time where the channels of a pixel lie together. The order of sums is another
    then, so small networks stay as they are.
    """
    net = NetSpec(**cell.facts["net"])
    module = networks.loaded(training.untrained(net, spec), cell.tensors, device=ask.device, prefix="net.")
    if spec.setting.size > SMALL and ask.device == "cpu":
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    module.train(cell.facts["train_mode"])
    return networks.with_output(module, models.architecture(net.name).layer, ask.output)
