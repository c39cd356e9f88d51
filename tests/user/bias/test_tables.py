"""`forsooth bias` on tables as people have them: a csv with text, gaps and a label, classifiers and regressors."""

import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from torch import nn

import forsooth
from forsooth import cli
from forsooth.attributions import METHODS
from forsooth.records import Method, UsageError

DRAW = np.random.default_rng(0)
ROWS = 120
PEOPLE = pd.DataFrame(
    {
        "age": np.where(DRAW.random(ROWS) < 0.2, np.nan, DRAW.integers(18, 80, ROWS)),
        "job": np.where(DRAW.random(ROWS) < 0.1, None, DRAW.choice(["cook", "clerk", "nurse"], ROWS)),
        "owner": DRAW.random(ROWS) < 0.5,
        "income": DRAW.normal(3, 1, ROWS),
    }
)
BOUGHT = PEOPLE.age.fillna(40).gt(45) | (PEOPLE.job.eq("cook") & PEOPLE.income.gt(3))


def pipeline():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["job"]), (numbers, ["age", "owner", "income"])
    )
    return make_pipeline(columns, LogisticRegression()).fit(PEOPLE, BOUGHT)


def regressor():
    categories = PEOPLE.astype({"job": "category"})
    model = HistGradientBoostingRegressor(categorical_features="from_dtype", max_iter=20)
    return model.fit(categories, PEOPLE.income + 2 * PEOPLE.job.eq("cook")), categories


def by_name(answer):
    return answer.table.set_index("method")


def test_a_pipeline_on_text_and_gaps():
    answer = forsooth.bias(pipeline(), PEOPLE[:20], data=PEOPLE)
    table = by_name(answer)
    assert set(table.index) == {"kernel_shap", "shapley_sampling", "lime", "pfi", "constant", "random", "shapley"}
    assert table.status.eq("ok").all() and table.m_bias["kernel_shap"] < 1e-6 < table.m_bias["constant"]
    assert "Hidden features take the values of 20 rows of the data, drawn evenly over the predicted" in answer.words
    assert "16 coalitions, 320 forward passes for an input" in answer.words


def test_every_method_that_hides_columns_of_a_table_can_be_asked_and_others_are_told_why():
    model, categories = regressor()
    answer = forsooth.bias(
        model, categories[:6], data=categories, baseline="rows:5", methods=[m.name for m in METHODS[:-1]]
    )
    table = by_name(answer)
    hiding = {m.name for m in METHODS if m.hides and "table" in m.inputs}
    assert set(table.index[table.status == "ok"]) == hiding | {"random", "constant", "shapley"}
    assert table.message["gradient"].startswith("gradient reads numbers, and this table is played by values")
    assert "of a regressor" in answer.words and "80 forward passes" in answer.words


def test_numbers_with_gaps_for_a_model_that_takes_them():
    numbers = PEOPLE[["age", "income"]].to_numpy()
    model = HistGradientBoostingRegressor(max_iter=20).fit(numbers, BOUGHT)
    assert by_name(forsooth.bias(model, numbers[:8], data=numbers, methods=["lime"])).status["lime"] == "ok"


def test_rows_may_stand_for_what_is_hidden_of_any_table_of_numbers():
    def product(x):
        return np.stack([x[:, 0] * x[:, 1], x[:, 2]], axis=1)

    x = DRAW.normal(size=(12, 3))
    rows, mean = (
        by_name(forsooth.bias(product, x, target=0, baseline=word, methods=["occlusion"]))
        for word in ("rows:12", "mean")
    )
    assert rows.m_bias["occlusion"] != mean.m_bias["occlusion"] and rows.status["occlusion"] == "ok"


def reads_codes(model, x, target, *, players=None, baseline=None):
    without = [model(x * (1 - row)) for row in torch.eye(4)]
    return torch.stack([(model(x) - other).gather(1, target[:, None])[:, 0] for other in without], dim=1)


HIDER = Method("hider", reads_codes, needs=(), random=False, signed=True, cite="me", version=1, hides=True)


def test_a_method_of_ones_own_hides_by_zero_if_it_says_that_it_hides():
    answer = forsooth.bias(pipeline(), PEOPLE[:6], data=PEOPLE, methods=[HIDER, reads_codes, "occlusion"])
    table = by_name(answer)
    assert table.m_bias["hider"] == pytest.approx(table.m_bias["occlusion"])
    assert table.status["reads_codes"] == "skipped" and "hides=True" in table.message["reads_codes"]


def test_a_network_is_refused_with_the_columns_that_are_no_numbers():
    with pytest.raises(UsageError, match="got gaps in age, text or categories in job; give a function of a data frame"):
        forsooth.bias(nn.Linear(4, 2), PEOPLE[:4])


def test_a_table_of_a_file_at_the_terminal(tmp_path, monkeypatch, capsys):
    """With a label among its columns, which the model was not fitted on."""
    monkeypatch.chdir(tmp_path)
    PEOPLE.assign(bought=BOUGHT).to_csv("people.csv", index=False)
    PEOPLE[:8].assign(bought=BOUGHT[:8]).to_csv("some.csv", index=False)
    words = "--model test_tables:pipeline --inputs some.csv --data people.csv --methods lime --out answer --workers 1"
    monkeypatch.setitem(sys.modules, "test_tables", sys.modules[__name__])
    monkeypatch.setattr(sys, "argv", ["forsooth", "bias", *words.split()])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    first = capsys.readouterr().out
    assert "Columns that the model was not fitted on play no part: bought." in " ".join(first.split())
    in_memory = by_name(forsooth.bias(pipeline(), PEOPLE[:8], data=PEOPLE, methods=["lime"]))
    kept = pd.read_csv("answer/bias.csv")
    mean = kept[kept.method.eq("lime") & kept.metric.eq("m_bias")].groupby("sample")["value"].mean().mean()
    assert mean == pytest.approx(in_memory.m_bias["lime"])


def test_numbers_of_a_file_are_numbers(tmp_path):
    file = tmp_path / "numbers.csv"
    numbers = PEOPLE[["income", "owner"]].assign(kids=1)
    numbers.to_csv(file, index=False)
    ours, arrays = (
        forsooth.bias(lambda x: x @ np.ones((3, 2)) * [1, 2], given, methods=["lime"]).table
        for given in (file, numbers.astype(float).to_numpy())
    )
    pd.testing.assert_frame_equal(ours, arrays)
