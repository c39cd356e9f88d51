"""Is the bias metric itself to be trusted? Figs. 4b and 5, Proposition 1, Tables 14 and 15 made again.

With `--data` these run on LeNet and CIFAR-10 as in the paper (Tables 14 and 15: ResNet-20), without on LeNet and the
generated leaves. [anonymous2023evaluation]
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import kurtosis

from forsooth import papers, seeds
from forsooth.engine import known_as, make_task
from forsooth.games.shapley import walks
from forsooth.records import Artefact, Cell, Choice, Plan, Task
from forsooth.scores import bias as scores
from forsooth.scores import convergence
from forsooth.scores.masking import order_dependence
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import data as sources
from forsooth.suites.bias import plan as bias
from forsooth.suites.bias import tasks as anchored

Perform = Callable[[Plan], Store]
CHOOSING = ("gradient", "gradient_x_input", "integrated_gradients", "guided_backprop")  # the maps that choose groups S
REPEATS = 6
SAMPLED = (10, 30, 100, 300, 1000)
GRIDS = (2, 4, 8, 16, 32)


@dataclasses.dataclass(frozen=True)
class Asked:
    """What an experiment is asked: Settings of the suite, and its network and data."""

    settings: bias.Settings
    panel: dict[str, Any]
    trained: list[Task]
    choice: Choice

    def play(self, role: str, **changes: Any) -> list[Task]:
        return bias.playing_tasks(
            self.panel, self.trained, dataclasses.replace(self.settings, **changes), self.choice, role
        )

    def says(self, method: str, **changes: Any) -> Task:
        """The task that makes what a method says of the players."""
        settings = dataclasses.replace(self.settings, **changes)
        return bias.judging_tasks(method, self.panel, self.trained, [], settings, self.choice)[0]

    @property
    def name(self) -> str:
        return anchored.title(self.panel)


def asked(choice: Choice, changes: Mapping[str, Any], *, net: str = "lenet", **usual: Any) -> Asked:
    """The network and data of an experiment: CIFAR-10 where it is at hand, else the generated leaves and LeNet."""
    real = "cifar10" in sources.found(choice.data)
    settings = bias.Settings(players=("input",), models=(net if real else "lenet",), datasets=("leaves",), **usual)
    settings = changed(settings, changes)
    narrowed = dataclasses.replace(choice, only={"dataset": ("cifar10" if real else "leaves",)})
    panel = next(iter(bias.chosen_panels(settings, narrowed)))
    return Asked(settings, panel, bias.training_tasks(panel, narrowed), narrowed)


def performed(asked: Asked, tasks: list[Task], perform: Perform) -> Store:
    return perform(Plan(tasks=tuple({task.key: task for task in [*asked.trained, *tasks]}.values())))


def figure_5(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Fig. 5: instability of the anchor β beside that of the sampled values, by samples and by variables."""
    one = asked(choice, changes, samples=4, grid=8)
    cases = [("samples", {"permutations": m}) for m in SAMPLED]
    cases += [("variables", {"permutations": 100, "grid": grid}) for grid in GRIDS]
    tasks, compared = [], {}
    for kind, change in cases:
        drawn = [one.play(f"draw {k}", **change, exact_up_to=0) for k in range(REPEATS)]
        says = [one.says(method, **change) for method in CHOOSING]
        needs = [*(task for draw in drawn for task in draw), *says]
        name = f"compare {one.name}, {change}"
        given = {"draws": REPEATS, "parts": len(drawn[0])}
        compared[kind, tuple(change.items())] = make_task(unstable, given, needs, name=name, version=2)
        tasks += [*needs, compared[kind, tuple(change.items())]]
    store = performed(one, tasks, perform)
    rows = [
        {"varied": kind, **dict(change), **store.read(task.key).rows[0]} for (kind, change), task in compared.items()
    ]
    table = pd.DataFrame(rows)[["varied", "permutations", "players", "values", "anchor"]].round(4)
    table["times"] = (table["values"] / table["anchor"]).round(1)
    few, many = table[table["varied"].eq("samples")].iloc[[0, -1]].to_dict("records")
    words = (
        f"Fig. 5 on {one.name}: the anchor is {table['times'].min():.1f} to {table['times'].max():.1f} times as stable "
        "as "
        f"the sampled values. From {few['permutations']} to {many['permutations']} permutations the instability of the "
        f"values falls from {few['values']:.3f} to {many['values']:.3f}, that of the anchor from {few['anchor']:.3f} "
        "to "
        f"{many['anchor']:.3f}. The published claim, that the anchor is much the more stable one, "
        f"{'holds' if table['times'].min() > 2 else 'does not hold everywhere'}.\n"
    )
    return table, words


@known_as("bias.unstable")
def unstable(*cells: Cell, draws: int, parts: int) -> Cell:
    """Instability of the values, and of the anchor averaged over the groups that the maps choose; means over inputs."""
    estimates = [anchors.joined(list(cells[k * parts : (k + 1) * parts]))[0] for k in range(draws)]
    alpha = torch.stack([scores.unit(e.values) for e in estimates])  # (draws, n, players)
    found = []
    for end, fraction in scores.PAIRS:
        groups = [scores.chosen(c.tensors["players"], fraction=fraction, end=end) for c in cells[draws * parts :]]
        beta = torch.stack([(alpha * s).sum(2) / s.sum(1) for s in groups]).nanmean(0)  # E over S: (draws, n)
        found.append(convergence.instability(beta))
    beta = torch.stack(found).nanmean()
    row = {"players": alpha.shape[2], "values": convergence.instability(alpha).mean().item(), "anchor": beta.item()}
    return Cell(rows=(row,))


def proposition_1(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Proposition 1: Var[A_i] / Var[mean of A over S], which the paper proves to be |S| for independent errors."""
    one = asked(choice, changes, samples=8, grid=8, exact_up_to=0)
    anchor, says = one.play("anchor"), [one.says(method) for method in CHOOSING]
    given = {"parts": len(anchor), "methods": list(CHOOSING)}
    done = make_task(ratios, given, [*anchor, *says], name=f"measure the factor, {one.name}", version=1)
    store = performed(one, [*anchor, *says, done], perform)
    table = pd.DataFrame(store.read(done.key).rows)
    by = table.groupby(["fraction", "size"], as_index=False)["factor"].median()
    told = ", ".join(f"{r.factor:.0f} for |S| = {r.size}" for r in by.itertuples(index=False))
    small, large = by.iloc[0], by.iloc[-1]
    words = (
        f"Proposition 1 on {one.name}: the variance of one value over that of the mean over S, median over maps, ends "
        "and "
        f"inputs: {told}. The paper says |S|. It holds within {abs(small['factor'] / small['size'] - 1):.0%} for the "
        f"smallest groups; for the largest the factor is {large['factor'] / large['size']:.1f} times |S|, because the "
        "gains "
        "of a permutation sum to a constant, so that the errors of many players cancel. The anchor is surer than "
        "claimed.\n"
    )
    return table.round(3), words


@known_as("bias.ratios")
def ratios(*cells: Cell, parts: int, methods: list[str]) -> Cell:
    anchor, _, _ = anchors.joined(list(cells[:parts]))
    rows = []
    for name, cell in zip(methods, cells[parts:], strict=True):
        for end, fraction in scores.PAIRS:
            factor = convergence.variance_ratio(cell.tensors["players"], anchor, fraction=fraction, end=end)
            size = scores.group_size(anchor.values.shape[1], fraction)
            about = {"method": name, "end": end, "fraction": fraction, "size": size}
            rows.append({**about, "factor": factor.nanmedian().item()})
    return Cell(rows=tuple(rows))


def figure_4b(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Fig. 4b: what a player adds depends on who is masked before it: V of random players, and the largest gains."""
    one = asked(choice, changes, samples=4, grid=8, permutations=500)
    given = {
        "panel": one.panel,
        "game": bias.the_game(one.settings),
        "samples": one.settings.samples,
        "seed": seeds.derive(choice.seed, "contexts"),
        "device": choice.device,
    }
    done = make_task(contexts, given, one.trained, name=f"mask in many orders, {one.name}", version=2)
    table = pd.DataFrame(performed(one, [done], perform).read(done.key).rows)
    finite = table[np.isfinite(table["mean"])]
    words = (
        f"Fig. 4b on {one.name}: what one player adds when it is masked changes with those masked before. The median "
        "of "
        f"max(|Δ/Δ̄|, |Δ̄/Δ|) over contexts is {table['median'].median():.1f} for the middle player; its mean V, which "
        "a single "
        f"gain near zero can carry away, is {finite['mean'].median():.1f}. {(table['largest'] > 5).mean():.0%} of the "
        "players "
        "have a context in which they add more than five times their mean, as the paper reports of some.\n"
    )
    return table.round(3), words


@known_as("bias.contexts")
def contexts(*trained: Cell, panel: dict[str, Any], game: dict[str, Any], samples: int, seed: int, device: str) -> Cell:
    """V of every player of a few inputs: a random order gives a random number of others, of random names."""
    stage = anchored.Stage(trained, panel, game, device)
    chosen = stage.samples[:samples]
    rows = []
    for k, gains in enumerate(stage_gains(stage, chosen, seed=seed)):  # (contexts, players)
        mean, median = (order_dependence(gains[None], centre=centre)[0].tolist() for centre in ("mean", "median"))
        largest = (gains / gains.mean(0)).abs().amax(0).tolist()
        rows += [
            {"sample": int(chosen[k]), "player": player, "mean": v, "median": middle, "largest": most}
            for player, (v, middle, most) in enumerate(zip(mean, median, largest, strict=True))
        ]
    return Cell(rows=tuple(rows))


def stage_gains(stage: anchored.Stage, chosen: torch.Tensor, *, seed: int) -> list[torch.Tensor]:
    """What every player adds in every order, for each input: (orders, players)."""
    played = stage.game_of(chosen)
    drawn = seeds.generator(seed, "orders")
    parts = [part.cpu() for part in walks(played, stage.game["permutations"], drawn, antithetic=False)]
    return list(torch.cat(parts, dim=1))


def table_14(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Table 14: are the values of Gradient×Input Gaussian, with one variance for all pixels?"""
    return assumption(choice, perform, changes, number=14)


def table_15(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Table 15: are the sampled Shapley values Gaussian, with one variance for all pixels?"""
    return assumption(choice, perform, changes, number=15)


def assumption(
    choice: Choice, perform: Perform, changes: Mapping[str, Any], *, number: int
) -> tuple[pd.DataFrame, str]:
    """Mean and variance of the values in three random 5×5 regions, over all explained inputs."""
    one = asked(choice, changes, net="resnet20", samples=50, permutations=1000 if choice.data else 20)
    made = [one.says("gradient_x_input")] if number == 14 else one.play("anchor")
    side = one.panel["source"]["side"] or 32
    given = {"parts": len(made), "side": side, "seed": seeds.derive(choice.seed, "regions")}
    done = make_task(regions, given, made, name=f"regions of {one.name}", version=1)
    table = pd.DataFrame(performed(one, [*made, done], perform).read(done.key).rows)
    published = papers.table(f"bias_table_{number}").set_index("region").add_prefix("published_")
    table = table.join(published, on="region")
    spread, tails = table["variance"].max() / table["variance"].min(), table["excess_kurtosis"].mean()
    shape = "far from Gaussian, with heavy tails" if tails > 1 else "near Gaussian by its fourth moment"
    theirs = table["published_variance"].max() / table["published_variance"].min()
    words = (
        f"Table {number} on {one.name}: the variances of three regions differ by a factor of {spread:.2f} (published "
        f"{theirs:.2f}); their scale depends on the network and is not comparable. The excess kurtosis is {tails:.1f}, "
        "so "
        f"the distribution is {shape}; the paper does not test this part of its assumption.\n"
    )
    return table.round(6), words


@known_as("bias.regions")
def regions(*cells: Cell, parts: int, side: int, seed: int) -> Cell:
    """Moments of the values in three random regions of 5×5 pixels."""
    name = "players" if "players" in cells[0].tensors else "values"
    values = torch.cat([cell.tensors[name] for cell in cells]).view(-1, side, side).double()
    corners = torch.randint(side - 5, (3, 2), generator=seeds.generator(seed, "corners")).tolist()
    rows = []
    for k, (top, left) in enumerate(corners, start=1):
        inside = values[:, top : top + 5, left : left + 5].flatten()
        moments = {"mean": inside.mean().item(), "variance": inside.var().item()}
        rows.append({"region": k, "values": len(inside), **moments, "excess_kurtosis": float(kurtosis(inside.numpy()))})
    return Cell(rows=tuple(rows))


ARTEFACTS = (
    Artefact("bias/figure-4b", "what a player adds depends on the order of masking", figure_4b),
    Artefact("bias/figure-5", "instability of the anchor and of the sampled values", figure_5),
    Artefact("bias/proposition-1", "how much surer the anchor is than one value", proposition_1),
    Artefact("bias/table-14", "Gradient×Input in three regions: one variance?", table_14),
    Artefact("bias/table-15", "sampled Shapley values in three regions: one variance?", table_15),
)
