"""Relative importance: which networks are trained, and what is asked of them. [yang2019benchmarking]"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forsooth import names, plugins, seeds
from forsooth.attributions import METHODS, concepts
from forsooth.engine import make_task
from forsooth.models import recipes, weights
from forsooth.models.recipes import Recipe
from forsooth.records import Choice, Dataset, Facts, Method, Plan, Task
from forsooth.scores import functionless
from forsooth.suites import planning
from forsooth.suites.bam import contrasts, tasks, tcav
from forsooth.suites.bam.data import DataSpec, data_spec, dataset
from forsooth.suites.bam.settings import AS_BUILT, Settings, check
from forsooth.suites.bam.specs import Ask, ConceptAsk, NetSpec, Panel, fine_name
from forsooth.wording import paragraphs

SEARCHES = {"ours": functionless.DEFAULT, "printed": functionless.PRINTED, "released": functionless.RELEASED}
CONCEPTS = {"ridge": concepts.CLOSED_FORM, "sgd": concepts.RELEASED}
# ResNet-50 from nothing, where the paper fine-tunes ImageNet weights; optimiser and rates are stated nowhere.
PAPER_RECIPE = recipes.RESIDUAL
QUICK_RECIPE = replace(recipes.PLANTED_QUICK, stop_at=None, checkpoints=None)
RECIPES = {"paper": PAPER_RECIPE, "quick": QUICK_RECIPE}
AT_LEAST = 5  # images of a trial: the share of hits of one image is 0 or 1
FACTORS = ("placing", "model")
F_O = NetSpec("f_o", "object", "os", None)
F_S = NetSpec("f_s", "scene", "os", None)
F_0 = NetSpec("f_0", "scene", "s", None)  # f_∅ of the paper
COARSE = (F_O, F_S, F_0)


@dataclass(frozen=True)
class Round(planning.Round):
    """Every network of one architecture trained once, and all that is asked of them."""

    settings: Settings
    spec: DataSpec
    panel: Panel

    def arguments(self, **own: Any) -> Facts:
        """Those of a task, with what all tasks share."""
        return {"spec": self.spec, "panel": self.panel, **own}


def plan(settings: Settings, choice: Choice) -> Plan:
    """Train f_o, f_s, f_∅ and every f_{s,k}, verify them, find patches, ask TCAV and every method."""
    names.check_factors(choice.only, FACTORS)
    spec = checked_data(settings, choice)
    methods = planning.methods(choice, settings.methods)
    work: list[planning.Work] = []
    trainings = 1 if settings.weights else settings.trainings
    for arch, number in itertools.product(planning.networks(settings, choice), range(trainings)):
        work += round_tasks(Round(settings, choice, spec, Panel(arch.name, number)), methods)
    return planning.planned(work, facts(settings))


def datasets(settings: Settings, choice: Choice) -> Iterator[tuple[str, Dataset]]:
    """Objects in scenes with the label of each of the two: the truth is where the object is."""
    spec = checked_data(settings, choice)
    for net in (F_O, F_S):
        yield net.label, dataset(spec, net)


def checked_data(settings: Settings, choice: Choice) -> DataSpec:
    """What decides the scenes and objects of settings that can be."""
    check(settings)
    return data_spec(settings, choice.data, seeds.derive(choice.seed, "bam"))


def round_tasks(this: Round, methods: Sequence[Method]) -> list[planning.Work]:
    trained = [training_task(this, net) for net in networks(this.settings)]
    verified = make_task(tasks.verify, this.arguments(device=this.choice.device), trained, name="verify")
    patches = patching_task(this, trained[COARSE.index(F_0)])
    planned: list[planning.Work] = [*trained, verified, patches, concept_task(this, trained)]
    if this.panel.model_seed == 0:
        planned.append(make_task(tasks.show, this.arguments(samples=this.settings.samples), name="example"))

    def ask(method: Method, _: int) -> Iterator[Task]:  # a null is asked of the same networks
        yield explaining_task(this, method, [*trained, patches])

    planned += planning.asked(methods, [this.panel.row("scores")], ask, kind="image")
    return planned


def networks(settings: Settings) -> list[NetSpec]:
    """All networks."""
    return [*COARSE, *(NetSpec(fine_name(k), "scene", "os", k) for k in settings.ks)]


def training_task(this: Round, net: NetSpec) -> Task:
    settings = this.settings
    arch = this.panel.model
    # the first has no number in its seed, so that it is the same whether others follow or not
    number = [this.panel.model_seed] * (this.panel.model_seed > 0)
    arguments = this.arguments(
        net=net,
        arch=arch,
        recipe=recipe_of(settings),
        weights=weights.weights_in(settings.weights, net.name),
        initial_weights=weights.weights_file(settings.initial_weights, argument="initial_weights"),
        seed=this.seed("training", net.name, *number),
        device=this.choice.device,
    )
    return make_task(tasks.train, arguments, name=f"train {net.name}, {arch}")


def recipe_of(settings: Settings) -> Recipe:
    given = {"gate": settings.gate, "epochs": settings.epochs or None, "stop_at": settings.stop_at}
    return recipes.changed(RECIPES[settings.recipe], restarts=0, **given)


def patching_task(this: Round, trained: Task) -> Task:
    search = SEARCHES[this.settings.search]
    arguments = this.arguments(search=search, count=this.settings.samples, device=this.choice.device)
    return make_task(tasks.find_patches, arguments, [trained], name="functionless patches")


def concept_task(this: Round, trained: Sequence[Task]) -> Task:
    settings = this.settings
    ask = ConceptAsk(
        examples=settings.examples,
        random_sets=settings.random_sets,
        count=settings.samples_per_k,
        level=settings.level,
        settings=CONCEPTS[settings.tcav],
        seed=this.seed("tcav"),
        device=this.choice.device,
    )
    return make_task(tcav.ask_tcav, this.arguments(ask=ask), trained, name="TCAV")


def explaining_task(this: Round, method: Method, needs: Sequence[Task]) -> Task:
    """One task makes the maps and scores them, since maps are not stored."""
    settings = this.settings
    most = settings.samples
    placings = names.kept(settings.placings, this.choice.only, "placing")
    if method.cost == "expensive":
        most = settings.samples_expensive
        placings = [AS_BUILT]
    samples = min(most, settings.samples)
    ask = Ask(
        **plugins.identity(method),
        samples=samples,
        samples_per_k=min(most, settings.samples_per_k),
        samples_robustness=min(most, settings.samples_robustness),
        placings=tuple(placings),
        trials=min(settings.trials, max(1, samples // AT_LEAST)),
        percentile=settings.percentile,
        lowest=settings.lowest,
        zero=settings.zero,
        metrics=planning.versions(settings.metrics),
        seed=this.seed("method"),
        device=this.choice.device,
    )
    return make_task(contrasts.explain_network, this.arguments(ask=ask), needs, name=f"explain: {method.name}")


def facts(settings: Settings) -> list[str]:
    """What a reader of the page must know, in facts.jinja."""
    slow = [name for name in settings.methods if plugins.method(name, METHODS).cost == "expensive"]
    return paragraphs(__package__, "facts.jinja", settings=settings, slow=slow)
