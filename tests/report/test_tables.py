import io

import numpy as np
import pytest
from report.by_hand import run_of, scores
from report.made_up import row
from rich.console import Console

from forsooth.report import Results, leaderboard
from forsooth.report.medians import Medians, medians
from forsooth.report.tables import MEANING, accuracies, console, display, failures, markdown, skips, times


def small() -> Results:
    return run_of([*scores("a|b", [0.5] * 4), *scores("random", [0.25] * 4, model="none")])


def test_markdown_by_hand() -> None:
    lines = markdown(leaderboard(small(), "m")).splitlines()
    assert lines[0].startswith("| rank | method | score | 95 % interval | group |")
    assert lines[2].startswith("| 1 [1–2] | a\\|b | 0.500 | 0.500–0.500 | A | 0.500–0.500 | 0 % |")
    assert lines[3].startswith("| 2 [1–2] | random ○ | 0.250 |")
    assert {line.replace("\\|", "").count("|") for line in lines} == {len(MEANING) + 1}


def test_console_shows_every_method(results: Results) -> None:
    board = leaderboard(results, "ima")
    screen = Console(file=io.StringIO(), width=160)
    screen.print(console(board, title="by ima"))
    shown = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "by ima" in shown
    assert all(method in shown for method in board["method"])
    assert "(17 [" in shown or "guided_grad_cam" in shown


def test_display_keeps_the_factor_it_was_made_by(results: Results) -> None:
    words = display(leaderboard(results, "emd", by="model"))
    assert words.columns.tolist() == ["model", *MEANING]
    assert words[words["method"].eq("guided_grad_cam")]["model"].tolist() == ["CNN"]


def trained(values: list[float], **place: object) -> list[dict[str, object]]:
    return [
        row(
            "training",
            metric="accuracy",
            value=value,
            model_seed=seed,
            status="ok" if value >= 0.8 else "below gate",
            **place,
        )
        for seed, value in enumerate(values)
    ]


def test_accuracies_stand_beside_the_published_ones() -> None:
    place = {"size": "8", "scenario": "LIN", "background": "WHITE"}
    rows = [
        *trained([0.8, 0.9], **place, model="cnn", alpha=0.18),  # as the papers print it, but for case
        *trained([0.5], **place, model="ResNet", alpha=0.18),
        *trained([1.0], **(place | {"size": "64"}), model="CNN", alpha=0.03),
    ]
    made = run_of(rows, factors=["size", "scenario", "background", "model"])
    made = Results(made.folder, {**made.run, "suite": "xaitris"}, made.rows, made.timings, made.pictures)
    table = accuracies(made).set_index(["size", "model"])
    ours = table.loc[("8", "cnn")]
    assert ours[["trainings", "below", "published", "published_alpha"]].tolist() == [2, 0, 83.0, 0.18]
    assert ours[["accuracy", "lowest", "highest", "difference"]].tolist() == pytest.approx([85, 80, 90, 2.0])
    assert table.loc[("64", "CNN"), "published"] == 90.1
    assert np.isnan(table.loc[("8", "ResNet"), "published"]) and table.loc[("8", "ResNet"), "below"] == 1


def test_accuracies_of_other_suites_have_nothing_published() -> None:
    table = accuracies(run_of(trained([0.9], data="a", model="CNN")))
    assert table["accuracy"].tolist() == pytest.approx([90])
    assert table["published"].isna().all() and table["difference"].isna().all()


def test_failures_say_what_where_and_how_much(tables: dict[str, Medians]) -> None:
    found = failures(list(tables.values())).set_index("method")
    assert set(found.index) == {"lime", "pfi"}
    assert found.loc["pfi", ["status", "metrics", "panels"]].tolist() == ["error", "all", 2]
    assert found.loc["pfi", "message"] == "<b>boom</b> & ValueError: bad shape"
    assert found.loc["pfi", "share"] == pytest.approx(48 / 420)
    assert 0.2 < found.loc["lime", "share"] < 0.6


def test_failures_of_one_metric_name_it() -> None:
    good = medians(run_of(scores("a", [0.1, 0.2])), "m")
    bad = Medians(**(vars(good) | {"metric": "other", "rows": good.rows.assign(failed=True, status="error")}))
    assert failures([good, bad])["metrics"].tolist() == ["other"]
    assert failures([]).empty


def test_skips_say_why(results: Results) -> None:
    found = skips(results).set_index("what")
    assert found.loc["guided_grad_cam", ["status", "message"]].tolist() == ["skipped", "needs a convolutional layer"]
    assert len(found.loc["guided_grad_cam", "where"]) == 10
    assert "sweep" not in found.index
    assert found.loc["training", ["status", "where"]].tolist() == ["below gate", ["XOR-CORR-CNN"]]


def test_times_add_up_over_cells_of_one_method(results: Results) -> None:
    cells = results.rows[results.rows["method"].eq("lime")]["cell"].unique()
    expected = results.timings[results.timings["cell"].isin(cells)]["seconds"].sum()
    assert times(results)["lime"] == pytest.approx(expected)
