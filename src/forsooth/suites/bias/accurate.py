"""Does M_bias, which needs few permutations, go with the bias that needs accurate Shapley values? Fig. 6."""

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
from scipy.stats import pearsonr, spearmanr

from forsooth.engine import known_as, make_task
from forsooth.records import Artefact, Cell, Choice, Plan
from forsooth.scores import bias as scores
from forsooth.settings import changed
from forsooth.store import Store
from forsooth.suites.bias import anchor as anchors
from forsooth.suites.bias import plan as bias
from forsooth.suites.bias.reproduce_figures import Asked, asked, performed

Perform = Callable[[Plan], Store]


def figure_6(choice: Choice, perform: Perform, changes: Mapping[str, Any]) -> tuple[pd.DataFrame, str]:
    """Fig. 6: M_bias of the top 10 % beside the accurate bias, from 20 times the permutations; or exact values.

    The default is small: LeNet, 64 patches and so six players in S. --set models=lenet,resnet20,resnet56 asks more
    networks whose weights are in --data, --set grid=none asks pixels, both for an accelerator.
    """
    nets = changed(bias.Settings(models=("lenet",)), changes).models
    parts = []
    words = []
    for net in nets:
        one = asked(choice, {**changes, "models": (net,)}, samples=8, grid=8, permutations=100)
        table = biases_of(one, perform)
        parts.append(table.assign(model=net))
        words.append(on_relation(table, one))
    return pd.concat(parts, ignore_index=True).round(5), "\n".join(words) + "\n"


def biases_of(one: Asked, perform: Perform) -> pd.DataFrame:
    """M_bias and the accurate bias of every method and input; nan where a map or an anchor says nothing."""
    methods = (*(name for name in bias.PUBLISHED if name != "grad_cam"), "random", "constant")
    anchor = one.play("anchor", exact_up_to=0)
    sure = one.play("sure", exact_up_to=16, permutations=20 * one.settings.permutations)
    says = [one.says(method) for method in methods]
    given = {"parts": len(anchor), "methods": list(methods)}
    done = make_task(both_biases, given, [*anchor, *sure, *says], name=f"compare biases, {one.name}", version=2)
    store = performed(one, [*anchor, *sure, *says, done], perform)
    return pd.DataFrame(store.read(done.key).rows)


def on_relation(table: pd.DataFrame, one: Asked) -> str:
    """How the two biases go together, over maps and over the means of methods."""
    known = table.dropna()
    pearson = pearsonr(known["m_bias"], known["accurate"]).statistic
    means = known.groupby("method")[["m_bias", "accurate"]].mean()
    lost = f" {len(table) - len(known)} maps without a score are left out." if len(known) < len(table) else ""
    return (
        f"Fig. 6 on {one.name}: over {len(known)} maps, with {known['size'].iloc[0]} of {known['players'].iloc[0]} "
        f"players in S, M_bias and the accurate bias have Pearson's r {pearson:.2f} and "
        f"Spearman's ρ {spearmanr(known['m_bias'], known['accurate']).statistic:.2f}; over the {len(means)} methods' "
        f"means ρ {spearmanr(means['m_bias'], means['accurate']).statistic:.2f}. The published positive relation "
        f"{'holds' if pearson > 0.3 else 'is weak here'}.{lost}"
    )


@known_as("bias.both_biases")
def both_biases(*cells: Cell, parts: int, methods: list[str]) -> Cell:
    anchor, samples, _ = anchors.joined(list(cells[:parts]))
    sure, _, _ = anchors.joined(list(cells[parts : 2 * parts]))
    players = anchor.values.shape[1]
    size = scores.group_size(players, 0.1)
    rows = []
    for name, cell in zip(methods, cells[2 * parts :], strict=True):
        said = cell.tensors["players"]
        mine = scores.m_bias(said, anchor, fraction=0.1, end="top").value.tolist()
        true = scores.accurate_bias(said, sure, fraction=0.1, end="top").tolist()
        rows += [
            {"method": name, "sample": s, "players": players, "size": size, "m_bias": m, "accurate": t}
            for s, m, t in zip(samples, mine, true, strict=True)
        ]
    return Cell(rows=tuple(rows))


ARTEFACTS = (Artefact("bias/figure-6", "M_bias beside the accurate bias", figure_6),)
