"""Functions have little in them, and no statement packs several thoughts; density.py prints how much."""

from pathlib import Path

import density
import pytest

MOST_NODES = 180  # of a function at the 90th percentile; zennit 140, benchopt 233
MOST_PACKED = 3.0  # assignments of several values to several names, per 1,000 code lines
MOST_CONDITIONAL = 12.0  # conditional expressions, per 1,000 code lines


@pytest.fixture(scope="module")
def source() -> density.Density:
    return density.density((density.ROOT / "src" / "forsooth").rglob("*.py"))


def test_a_function_has_little_in_it(source):
    assert source.ninetieth <= MOST_NODES


def test_unrelated_values_are_not_packed_into_one_assignment(source):
    assert source.per_thousand(source.packed) <= MOST_PACKED


def test_conditional_expressions_are_rare(source):
    assert source.per_thousand(source.conditional) <= MOST_CONDITIONAL


@pytest.mark.parametrize("room", ["suites", "report"])
def test_upper_rooms_are_tested(room):
    files = density.rooms(density.ROOT / "src" / "forsooth")[room]
    assert density.test_lines(density.ROOT, room) >= 0.7 * density.density(files).lines


def test_what_is_counted_by_hand(tmp_path: Path):
    file = tmp_path / "one.py"
    file.write_text('"""Words."""\n\n# why\na, b = 1, 2\nc = a if b else 3\n\n\ndef f(x):\n    return x\n')
    found = density.density([file])
    assert (found.files, found.lines, found.code) == (1, 9, 4)
    assert (found.packed, found.conditional) == (1, 1)
    assert found.functions == (6,)  # the definition, its arguments, one argument, the return, a name and how it is used
