"""Imports go downhill only: a room knows those below it and never its neighbours."""

import ast
from pathlib import Path

import pytest

import forsooth

SOURCE = Path(forsooth.__file__).parent
FLOOR = {"errors", "records", "seeds", "chunks", "dense", "names", "digests", "strangers", "wording"}
ROOMS = {"datasets", "models", "attributions", "scores", "games", "papers"}
MAY_IMPORT = {
    "errors": set(),
    "records": {"errors"},
    "seeds": set(),
    "chunks": set(),
    "dense": set(),
    "digests": {"records"},
    "strangers": set(),
    "progress": set(),
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
    "terminal": {"progress", "errors"},
    "facts": {"analysis", "settings", "wording"},
    "cli_user": {"errors", "report", "runs", "terminal"},
    "cli_runs": {"errors", "names", "facts", "analysis", "store", "runs", "terminal"},
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
    "cli": {"errors", "names", "api", "cli_user", "cli_runs", "processes", "terminal", "suites", "runs"},
}


def rooms_imported_by(room: str) -> set[str]:
    path = SOURCE / room
    files = path.rglob("*.py") if path.is_dir() else [path.with_suffix(".py")]
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    names = [f"{n.module}.{a.name}" for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names]
    names += [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    return {name.split(".")[1] for name in names if name.startswith("forsooth.")} - {room, "__version__"}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_go_downhill(room):
    assert rooms_imported_by(room) <= MAY_IMPORT[room]


def test_every_room_is_on_the_list():
    found = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} == set(MAY_IMPORT)
