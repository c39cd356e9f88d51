"""The claims of sections 5.1 to 5.4, judged on values made by hand."""

import numpy as np
import pandas as pd
import pytest

from forsooth.suites.planted import reproduce as planted_figures
from forsooth.suites.verdicts import mean_of, rise


def made(values: dict[str, list[float]], **more: object) -> pd.DataFrame:
    """One watermark model for each value of a method."""
    plain = {"manipulation": "watermark", "model": "m", "kind": "similar", "presence": "with", "er": 0.4, "r": 0.5}
    plain |= {"level": 0, "failed": 0.0, "defined": 0.0}
    return pd.DataFrame(
        [
            {**plain, "method": name, "model_seed": k, "value": v, **more}
            for name, own in values.items()
            for k, v in enumerate(own)
        ]
    )


def test_claims_of_5_1_by_hand():
    accuracies = pd.DataFrame({"value": [0.99] * 7 + [0.5] * 3, "experiment": "5.1"})
    models = made({"gradient_shap_200": [0.68, 0.69, 0.70], "saliency": [0.50, 0.52, 0.51]})
    lines = planted_figures.claims_5_1(models, accuracies)
    assert lines[0].startswith("No method is near 1 (the best: gradient_shap_200): holds. Ours 0.69 [")
    assert "70 % of models pass 95 % accuracy: agrees. Ours 0.70 [0.40, 0.89], n = 10" in lines[1]  # Wilson's
    assert "SHAP is the best on average (ours: its lead over saliency): holds. Ours 0.18" in lines[2]
    assert "Attr% of SHAP on average: agrees" in lines[3] and "ours at 40%" in lines[3]
    both = pd.concat([models, models.assign(presence="without", value=models["value"] + [0.2, 0.2, 0.2, 0, 0.1, -0.1])])
    lines = planted_figures.claims_5_1(both, accuracies)
    together = "(one of 2 claims, corrected by Holm)"
    assert any(f"than its absence, gradient_shap_200 {together}: does not hold" in line for line in lines)
    assert any(f"than its absence, saliency {together}: cannot be told" in line for line in lines)


def test_claims_of_trend_by_hand():
    rising = pd.concat(
        [
            made({"gradient_shap_200": [0.1, 0.11, 0.1]}, level=k).assign(value=lambda t, k=k: t["value"] + 0.1 * k)
            for k in range(3)
        ]
    )
    flat = pd.concat([made({"saliency": [0.1 + 0.01 * k, 0.1 - 0.01 * k, 0.2]}, level=k) for k in range(3)])
    lines = planted_figures.claims_of_trend(pd.concat([rising, flat]), pd.DataFrame(), x="level", words="visibility")
    assert "rises with visibility (slope): holds. Ours 0.10 [0.10, 0.10], n = 3" in lines[0]
    assert "No other method rises with visibility on any artefact" in lines[1] and ": holds. Ours 0.00" in lines[1]
    assert "gradient_shap_200 has no trend with visibility, all artefacts together (slope)" in lines[2]
    assert "(one of 2 claims, corrected by Holm): does not hold" in lines[2]
    assert "saliency has no trend with visibility, all artefacts together (slope)" in lines[3]
    assert "(one of 2 claims, corrected by Holm): holds. Ours 0.00" in lines[3]
    assert "gradient_shap_200 on watermark" in lines[4]


def test_pairs_that_rise_by_luck_are_no_rise_of_anybody():
    """24 pairs, of which two rise with p = 0.037 each, as luck will have it: as many as a binomial test called sure."""
    names = [f"m{k}" for k in range(24)]
    steps = []
    for level in range(2):
        lucky = {name: [0.1 * level, 0.2 * level, 0.3 * level] for name in names[:3]}
        still = {name: [0.1 * level, -0.1 * level, 0.01 * level] for name in names[3:]}
        steps.append(made({**lucky, **still}, level=level))
    (line,) = [
        line
        for line in planted_figures.claims_of_trend(pd.concat(steps), pd.DataFrame(), x="level", words="visibility")
        if line.startswith("No other method")
    ]
    assert ": cannot be told. Ours 0.00" in line and "24 tests corrected by Holm; asked alone 3 would rise" in line
    assert rise([0.1, 0.2, 0.3]) == pytest.approx(0.0371, abs=1e-4)


def test_a_map_that_says_nothing_counts_as_zero_in_the_figures():
    shared = {"experiment": "5.1", "metric": "attr", "model": "m", "manipulation": "watermark", "model_seed": 0}
    shared |= {"kind": "similar", "level": 0, "r": 0.5, "method": "grad_cam", "presence": "without"}
    shared |= {"epoch": 3, "accuracy": 0.99}
    told = [(0.8, "ok", 0.4), (0.6, "ok", 0.4), (np.nan, "zero map", 0.4), (np.nan, "error", np.nan)]
    rows = [{**shared, "value": value, "status": status, "er": er} for value, status, er in told]
    rows.append({**shared, "value": np.nan, "status": "below gate", "er": np.nan})
    models = planted_figures.of_models(pd.DataFrame(rows), "5.1")
    assert models[["value", "defined", "failed"]].to_numpy().tolist() == [pytest.approx([0.35, 0.7, 0.5])]
    line = planted_figures.table_of(models, "5.1").iloc[0]
    assert (line["attr"], line["attr_defined"], line["failed"]) == pytest.approx((0.35, 0.7, 0.5))


def test_presences_of_one_model_are_no_repetition_of_it():
    steps = [made({"saliency": [0.1 * k, 0.2 * k]}, level=k, presence=p) for k in range(3) for p in ("with", "without")]
    assert planted_figures.slopes(pd.concat(steps), "level") == pytest.approx([0.1, 0.2])
    alone = planted_figures.claims_of_trend(pd.concat(steps), pd.DataFrame(), x="level", words="visibility")
    assert "cannot be told" in alone[0]  # two groups are too few for a trend
    found = planted_figures.table_of(pd.concat(steps).assign(epoch=1, accuracy=1.0), "5.3")
    assert list(found["models"]) == [6, 6] and found["slope"].tolist() == pytest.approx([0.15, 0.15])


def test_the_share_in_the_shapley_range_by_hand():
    models = pd.concat([made({"saliency": [1.0, 0.9]}, r=0.5), made({"saliency": [0.7, 0.4]}, r=1.0)])
    assert planted_figures.in_range(models).mean == 0.5
    assert mean_of([0.3]).n == 1 and np.isnan(mean_of([0.3]).low)
    assert mean_of([]).n == 0
