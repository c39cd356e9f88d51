"""Who is trained, who selects and who is asked what; and that the JSON of tasks stays as it was."""

from dataclasses import replace

import pytest
import torch
from suites.articles.small import TINY

from forsooth import api
from forsooth.attributions import METHODS
from forsooth.engine import typed
from forsooth.models import attention, rationale
from forsooth.plugins import method
from forsooth.records import Choice, UsageError
from forsooth.suites.articles.data import Panel
from forsooth.suites.articles.plan import plan, recipe_of, title
from forsooth.suites.articles.settings import PAPER, QUICK, RELEASED
from forsooth.suites.planning import unable

pytestmark = pytest.mark.usefixtures("single")
READERS = {"attention": attention.ATTENTION, "rationale_relaxed": rationale.RELAXED}
ONE = replace(QUICK, **{**TINY, "kinds": ("NC",)})


def tasks(settings, id: str, **choice):
    return [task for task in plan(settings, Choice(**choice)).tasks if task.id == f"articles.{id}"]


def test_the_paper_preset_is_the_papers_plan():
    trained = tasks(PAPER, "train")
    assert len(trained) == 3 * 11 + 2 * 2 * (5 + 4 + 4)
    assert len(tasks(replace(PAPER, rationale_trainings=1), "train")) == 3 * 11 + 2 * (5 + 4 + 4)
    first = trained[0].arguments
    assert first["spec"]["setting"]["sizes"] == [10_000, 1_000, 1_000] and first["net"]["variant"] == "paper"
    aims = [task.arguments["recipe"]["aim"] for task in trained]
    assert {aim["regulariser"] for aim in aims if aim} == {"paper"}


def test_the_released_regulariser_is_that_of_rationale_models():
    aims = [task.arguments["recipe"]["aim"] for task in tasks(RELEASED, "train")]
    assert {aim["regulariser"] for aim in aims if aim} == {"released"}
    assert sum(aim is None for aim in aims) == 3 * 11


def test_a_training_task_is_the_same_json_as_ever():
    task = next(task for task in tasks(ONE, "train") if "relaxed" in task.name)
    assert task.name == "train rationale_relaxed 0, rate 0.05, NC" and task.version == 2
    assert task.function.task_words == {"spec": "plot", "panel": "about"}
    arguments = dict(task.arguments)
    assert arguments.pop("panel") == {"kind": "NC", "model": "rationale_relaxed", "model_seed": 0, "rate": 0.05}
    assert arguments.pop("net") == {"name": "rationale_relaxed", "version": 1, "variant": "small"}
    assert set(arguments) == {"spec", "recipe", "seed", "device"}
    assert arguments["recipe"]["aim"] == {
        "rate": 0.05,
        "tolerance": 0.02,
        "strength": 1.0,
        "regulariser": "paper",
        "samples": 1,
    }


def test_an_explaining_task_is_the_same_json_as_ever():
    (task,) = tasks(ONE, "explain", methods=("attention",))
    ask = dict(task.arguments["ask"])
    ask.pop("seed")
    assert ask == {
        "method": "attention",
        "version": 1,
        "code": "",
        "samples": 4,
        "null": False,
        "metrics": {"attr_words": 1, "attr_words_non_correlating": 1},
        "show": True,
        "keep": True,
        "device": "cpu",
    }
    assert set(task.arguments) == {"spec", "index", "ask", "panel"} and task.arguments["index"] == 0
    assert task.name == "explain: attention, attention 0, NC" and task.version == 2


def test_tasks_without_a_model_name_their_kind_alone():
    for id in ("show", "optimum"):
        (task,) = tasks(ONE, id)
        assert task.arguments["factors"] == {"kind": "NC"}
        assert task.function.task_words == {"spec": "plot", "factors": "about"}
    (null,) = tasks(ONE, "explain", methods=("random",))
    assert null.arguments["panel"] == {"kind": "NC", "model": "none", "model_seed": -1, "rate": None}
    assert null.arguments["index"] == -1 and null.name == "explain: random, NC"


def test_every_rate_selects_and_only_the_main_one_is_explained():
    assert {task.arguments["panel"]["rate"] for task in tasks(ONE, "select")} == {0.05, 0.09}
    asked = tasks(ONE, "explain", methods=("lime",))
    assert {task.arguments["panel"]["rate"] for task in asked} == {None, 0.05}
    article = replace(ONE, kinds=("Article",), rates_article=(0.09, 0.11))
    assert [task.arguments["panel"]["rate"] for task in tasks(article, "select")] == [0.09, 0.11] * 2


def test_a_null_is_asked_once_and_needs_every_model():
    (null,) = tasks(ONE, "explain", methods=("constant",))
    trained = tasks(ONE, "train")
    main = [task.key for task in trained if task.arguments["panel"]["rate"] in (None, 0.05)]
    assert list(null.needs) == main and len(main) < len(trained)


def test_without_rationale_models_nobody_selects_and_there_are_no_lines():
    ids = {task.id for task in plan(replace(ONE, models=("attention",)), Choice()).tasks}
    assert ids == {"articles.train", "articles.show", "articles.explain"}


def test_what_belongs_to_a_model_is_asked_of_it_alone():
    skips = {(row.method, row.model): row for row in plan(ONE, Choice()).skips}
    assert set(skips) == {
        ("attention", "rationale_relaxed"),
        ("attention", "rationale_reinforce"),
        ("rationale", "attention"),
    }
    row = skips["rationale", "attention"]
    assert row.message == "rationale is asked of rationale_relaxed and rationale_reinforce only: attention has none"
    assert (row.status, row.sample, row.metric, row.dataset, row.value) == ("skipped", -1, "", "articles", None)
    assert row.columns == {"kind": "NC", "rate": None}


@pytest.mark.parametrize("name", ["attention", "rationale", "lime", "random"])
def test_who_can_meet(name):
    record = method(name, METHODS)
    meets = {net: unable(record, architecture, "words") == "" for net, architecture in READERS.items()}
    assert meets == {
        "attention": {"attention": True, "rationale_relaxed": False},
        "rationale": {"attention": False, "rationale_relaxed": True},
    }.get(name, {"attention": True, "rationale_relaxed": True})


def test_gates_and_epochs_of_a_recipe_are_those_of_the_settings():
    settings = replace(QUICK, gate=0.7, gate_reinforce=0.6, epochs=None, restarts=2)
    own = recipe_of(Panel("CN", "rationale_relaxed", 0, 0.13), settings)
    assert (own.gate, own.restarts, own.epochs, own.aim.rate) == (0.7, 2, 20, 0.13)
    assert recipe_of(Panel("CN", "rationale_reinforce", 0, 0.13), settings).gate == 0.6
    assert recipe_of(Panel("CN", "attention"), replace(settings, epochs=3)).epochs == 3


def test_titles_have_a_rate_where_there_is_one():
    assert title(Panel("CN", "attention", 1)) == "attention 1, CN"
    assert title(Panel("CN", "rationale_relaxed", 0, 0.1)) == "rationale_relaxed 0, rate 0.1, CN"


def test_only_keeps_kinds_and_models():
    kept = plan(replace(QUICK, **TINY), Choice(only={"kind": ("cn",), "model": ("attention",)}))
    assert {task.arguments["panel"]["model"] for task in kept.tasks if "panel" in task.arguments} <= {
        "attention",
        "none",
    }
    assert {task.arguments["spec"]["setting"]["kind"] for task in kept.tasks} == {"CN"}


def test_unknown_models_kinds_and_factors_are_refused():
    with pytest.raises(UsageError, match=r"`models` must be models of text .* got 'mlp'"):
        plan(replace(QUICK, models=("mlp",)), Choice())
    with pytest.raises(UsageError, match="`kinds` must be a known name, got 'CM'; did you mean"):
        plan(replace(QUICK, kinds=("CM",)), Choice())
    with pytest.raises(UsageError, match="kinds"):
        plan(QUICK, Choice(only={"kinds": ("CN",)}))


@pytest.mark.parametrize("argument", ["data", "vectors"])
def test_files_that_cannot_be_read_are_refused_before_any_work(tmp_path, argument):
    (tmp_path / "bad.txt").write_bytes(b"a line\n\0")
    given = {"data": tmp_path / "bad.txt"} if argument == "data" else {}
    settings = TINY if given else {**TINY, "vectors": str(tmp_path / "bad.txt")}
    with pytest.raises(UsageError, match=f"`{argument}` must be .*bad.txt"):
        api.run("articles", settings=settings, out=tmp_path / "no", **given)
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("argument", ["data", "vectors"])
def test_files_that_are_none_are_refused(tmp_path, argument):
    for path, problem in ((tmp_path, "is a folder"), ("nowhere.txt", "does not exist")):
        choice = Choice(data=str(path)) if argument == "data" else Choice()
        settings = QUICK if argument == "data" else replace(QUICK, vectors=str(path))
        with pytest.raises(UsageError, match=f"`{argument}` must be a file, but {path} {problem}"):
            plan(settings, choice)


def test_another_file_is_another_dataset(tmp_path):
    keys = []
    for word in ("cat", "dog"):
        (tmp_path / "mine.txt").write_text(f"the {word} saw a house\n" * 5)
        keys.append(plan(ONE, Choice(data=str(tmp_path / "mine.txt"))).tasks[0].key)
    assert keys[0] != keys[1]


def test_the_same_training_twice_is_the_same():
    for task in tasks(ONE, "train"):
        if task.arguments["panel"]["rate"] != 0.09:
            one, two = (task.function(**typed(task.function, task.arguments)) for _ in range(2))
            assert one.facts == two.facts
            assert all(torch.equal(value, two.tensors[name]) for name, value in one.tensors.items())
