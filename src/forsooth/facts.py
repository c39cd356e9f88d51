"""What the catalogues say in words, kept in facts.json: who only reads it waits for no import of torch.

python -m forsooth.facts   writes the file again; a test says when that is due
"""

import importlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from forsooth.wording import first_line, markdown_table

FILE = "facts.json"
CATALOGUES = {
    "suites": ("forsooth.suites", "SUITES"),
    "methods": ("forsooth.attributions", "METHODS"),
    "metrics": ("forsooth.scores", "METRICS"),
    "models": ("forsooth.models", "MODELS"),
    "datasets": ("forsooth.datasets", "DATASETS"),
    "reproductions": ("forsooth.suites", "REPRODUCTIONS"),
}
TRAITS = {"methods": ("needs", "promise"), "metrics": ("reads", "better")}  # fields of the records
PAGE = """# Settings

Made by `forsooth settings --format markdown`. Each can be changed with `--set name=value`, or with
`settings={"name": value}` in Python; several values are separated by commas, and `none` stands for nothing."""
PROSE = ("setting", "meaning")  # columns that are no values of a preset


@cache
def known() -> dict[str, Any]:
    """What the file says.

    catalogues  kind -> name -> what it is, in a line
    traits      methods, metrics -> name -> what decides whether it can be asked, and what it promises
    cards       methods, metrics -> name -> its card in Markdown
    settings    suite -> lines of setting, meaning and its value in each preset

    Where a suite was added or taken away since it was written, the records are asked instead.
    """
    facts: dict[str, Any] = json.loads((resources.files("forsooth") / FILE).read_text(encoding="utf-8"))
    return facts if set(facts["settings"]) == _suites_there() else made()


def _suites_there() -> set[str]:
    """The names of the folders that hold a suite."""
    folders = (resources.files("forsooth") / "suites").iterdir()
    return {folder.name for folder in folders if (folder / "settings.py").is_file()}


def made() -> dict[str, Any]:
    """What the file should say, by the records."""
    from forsooth.analysis.cards import card
    from forsooth.settings import described

    records = {kind: catalogue(kind) for kind in CATALOGUES}
    return {
        "catalogues": {kind: {one.name: summary(one) for one in own} for kind, own in records.items()},
        "traits": {kind: {one.name: traits(one, kind) for one in records[kind]} for kind in TRAITS},
        "cards": {kind: {one.name: card(one) for one in records[kind]} for kind in ("methods", "metrics")},
        "settings": {suite.name: described(suite) for suite in records["suites"]},
    }


def catalogue(kind: str) -> tuple[Any, ...]:
    """The records of that kind, which takes their imports."""
    module, name = CATALOGUES[kind]
    return tuple(getattr(importlib.import_module(module), name))


def traits(record: Any, kind: str) -> dict[str, str]:
    """Those fields of a method or metric in words, empty where there is nothing to say."""
    words = {}
    for field in TRAITS[kind]:
        value = getattr(record, field) or ""
        words[field] = value if isinstance(value, str) else ", ".join(value)
    return words


def summary(record: Any) -> str:
    """What a record is, in a line: what it says of itself, or the first line of its function."""
    for field in ("question", "title"):  # of a suite, of a reproduction
        if hasattr(record, field):
            return str(getattr(record, field))
    if hasattr(record, "description"):
        return f"{record.description} [{record.cite}]"
    knobs = ", ".join(f"{name}={value}" for name, value in getattr(record, "settings", {}).items())
    return " ".join([first_line(record.function), f"({knobs})" if knobs else "", f"[{record.cite}]"])


def settings_page(suites: Iterable[str]) -> str:
    """The settings of these suites in Markdown."""
    return "\n\n".join([PAGE, *map(_settings_of, suites)]) + "\n"


def _settings_of(suite: str) -> str:
    lines = [_broken(line) for line in known()["settings"][suite]]
    table = markdown_table(lines[0], [line.values() for line in lines])
    return f"## {suite}\n\n{known()['catalogues']['suites'][suite]}\n\n{table}"


def _broken(line: Mapping[str, str]) -> dict[str, str]:
    """Values that are long lists may break at their commas; prose has commas of its own."""
    return {
        name: words if name in PROSE else words.replace(",", ", ").replace(",  ", ", ") for name, words in line.items()
    }


def written() -> str:
    """What the file should hold."""
    return json.dumps(made(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(str(resources.files("forsooth") / FILE)).write_text(written(), encoding="utf-8")
