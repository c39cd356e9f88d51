"""Texts in colour: words, shades and marks of every document, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest
from report.by_hand import run_of
from report.made_up import row

from forsooth.report import Results
from forsooth.report.passages import passages

WORDS = ["the", "cat", "saw", "a", "dog"]


def documents(methods: dict[str, str], weights: dict[tuple[str, int], list[float]], places: int) -> Results:
    """A run on texts of one panel. methods: name -> model"""
    about = {"kind": "CN", "metric": "attr", "value": 0.5, "sample": 0}
    rows = [row("scores", **about, method=name, model=model) for name, model in methods.items()]
    made = run_of(rows, factors=("kind", "model"), nulls=[name for name, model in methods.items() if model == "none"])
    tensors = {}
    pictures = []
    for place in range(places):
        articles = np.zeros((2, len(WORDS)))
        articles[0, 0] = articles[1, 3] = 1
        tensors[f"text {place}"] = np.roll(articles, place, axis=1)
        about = {"kind": "CN", "model": "none", "method": "", "label": place, "place": place}
        pictures.append({**about, "tensor": f"text {place}", "shows": "document", "words": WORDS})
    for (name, place), values in weights.items():
        tensors[f"{name} {place}"] = np.array(values)
        about = {"kind": "CN", "model": methods[name], "method": name, "place": place}
        pictures.append({**about, "tensor": f"{name} {place}", "shows": "weights"})
    return replace(made, run={**made.run, "pictures": pictures}, pictures=tensors)


@pytest.fixture
def made() -> dict:
    weights = {
        ("lrp", 0): [0.5, 0.0, 0.0, -1.0, 0.0],
        ("lrp", 1): [0.0, 2.0, 0.0, 0.0, 1.0],
        ("gradient", 0): [0.0] * 5,
        ("random", 0): [np.nan, 1.0, 0.0, 0.0, 0.0],
    }
    (panel,) = passages(documents({"lrp": "gru", "gradient": "gru", "random": "none"}, weights, 2))
    return panel


def test_words_are_shaded_by_their_share_of_the_largest(made: dict) -> None:
    line = next(line for line in made["lines"] if line["method"] == "lrp")
    assert line["mark"] == ""
    assert [(run["words"], run["kind"], run["shade"]) for run in line["runs"]] == [
        ("the", "tells", 50),
        ("cat saw", "", 0),
        ("a", "alike", 100),
        ("dog", "", 0),
    ]


def test_what_is_no_map_and_what_is_all_zeros_are_marked(made: dict) -> None:
    marks = {line["method"]: line["mark"] for line in made["lines"]}
    assert marks == {"lrp": "", "gradient": "0", "random": "–"}
    assert {line["method"] for line in made["lines"] if line["null"]} == {"random"}


def test_the_script_has_every_document_in_the_order_of_the_lines(made: dict) -> None:
    assert [text["label"] for text in made["data"]["texts"]] == ["0", "1"]
    assert made["data"]["texts"][1]["kinds"] == [0, 1, 0, 0, 2]
    place = [line["method"] for line in made["lines"]].index("lrp")
    assert [shades[place] for shades in made["data"]["shades"]] == [[50, 0, 0, 100, 0], [0, 100, 0, 0, 50]]
    assert made["data"]["shades"][1].count(None) == 2  # the others have no map of the second document


@pytest.mark.parametrize("factor", ["model", "size"])
def test_a_run_without_texts_has_no_passages(factor: str) -> None:
    made = run_of([row("scores", **{factor: "8"}, method="lrp", metric="emd", value=0.5)], factors=(factor,))
    assert passages(made) == []


def test_an_answer_that_ranks_nothing_has_no_passages() -> None:
    made = documents({"lrp": "gru"}, {("lrp", 0): [1.0, 0.0, 0.0, 0.0, 0.0]}, 1)
    assert passages(replace(made, run={**made.run, "factors": []})) == []


def test_weights_of_a_run_of_before_which_had_no_places_are_of_the_first_document() -> None:
    made = documents({"lrp": "gru"}, {("lrp", 0): [1.0, 0.0, 0.0, 0.0, 0.0]}, 1)
    old = [{key: value for key, value in line.items() if key != "place"} for line in made.run["pictures"]]
    (panel,) = passages(replace(made, run={**made.run, "pictures": old}))
    assert panel["data"]["shades"] == [[[100, 0, 0, 0, 0]]]
