"""The task that asks TCAV: the common feature as a concept, in every network. [yang2019benchmarking, appendix F]"""

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor, nn

from forsooth.attributions import concepts
from forsooth.attributions.layer_scores import TcavScore, tcav_score
from forsooth.datasets.worlds import world
from forsooth.engine import FLAT, task
from forsooth.records import WHOLE, Cell, Row
from forsooth.seeds import generator
from forsooth.suites import choose
from forsooth.suites.bam import data
from forsooth.suites.bam.data import DataSpec, Images
from forsooth.suites.bam.specs import ConceptAsk, NetSpec, Panel, Shown, fine_name
from forsooth.suites.bam.tasks import explained_network, facts_of
from forsooth.suites.explain import rows_by_sample, unless_undefined

INSIDE = "1."  # the network behind the convolution that normalises


@task("bam.tcav", version=4, spec=FLAT, panel="about")
def ask_tcav(*trained: Cell, spec: DataSpec, panel: Panel, ask: ConceptAsk) -> Cell:
    """TCAV of the common feature in every network, and the contrasts between networks."""
    examples = concept_examples(spec, ask)
    scores = {}
    for cell in trained:
        net = facts_of(cell).net
        seen = data.images(spec, 1.0, count=ask.count, first_only=net.k is not None)
        tests = layer_tests(cell, seen, examples, ask)
        scores[net] = tcav_score(tests, seen.rows, level=ask.level, inside=INSIDE)
    return Cell(rows=tuple(contrast_rows(panel.row("concepts", method="tcav"), scores)))


def layer_tests(
    cell: Cell, seen: Images, examples: Sequence[Tensor], ask: ConceptAsk
) -> tuple[concepts.LayerTest, ...]:
    """TCAV at the layers of one network. examples: those of the concept, then random sets"""
    net = facts_of(cell).net
    model = explained_network(cell, device=ask.device)
    target = data.labels_of(net, seen)  # every object is the common feature
    concept, *others = [one.to(ask.device) for one in examples]
    return concepts.tcav(
        model,
        (seen.os.to(ask.device), target.to(ask.device)),
        (concept, others),
        layers=layers_of(model),
        generator=generator(ask.seed, "tcav", net.name),
        settings=ask.settings,
    )


def concept_examples(spec: DataSpec, ask: ConceptAsk) -> list[Tensor]:
    """Images (k, 3, h, w) with the common feature, then random sets of scenes without, from the training split."""
    pastes = data.table(spec, 1.0)
    rows = pastes.splits["train"]
    scene = world(spec.world).scenes.y[pastes.scene[rows]]
    shown: Shown = "os"
    examples = []
    for number in range(ask.random_sets + 1):
        chosen = rows[choose.evenly(scene, ask.examples, seed=ask.seed, role=f"examples {number}")]
        examples.append(data.render(spec, pastes, chosen, shown)[0])
        shown = "s"
    return examples


def layers_of(model: nn.Sequential) -> list[str]:
    """The blocks and the logits, as in appendix F."""
    names = [name for name, _ in model[1].named_children()]
    blocks = [name for name in names if name.startswith("layer")]
    return [f"{INSIDE}{name}" for name in (*blocks, names[-1])]


def contrast_rows(template: Row, scores: Mapping[NetSpec, TcavScore]) -> Iterator[Row]:
    """f_o against f_s, and every f_{s,k} against f_{s,1.0}: for the concept, and for random concepts.

    Then the concept's contrast again by input and by random set, since both are chance.
    """
    known = {net.name: score for net, score in scores.items()}
    for net, score in scores.items():
        other = {"f_o": "f_s"}.get(net.name, "")
        if net.k is not None:
            other = fine_name(1.0)
        if other in known:
            message = f"{net.name}: {score.layers}; {other}: {known[other].layers}"
            own = template.having(metric="mcs", comparison=f"{net.name}/{other}", k=net.k)
            yield from pair_rows(own, score, known[other], message)


def pair_rows(template: Row, first: TcavScore, second: TcavScore, message: str) -> Iterator[Row]:
    """All rows of the contrast between two networks."""
    of_object = template.having(mask="object")
    by_chance = template.having(mask="random", message=message)
    yield from differences(of_object.having(message=message), [WHOLE], [first.score], [second.score])
    yield from differences(by_chance, [WHOLE], [first.chance], [second.chance])
    if first.sets and second.sets:
        sets = range(len(first.sets))
        yield from differences(of_object.having(part="concept_inputs"), first.rows, first.inputs, second.inputs)
        yield from differences(of_object.having(part="concept_sets"), sets, first.sets, second.sets)


def differences(
    template: Row, samples: Sequence[int], first: Sequence[float], second: Sequence[float]
) -> Iterator[Row]:
    """One row per sample, with both sides and their difference; undefined where one is nan."""
    gaps = [one - two for one, two in zip(first, second, strict=True)]
    return map(unless_undefined, rows_by_sample(template, samples, value=gaps, first=first, second=second))
