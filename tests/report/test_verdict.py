import numpy as np
from report.by_hand import run_of, scores
from report.made_up import row

from forsooth.report import Results
from forsooth.report.leaderboard import board
from forsooth.report.medians import all_medians
from forsooth.report.verdict import ONE_DRAW, caution, verdict


def said(made: Results) -> list[str]:
    tables = all_medians(made)
    boards = {metric: board(table) for metric, table in tables.items()}
    return list(verdict(made, tables, boards))


def test_findings_by_hand() -> None:
    rows = [
        *scores("a", [0.9] * 12),
        *scores("b", [0.9] * 12),
        *scores("c", [0.1] * 12),
        *scores("sobel", [0.5] * 12, model="none"),
        *scores("oracle", [1.0] * 12, model="none"),
        *scores("a", [0.3] * 12, data="rigid"),
        *scores("b", [0.3] * 12, data="rigid"),
        *scores("c", [0.1] * 12, data="rigid"),
        *scores("sobel", [0.5] * 12, model="none", data="rigid"),
        *scores("oracle", [1.0] * 12, model="none", data="rigid"),
        row("training", model="CNN", data="a", metric="accuracy", value=0.9),
        row("training", model="CNN", data="a", metric="accuracy", value=0.6, status="below gate"),
        row("scores", method="d", model="CNN", data="a", status="error", message="boom"),
        row("scores", method="d", model="CNN", data="rigid", status="error", message="boom"),
    ]
    assert said(run_of(rows)) == [
        "By m, a comes first among 4 methods and 1 null (score 0.600, 95 % interval 0.600 to 0.600 over samples); "
        "over all panels it is indistinguishable from b.",
        "In 1 of 2 panels at least one method is clearly better than every map that never looks at the model "
        "(sobel); in 1 none is.",
        "At worst, sobel clearly beats 4 of 4 methods in rigid.",
        "2 of 4 methods are clearly better than all these in no panel: c and d.",
        "No usable map, and so the worst possible score: d on 100 % of samples.",
        "1 of 2 trained models fell below the accuracy gate and was not explained.",
    ]


def test_a_null_that_leads_is_called_one() -> None:
    rows = [*scores("a", [0.2] * 4), *scores("sobel", [0.5] * 4, model="none")]
    assert said(run_of(rows))[0].startswith("By m, sobel, which never looks at the model, comes first")


def test_without_nulls_nothing_is_said_of_them() -> None:
    assert len(said(run_of(scores("a", [0.2] * 4)))) == 1


def test_without_methods() -> None:
    assert said(run_of(scores("sobel", [0.2], model="none")))[0] == "No method was scored, only nulls."
    gone = run_of([row("training", data="a", model="CNN", metric="accuracy", value=0.5, status="below gate")])
    assert said(gone)[0] == "No map was scored, so there is nothing to rank."


def cautioned(trainings: dict[str, int], *, samples: int = 20) -> str:
    """The caution of a run with so many trainings of each model."""
    rng = np.random.default_rng(0)
    rows = []
    for model, count in trainings.items():
        for seed in range(count):
            rows += scores("a", rng.random(samples), model=model, seed=seed)
    return caution(all_medians(run_of(rows)))


def test_the_page_says_what_intervals_are_over() -> None:
    whole = f"Intervals are over samples (each with draws of its own) and trainings. {ONE_DRAW}"
    assert cautioned({"CNN": 4}) == whole
    assert cautioned({"CNN": 2, "MLP": 2, "LLR": 2}) == whole
    assert "4 trainings of 2 networks are too few" in cautioned({"CNN": 2, "MLP": 2})
    assert cautioned({"CNN": 1, "MLP": 1}).startswith(
        "There is one training per panel: intervals are over samples alone"
    )
    assert "2 trainings of one network are too few" in cautioned({"CNN": 2})
    assert "1 of 3 networks has one training" in cautioned({"CNN": 3, "MLP": 2, "LLR": 1})


def test_the_page_says_how_many_samples_it_takes() -> None:
    """One method in one panel: 2⁻ⁿ must be at most 0.0125."""
    assert "A panel has 6 samples only: it takes 7 to" in cautioned({"CNN": 4}, samples=6)
    assert "samples only" not in cautioned({"CNN": 4}, samples=7)
