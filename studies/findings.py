"""Sentences on the tables of `studies/xaitris/`: python studies/findings.py [TABLES].

Every line is `sentence :: table :: rows :: values`, as `studies/sentences/` has it: the part before the first `::` is
for docs/findings.md and xaitris.md, the whole line for the list that the test reads.
"""

import sys
from pathlib import Path

import pandas as pd

TABLES = Path(__file__).parent / "xaitris"
PANEL = ("scenario", "background", "model")
PATTERNS = ("pattern_net", "pattern_attribution")


def line_of(sentence: str, table: str, rows: str, values: str) -> str:
    return f"{sentence} :: xaitris/{table}.csv :: {rows} :: {values}"


def score(line: pd.Series) -> str:
    return f"{line['score']:.2f} [{line['low']:.2f}, {line['high']:.2f}]"


def leaders(board: pd.DataFrame, metric: str) -> list[str]:
    """The three best by a metric."""
    first = board[board["rank"].notna() & ~board["null"]].nsmallest(3, "rank")
    return [
        line_of(
            f"by {metric} {line['method']} has {score(line)} (group {line['group']})",
            f"quick-{metric}",
            f"method == '{line['method']}'",
            "score; low; high",
        )
        for _, line in first.iterrows()
    ]


def where(line: pd.Series, *columns: str) -> str:
    """The query that finds the line again by these columns."""
    return " and ".join(f"{column} == '{line[column]}'" for column in columns)


def panel(line: pd.Series) -> str:
    return f"{line['scenario']}-{line['background']} with the {line['model'].upper()}"


def against_nulls(nulls: pd.DataFrame, metric: str) -> list[str]:
    """In how many panels a method is clearly better than every null, and where a null has the best median of all."""
    own = nulls[nulls["metric"].eq(metric)]
    won = int((own["winners"] > 0).sum())
    found = [
        line_of(
            f"by {metric} some method is clearly better than every null in {won} of {len(own)} panels",
            "quick-nulls",
            f"metric == '{metric}'",
            "count(winners > 0); count(winners)",
        )
    ]
    for _, line in own[own["null_rank"] < own["method_rank"]].iterrows():
        null = f"{line['null_score']:.2f} [{line['null_low']:.2f}, {line['null_high']:.2f}]"
        best = f"{line['method_score']:.2f} [{line['method_low']:.2f}, {line['method_high']:.2f}]"
        sentence = f"in {panel(line)} {line['null']} has {null} by {metric}, the best method ({line['method']}) {best}"
        values = "null_score; null_low; null_high; method_score; method_low; method_high"
        found.append(line_of(sentence, "quick-nulls", where(line, "metric", *PANEL), values))
    return found


def pattern_methods(panels: pd.DataFrame) -> list[str]:
    """PatternNet and PatternAttribution by IMA, in every panel of XOR and in LIN with the linear model.

    The paper, section 4, on XOR: "they do outright perform the best"; Fig. B6: best in LIN WHITE under the LLR and the
    MLP, and in XOR WHITE under the MLP.
    """
    named = panels["scenario"].eq("XOR") | panels["scenario"].eq("LIN") & panels["model"].ne("cnn")
    own = panels[panels["metric"].eq("ima") & named & panels["rank"].notna()]
    found = []
    for _, board in own.groupby(list(PANEL), sort=False):
        best = board.sort_values("rank").iloc[0]
        for _, line in board[board["method"].isin(PATTERNS)].iterrows():
            sentence = (
                f"in {panel(line)} {line['method']} has median IMA {score(line)}, number {line['rank']:.0f} "
                f"of {len(board)} methods and nulls "
                f"(the first is {best['method']})"
            )
            values = "score; low; high; rank; _"
            found.append(line_of(sentence, "quick-panels", where(line, "metric", *PANEL, "method"), values))
    return found


def suppressor_lines(table: pd.DataFrame) -> list[str]:
    both = table.dropna(subset=["difference"])
    falls = int((both["difference"] < 0).sum())
    clear = int((both["difference_high"] < 0).sum())
    sentence = f"the mean IMA over methods falls from WHITE to CORR in {falls} of {len(both)} pairs, clearly in {clear}"
    counts = "count(difference < 0); count(difference); count(difference_high < 0)"
    found = [line_of(sentence, "suppressors", "difference == difference", counts)]
    values = "WHITE; CORR; -difference; -difference_high; -difference_low"
    for _, line in both.iterrows():
        by = f"{-line['difference']:.2f} [{-line['difference_high']:.2f}, {-line['difference_low']:.2f}]"
        who = f"{line['scenario']} with the {line['model'].upper()}"
        sentence = f"{who} from {line['WHITE']:.2f} to {line['CORR']:.2f}, by {by}"
        found.append(line_of(sentence, "suppressors", where(line, "scenario", "model"), values))
    return found


def lime_25(panels: pd.DataFrame) -> list[str]:
    own = panels[panels["metric"].eq("ima") & panels["method"].eq("lime_25") & panels["scenario"].eq("LIN")]
    return [
        line_of(
            f"LIME (25 samples) has {score(line)} in {panel(line)}",
            "quick-panels",
            where(line, "metric", *PANEL, "method"),
            "_; score; low; high",
        )
        for _, line in own.iterrows()
    ]


def main() -> None:
    tables = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLES
    panels = pd.read_csv(tables / "quick-panels.csv")
    nulls = pd.read_csv(tables / "quick-nulls.csv")
    for metric in panels["metric"].unique():
        board = pd.read_csv(tables / f"quick-{metric}.csv")
        print(*leaders(board, metric), *against_nulls(nulls, metric), sep="\n")
    print(*pattern_methods(panels), sep="\n")
    print(*suppressor_lines(pd.read_csv(tables / "suppressors.csv")), sep="\n")
    print(*lime_25(panels), sep="\n")


if __name__ == "__main__":
    main()
