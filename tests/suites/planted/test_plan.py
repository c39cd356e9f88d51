"""The plan of the planted suite: who is trained, what is asked of whom, and what is refused before any work."""

from dataclasses import replace

import pandas as pd
import pytest

from forsooth import api
from forsooth.attributions import METHODS
from forsooth.names import find
from forsooth.plain import from_plain
from forsooth.records import Choice, UsageError
from forsooth.suites.planning import metrics
from forsooth.suites.planted.data import DataSpec
from forsooth.suites.planted.plan import Place, facts, output_of, panels, places, plan
from forsooth.suites.planted.questions import Ask
from forsooth.suites.planted.settings import PAPER, QUICK

SMALL = replace(PAPER, manipulations=("watermark",), manipulations_followup=("watermark",), trainings=2, groups=1)
SMALL = replace(SMALL, levels=(0, 4), r_values=(0.5, 1.0), pairs=1, runs_with_checkpoints=1)
EVERYTHING = Choice()


def tasks_of(settings=SMALL, choice=EVERYTHING, *, id="planted.explain"):
    return [task for task in plan(settings, choice).tasks if task.id == id]


@pytest.mark.parametrize(
    "words, message",
    [
        ({"only": {"experiment": "5.5"}}, "`experiment` must be a known name, got '5.5'"),
        ({"only": {"manipulation": "watermrk"}}, "did you mean watermark"),
        ({"only": {"presence": "maybe"}}, "`presence` must be a known name"),
        ({"only": {"visibility": "9"}}, "`visibility` must be a known name, got '9'"),
        ({"only": {"size": "8"}}, "unknown factor 'size' in `only`"),
        ({"settings": {"models": "resnet35"}}, "did you mean resnet"),
        ({"settings": {"kinds": "similar,distinct"}}, "`kinds` must be similar"),
        ({"settings": {"luck": 1.0}}, "the setting 'luck' is called 'max_p_value' now"),
        ({"settings": {"level": 5}}, "`level` must be 0 to 4"),
        ({"settings": {"per_class": None}}, "`per_class` must be a number"),
        ({"data": "nowhere"}, "nothing at nowhere"),
    ],
)
def test_bad_words_are_answered_before_any_work(tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        api.run("planted", out=tmp_path / "run", **words)
    assert not list(tmp_path.glob("run/store/cells/*/*"))


def test_the_paper_preset_is_the_papers_plan():
    found = panels(PAPER, Choice())
    counts = pd.Series([panel.place.experiment for panel in found]).value_counts()
    assert dict(counts) == {"5.1": 100, "5.3": 100, "5.4": 120, "border": 20}
    groups: dict[tuple[str, int], set] = {}
    for panel in found:
        if panel.place.experiment == "5.3":
            region = replace(panel.spec.manipulation, visibility=0)
            groups.setdefault((panel.place.manipulation, panel.place.number), set()).add(region)
    assert len(groups) == 20 and all(len(regions) == 1 for regions in groups.values())
    assert found[0].spec.manipulation.characters == "digits"


def test_5_2_explains_the_trainings_of_5_1():
    keys = []
    for experiments in (("5.2",), ("5.1", "5.2")):
        tasks = tasks_of(replace(PAPER, experiments=experiments, trainings=1), id="planted.train")
        keys.append({task.key for task in tasks})
    assert keys[0] == keys[1] and len(keys[0]) == 5


def test_places_by_hand():
    found = places(SMALL, Choice())
    assert found[:2] == [Place(("5.1", "5.2"), "watermark", 0), Place(("5.1",), "watermark", 1)]
    assert [(p.level, p.r) for p in found if p.experiment == "5.3"] == [(0, 0.5), (4, 0.5)]
    kinds = [(p.kind, p.r) for p in found if p.experiment == "5.4"]
    assert kinds == [("similar", 0.5), ("similar", 1.0), ("distinct", 0.5), ("distinct", 1.0)]
    assert found[-1] == Place(("border",), "watermark", 0) and len(found) == 9
    assert type(found[2].level) is int  # as it stands in keys


def test_what_is_left_out_is_not_trained():
    only = {"experiment": ("5.3", "5.4"), "visibility": ("4",), "r": ("1",)}
    found = places(SMALL, Choice(only=only))
    assert {(p.experiment, p.level, p.r) for p in found} == {("5.3", 4, 0.5), ("5.4", 0, 1.0)}
    assert places(replace(SMALL, manipulations=("striped_hue",)), Choice(only={"experiment": ("5.3",)})) == []


def test_visibility_is_the_papers_unless_a_level_is_asked_for():
    first = panels(SMALL, Choice())[0].spec.manipulation
    louder = panels(replace(SMALL, level=4, strength=2.0), Choice())[0].spec.manipulation
    assert first.visibility == 13 and louder.visibility == 30
    assert replace(louder, visibility=first.visibility) == first


def test_columns_name_the_training():
    panel = panels(SMALL, Choice(seed=1))[-1]
    assert panel.columns == {
        **{"manipulation": "watermark", "visibility": 13.0, "r": 0.5, "pair": "/".join(panel.spec.pair)},
        **{"level": 0, "model_seed": 0, "kind": "similar", "experiment": "border"},
    }
    assert panel.spec.border is not None and panels(SMALL, Choice())[0].spec.border is None


def test_checkpoints_are_kept_where_they_are_explained():
    kept = {task.name: task.arguments["keep"] for task in tasks_of(id="planted.train")}
    assert kept["train resnet34, 5.1, watermark, number 0"] and not kept["train resnet34, 5.1, watermark, number 1"]
    assert kept["train resnet34, border, watermark, number 0"]
    assert not kept["train resnet34, 5.3, watermark, level 4, number 0"]
    assert not kept["train resnet34, 5.4, watermark, r 1, number 0"]


def test_a_null_is_asked_once_for_all_networks():
    settings = replace(SMALL, models=("resnet34", "residual_small"), experiments=("5.1",), trainings=1)
    tasks = tasks_of(settings, Choice(methods=("saliency", "random")))
    asked = [(task.arguments["ask"]["method"], task.arguments["columns"]["model"]) for task in tasks]
    assert asked == [("saliency", "resnet34"), ("saliency", "residual_small"), ("random", "none")]
    assert [task.arguments["index"] for task in tasks] == [0, 1, -1]
    assert all(len(task.needs) == 2 for task in tasks)


def test_arguments_come_back_as_records():
    (task,) = tasks_of(replace(SMALL, experiments=("5.1",), trainings=1), Choice(methods=("constant",)))
    ask = from_plain(task.arguments["ask"], Ask)
    spec = from_plain(task.arguments["spec"], DataSpec)
    assert ask.method == "constant" and ask.show and not ask.checkpoints and ask.presences == ("with", "without")
    assert list(ask.metrics) == list(SMALL.metrics) and spec.manipulation.name == "watermark"
    assert task.arguments["ask"]["every"] is False  # its word in keys


@pytest.mark.parametrize(
    "experiment, metric_names, checkpoints, show",
    [
        ("5.1", ["attr", "precision_top", "recall_top"], False, True),
        ("5.2", ["attr"], True, False),
        ("5.3", ["attr"], False, False),
        ("5.4", ["attr"], False, False),
        ("border", ["attr_non_informative", "attr"], True, False),
    ],
)
def test_what_an_experiment_asks(experiment, metric_names, checkpoints, show):
    ask = tasks_of(replace(SMALL, experiments=(experiment,)))[0].arguments["ask"]
    assert (list(ask["metrics"]), ask["every"], ask["show"]) == (metric_names, checkpoints, show)


def test_only_5_1_is_ranked():
    parts = {task.arguments["columns"]["experiment"]: task.arguments["columns"]["part"] for task in tasks_of()}
    assert parts == {"5.1": "scores", "5.2": "checkpoints", "5.3": "visibility", "5.4": "r", "border": "border"}
    trained = {task.arguments["columns"]["part"] for task in tasks_of(id="planted.train")}
    assert trained == {"training", "visibility", "r", "border"}


def test_methods_and_their_settings_are_those_of_the_paper_or_of_its_code():
    def asked(settings):
        return {task.arguments["ask"]["method"] for task in tasks_of(settings)}

    few = replace(SMALL, experiments=("5.3",))
    assert {"smooth_grad", "lime_superpixels"} <= asked(few)
    assert {"smooth_grad_50", "lime_quickshift_200"} <= asked(replace(few, maps="released"))
    assert asked(replace(few, methods_followup=("random",))) == {"random"}


def test_lime_explains_probabilities_as_its_authors_do():
    lime = find("lime_superpixels", METHODS, argument="methods")
    saliency = find("saliency", METHODS, argument="methods")
    assert (output_of(lime, PAPER), output_of(saliency, PAPER)) == ("probabilities", "logits")
    assert output_of(lime, replace(PAPER, authors_output=False)) == "logits"
    assert output_of(saliency, replace(PAPER, output="probabilities")) == "probabilities"


def test_the_page_says_where_artefacts_are_more_visible_than_published():
    assert len(facts(PAPER)) == 2
    assert facts(QUICK)[-1] == "Artefacts are more visible than in the paper, since images have 64 px."


def test_metrics_are_those_of_the_settings():
    assert [metric.name for metric in metrics(PAPER)] == list(PAPER.metrics)
    with pytest.raises(UsageError, match="`metrics` must be a known name, got 'atr'"):
        metrics(replace(PAPER, metrics=("atr",)))
