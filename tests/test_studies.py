"""The scripts of `studies/`: what they derive is what lies there, and what they write is what the run says."""

import importlib.util
import io
from types import ModuleType

import pandas as pd
import pytest
from report import made_up
from sentences import ROOT, entry_of

import forsooth
from forsooth import report
from forsooth.report.medians import medians
from forsooth.stats.intervals import mean_estimate


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"studies_{name}", ROOT / f"studies/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


derived = script("derived")
findings = script("findings")
xaitris = script("xaitris")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> forsooth.Run:
    folder = made_up.write(tmp_path_factory.mktemp("studies") / "quick", samples=12)
    rows = pd.read_parquet(folder / "scores.parquet")
    rows[rows["scenario"].isin(["LIN", "XOR"])].to_parquet(folder / "scores.parquet")
    return forsooth.Run(folder)


@pytest.fixture(scope="module")
def tables(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    xaitris.write_quick(run, folder, folder / "leaderboard.png", metrics=("ima",))
    return folder


def test_derived_tables_follow_from_those_they_are_derived_from():
    for path, table in derived.derived().items():
        text = table.to_csv(index=False, lineterminator="\n")
        pd.testing.assert_frame_equal(pd.read_csv(ROOT / "studies" / path), pd.read_csv(io.StringIO(text)), obj=path)


def test_an_estimate_is_found_again_from_its_printed_interval():
    values = [0.91, 0.95, 0.99, 0.97]
    known = mean_estimate(values, bounds=(0, 0.98))  # cut off at one side
    again = derived.estimate(*known.interval)
    assert (again.mean, again.error, again.df) == pytest.approx((known.mean, known.error, 3))


def test_bold_is_near_one_and_the_rule_is_that_of_the_table():
    """What the pages say in words and letters, of all methods together, follows from the derived tables."""
    near = pd.read_csv(ROOT / "studies/articles/near-one.csv")
    page = (ROOT / "studies/articles.md").read_text()
    for networks, own in near.groupby("networks"):
        rows = page.partition(f"| method, {networks}")[2].partition("\n\n")[0]
        assert rows.count("**") == 2 * own["near_one"].sum() > 0
    rules = pd.read_csv(ROOT / "studies/bias/rules.csv")["rule"].value_counts()
    page = (ROOT / "studies/bias.md").read_text().partition("| map | ratio over expected | the rule |")[2]
    table = page.partition("\n\n")[0]
    assert {rule: table.count(f"| {rule} |") for rule in rules.index} == rules.to_dict()


def test_a_panel_has_the_median_of_its_own_samples(run, tables):
    panels = pd.read_csv(tables / "quick-panels.csv")
    line = panels.query("metric == 'ima' and scenario == 'XOR' and background == 'CORR' and model == 'MLP'")
    rows = run.rows.query(
        "part == 'scores' and metric == 'ima' and scenario == 'XOR' and background == 'CORR' and model == 'MLP'"
    )
    for method in ("saliency", "lrp"):
        values = rows[rows["method"].eq(method)].eval("value.where(status == 'ok', 0.0)").fillna(0.0)
        assert line.set_index("method")["score"][method] == pytest.approx(values.median(), abs=6e-4)


def test_best_method_and_best_null_stand_side_by_side(tables):
    panels = pd.read_csv(tables / "quick-panels.csv").query("metric == 'ima'")
    for line in pd.read_csv(tables / "quick-nulls.csv").query("metric == 'ima'").itertuples():
        same = f"scenario == '{line.scenario}' and background == '{line.background}' and model == '{line.model}'"
        board = panels.query(f"{same} and rank == rank")
        assert line.method_score == board[~board["null"]]["score"].max()
        assert line.null_score == board[board["null"]]["score"].max()
        assert line.winners == board["wins"].sum()


def test_suppressors_are_means_over_methods_with_an_interval_around_them(run, tables):
    table = pd.read_csv(tables / "suppressors.csv").set_index(["scenario", "model"])
    source = medians(report.read(run.folder), "ima")
    place = source.panels.query("scenario == 'LIN' and model == 'MLP' and background == 'WHITE'").index[0]
    mean = pd.Series(source.value[place][~source.null]).mean()
    line = table.loc[("LIN", "MLP")]
    assert line["WHITE"] == pytest.approx(mean, abs=6e-4)
    assert line["WHITE_low"] <= line["WHITE"] <= line["WHITE_high"]
    assert line["difference"] == pytest.approx(line["CORR"] - line["WHITE"], abs=2e-3)


def test_the_picture_is_drawn(tables):
    assert (tables / "leaderboard.png").read_bytes()[:4] == b"\x89PNG"


def test_findings_are_lines_that_the_list_of_sentences_understands(tables, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["findings.py", str(tables)])
    findings.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line]
    assert len(lines) > 10
    for line in lines:
        entry = entry_of(line)
        frame = pd.read_csv(tables / entry.table.removeprefix("xaitris/")).query(entry.rows)
        assert len(frame) >= 1, line


def test_the_readmes_printed_table_is_what_its_python_prints(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("# Title\n\n```python\nprint('a  1.00')\n```\n\n```\nold\n```\n\nrest\n")
    xaitris.write_readme(readme)
    assert readme.read_text() == "# Title\n\n```python\nprint('a  1.00')\n```\n\n```\na  1.00\n```\n\nrest\n"
