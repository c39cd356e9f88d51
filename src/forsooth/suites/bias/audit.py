"""The audit of ground truths by Shapley values: does a network use only what its data were made to need?

Fig. 3 and appendix N of [anonymous2023evaluation], on photographs where `--data` has them, and on our own data.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from forsooth import papers, seeds
from forsooth.datasets import audited
from forsooth.engine import known_as, make_task
from forsooth.games import players
from forsooth.games.shapley import exact, permutation
from forsooth.games.values import game
from forsooth.models import recipes, train
from forsooth.models.recipes import Recipe
from forsooth.names import kept
from forsooth.records import Artefact, Cell, Choice, Dataset, Plan, Task
from forsooth.scores.mass import mass_inside
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites import choose
from forsooth.suites.bias import data as sources

Perform = Callable[[Plan], Store]

REFERENCES = 1_000  # training images averaged into the baseline
PATTERN_GATE = 0.9  # the pattern is the label, and loud: who does not see it has not learned anything


@dataclass(frozen=True)
class Settings:
    """What decides an audit.

    samples       test inputs audited per network
    permutations  random orders of joining, where players are too many to enumerate
    side          of photographs; that of CIFAR-10 and of generated images is 32
    """

    samples: int = 100
    permutations: int = 300
    side: int = 224


def cases(choice: Choice, kind: str) -> list[tuple[str, str]]:
    """Dataset and network of every audit: AlexNet on photographs as in the paper, LeNet on small images.

    Tetrominoes need no pattern pasted in: they are one.
    """
    here = sources.found(choice.data)
    known = {"voc": "alexnet", "cifar10": "lenet", "leaves": "lenet"}
    own = {"tetromino": "mlp"} if kind == "pattern" else {}
    names = [name for name in known if name in here or name == "leaves"] + list(own)
    return [(name, (known | own)[name]) for name in kept(names, choice.only, "dataset")]


def panel_of(name: str, net: str, kind: str, settings: Settings, choice: Choice) -> dict[str, Any]:
    side = settings.side if name == "voc" else 32
    path = sources.found(choice.data).get(name)
    about = sources.spec(name, path, seed=seeds.derive(choice.seed, "data"), side=side)
    gate = PATTERN_GATE if kind == "pattern" else sources.played(name).gate
    return {"source": about, "net": net, "kind": kind, "gate": gate, "seed": seeds.derive(choice.seed, "audit", kind)}


def data(panel: dict[str, Any]) -> tuple[Dataset, Tensor]:
    """The base data with an irrelevant region or a pattern pasted in, and the number of the region of every image."""
    return _data(json.dumps(panel, sort_keys=True))


@functools.lru_cache(maxsize=1)
def _data(text: str) -> tuple[Dataset, Tensor]:
    panel = json.loads(text)
    base = sources.read(panel["source"])
    if panel["kind"] == "region":
        return audited.irrelevant_region(base, grid=4, seed=panel["seed"])
    if panel["source"]["name"] == "tetromino":
        return base, torch.zeros_like(base.y)
    side = base.x.shape[-1] // 4
    made = audited.pasted_pattern(base, side=side, seed=panel["seed"])
    return made, torch.zeros(len(made.y), dtype=torch.int64)


def training_task(panel: dict[str, Any], choice: Choice) -> Task:
    recipe = {"alexnet": recipes.VISION, "lenet": recipes.LENET, "mlp": recipes.QUICK_8}[panel["net"]]
    given = {
        "panel": panel,
        "recipe": dataclasses.asdict(recipe),
        "seed": seeds.derive(choice.seed, "training"),
        "device": choice.device,
    }
    title = f"{panel['net']}, {panel['source']['name']} with a {panel['kind']}"
    return make_task(train_network, given, name=f"train {title}", version=1)


@known_as("bias.audit_train")
def train_network(*, panel: dict[str, Any], recipe: dict[str, Any], seed: int, device: str) -> Cell:
    """One training; the cell holds the weights and the test accuracy."""
    dataset, _ = data(panel)
    trained = train.fit(lambda: built(panel, dataset), dataset, Recipe(**recipe), seed=seed, device=device)
    state = {f"net.{name}": value for name, value in trained.module.state_dict().items()}
    return Cell(tensors=state, facts={"accuracy": trained.test_accuracy})


def built(panel: dict[str, Any], dataset: Dataset) -> torch.nn.Module:
    return sources.build(panel["net"], tuple(dataset.x.shape[1:]), int(dataset.y.max()) + 1)


def loaded(trained: Cell, panel: dict[str, Any], dataset: Dataset, device: str) -> torch.nn.Module:
    module = built(panel, dataset)
    module.load_state_dict({name[4:]: value for name, value in trained.tensors.items() if name.startswith("net.")})
    return module.eval().requires_grad_(False).to(device)


@torch.no_grad()
def right(module: torch.nn.Module, dataset: Dataset, wanted: Tensor, most: int, *, seed: int, device: str) -> Tensor:
    """At most `most` of the wanted images that the network gets right, evenly over classes. (k,)"""
    found = [part[module(dataset.x[part].to(device)).argmax(1).cpu() == dataset.y[part]] for part in wanted.split(100)]
    return choose.rows_of(dataset, torch.cat(found), most, seed=seed, role="explained")


def absent_player(dataset: Dataset, *, seed: int) -> tuple[Tensor, Tensor]:
    """The mean image of training images drawn evenly over classes, (*shape), and their rows (k,).

    Evenly, or the pattern that tells a class would stand for its own absence.
    """
    rows = choose.rows_of(dataset, dataset.splits["train"], REFERENCES, seed=seed, role="baseline")
    return dataset.x[rows].mean(0, dtype=torch.float64).to(dataset.x), rows


def audited_facts(
    trained: Cell, dataset: Dataset, panel: dict[str, Any], chosen: Tensor, known: Tensor
) -> dict[str, Any]:
    """Accuracy, and how many of each class were explained and averaged into the baseline."""
    about = {"dataset": panel["source"]["name"], "model": panel["net"]}
    drawn = [
        *choose.classes_of(dataset.y[chosen], role="explained", where=about),
        *choose.classes_of(dataset.y[known], role="baseline", where=about),
    ]
    return {"accuracy": trained.facts["accuracy"], "drawn": drawn}


@known_as("bias.audit_region")
def relative_attribution(
    trained: Cell, *, panel: dict[str, Any], samples: int, permutations: int, seed: int, device: str
) -> Cell:
    """|A_k| / mean |A| of the irrelevant region k among sixteen, all coalitions played. One row per image."""
    if trained.facts["accuracy"] < panel["gate"]:
        return Cell(facts={"accuracy": trained.facts["accuracy"]})  # what it has not learned it cannot use
    dataset, region = data(panel)
    module = loaded(trained, panel, dataset, device)
    chosen = right(module, dataset, dataset.splits["test"], samples, seed=seed, device=device)
    absent, known = absent_player(dataset, seed=seed)
    patches = players.patches(tuple(dataset.x.shape[1:]), 4)
    rows = []
    for part in chosen.split(4):
        x, y = dataset.x[part].to(device), dataset.y[part].to(device)
        size = exact(game(module, x, y, players=patches, baseline=absent.to(device))).values.abs().cpu()  # (k, 16)
        ratio = size.gather(1, region[part][:, None])[:, 0] / size.mean(1)
        rows += [{"sample": int(s), "value": v} for s, v in zip(part, ratio.tolist(), strict=True)]
    return Cell(rows=tuple(rows), facts=audited_facts(trained, dataset, panel, chosen, known))


@known_as("bias.audit_pattern")
def share_inside(
    trained: Cell, *, panel: dict[str, Any], samples: int, permutations: int, seed: int, device: str
) -> Cell:
    """Share of |Shapley value| inside the truth, of images that have one. One row per image.

    The pattern lies anywhere, so each patch of an 8×8 grid is cut along it: no player is half inside. The share is
    freed of noise, which would count as mass (`scores.mass`); `plain` is the one of the estimates as they are.
    """
    if trained.facts["accuracy"] < panel["gate"]:
        return Cell(facts={"accuracy": trained.facts["accuracy"]})
    dataset, _ = data(panel)
    module = loaded(trained, panel, dataset, device)
    assert dataset.truth is not None
    test = dataset.splits["test"]
    chosen = right(module, dataset, test[dataset.truth[test].flatten(1).any(1)], samples, seed=seed, device=device)
    absent, known = absent_player(dataset, seed=seed)
    patches = players.patches(tuple(dataset.x.shape[1:]), 8)
    rows = []
    for k in chosen.tolist():
        inside = dataset.truth[k]
        _, labels = torch.unique(patches * 2 + inside, return_inverse=True)
        x, y = dataset.x[k : k + 1].to(device), dataset.y[k : k + 1].to(device)
        played = game(module, x, y, players=labels, baseline=absent.to(device))
        drawn = seeds.generator(seed, "permutations", k)  # each image its own, so that their errors average out
        estimate = permutation(played, permutations=permutations, generator=drawn)
        within = torch.zeros(played.count, dtype=torch.bool).scatter_(0, labels[inside], True)
        mass = mass_inside(estimate, within.to(device))
        rows.append({"sample": k, "value": mass.value.item(), "plain": mass.plain.item(), "error": mass.error.item()})
    return Cell(rows=tuple(rows), facts=audited_facts(trained, dataset, panel, chosen, known))


def audit(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, kind: str, function: Callable[..., Cell]
) -> pd.DataFrame:
    """Mean of the audited number with a 95 % interval over images, for every dataset at hand."""
    settings, done, tasks = changed(Settings(), changes), {}, []
    for name, net in cases(choice, kind):
        panel = panel_of(name, net, kind, settings, choice)
        trained = training_task(panel, choice)
        given = {
            "panel": panel,
            "samples": settings.samples,
            "permutations": settings.permutations,
            "seed": seeds.derive(choice.seed, "audit"),
            "device": choice.device,
        }
        done[name, net] = make_task(function, given, [trained], name=f"audit {name}, {net}, {kind}", version=3)
        tasks += [trained, done[name, net]]
    store = perform(Plan(tasks=tuple(tasks)))
    lines = []
    for (name, net), task in done.items():
        rows = pd.DataFrame(store.read(task.key).rows, columns=["value", "plain"], dtype=float)
        values = rows["value"].dropna()
        told = {
            "accuracy": 100 * store.meta(task.key)["facts"]["accuracy"],
            "gate": 100 * task.arguments["panel"]["gate"],
        }
        line = {"dataset": name, "model": net, **told, "inputs": len(values), **interval(values)}
        lines.append({**line, "plain": rows["plain"].mean()})
    table = pd.DataFrame(lines)
    return table if kind == "pattern" else table.drop(columns="plain")


def below(line: Any) -> str:
    """Why a network was not audited; empty if it was."""
    if line.inputs:
        return ""
    why = f"below its gate of {line.gate:.0f} %" if line.accuracy < line.gate else "no image with a region got right"
    return f"{who(line)}: {why}, so not audited."


def who(line: Any) -> str:
    return f"{line.dataset}, {line.model} ({line.accuracy:.0f} % accurate)"


def interval(values: pd.Series) -> dict[str, float]:
    """Mean and 95 % bootstrap interval over images; nan of none."""
    if values.empty:
        return dict.fromkeys(("mean", "low", "high"), float("nan"))
    drawn = np.random.default_rng(0).choice(values.to_numpy(), (2000, len(values))).mean(1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return {"mean": values.mean(), "low": float(low), "high": float(high)}


def figure_3(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Fig. 3: relative attribution of a region that was pasted in from another class; 0 if it did not matter."""
    table = audit(choice, perform, changes, kind="region", function=relative_attribution)
    table["published"] = published("figure-3")
    lines = [
        below(r)
        or f"{who(r)}: the irrelevant region has {r.mean:.3f} [{r.low:.3f}, {r.high:.3f}] of the mean attribution of a "
        f"region over {r.inputs} images (published {r.published}). It is not 0, so "
        f"{'the published finding holds' if r.low > 0.1 else 'the finding holds weakly'}: pasted regions are used."
        for r in table.itertuples()
    ]
    return table.round(4), "\n".join(lines) + "\n"


def appendix_n(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Appendix N: share of Shapley mass inside a pattern whose presence is the label; 1 if nothing else mattered."""
    table = audit(choice, perform, changes, kind="pattern", function=share_inside)
    table["published"] = published("appendix-n")
    lines = [
        below(r)
        or f"{who(r)}: {r.mean:.3f} [{r.low:.3f}, {r.high:.3f}] of the Shapley mass lies inside the pattern "
        f"over {r.inputs} images (published {r.published}; {r.plain:.3f} if the noise of the estimates counts, too); "
        f"{'next to nothing' if r.low > 0.98 else 'a part'} of it lies outside."
        for r in table.itertuples()
    ]
    return table.round(4), "\n".join(lines) + "\n"


def published(artefact: str) -> float:
    return float(papers.table("bias_audits").set_index("artefact").loc[artefact, "value"])


ARTEFACTS = (
    Artefact("bias/figure-3", "do networks use a pasted region that cannot matter?", figure_3),
    Artefact("bias/appendix-n", "do networks use only the pattern that is the label?", appendix_n),
)
