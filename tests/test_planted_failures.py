"""Each kind of fault that was ever made, or could have been, is planted and caught by a test of the way."""

import faults
import pytest
import way

pytestmark = pytest.mark.usefixtures("single")
CASES = [(fault, name, check) for fault, found in faults.CAUGHT.items() for name, check in found.items()]


@pytest.mark.parametrize("fault, name, check", CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_planted_fault_is_caught(fault, name, check, monkeypatch, tmp_path):
    fault(monkeypatch, name)
    assert check in way.failures(name, faults.walk(name, tmp_path))


def test_every_check_catches_some_fault():
    assert {check for _, _, check in CASES} == {check.__name__ for check in way.PLACED}
