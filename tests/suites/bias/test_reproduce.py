"""Every artefact of the bias paper runs on generated data, or says what it needs; the numbers in words are its own."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forsooth
from forsooth import papers
from forsooth.records import UsageError
from forsooth.suites import REPRODUCTIONS
from forsooth.suites.bias import audit
from forsooth.suites.bias import data as sources
from forsooth.suites.bias import patches as bias_patches
from forsooth.suites.bias import reproduce as bias_tables
from forsooth.suites.bias import words as bias_words

TINY = {"samples": 3, "permutations": 20}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """One epoch each: these tests are about the way, not the result."""
    known = sources.played

    def short(name: str) -> sources.Played:
        entry = known(name)
        return dataclasses.replace(entry, recipe=dataclasses.replace(entry.recipe, epochs=1), gate=0.0)

    monkeypatch.setattr(sources, "played", short)


def test_the_papers_experiments_are_all_named() -> None:
    names = {artefact.name for artefact in REPRODUCTIONS}
    tables = {f"bias/table-{k}" for k in range(3, 16)}
    figures = {f"bias/{name}" for name in ("figure-3", "figure-4b", "figure-5", "figure-6", "figure-8")}
    assert tables | figures | {"bias/proposition-1", "bias/appendix-n"} <= names


def test_published_tables_are_as_printed() -> None:
    three, ten = papers.table("bias_table_3"), papers.table("bias/table-10")
    assert (len(three), len(ten), len(papers.table("bias_table_4"))) == (80, 80, 70)
    key = ["end", "fraction", "method"]
    assert three.set_index(key)["value"]["top", 0.1, "grad_cam"] == 0.17256
    assert three.set_index(key)["value"]["bottom", 0.9, "integrated_gradients"] == 0.0716  # as printed; surely 0.00716
    assert ten.set_index(key)["value"]["bottom", 0.7, "deep_shap"] == 0.00075
    thirteen = papers.table("bias_table_13").set_index(["metric", "fraction"])["value"]
    assert (thirteen["m_bias", 0.1], thirteen["deep_shap_distance", 0.9]) == (0.0102, 0.0428)
    for k in range(3, 13):
        assert not papers.table(f"bias_table_{k}").duplicated(key).any()


@pytest.mark.parametrize("name", ["figure-4b", "figure-5", "proposition-1", "figure-6", "table-14", "table-15"])
def test_artefacts_run_on_generated_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from forsooth.suites.bias import reproduce_figures as bias_figures

    monkeypatch.setattr(bias_figures, "SAMPLED", (4, 8))
    monkeypatch.setattr(bias_figures, "GRIDS", (2, 4))
    few = {**TINY, "grid": 4} if name not in ("table-14", "table-15") else {**TINY, "permutations": 1}
    few = {**few, "samples": 2, "permutations": 2, "grid": 8} if name == "figure-6" else few
    table, words = forsooth.reproduce(f"bias/{name}", out=tmp_path, settings=few)
    assert len(table) and "leaves, lenet" in words
    assert name != "figure-6" or (set(table["players"]) == {64} and set(table["size"]) == {6})  # |S| above two
    assert (tmp_path / f"bias-{name}.csv").is_file() and (tmp_path / f"bias-{name}.md").read_text() == words


def test_table_13_judges_the_exact_values_twice(tmp_path: Path) -> None:
    few = {"samples": 8, "permutations": 400}
    table, words = forsooth.reproduce("bias/table-13", only={"dataset": "interactions"}, out=tmp_path, settings=few)
    assert table["fraction"].tolist() == [0.1, 0.3, 0.5, 0.7, 0.9] and "interactions" in words
    assert (table["m_bias"] < table["deep_shap_distance"]).all()
    assert table["published_m_bias"].tolist() == [0.0102, 0.0030, 0.0024, 0.0018, 0.0015]


def test_figure_8_names_the_least_biased(tmp_path: Path) -> None:
    table, words = forsooth.reproduce("bias/figure-8", only={"dataset": "interactions"}, out=tmp_path, settings=TINY)
    means = table[~table["method"].isin(["shapley", "random", "constant", "rectified_input"])]
    best = means.groupby("method")["ours"].mean().idxmin()
    assert f"least biased are {best}" in words


def test_tables_of_photographs_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`data` must name a folder with CIFAR-10 to make Table 3 again"):
        forsooth.reproduce("bias/table-3", out=tmp_path)
    with pytest.raises(UsageError, match="`data` must name a folder with Pascal VOC 2012 to make Table 10 again"):
        forsooth.reproduce("bias/table-10", out=tmp_path)


def test_orders_of_methods_are_compared_row_by_row() -> None:
    table = pd.DataFrame(
        {
            "end": ["top"] * 4 + ["bottom"] * 4,
            "fraction": 0.1,
            "method": list("abcd") * 2,
            "ours": [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 9.0],
            "published": [10.0, 20.0, 30.0, 40.0, 4.0, 3.0, 2.0, np.nan],
        }
    )
    rho = bias_words.orders(table).set_index("end")["rho"]
    assert rho["top"] == pytest.approx(1) and rho["bottom"] == pytest.approx(
        -1
    )  # a method they did not test is left out


def test_numbers_are_compared_for_the_same_players_only() -> None:
    names = ["gradient", "grad_cam", "lrp", "deep_shap"]
    numbers = {"ours": [0.14, 0.3, 0.2, 0.4], "published": [0.01, 0.9, 0.02, 0.04]}
    beside = {"scored": 0.1, "failed": 0.0, "split": 0.1, "end": "top", "fraction": 0.1}
    table = pd.DataFrame({"method": names, **numbers}).assign(**beside)
    pixels = bias_words.verdict(table, "Table 3", bias_tables.settings_of(3), 4, 0.1)
    assert "within a factor of 2" in pixels and "gradient 14.00" in pixels
    patches = bias_words.verdict(table, "Table 10", bias_tables.settings_of(10), 4, 0.1)
    assert "factor of 2" not in patches and "Ours over published" not in patches
    assert "ρ by row: top-10% 1.00" in patches  # Grad-CAM, of other players, is no part of the order


@pytest.mark.parametrize("name", ["figure-3", "appendix-n"])
def test_audits_run_on_generated_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from forsooth.models import recipes

    for recipe in ("LENET", "QUICK_8"):
        monkeypatch.setattr(recipes, recipe, dataclasses.replace(getattr(recipes, recipe), epochs=1))
    known = sources.played
    monkeypatch.setattr(audit, "PATTERN_GATE", 0.0)
    monkeypatch.setattr(sources, "played", lambda name: dataclasses.replace(known(name), gate=0.0))
    few = {"samples": 1 if name == "figure-3" else 2, "permutations": 3}
    only = {"dataset": "leaves"} if name == "figure-3" else {}
    table, _ = forsooth.reproduce(f"bias/{name}", only=only, out=tmp_path, settings=few)
    assert table["inputs"].le(2).all()
    number = "mean" if name == "figure-3" else "plain"  # from three orders, what is freed of noise may be anything
    assert table[number].between(0, 16).all()
    assert set(table["published"]) == ({1.0336} if name == "figure-3" else {0.898})
    if name == "appendix-n":
        assert set(table["dataset"]) == {"leaves", "tetromino"} and table["plain"].le(1).all()


def test_a_network_that_has_not_learned_is_not_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PATTERN_GATE", 1.01)
    few = {"samples": 1, "permutations": 3}
    table, words = forsooth.reproduce("bias/appendix-n", only={"dataset": "tetromino"}, out=tmp_path, settings=few)
    assert table["inputs"].eq(0).all() and table["mean"].isna().all()
    assert "below its gate of 101 %, so not audited" in words


def test_methods_that_were_not_published_have_no_verdict() -> None:
    table = pd.DataFrame({"end": ["top"], "fraction": 0.1, "method": "own", "ours": 1.0, "published": np.nan})
    assert bias_words.orders(table).empty
    said = bias_words.verdict(table, "Table 3", bias_tables.settings_of(3), 1, 0.1)
    assert "none of these methods is in the published table" in said


def test_a_map_of_zeros_counts_and_its_share_is_shown() -> None:
    """Grad-CAM scored on two of three images was scored on two; the third now has the worst value of its row."""
    shared = {"end": "top", "fraction": 0.1, "player": "units", "model_seed": 0, "error": 0.0, "status": "ok"}
    values = {"grad_cam": [0.1, 0.2, np.nan], "random": [0.3, 0.5, 0.4]}
    rows = [
        {**shared, "method": name, "metric": metric, "sample": k, "value": value}
        for name, column in values.items()
        for metric in ("m_bias", "m_bias_split")
        for k, value in enumerate(column)
    ]
    frame = pd.DataFrame(rows)
    frame.loc[frame["value"].isna(), "status"] = "zero map"
    other = frame.assign(player="input", value=9.0, method="gradient")  # another game, whose values say nothing here
    table = bias_tables.means(pd.concat([frame, other])).set_index("method")
    assert table.loc["grad_cam", "ours"] == pytest.approx((0.1 + 0.2 + 0.5) / 3)
    assert table.loc["grad_cam", "scored"] == pytest.approx(0.15)
    assert table.loc["grad_cam", "failed"] == pytest.approx(1 / 3) and table.loc["grad_cam", "inputs"] == 3
    assert table.loc["random", "failed"] == 0 and table.loc["random", "scored"] == table.loc["random", "ours"]


def test_a_printing_error_is_kept_as_printed_and_the_order_is_told_without_it_too() -> None:
    table = bias_tables.published(3)
    moved = table[table["published"].ne(table["corrected"])]
    assert moved[["end", "method", "published", "corrected"]].to_numpy().tolist() == [
        ["bottom", "integrated_gradients", 0.0716, 0.00716]
    ]
    assert "corrected" not in bias_tables.published(4) and "errata" not in papers.names()
    ours = table.assign(ours=table["corrected"], failed=0.0, scored=table["corrected"])
    (sentence,) = bias_words.on_errata(ours, bias_tables.settings_of(3))
    assert (
        "integrated_gradients bottom-90% 0.0716 → 0.00716" in sentence and "of these rows bottom-90% 1.00" in sentence
    )
    assert bias_words.orders(ours)["rho"].min() < 1


def scores_of(value: dict[str, list[float]], players: int) -> pd.DataFrame:
    shared = {"model": "lenet", "model_seed": 0, "player": "input", "end": "top", "fraction": 0.1, "status": "ok"}
    rows = [
        {**shared, "players": players, "metric": metric, "method": name, "sample": k, "value": v}
        for name, column in value.items()
        for metric in ("m_bias", "m_bias_split")
        for k, v in enumerate(column)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([4.0, 4.1, 3.9, 4.0], "is kept"),
        ([2.0, 2.1, 1.9, 2.0], "is dropped"),
        ([2.0, 8.0, 4.0, 4.0], "cannot be told"),
    ],
)
def test_the_rule_of_the_root_is_kept_or_dropped_by_its_interval(times: list[float], words: str) -> None:
    """1,024 pixels against 64 patches: a factor of 4 is expected."""
    pixels = scores_of({"gradient": [0.01, 0.02, 0.03, 0.04], "random": [0.01] * 4}, 1024)
    patches = scores_of({"gradient": [t * v for t, v in zip(times, [0.01, 0.02, 0.03, 0.04], strict=True)]}, 64)
    table = bias_patches.ratios(pd.concat([patches, scores_of({"random": [0.1] * 4}, 64)]), pixels)
    own = table.set_index("method").loc["gradient"]
    assert own["expected"] == 4 and own["ratio"] == pytest.approx(np.exp(np.log(times).mean()))
    verdict = bias_patches.verdict(table, "CIFAR-10", bias_tables.settings_of(3))
    assert f"the rule that M_bias has the size 1 / √N {words}" in verdict and "random (lenet) 2.50" in verdict


def test_patches_and_pixels_are_of_the_same_images(tmp_path: Path) -> None:
    few = {"samples": 2, "permutations": 1, "methods": ("gradient", "constant")}
    table, words = forsooth.reproduce("bias/patches-against-pixels", out=tmp_path, settings=few)
    assert set(table["method"]) == {"gradient", "constant"} and table["images"].eq(2).all()
    assert table["expected"].eq(4).all() and "64 patches against 1,024 pixels" in words
