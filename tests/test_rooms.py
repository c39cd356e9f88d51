"""Imports go downhill only: a room knows those below it and never its neighbours."""

import ast
from pathlib import Path

import pytest

import forsooth

SOURCE = Path(forsooth.__file__).parent
FLOOR = {"errors", "records", "seeds", "chunks", "dense", "quick", "names", "digests", "strangers", "wording"}
ROOMS = {"datasets", "models", "attributions", "scores", "games", "papers"}
MAY_IMPORT = {
    "errors": set(),
    "records": {"errors"},
    "seeds": set(),
    "chunks": set(),
    "dense": set(),
    "quick": set(),
    "digests": {"records"},
    "strangers": set(),
    "printing": set(),
    "progress": {"printing"},
    "wording": set(),
    "counted": {"records"},
    "frames": set(),
    "names": {"errors"},
    "papers": {"records", "names"},
    "stats": {"records"},
    "games": FLOOR,
    "datasets": FLOOR,
    "models": FLOOR,
    "attributions": FLOOR | {"games"},
    "scores": FLOOR | {"games"},
    "plain": set(),
    "store": {"records"},
    "schedule": {"importing", "records"},
    "service": {"records", "schedule"},
    "processes": {"records", "schedule", "service"},
    "cluster": {"records", "schedule", "store"},
    "surroundings": {"importing"},
    "mirror": set(),
    "isolation": {"chunks", "mirror", "records"},
    "nursery": {"chunks", "isolation", "mirror"},
    "group": {"chunks", "records"},
    "shared": {"records"},
    "engine": {
        "chunks",
        "records",
        "store",
        "plain",
        "schedule",
        "processes",
        "cluster",
        "isolation",
        "group",
        "shared",
        "surroundings",
    },
    "foreign": {"records"},
    "importing": {"errors"},
    "plugins": {"records", "names", "foreign", "surroundings", "importing"},
    "adapters": FLOOR | {"games", "engine", "plugins", "foreign", "surroundings"},
    "settings": {"records", "names"},
    "report": {"records", "names", "wording", "strangers", "store", "papers", "counted", "frames", "stats", "scores"},
    "analysis": {"records", "names", "strangers", "wording", "store", "report", "stats"},
    "suites": FLOOR
    | ROOMS
    | {"engine", "group", "shared", "store", "plain", "plugins", "settings", "counted", "frames", "stats", "report"}
    | {"surroundings", "isolation"},
    "user": FLOOR
    | {
        *("games", "datasets", "models", "attributions", "scores", "counted", "frames", "stats", "suites", "report"),
        *("engine", "store", "plain", "plugins", "adapters", "arguments", "progress", "runs", "isolation"),
        *("importing", "surroundings"),
    },
    "arguments": FLOOR | {"plugins", "store", "attributions"},
    "terminal": {"printing", "progress", "errors"},
    "facts": {"analysis", "settings", "wording"},
    "cli_user": {"errors", "report", "runs", "terminal"},
    "cli_runs": {"errors", "names", "printing", "facts", "analysis", "store", "runs", "terminal"},
    "runs": {
        *("records", "names", "strangers", "wording", "plugins", "store", "engine"),
        *("report", "analysis", "attributions", "suites"),
    },
    "api": FLOOR
    | {
        "adapters",
        "arguments",
        "user",
        "plugins",
        "settings",
        "runs",
        "isolation",
        "surroundings",
        "store",
        "engine",
        "progress",
        "report",
        "suites",
        "attributions",
    },
    "cli": {"errors", "names", "printing", "api", "cli_user", "cli_runs", "processes", "terminal", "suites", "runs"},
}


SUITES = sorted(path.parent.name for path in (SOURCE / "suites").glob("*/plan.py"))


def imported_by(path: Path) -> list[list[str]]:
    """The parts of the names of ours that a file, or all files of a folder, imports."""
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    names = [f"{n.module}.{a.name}" for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
    names += [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    return [name.split(".") for name in names if name.startswith("forsooth.")]


def rooms_imported_by(room: str) -> set[str]:
    return {parts[1] for parts in imported_by(SOURCE / room)} - {room, "__version__"}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_go_downhill(room):
    assert rooms_imported_by(room) <= MAY_IMPORT[room]


def test_every_room_is_on_the_list():
    found = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} == set(MAY_IMPORT)


@pytest.mark.parametrize("suite", SUITES)
def test_no_suite_imports_another(suite):
    others = {parts[2] for parts in imported_by(SOURCE / "suites" / suite) if parts[1] == "suites"}
    assert not others & set(SUITES) - {suite}


@pytest.mark.parametrize("shared", sorted((SOURCE / "suites").glob("*.py")), ids=lambda path: path.stem)
def test_what_suites_share_knows_none_of_them(shared):
    known = {parts[2] for parts in imported_by(shared) if parts[1] == "suites"}
    assert not known & set(SUITES) or shared.stem == "__init__"  # which is the list of them


def test_there_are_five_suites():
    assert SUITES == ["articles", "bam", "bias", "planted", "xaitris"]
