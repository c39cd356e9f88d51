"""Five hundred of the calls of `benchmarks/fuzz.py`: whatever is given, there is an answer or one clear line."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_odd_words_settings_models_maps_and_files(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])
    monkeypatch.chdir(tmp_path)
    import fuzz

    found = fuzz.fuzz(500, 7, tmp_path)
    assert found.faults == {}
    assert {kind.__name__ for kind in fuzz.SHARES} == set(found.ends)
    assert all(ends["refused"] for ends in found.ends.values())
    assert sum(ends["answered"] for ends in found.ends.values()) > 30
