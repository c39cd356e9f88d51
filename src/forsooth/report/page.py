"""One self-contained page for one run, or for several side by side."""

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from forsooth.records import UsageError
from forsooth.report.aggregate import Results, read
from forsooth.report.chapter import chapter
from forsooth.report.leaderboard import board
from forsooth.report.medians import Medians, all_medians
from forsooth.report.tables import MEANING, number

VECTOR = 600_000  # bytes; larger drawings go into the page as PNG
Tables = Mapping[str, Medians]


def write_page(
    run_dirs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    figures: Mapping[str, Callable[..., Any]] | None = None,
) -> Path:
    """Write report.html, and figures/ beside it, for one run or several; says where the page is.

    out      a folder, or the page's own path ending in .html; without it the page goes into the folder of the one run
    figures  name -> function that draws, beside the figures that all suites share
    """
    folders = [Path(run_dirs)] if isinstance(run_dirs, str | Path) else [Path(folder) for folder in run_dirs]
    if not folders or (out is None and len(folders) > 1):
        raise UsageError(f"`run_dirs` must be one run, or several with `out`; got {len(folders)} and out={out}")
    target = Path(out) if out is not None else folders[0]
    page = target if target.suffix == ".html" else target / "report.html"
    runs = [read(folder) for folder in folders]
    tables = [all_medians(results) for results in runs]
    names = _names(folders)
    chapters = [chapter(results, own) for results, own in zip(runs, tables, strict=True)]
    for k, (results, own, name) in enumerate(zip(runs, tables, names, strict=True)):
        folder = page.parent / "figures" / (name if len(runs) > 1 else "")
        chapters[k] |= {
            "id": f"run{k}",
            "name": name,
            **_drawings(results, own, figures or {}, folder=folder, prefix=f"run{k}"),
        }
    compared = _compared(tables, names)
    together = "side by side" if compared else "in one page"  # runs of different suites have no score in common
    title = runs[0].run["title"] if len(runs) == 1 else f"{len(runs)} runs {together}"
    _write(page, _html(title=title, runs=chapters, compared=compared).encode())
    return page


def _names(folders: Sequence[Path]) -> list[str]:
    """Folder names, numbered where two are the same."""
    plain = [folder.resolve().name for folder in folders]
    return [name if plain.count(name) == 1 else f"{name} ({k + 1})" for k, name in enumerate(plain)]


def _drawings(
    results: Results, tables: Tables, figures: Mapping[str, Callable[..., Any]], *, folder: Path, prefix: str
) -> dict[str, list[dict[str, str]]]:
    """The drawings of the run's exhibits, written as PNG and SVG into `folder`, ready for the template."""
    from forsooth.report.drawing import rendered, slim  # matplotlib takes a second to import: only who draws pays
    from forsooth.report.figures import draw

    found: dict[str, list[dict[str, str]]] = {"leaderboard": [], "accuracy_figure": [], "figures": []}
    places = {"leaderboard": "leaderboard", "accuracies": "accuracy_figure"}
    for exhibit in dict.fromkeys(["leaderboard", *results.run["exhibits"]]):
        for drawing in draw(exhibit, results, tables, figures):
            vector, raster = rendered(drawing.figure, "svg"), rendered(drawing.figure, "png")
            _write(folder / f"{drawing.name}.svg", vector)
            _write(folder / f"{drawing.name}.png", raster)
            shown, kind = (vector, "svg+xml") if len(vector) <= VECTOR else (slim(raster), "png")
            source = f"data:image/{kind};base64,{base64.b64encode(shown).decode()}"
            words = {"title": drawing.title, "caption": drawing.caption, "alt": drawing.alt}
            place = found[places.get(exhibit, "figures")]
            place.append({"id": f"{prefix}-{drawing.name}", "source": source, **words})
    return found


def _compared(tables: Sequence[Tables], names: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """metric -> lines of method and one column per run, for the metrics that all runs share; nothing for one run."""
    if len(tables) < 2:
        return {}
    shared = [metric for metric in tables[0] if all(metric in own for own in tables)]
    found = {}
    for metric in shared:
        boards = [board(own[metric]).set_index("method") for own in tables]
        methods = dict.fromkeys(method for lines in boards for method in lines.index)
        found[metric] = [
            {"method": method} | {name: _brief(lines, method) for name, lines in zip(names, boards, strict=True)}
            for method in methods
        ]
    return found


def _brief(lines: pd.DataFrame, method: str) -> str:
    if method not in lines.index:
        return "–"
    line = lines.loc[method]
    rank = "" if pd.isna(line["rank"]) else f" #{line['rank']}"
    return f"{number(line['score'])} [{number(line['low'])}–{number(line['high'])}]{rank}"


def _html(*, title: str, runs: Sequence[Mapping[str, Any]], compared: Mapping[str, Any]) -> str:
    """The page; everything that comes from a run is escaped, for messages come from other people's code."""
    here = resources.files("forsooth.report")
    # StrictUndefined: a name that the template misspells is an error, not a blank
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    style = Markup((here / "page.css").read_text(encoding="utf-8"))  # ours, and no text of a run in it
    return template.render(title=title, runs=runs, compared=compared, meaning=MEANING, style=style)


def _write(path: Path, content: bytes) -> None:
    """Write beside and rename into place, so that nobody meets half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        if beside.is_file():
            beside.unlink()
        raise UsageError(f"`out` must be a place one can write to, got {path}: {error.strerror}") from error
