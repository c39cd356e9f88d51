"""What the plan of BAM asks of whom, and that cells of before are found again."""

import hashlib
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file
from suites.bam.small import FEW, TINY, changed, tasks

from forsooth import api
from forsooth.models import RESIDUAL_SMALL
from forsooth.records import Choice, UsageError
from forsooth.suites.bam import plan, settings

# A hash of all keys of a preset. They change with a version or with an argument, which costs users their cells.
KEYS = {
    "demo": "ea6f8fc85b3dc518",
    "quick": "574bdea53de72f6a",
    "paper": "e76918c0d228bbe5",
    "released": "fac8a169bc7b2109",
}


@pytest.mark.parametrize("preset", KEYS)
def test_keys_are_those_of_cells_that_users_have(preset, monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.13.0+cpu")
    trainings = {"paper": 1, "released": 1}.get(preset, 2)  # another only adds to the keys
    planned = plan.plan(replace(settings.PRESETS[preset], trainings=trainings), Choice())
    keys = " ".join(task.key for task in planned.tasks)
    assert hashlib.sha256(keys.encode()).hexdigest()[:16] == KEYS[preset]


def test_networks_by_hand():
    nets = plan.networks(changed(ks=(0.1, 1.0)))
    assert [(net.name, net.label, net.shown, net.k) for net in nets] == [
        ("f_o", "object", "os", None),
        ("f_s", "scene", "os", None),
        ("f_0", "scene", "s", None),
        ("f_s_0.1", "scene", "os", 0.1),
        ("f_s_1", "scene", "os", 1.0),
    ]


def test_who_needs_whom():
    planned = tasks({**FEW, "methods": ("gradient",)})
    trained = [task.key for name, task in planned.items() if name.startswith("train")]
    assert len(trained) == 5
    assert planned["verify"].needs == planned["TCAV"].needs == tuple(trained)
    assert planned["functionless patches"].needs == (planned["train f_0, residual_small"].key,)
    assert planned["explain: gradient"].needs == (*trained, planned["functionless patches"].key)
    assert planned["example"].needs == ()


def test_an_expensive_method_explains_fewer_images_as_built():
    names = ("gradient", "integrated_gradients_smooth")
    changes = {**TINY, "methods": names, "samples": 60, "samples_expensive": 7, "samples_per_k": 15}
    planned = tasks(changes)
    cheap, expensive = (planned[f"explain: {name}"].arguments["ask"] for name in names)
    assert (cheap["samples"], cheap["fine"], cheap["robust"], cheap["trials"]) == (60, 15, 10, 5)
    assert cheap["placings"] == ["as_built", "centre"]
    assert (expensive["samples"], expensive["fine"], expensive["robust"], expensive["trials"]) == (7, 7, 7, 1)
    assert expensive["placings"] == ["as_built"]
    (fact,) = [fact for fact in plan.facts(changed(**changes)) if "hundreds of gradients" in fact]
    assert fact == "integrated_gradients_smooth takes hundreds of gradients for a map and is asked about 7 images."
    assert not [fact for fact in plan.facts(changed(methods=("gradient",))) if "hundreds of gradients" in fact]


def test_only_some_placings_and_models():
    chosen = Choice(only={"placing": ("CENTRE",)}, methods=("gradient",))
    assert tasks(TINY, chosen)["explain: gradient"].arguments["ask"]["placings"] == ["centre"]
    with pytest.raises(UsageError, match="'resnet50'"):
        tasks(TINY, Choice(only={"model": ("resnet50",)}))


def test_recipes_follow_the_settings():
    quick = plan.recipe_of(changed(epochs=3, stop_at=0.7, gate=0.2))
    assert (quick.epochs, quick.stop_at, quick.gate, quick.restarts) == (3, 0.7, 0.2, 0)
    paper = plan.recipe_of(settings.PAPER)
    assert paper.epochs == plan.PAPER_RECIPE.epochs and paper.stop_at == plan.PAPER_RECIPE.stop_at


def test_a_second_training_leaves_the_first_as_it_is():
    one, two = (plan.plan(changed(**FEW | {"trainings": n}), Choice(methods=("gradient",))).tasks for n in (1, 2))
    assert [task.key for task in two[: len(one)]] == [task.key for task in one]
    seeds = [task.arguments["seed"] for task in two if task.name.startswith("train f_o")]
    assert len(set(seeds)) == 2
    assert [task.name for task in two].count("example") == 1  # the page shows maps of the first training


def test_tcav_is_asked_as_the_settings_say():
    ask = tasks({**FEW, "tcav": "sgd", "level": 0.5})["TCAV"].arguments["ask"]
    assert ask["settings"]["rule"] == "sgd" and ask["level"] == 0.5 and ask["sets"] == 2 and ask["count"] == 4


@pytest.fixture
def begun(tmp_path):
    """A file of weights for 1000 classes."""
    net = RESIDUAL_SMALL.function(size=32, classes=1000)
    save_file(net.state_dict(), tmp_path / "begun.safetensors")
    return net, str(tmp_path / "begun.safetensors")


def test_a_changed_file_is_a_changed_task(begun):
    net, path = begun
    from_nothing, before = tasks(FEW), tasks({**FEW, "initial_weights": path})
    save_file({name: value + 1 for name, value in net.state_dict().items()}, path)
    after = tasks({**FEW, "initial_weights": path})
    trained = [name for name in before if name.startswith("train")]
    assert len(trained) == 5
    for name in trained:
        assert len({before[name].key, after[name].key, from_nothing[name].key}) == 3


def test_weights_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"`initial_weights` must be a file, got .*none\.safetensors"):
        tasks({**FEW, "initial_weights": str(tmp_path / "none.safetensors")})


@pytest.mark.parametrize(
    "words, message",
    [
        ({"only": {"size": "8"}}, "unknown factor 'size' in `only`"),
        ({"settings": {"ks": "0.1,0.5"}}, "`ks` must hold 1.0"),
        ({"settings": {"models": "resnet51"}}, "did you mean resnet"),
        ({"settings": {"placings": "as_built,middle"}}, "`placings` must be a known name, got 'middle'"),
        ({"settings": {"feature": "dinosaur"}}, "`feature` must be a known name, got 'dinosaur'"),
        ({"settings": {"first_scene": "moon"}}, "`first_scene` must be a known name, got 'moon'"),
        ({"settings": {"metrics": "mcs,ird"}}, "`metrics` must be a known name, got 'ird'"),
        ({"methods": ["gradiant"]}, "did you mean gradient"),
        ({"data": "nowhere"}, "`data` must be a folder with scenes in scenes or"),
    ],
)
def test_bad_words_are_answered_before_any_work(tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        api.run("bam", out=tmp_path / "run", **words)
    assert not list(tmp_path.glob("run/store/cells/*/*"))
