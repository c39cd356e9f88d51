"""A linear model with a suppressor: methods of the catalogue, asked by a suite, give what they must in closed form."""

import dataclasses

import pandas as pd
import pytest
import torch
from sentences import ROOT

import forsooth
from forsooth.records import Choice, Row
from forsooth.scores import closed_forms
from forsooth.scores.closed_forms import FORMS, Case
from forsooth.suites.bias import reproduce_suppressor
from forsooth.suites.bias.reproduce_suppressor import form_row, plan_suppressor

# c = 0.8, s₁ = 1, s₂ = 0.5: w = (1, -0.8 / 0.5) / (1 - 0.64), worked out by hand
W = (1 / 0.36, -1.6 / 0.36)


@pytest.fixture(scope="module")
def table(tmp_path_factory, single):
    found, words = forsooth.reproduce("bias/suppressor", out=tmp_path_factory.mktemp("suppressor"), device="cpu")
    assert f"{len(FORMS)} of {len(FORMS)} methods say what they must" in words
    return found.set_index("method")


@pytest.mark.parametrize("method", FORMS)
def test_a_method_says_what_its_closed_form_says(table, method):
    row = table.loc[method]
    assert row["agrees"], row.to_dict()


def test_the_kept_table_is_what_the_command_gives(table):
    kept = pd.read_csv(ROOT / "studies/bias/suppressor.csv", index_col="method")
    pd.testing.assert_frame_equal(kept, table, check_dtype=False, rtol=0.02, atol=2e-3)


def test_gradients_are_the_weights_and_patterns_the_signal(table):
    gradient = table.loc["gradient", ["our_signal", "our_suppressor"]].abs()
    assert gradient.tolist() == pytest.approx([abs(w) for w in W], abs=1e-4)
    pattern = table.loc["pattern_net", ["our_signal", "our_suppressor"]].abs()
    assert pattern["our_signal"] == pytest.approx(0.36, abs=0.04) and pattern["our_suppressor"] < 0.03


@pytest.mark.parametrize("method", ["gradient_shap", "gradient_shap_200", "pfi", "integrated_gradients_smooth"])
def test_draws_err_as_much_as_independent_draws_for_every_input_do(table, method):
    assert 0.75 < table.loc[method, "times_error"] < 1.25  # 80 values: a standard error of 8 %


def a_case() -> Case:
    x = torch.tensor([[2.0, 0.5], [-1.0, 0.25]], dtype=torch.float64)
    v = torch.tensor([W, (-W[0], -W[1])], dtype=torch.float64)
    covariance = torch.tensor([[2.0, 0.4], [0.4, 0.25]], dtype=torch.float64)
    background = torch.tensor([[1.0, 0.0], [0.0, 0.5]], dtype=torch.float64)
    return Case(x, v, covariance, background, baseline=background[:1])


def test_closed_forms_worked_out_by_hand():
    case = a_case()
    products = [[2 / 0.36, -0.8 / 0.36], [1 / 0.36, 0.4 / 0.36]]
    f = [1.2 / 0.36, 1.4 / 0.36]
    expected = {
        "gradient": [[*W], [-W[0], -W[1]]],
        "gradient_x_input": products,
        "deep_shap": [[1.5 / 0.36, -0.4 / 0.36], [1.5 / 0.36, 0.0]],
        "shapley": [[1 / 0.36, -0.8 / 0.36], [2 / 0.36, 0.4 / 0.36]],
        "lrp_epsilon_1": [[p * f[k] / (f[k] + 1) for p in products[k]] for k in range(2)],
        "deep_taylor": [[f[0], 0.0], products[1]],
        "pattern_net": [[0.36, 0.0], [-0.36, 0.0]],
        "pattern_attribution": [[f[0], 0.0], [f[1], 0.0]],
    }
    for name, values in expected.items():
        torch.testing.assert_close(FORMS[name].value(case), torch.tensor(values, dtype=torch.float64), msg=name)


def test_the_ridge_shrinks_as_a_regression_over_all_masks_does():
    masks = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float64).repeat(250, 1)
    weights = torch.exp(-((1 - masks.mean(1).sqrt()) ** 2) / 2)
    case = a_case()
    design = torch.cat([masks, torch.ones(1000, 1, dtype=torch.float64)], 1)
    penalty = torch.diag(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
    gram = design.T @ (weights[:, None] * design) + penalty
    goal = design.T @ (weights[:, None] * (masks @ case.products.T))
    torch.testing.assert_close(closed_forms.lime(case), torch.linalg.solve(gram, goal)[:2].T)


@pytest.mark.parametrize("method", FORMS)
def test_what_is_off_by_more_than_chance_does_not_agree(method):
    case = a_case()
    form = FORMS[method]
    off = 2 * reproduce_suppressor.TOLERANCE + 5 * form.error(case)
    template = Row("bias", "closed_forms", method=method)
    assert form_row(template, form.value(case), case).columns["excess"] <= 1
    assert form_row(template, form.value(case) + off, case).columns["excess"] > 1


def test_a_value_that_is_not_finite_does_not_agree():
    case = a_case()
    values = FORMS["gradient"].value(case).clone()
    values[1, 0] = torch.nan
    row = form_row(Row("bias", "closed_forms", method="gradient"), values, case)
    assert not row.columns["excess"] <= 1


def test_trainings_are_replaced_and_nothing_else():
    planned = plan_suppressor(reproduce_suppressor.SETTINGS, Choice())
    ids = [task.id for task in planned.tasks]
    assert "bias.train" not in ids and ids.count("bias.known_network") == 1
    assert ids.count("bias.closed_form") == ids.count("bias.judge") == len(FORMS)
    by_key = {task.key: task for task in planned.tasks}
    for task in planned.tasks:
        if task.id == "bias.closed_form":
            assert {by_key[key].id for key in task.needs} <= {"bias.explain", "bias.play"}
    anchor = next(task for task in planned.tasks if task.id == "bias.play")
    assert by_key[anchor.needs[0]].id == "bias.known_network"


def test_a_method_without_a_form_is_scored_and_not_compared():
    settings = dataclasses.replace(reproduce_suppressor.SETTINGS, methods=("gradient", "random"))
    planned = plan_suppressor(settings, Choice())
    compared = [task.arguments["method"] for task in planned.tasks if task.id == "bias.closed_form"]
    assert compared == ["gradient"]


def test_words_name_those_who_do_not_agree():
    table = pd.DataFrame({"method": ["a", "b"], "largest_suppressor": [0.0, 1.0], "agrees": [True, False]})
    words = reproduce_suppressor.words_of(table)
    assert words.startswith("1 of 2 methods") and "; not so b." in words and "only a give it nothing" in words


def test_a_network_that_is_trained_uses_the_suppressor_as_much_as_the_best_one(tmp_path, single):
    settings = {"datasets": ("suppressor",), "models": ("linear",), "samples": 8}
    run = forsooth.run("bias", methods=["gradient", "kernel_shap"], settings=settings, out=tmp_path, page=False)
    accuracy = run.rows.query("metric == 'accuracy'")["value"]
    assert accuracy.between(0.952 - 0.033, 0.952 + 0.033).all()  # Φ(1 / 0.6) and three standard errors of 400 inputs
    bias = run.rows.query("metric == 'm_bias'").groupby("method")["value"].mean()
    assert bias["kernel_shap"] < 0.1 * bias["gradient"]  # the one is the anchor but for its baseline
