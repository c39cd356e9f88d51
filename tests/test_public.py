"""What `import forsooth` offers: names that editors and type checkers know, and one version."""

import ast
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import forsooth
from forsooth.cli import app


def typed_names() -> set[str]:
    """Names that type checkers see: imported where `TYPE_CHECKING` holds."""
    tree = ast.parse(Path(forsooth.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    return {name.name for node in block.body for name in node.names}


def test_every_public_name_is_there_for_editors_and_type_checkers():
    assert set(forsooth.__all__) == typed_names() <= set(dir(forsooth))
    for name in forsooth.__all__:
        assert getattr(forsooth, name) is not None


def test_what_is_no_public_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        forsooth.rnu()  # type: ignore[attr-defined]


def test_there_is_one_version():
    printed = CliRunner().invoke(app, ["--version"])
    assert printed.exit_code == 0
    assert printed.stdout.strip() == f"forsooth {forsooth.__version__}" == f"forsooth {version('forsooth')}"
