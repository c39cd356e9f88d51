"""Tables of every kind a user may have: what becomes of each column, worked out by hand on small files."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

import forsooth
from forsooth.datasets.columns import mutual_information, numeric
from forsooth.datasets.tables import table, tables_in
from forsooth.records import UsageError

REAL = Path(forsooth.__file__).parents[3] / "shared/data"


def frame(n=60, **columns):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return pd.DataFrame({"a": rng.normal(size=n) + y, "b": rng.normal(size=n), **columns, "class": y})


def write(path, content):
    content.to_csv(path, index=False)
    return path


def test_standardised_by_the_training_rows_alone(tmp_path):
    raw = frame()
    dataset = table(write(tmp_path / "t.csv", raw), seed=0)
    train = dataset.splits["train"]
    assert dataset.facts["features"] == ["a", "b"] and dataset.facts["label"] == "class"
    assert dataset.x[train].mean(0).abs().max() < 1e-6
    values = raw[["a", "b"]].to_numpy()
    by_hand = (values - values[train].mean(0)) / values[train].std(0)
    np.testing.assert_allclose(dataset.x, by_hand, rtol=1e-5, atol=1e-6)
    assert dataset.y.tolist() == raw["class"].tolist() and dataset.facts["classes"] == ["0", "1"]
    rows = torch.cat(list(dataset.splits.values()))
    assert sorted(rows.tolist()) == list(range(60))


def test_every_file_kind_gives_the_same(tmp_path):
    raw = frame(colour=["red", "blue", "red"] * 20)
    paths = [tmp_path / name for name in ("t.csv", "t.csv.gz", "t.tsv", "t.parquet")]
    raw.to_csv(paths[0], index=False)
    raw.to_csv(paths[1], index=False)
    raw.to_csv(paths[2], index=False, sep="\t")
    raw.to_parquet(paths[3])
    made = [table(path, seed=0) for path in paths]
    assert gzip.decompress(paths[1].read_bytes()) == paths[0].read_bytes()
    for dataset in made[1:]:
        torch.testing.assert_close(dataset.x, made[0].x)
        assert torch.equal(dataset.y, made[0].y) and dataset.name == "table-t"


def test_text_becomes_its_rank_by_frequency_in_the_training_rows():
    column = pd.Series(["b", "a", "b", "c", "a", "b", None, "new"])
    made = numeric(column, np.arange(6), None)  # the last two rows are not training rows
    assert made.values.tolist() == [0, 1, 0, 2, 1, 0, 0.5, 3]  # the gap gets the median of 0 0 0 1 1 2
    assert (made.missing, made.categories) == (1, 3)


def test_missing_values_become_the_training_median():
    made = numeric(pd.Series([1.0, np.nan, 3.0, np.inf, 100.0]), np.array([0, 1, 2]), None)
    assert made.values.tolist() == [1, 2, 3, 2, 100] and made.missing == 2


def test_question_marks_and_truth_values(tmp_path):
    raw = frame(q=["?", "4", "5"] * 20, flag=[True, False, False] * 20)
    dataset = table(write(tmp_path / "t.csv", raw), seed=0)
    assert dataset.facts["missing"] == {"q": 20} and dataset.facts["categories"] == {}
    assert set(dataset.facts["features"]) == {"a", "b", "q", "flag"}


def test_numbers_too_large_to_average_are_missing(tmp_path):
    raw = pd.DataFrame({"huge": [1.7e308, -1.7e308, 1.0, 2.0] * 20, "plain": range(80), "label": [0, 1] * 40})
    dataset = table(write(tmp_path / "t.csv", raw), seed=0)
    assert torch.isfinite(dataset.x).all()
    assert dataset.facts["missing"] == {"huge": 40}


def test_the_most_informative_columns_are_kept_in_the_order_of_the_table(tmp_path):
    y = np.arange(200) % 2
    rng = np.random.default_rng(1)
    columns = {f"noise{k}": rng.normal(size=200) for k in range(6)}
    raw = pd.DataFrame(
        {**columns, "strong": y + 0.01 * rng.normal(size=200), "z": rng.normal(size=200), "weak": y * 1.0}
    )
    raw.loc[:20, "weak"] = 1.0
    dataset = table(write(tmp_path / "t.csv", raw.assign(target=y)), features=2, seed=0)
    assert dataset.facts["features"] == ["strong", "weak"] and dataset.x.shape == (200, 2)
    assert len(dataset.facts["mutual_information"]) == 9
    assert table(tmp_path / "t.csv", features=None, seed=0).x.shape == (200, 9)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2)), min_size=2, max_size=40))
def test_mutual_information_agrees_with_sklearn_on_few_values(pairs):
    values, y = np.array(pairs).T
    cuts = np.unique(np.quantile(values, np.arange(1, 10) / 10, method="inverted_cdf"))
    literal = [tuple(int(v > c) + int(v >= c) for c in cuts) for v in values]  # below, on or above every cut
    bins = [sorted(set(literal)).index(key) for key in literal]
    assert mutual_information(values.astype(float), y) == pytest.approx(mutual_info_score(y, bins), abs=1e-12)


def test_mutual_information_by_hand():
    assert mutual_information(np.array([0.0, 0, 1, 1]), np.array([0, 0, 1, 1])) == pytest.approx(np.log(2))
    assert mutual_information(np.array([0.0, 1, 0, 1]), np.array([0, 0, 1, 1])) == pytest.approx(0)
    rare = np.zeros(1000)
    rare[:20] = np.arange(1, 21)  # 2 % of the rows: all deciles are 0
    p = 0.02  # the label is whether it is above 0: the information is the entropy of the label
    assert mutual_information(rare, (rare > 0).astype(int)) == pytest.approx(-p * np.log(p) - (1 - p) * np.log(1 - p))


def test_useless_columns_are_left_out_with_the_reason(tmp_path):
    raw = frame(
        id=np.arange(60),
        constant=7,
        empty=np.nan,
        day=["2013-01-01", "2013-01-02"] * 30,
        note=[f"case {k}" for k in range(60)],
    )
    raw.insert(1, "copy", raw["a"])
    left_out = table(write(tmp_path / "t.csv", raw), seed=0).facts["left_out"]
    assert left_out == {
        "copy": "a copy of a",
        "id": "an identifier",
        "constant": "one value only in the training rows",
        "empty": "one value only in the training rows",
        "day": "dates",
        "note": "an identifier or free text: 60 distinct values",
    }


def test_which_column_is_the_label(tmp_path):
    raw = frame().rename(columns={"class": "outcome"})
    path = write(tmp_path / "t.csv", raw)
    assert table(path, seed=0).facts["label"] == "outcome"  # the last one
    path = write(
        tmp_path / "t.csv", raw.assign(other=1)[["outcome", "a", "b", "other"]].rename(columns={"outcome": "Y"})
    )
    assert table(path, seed=0).facts["label"] == "Y"
    assert table(write(tmp_path / "t.csv", frame(c=[0, 0, 1] * 20)), label="c", seed=0).facts["label"] == "c"
    with pytest.raises(UsageError, match=r"`label` must be a column of .*: a, b, c, class; got 'd'"):
        table(tmp_path / "t.csv", label="d", seed=0)


def test_own_splits_and_rows_without_a_label(tmp_path):
    raw = frame(60, Split=["train"] * 40 + ["Test"] * 20)
    raw["class"] = np.where(raw["class"] == 1, "yes", "no")
    raw.loc[3, "class"] = None
    dataset = table(write(tmp_path / "t.csv", raw), seed=0)
    assert dataset.facts["rows_without_label"] == 1 and len(dataset.y) == 59
    assert dataset.splits["test"].tolist() == list(range(39, 59))
    assert len(dataset.splits["val"]) == 4 and dataset.facts["classes"] == ["no", "yes"]
    assert dataset.facts["features"] == ["a", "b"]


def test_libsvm_text(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{'1' if k % 2 else '-1'}  1:{k % 2 + rng.normal():.6f} 7:{rng.normal():.6f} 4000:{k % 3}" for k in range(90)
    ]
    path = tmp_path / "BBC.txt"
    path.write_text("\n".join(lines) + "\n")
    dataset = table(path, seed=0)
    assert dataset.facts["features"] == ["1", "7", "4000"] and dataset.facts["classes"] == ["-1", "1"]
    train = dataset.splits["train"]
    value = np.array([float(line.split("1:")[1].split()[0]) for line in lines])
    np.testing.assert_allclose(
        dataset.x[:, 0], (value - value[train].mean()) / value[train].std(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", "", "cannot be read as one: No columns"),
        ("t.csv", "a,b\n", "got 0 rows and 2"),
        ("t.csv", "Once upon a time\nthere was a text\n", "got 1 rows and 1"),
        ("t.csv", "Once upon a time\nthere, they say, was a text\n", "cannot be read"),
        ("t.csv", "a,b\n1,2\n3,4,5\n6,7\n", "cannot be read"),
        ("t.csv", "1,2,0\n3,4,1\n", "must start with a line of column names, got 1, 2, 0"),
        ("t.csv", "a,y\n" + "1,0\n2,0\n" * 5, "`label` must have 2 to 20 classes, got 1 in the column 'y'"),
        ("t.csv", "a,y\n" + "".join(f"1,{k / 7}\n" for k in range(30)), "2 to 20 classes, got 30"),
        ("t.csv", "a,y\n" + "1,0\n2,1\n" * 5 + "3,2\n", "at least 3 samples, but '2' has 1 rows"),
        ("t.csv", "a,y\n" + "1,0\n1,1\n" * 5, "a usable column beside the label 'y'"),
        ("t.csv.gz", "a,y\n1,0\n", "cannot be read as one: Not a gzipped file"),
        ("t.txt", "Dear reader,\n", "its first line is not"),
        ("t.txt", "1 1:2 2:x\n", "cannot be read"),
        ("t.parquet", "nothing", "cannot be read"),
        ("t.xlsx", "nothing", "must end in one of .csv, .csv.gz"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        table(path, seed=0)
    assert words in str(caught.value) and name in str(caught.value)


def test_missing_files_and_bad_arguments(tmp_path):
    with pytest.raises(UsageError, match=r"there is no file at .*absent.csv"):
        table(tmp_path / "absent.csv", seed=0)
    with pytest.raises(UsageError, match="`features` must be at least 1, got 0"):
        table(write(tmp_path / "t.csv", frame()), features=0, seed=0)
    with pytest.raises(UsageError, match="`folder` must be a folder"):
        tables_in(tmp_path / "absent")


def test_tables_in_a_folder(tmp_path):
    for name, content in (
        ("b.csv", "x"),
        ("a.tsv", "x"),
        ("readme.txt", "Read me\n"),
        ("tv.txt", "1 1:0.5 3:2\n"),
        ("c.md", ""),
    ):
        (tmp_path / name).write_text(content)
    assert tables_in(tmp_path) == ["a.tsv", "b.csv", "tv.txt"]


needs_data = pytest.mark.skipif(not REAL.exists(), reason=f"the tables are not at {REAL}")


@needs_data
def test_real_tables():
    assert tables_in(REAL) == [f"tab_{name}.csv.gz" for name in ("adult", "compas", "german", "heloc")]
    german, heloc = (table(REAL / f"tab_{name}.csv.gz", seed=0) for name in ("german", "heloc"))
    assert german.x.shape == (1000, 10) and german.facts["features"][0] == "status"
    assert heloc.x.shape == (10459, 10) and heloc.facts["classes"] == ["Bad", "Good"]
    assert heloc.facts["left_out"] == {"Probabilities": "gives the label away"}
    assert heloc.facts["missing"]["ExternalRiskEstimate"] == 598  # -7, -8 and -9 in the file
    for dataset in (german, heloc):
        assert dataset.x.isfinite().all() and dataset.x[dataset.splits["train"]].mean(0).abs().max() < 1e-4


@needs_data
def test_what_tells_the_future_in_compas_is_never_chosen():
    dataset = table(REAL / "tab_compas.csv.gz", features=None, seed=0)
    assert dataset.facts["label"] == "two_year_recid"
    assert dataset.facts["features"] == [
        "sex", "age", "age_cat", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count",
        "days_b_screening_arrest", "c_days_from_compas", "c_charge_degree", "c_charge_desc",
    ]  # fmt: skip
    assert dataset.facts["left_out"]["priors_count.1"] == "a copy of priors_count"
    other = table(REAL / "tab_compas.csv.gz", label="is_recid", features=None, seed=0)
    assert "two_year_recid" in other.facts["left_out"] and other.facts["features"] == dataset.facts["features"]


@needs_data
def test_adult_keeps_its_own_test_rows():
    dataset = table(REAL / "tab_adult.csv.gz", seed=0)
    assert len(dataset.splits["test"]) == 16_281 and dataset.facts["classes"] == ["<=50K", ">50K"]
    assert dataset.facts["missing"] == {"workclass": 2799, "occupation": 2809}
