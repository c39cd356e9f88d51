"""All methods of the catalogue may be asked of every suite: who cannot meet whom is a row that says why."""

import pytest

from forsooth.arguments import chosen_methods
from forsooth.records import Choice
from forsooth.suites import SUITES

NAMES = chosen_methods("all")
REASONS = {
    "xaitris": ("attention_rollout", "attention_rollout reads the attention of a transformer, and mlp has none"),
    "planted": ("attention", "attention reads words, and this is an image"),
    "bam": ("rationale", "rationale reads words, and this is an image"),
    "articles": ("sobel", "sobel reads an image, and this is words"),
    "bias": ("legrad", "legrad reads an image or words, and this is a table"),
}


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_method_has_a_task_or_a_reason(suite):
    plan = suite.plan(suite.presets["demo"], Choice(methods=NAMES))
    skipped = {row.method for row in plan.skips}
    explaining = " ".join(f"{task.name} {task.arguments}" for task in plan.tasks)
    assert all(f"'{name}'" in explaining or name in skipped for name in NAMES)
    name, reason = REASONS[suite.name]
    assert reason in {row.message for row in plan.skips if row.method == name}
    assert all(row.status == "skipped" and row.message for row in plan.skips)


def test_a_transformer_is_asked_what_reads_attention():
    (suite,) = (suite for suite in SUITES if suite.name == "xaitris")
    settings = suite.presets["demo"].__class__(models=("vit", "cnn"), trainings=1, samples=2)
    plan = suite.plan(settings, Choice(methods=("legrad",), only={"scenario": ("LIN",), "size": ("8",)}))
    assert {row.model for row in plan.skips} == {"cnn"}
    assert any("explain: legrad, vit" in task.name for task in plan.tasks)
