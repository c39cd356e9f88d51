"""The articles suite from words to rows at the smallest scale: ends of the scale and artefacts."""

import gzip
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from forsooth import api
from forsooth.records import Choice, UsageError
from forsooth.suites.articles import plan as articles
from forsooth.suites.articles import settings as articles_presets

METHODS = (
    *articles_presets.OWN,
    "gradient",
    "gradient_x_input",
    "integrated_gradients",
    "occlusion",
    *articles_presets.NULLS,
)
TINY = {
    **{"sizes": (150, 20, 20), "samples": 4, "gate": 0.0, "gate_reinforce": 0.0, "epochs": 2, "length": 60},
    **{"rates_article": (), "rates_halves": (0.09,), "kinds": ("Article", "CN")},
    **{"trainings": 1, "rationale_trainings": 1},
}
KEY = ["kind", "model", "method", "metric"]
pytestmark = pytest.mark.usefixtures("single")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> api.Run:
    return api.run(
        "articles",
        methods=(*METHODS, "own_methods:raises"),
        settings=TINY,
        out=tmp_path_factory.mktemp("articles") / "run",
    )


@pytest.fixture(scope="module")
def rows(run) -> pd.DataFrame:
    return run.rows


def scored(rows: pd.DataFrame, method: str, metric: str = "attr_words") -> pd.DataFrame:
    found = rows[rows["method"].eq(method) & rows["metric"].eq(metric) & rows["sample"].ge(0)]
    assert len(found)
    return found


def test_every_part_and_every_panel_is_there(rows, run):
    assert set(rows["part"]) == {"training", "scores", "shares", "selection", "optimum"}
    ranked = rows[rows["part"].eq("scores") & rows["metric"].eq("attr_words") & rows["sample"].ge(0)]
    assert set(ranked[ranked["model"].ne("none")]["model"]) == {"attention", "rationale_relaxed", "rationale_reinforce"}
    for (kind, model), own in ranked.groupby(["kind", "model"]):
        assert own.groupby("method")["sample"].nunique().eq(4).all(), (kind, model)
    assert (run.folder / "report.html").stat().st_size > 10_000
    assert set(run.leaderboard()["method"]) == {*METHODS, "own_methods:raises"}


def test_the_oracle_scores_one_and_the_constant_map_the_frequency_exactly(rows):
    assert (scored(rows, "oracle")["value"] == 1).all()
    assert (scored(rows, "oracle", "attr_words_non_correlating")["value"] == 0).all()
    for metric in ("attr_words", "attr_words_non_correlating", "attr_words_other"):
        found = scored(rows, "constant", metric)
        np.testing.assert_allclose(found["value"], found["frequency"], rtol=1e-12)


def test_the_three_shares_sum_to_one(rows):
    words = rows[rows["metric"].str.startswith("attr_words") & rows["status"].eq("ok")]
    sums = words.groupby(["kind", "model", "method", "sample"])["value"].sum()
    np.testing.assert_allclose(sums, 1, rtol=1e-9)


def test_article_has_no_non_correlating_words_and_says_so_in_one_row(rows):
    own = rows[rows["kind"].eq("Article") & rows["metric"].eq("attr_words_non_correlating")]
    assert set(own["status"]) == {"no sample"} and set(own["sample"]) == {-1}
    assert own["message"].str.contains("no document has non_correlating words").all()


def test_who_cannot_be_asked_is_skipped_with_a_reason(rows):
    skipped = rows[rows["status"].eq("skipped")]
    assert set(zip(skipped["method"], skipped["model"], strict=True)) == {
        ("attention", "rationale_relaxed"),
        ("attention", "rationale_reinforce"),
        ("rationale", "attention"),
    }
    assert skipped["message"].str.endswith(" has none").all()


def test_a_method_that_raises_is_rows_and_the_run_goes_on(rows):
    own = scored(rows, "own_methods:raises")
    assert set(own["status"]) == {"error"} and own["value"].isna().all()


def test_selections_count_every_test_document_at_every_rate(rows):
    own = rows[rows["part"].eq("selection") & rows["metric"].eq("recall_selected")]
    assert set(own[own["kind"].eq("CN")]["rate"]) == {0.05, 0.09} and set(own[own["kind"].eq("Article")]["rate"]) == {
        0.09
    }
    assert own.groupby(["kind", "model", "rate"])["sample"].nunique().eq(20).all()
    assert (own["hits"] <= own["selected"]).all() and (own["hits"] + own["misled"] <= own["selected"]).all()
    nothing = own["selected"].eq(0)
    assert set(own[nothing & own["relevant"].gt(0)]["status"]) <= {"ok"}  # a recall of 0 is a recall
    wrong = rows[rows["metric"].eq("precision_selected") & rows["selected"].eq(0)]
    assert set(wrong["status"]) <= {"undefined"} and set(wrong["message"]) <= {"nothing is selected"}
    some = own[own["relevant"] > 0]
    np.testing.assert_allclose(
        some["value"].fillna(0), (some["hits"] / some["relevant"]).where(some["status"].eq("ok"), 0)
    )


def test_no_selection_beats_the_line(rows):
    best = rows[rows["part"].eq("optimum") & rows["metric"].eq("precision_selected")]
    wide = best.pivot_table(index=["kind", "rate"], columns="line", values="value")
    assert (wide["document"] <= wide["dataset"] + 1e-12).all()


def test_a_model_below_its_gate_is_a_row_and_is_not_explained(tmp_path):
    settings = {**TINY, "gate": 1.0, "kinds": ("CN",), "epochs": 1}
    only = {"model": "attention"}
    found = api.run("articles", methods=["gradient", "constant"], only=only, settings=settings, out=tmp_path / "r").rows
    assert set(found[found["metric"].eq("accuracy")]["status"]) == {"below gate"}
    assert set(found[found["method"].eq("gradient")]["status"]) == {"below gate"}
    assert set(found[found["method"].eq("constant")]["status"]) == {"no sample"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("samples", 0),
        ("trainings", 0),
        ("rationale_trainings", -1),
        ("epochs", 0),
        ("gate", 97),
        ("gate_reinforce", -1),
    ],
)
def test_numbers_that_cannot_be_are_refused_before_any_work(tmp_path, name, value):
    with pytest.raises(UsageError, match=f"`{name}` must be .*, got {value}"):
        api.run("articles", settings={**TINY, name: value}, out=tmp_path / "no")
    assert not (tmp_path / "no" / "store" / "cells").exists()


@pytest.mark.parametrize("argument", ["data", "vectors"])
def test_files_that_cannot_be_read_are_refused_before_any_work(tmp_path, argument):
    (tmp_path / "bad.txt").write_bytes(b"a line\n\0")
    given = {"data": tmp_path / "bad.txt"} if argument == "data" else {}
    settings = TINY if given else {**TINY, "vectors": str(tmp_path / "bad.txt")}
    with pytest.raises(UsageError, match=f"`{argument}` must be .*bad.txt"):
        api.run("articles", settings=settings, out=tmp_path / "no", **given)
    assert not (tmp_path / "no").exists()


def test_word_vectors_are_counted_on_the_page(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["the", "beer", "nowhere"]), vectors=np.eye(3))
    settings = {**TINY, "vectors": str(tmp_path / "v.npz"), "kinds": ("CN",), "epochs": 1, "samples": 1}
    api.run(
        "articles", methods=["attention", "random"], only={"model": "attention"}, settings=settings, out=tmp_path / "r"
    )
    page = (tmp_path / "r" / "report.html").read_text()
    assert "words have one in the given file" in page
    assert "A panel has 1 sample only" in page and "In 0 of 1 panel at least one method is clearly better" in page


def test_figures_of_several_trainings_say_which(tmp_path_factory):
    out = tmp_path_factory.getbasetemp() / "articles-artefacts"
    table, words = api.reproduce("articles/figure-7", settings={**SMALL, "trainings": 2}, out=out)
    assert table[["kind", "training"]].to_numpy().tolist() == [["CN", 0], ["CN", 1], ["NC", 0], ["NC", 1]]
    assert words.count("Training 1.") == 2


def test_the_same_training_twice_is_the_same(run):
    plan = articles.plan(replace(articles.QUICK, **{**TINY, "kinds": ("NC",)}), Choice())
    for task in plan.tasks:
        if task.name.startswith("train") and "0.09" not in task.name:
            one, two = (task.function(**task.arguments) for _ in range(2))
            assert one.facts == two.facts
            assert all(torch.equal(value, two.tensors[name]) for name, value in one.tensors.items())


def test_documents_of_the_user_and_what_is_wrong_with_them(tmp_path):
    settings = {**TINY, "sizes": (40, 5, 5), "kinds": ("CN",), "epochs": 1, "samples": 2}
    lines = [f"the {word} saw a dog near the house and a {word} ." for word in "abcdefghijklmnopqrstuvwxyz" * 2]
    path = tmp_path / "mine.tsv.gz"
    path.write_bytes(
        gzip.compress(("id\ttext\n" + "\n".join(f"1\t{line}" for line in lines)).encode() + b"\n1\t\xff the\n")
    )
    found = api.run("articles", methods=["attention"], settings=settings, data=path, out=tmp_path / "run")
    assert set(found.rows["dataset"]) == {"mine", "articles"}
    page = (tmp_path / "run" / "report.html").read_text()
    assert "40/5/5 train, validate and test" in page
    assert "1 bytes could not be decoded" in page and "had articles in one half only" in page
    with pytest.raises(UsageError, match=r"`data` must be a file, but nowhere\.txt does not exist"):
        api.run("articles", settings=settings, data="nowhere.txt", out=tmp_path / "no")
    with pytest.raises(UsageError, match=r"`data` must be a file, but .* is a folder"):
        api.run("articles", settings=settings, data=tmp_path, out=tmp_path / "no")
    (tmp_path / "one.txt").write_text("the cat saw a dog")
    with pytest.raises(UsageError, match=r"`data` must hold at least 3 documents .* got 1 of 1 in one"):
        api.run("articles", settings=settings, data=tmp_path / "one.txt", out=tmp_path / "one")
    with pytest.raises(UsageError, match=r"`models` must be models of text .* got 'mlp'"):
        articles.plan(replace(articles.QUICK, models=("mlp",)), Choice())
    with pytest.raises(UsageError, match="`kinds` must be a known name, got 'CM'; did you mean"):
        articles.plan(replace(articles.QUICK, kinds=("CM",)), Choice())


def test_the_paper_preset_is_the_papers_plan():
    plan = articles.plan(articles.PAPER, Choice())
    trained = [task for task in plan.tasks if task.name.startswith("train")]
    assert len(trained) == 3 * 11 + 2 * (5 + 4 + 4)
    first = trained[0].arguments
    assert first["plot"]["setting"]["sizes"] == [10_000, 1_000, 1_000] and first["net"]["variant"] == "paper"
    assert {task.arguments["recipe"]["aim"]["regulariser"] for task in trained if task.arguments["recipe"]["aim"]} == {
        "paper"
    }
    released = articles.plan(articles.RELEASED, Choice()).tasks
    assert {
        t.arguments["recipe"]["aim"]["regulariser"] for t in released if "relaxed" in t.name and "train" in t.name
    } == {"released"}


SMALL = {
    **{name: value for name, value in TINY.items() if name != "kinds"},
    **{"attention_variant": "small", "rationale_variant": "small", "recipe": "quick", "length": 256},
}


@pytest.mark.parametrize(
    "name, lines",
    [("table-1", 8), ("figure-5", 2), ("figure-7", 2), ("figure-14", 6), ("figure-15", 8)],
)
def test_artefacts_of_attention(tmp_path_factory, name, lines):
    out = tmp_path_factory.getbasetemp() / "articles-artefacts"
    settings = {**SMALL, "samples": None, "trainings": 3 if name == "table-1" else 1}
    table, words = api.reproduce(f"articles/{name}", settings=settings, out=out)
    assert len(table) == lines
    said = ("holds", "does not hold", "cannot be told", "agrees", "differs")
    verdicts = [line for line in words.splitlines() if any(f": {word}. Ours" in line for word in said)]
    assert len(verdicts) >= 4
    if name == "table-1":
        own = table.groupby("kind")[["attr", "published"]].sum()
        np.testing.assert_allclose(own, 100, atol=0.2)  # the three kinds of words are all words
        assert "ratio of variances" in words


@pytest.mark.parametrize("name, lines", [("figure-8", 8), ("figure-16", 4), ("figure-17", 4)])
def test_artefacts_of_rationales(tmp_path_factory, name, lines):
    out = tmp_path_factory.getbasetemp() / "articles-artefacts"
    settings = {**SMALL, "rates_halves": (0.09,), "rates_article": ()}
    settings = settings if name == "figure-8" else {k: v for k, v in settings.items() if not k.startswith("rates")}
    table, words = api.reproduce(f"articles/{name}", settings=settings, out=out)
    assert len(table) == (10 if name == "figure-8" else lines)
    assert words.count("\n") > lines


def test_post_hoc_methods_on_the_same_models(tmp_path_factory):
    out = tmp_path_factory.getbasetemp() / "articles-artefacts"
    asked = ("attention", "gradient_x_input", "occlusion", "constant", "oracle")
    settings = {**SMALL, "kinds": ("Article",), "models": ("attention",), "methods": asked, "trainings": 2}
    table, words = api.reproduce("articles/post-hoc", settings=settings, out=out)
    found = table.set_index("method")
    assert list(found.index.sort_values()) == sorted(asked)
    assert found.loc["oracle", "attr"] == 1 and found.loc["constant", "attr"] == pytest.approx(
        found.loc["constant", "frequency"], abs=1e-3
    )
    assert found.loc["occlusion", "trainings"] == 2 and found.loc["occlusion", "sd_trainings"] >= 0
    assert "Article, attention. near 1 (interval above 0.9):" in words
