"""Tables 3 to 12 made again: M_bias of every method on photographs. [anonymous2023evaluation]"""

import dataclasses
from collections.abc import Mapping
from functools import partial

from pandas import DataFrame

from forsooth import papers
from forsooth.records import Choice, Facts, Judgement, Outcome, Plan, Reproduction, UsageError
from forsooth.suites.bias import data
from forsooth.suites.bias.plan import plan
from forsooth.suites.bias.reproduce_words import verdict
from forsooth.suites.bias.settings import PUBLISHED, SHAPLEY, Settings, check
from forsooth.suites.bias.tables import KEY, means, rounded, score_rows
from forsooth.suites.verdicts import judgement

CIFAR = {3: "lenet", 4: "resnet20", 5: "resnet32", 6: "resnet44", 7: "resnet56"}
VOC = {8: "resnet50", 9: "resnet101", 10: "alexnet", 11: "vgg16", 12: "vgg19"}
JUDGED = (*PUBLISHED, "lrp", "deep_lift", "random", "constant")
# as in the paper one network each
ON_PATCHES = Settings(datasets=(), methods=JUDGED, grid=16, permutations=100, samples=16, trainings=1, side=224)
ON_PIXELS = Settings(datasets=(), methods=JUDGED, samples=16, trainings=1)
OF_ONE: Mapping[int, Facts] = {  # the Shapley values again are as expensive as the anchor: on the cheapest network only
    3: {"samples": 50, "methods": (*JUDGED, SHAPLEY)},
    4: {"samples": 50},
}
NEEDED = {"cifar10": "CIFAR-10", "voc": "Pascal VOC 2012"}


def settings_of(number: int) -> Settings:
    """The settings of Table `number`: pixels as players at 32×32, patches at 224×224, where pixels are too many."""
    if number in VOC:
        return dataclasses.replace(ON_PATCHES, models=(VOC[number],))
    return dataclasses.replace(ON_PIXELS, models=(CIFAR[number],), **OF_ONE.get(number, {}))


def plan_table(settings: Settings, choice: Choice, *, number: int) -> Plan:
    """The run behind Table `number`."""
    check(settings)
    dataset = "cifar10" if number in CIFAR else "voc"
    if dataset not in data.datasets_in(choice.data):
        raise UsageError(
            f"`data` must name a folder with {NEEDED[dataset]} to make Table {number} again, got {choice.data}"
        )
    return plan(settings, dataclasses.replace(choice, only={**choice.only, "dataset": (dataset,)}))


def judge_table(outcome: Outcome, *, number: int) -> Judgement:
    """M_bias of every method at the top and bottom p %, ours beside the published number."""
    rows = score_rows(outcome.rows)
    on_input = rows["player"].eq("input")
    # a patch and a unit are players of other games; of those on units only Grad-CAM is in the table
    ours = means(rows[on_input | rows["method"].eq("grad_cam")])
    table = ours.merge(published(number), on=KEY, how="left")
    noise = float(rows.loc[on_input, "noise"].median())
    words = verdict(table, f"Table {number}", outcome.settings, rows["sample"].nunique(), noise)
    return judgement(rounded(table), words)


def published(number: int) -> DataFrame:
    """The printed numbers of Table `number`; where it has printing errors, `corrected` beside."""
    name = f"bias_table_{number}"
    table = papers.table(name).rename(columns={"value": "published"})[[*KEY, "published"]]
    if papers.errata(name).empty:
        return table
    return table.assign(corrected=papers.corrected(name)["value"])


def reproduction(number: int, title: str) -> Reproduction:
    return Reproduction(
        f"bias/table-{number}",
        title,
        settings_of(number),
        partial(plan_table, number=number),
        partial(judge_table, number=number),
    )


REPRODUCTIONS = (
    *(reproduction(number, f"M_bias of {net}, CIFAR-10, needs --data") for number, net in CIFAR.items()),
    *(reproduction(number, f"M_bias of {net}, Pascal VOC, needs --data") for number, net in VOC.items()),
)
