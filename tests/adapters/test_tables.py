"""Tables with text, categories or gaps: cells become numbers of values and back; hidden ones come from other rows."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from forsooth.adapters import tables
from forsooth.games import exact, game
from forsooth.records import UsageError

PEOPLE = pd.DataFrame(
    {
        "age": [31.0, np.nan, 52.0, 31.0],
        "job": ["cook", "clerk", None, "nurse"],
        "owner": [True, False, True, True],
        "kids": [0, 2, 1, 0],
        "size": pd.Categorical(["s", "m", "m", "s"], categories=["s", "m", "l"], ordered=True),
    }
)


def score(frame):
    """(n, 2): text, gaps and numbers, that work together."""
    known = frame["age"].fillna(-20) * frame["owner"].astype(float)
    value = known + 5 * frame["job"].eq("cook") * frame["kids"] + 7 * frame["job"].isna() + 3 * frame["size"].eq("m")
    return np.stack([value, -value], axis=1)


def coded(background=None):
    table = tables.read(score, PEOPLE[:2], PEOPLE)
    model, kind = tables.opened(score, table)
    assert kind == "a function"
    return table, model if background is None else model.behind(table.data[background])


def test_cells_come_back_as_they_were_with_their_types():
    table, _ = coded()
    pd.testing.assert_frame_equal(table.frame(table.data), PEOPLE)
    pd.testing.assert_frame_equal(table.frame(table.x), PEOPLE[:2])


def test_a_hidden_column_takes_its_values_from_the_background_rows_one_after_another():
    table, model = coded(background=[1, 2, 3])
    x = table.x[:1].clone()
    x[0, 1] = x[0, 3] = tables.HIDDEN
    rows = [PEOPLE.iloc[[0]].assign(job=PEOPLE.job[k], kids=PEOPLE.kids[k]) for k in (1, 2, 3)]
    expected = np.mean([score(row)[0] for row in rows], axis=0)
    np.testing.assert_allclose(model(x)[0].numpy(), expected)


def test_shapley_values_are_those_of_a_literal_sum_over_coalitions_and_rows():
    table, model = coded(background=[1, 3])

    def worth(shown):
        replaced = [name for k, name in enumerate(PEOPLE) if k not in shown]
        rows = [PEOPLE.iloc[[0]].assign(**{name: PEOPLE[name][k] for name in replaced}) for k in (1, 3)]
        return np.mean([score(row.astype({"size": PEOPLE["size"].dtype}))[0, 0] for row in rows])

    literal = []
    for player in range(5):
        others = [k for k in range(5) if k != player]
        subsets = [set(s) for size in range(5) for s in itertools.combinations(others, size)]
        weights = [math.factorial(len(s)) * math.factorial(4 - len(s)) / math.factorial(5) for s in subsets]
        literal.append(sum(w * (worth(s | {player}) - worth(s)) for w, s in zip(weights, subsets, strict=True)))
    target = torch.zeros(1, dtype=torch.long)
    ours = exact(game(model, table.x[:1], target, players=torch.arange(5), baseline=torch.zeros(5))).values[0]
    np.testing.assert_allclose(ours.numpy(), literal, atol=1e-12)


def test_a_value_between_two_of_the_table_is_refused():
    table, model = coded(background=[0])
    for wrong in (table.x + 0.5, table.x * 100, -table.x):
        with pytest.raises(UsageError, match="got values between those of the table"):
            model(wrong)


def test_values_that_only_the_data_have_are_known_too():
    table = tables.read(score, PEOPLE[:2], PEOPLE[2:])
    assert set(table.frame(table.data)["job"].dropna()) == {"nurse"} and len(table.values[1]) == 4


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (PEOPLE, True),
        (PEOPLE[["kids", "owner"]], False),
        (PEOPLE[["age"]], True),
        (np.array([[1.0, np.nan]]), True),
        (np.array([["a", 1]], dtype=object), True),
        (np.ones((2, 2)), False),
        (torch.ones(2, 1, 4, 4), False),
    ],
)
def test_who_is_played_as_a_table(value, wanted):
    assert tables.needed(value) is wanted


def test_a_network_is_told_which_columns_are_no_numbers():
    with pytest.raises(UsageError, match="for a torch module, got gaps in age, text or categories in job, text or cat"):
        tables.read(nn.Linear(5, 2), PEOPLE, None)


def test_two_columns_of_one_name_are_refused():
    with pytest.raises(UsageError, match="a name of its own for each column"):
        tables.read(score, pd.concat([PEOPLE, PEOPLE], axis=1), None)


@pytest.mark.parametrize("word", ["mean", "zero", "rows:0", "rows:many", "rows:"])
def test_a_baseline_that_such_a_table_cannot_have_is_refused(word):
    with pytest.raises(UsageError, match="must be rows or rows:N for a table with text"):
        tables.rows_of(word)


def test_a_function_on_arrays_is_given_an_array():
    cells = np.array([[31.0, "cook"], [np.nan, None]], dtype=object)
    table = tables.read(len, cells, None)

    def by_job(rows):
        assert isinstance(rows, np.ndarray)
        return np.stack([rows[:, 1] == "cook", rows[:, 1] != "cook"], axis=1).astype(float)

    model, _ = tables.opened(by_job, table)
    assert model(table.x).tolist() == [[1.0, 0.0], [0.0, 1.0]]
