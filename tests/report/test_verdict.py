from report.by_hand import run_of, scores
from report.made_up import row

from forsooth.report import Results
from forsooth.report.leaderboard import board
from forsooth.report.medians import all_medians
from forsooth.report.verdict import verdict


def said(made: Results) -> list[str]:
    tables = all_medians(made)
    boards = {metric: board(table) for metric, table in tables.items()}
    return list(verdict(made, tables, boards))


def test_findings_by_hand() -> None:
    rows = [
        *scores("a", [0.9] * 4),
        *scores("b", [0.9] * 4),
        *scores("c", [0.1] * 4),
        *scores("sobel", [0.5] * 4, model="none"),
        *scores("oracle", [1.0] * 4, model="none"),
        *scores("a", [0.3] * 4, data="rigid"),
        *scores("b", [0.3] * 4, data="rigid"),
        *scores("c", [0.1] * 4, data="rigid"),
        *scores("sobel", [0.5] * 4, model="none", data="rigid"),
        *scores("oracle", [1.0] * 4, model="none", data="rigid"),
        row("training", model="CNN", data="a", metric="accuracy", value=0.9),
        row("training", model="CNN", data="a", metric="accuracy", value=0.6, status="below gate"),
        row("scores", method="d", model="CNN", data="a", status="error", message="boom"),
        row("scores", method="d", model="CNN", data="rigid", status="error", message="boom"),
    ]
    assert said(run_of(rows)) == [
        "By m, a comes first among 4 methods and 1 null (score 0.600, 95 % interval 0.600 to 0.600); "
        "it cannot be told from b.",
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
