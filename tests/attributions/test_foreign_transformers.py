"""Transformers of other libraries: sums are kept, and who has no rule refuses by name (benchmarks/transformers.py)."""

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest

from forsooth.attributions import METHODS

CHEAP = [method for method in METHODS if method.cost == "passes" and not method.null]


@pytest.fixture(scope="module")
def table():
    """The benchmark as a module; it changes the first place that is searched, which is put back."""
    path = list(sys.path)
    spec = importlib.util.spec_from_file_location("transformers_table", Path("benchmarks/transformers.py").resolve())
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["Hugging Face ViT", "Hugging Face BERT", "timm ViT"])
def test_transformers_of_other_libraries_are_explained(table, name):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = table.CASES[name]()
    except ImportError as error:
        pytest.skip(f"{name}: {error}")
    gaps = table.sums(case)
    assert max(gaps["attn_lrp"], gaps["cp_lrp"]) < 1e-4
    assert max(gaps["integrated_gradients"], gaps["deep_lift"]) < 1e-3
    answers = {method.name: table.asked(method, case) for method in CHEAP}
    assert not [answer for answer in answers.values() if answer.startswith("WRONG")]
    assert sum(not answer for answer in answers.values()) >= 10
    assert "has no rule for the operation" in answers["lrp"] and "attn_lrp" in answers["lrp"]
