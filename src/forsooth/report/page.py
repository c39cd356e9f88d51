"""One self-contained page for one run, or for several side by side."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from forsooth.records import UsageError
from forsooth.report.aggregate import Results, read
from forsooth.report.chapter import chapter
from forsooth.report.leaderboard import board
from forsooth.report.medians import Medians, all_medians
from forsooth.report.tables import MEANING
from forsooth.store import write_atomically
from forsooth.wording import number

if TYPE_CHECKING:
    from forsooth.report.drawing import Drawing

VECTOR = 600_000  # bytes; larger drawings go into the page as PNG
UNSAFE = re.compile(r"[^\w .,()=+-]", re.ASCII)  # in the name of a file
LONGEST = 150  # characters of such a name; file systems take 255 bytes
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
    folders = folders_of(run_dirs, out)
    page = place_of(folders, out)
    runs = [read(folder) for folder in folders]
    tables = [all_medians(results) for results in runs]
    names = _names(folders)
    chapters = []
    for k, (results, own, name) in enumerate(zip(runs, tables, names, strict=True)):
        folder = page.parent / "figures"
        if len(runs) > 1:
            folder = folder / name
        drawings = _drawings(results, own, figures or {}, folder=folder, prefix=f"run{k}")
        chapters.append({**chapter(results, own), "id": f"run{k}", "name": name, **drawings})
    compared = _compared(tables, names)
    html = _html(title=_title(runs, bool(compared)), runs=chapters, compared=compared)
    _write(page, html.encode(errors="replace"))  # JSON can hold lone surrogates, UTF-8 cannot
    return page


def folders_of(run_dirs: str | Path | Sequence[str | Path], out: str | Path | None) -> list[Path]:
    if isinstance(run_dirs, str | Path):
        return [Path(run_dirs)]
    folders = [Path(folder) for folder in run_dirs]
    if not folders or (out is None and len(folders) > 1):
        raise UsageError(f"`run_dirs` must be one run, or several with `out`; got {len(folders)} and out={out}")
    return folders


def place_of(folders: Sequence[Path], out: str | Path | None) -> Path:
    """The path of the page."""
    target = folders[0] if out is None else Path(out)
    if target.suffix == ".html":
        return target
    return target / "report.html"


def _title(runs: Sequence[Results], compared: bool) -> str:
    """Of one run its own; runs of different suites have no score in common."""
    if len(runs) == 1:
        return str(runs[0].run["title"])
    together = {True: "side by side", False: "in one page"}[compared]
    return f"{len(runs)} runs {together}"


def _names(folders: Sequence[Path]) -> list[str]:
    """Folder names, numbered where two are the same."""
    plain = [folder.resolve().name for folder in folders]
    return [_numbered(name, k + 1, plain.count(name)) for k, name in enumerate(plain)]


def _numbered(name: str, number: int, alike: int) -> str:
    if alike == 1:
        return name
    return f"{name} ({number})"


def _drawings(
    results: Results, tables: Tables, figures: Mapping[str, Callable[..., Any]], *, folder: Path, prefix: str
) -> dict[str, list[dict[str, str]]]:
    """The drawings of the run's exhibits, written as PNG and SVG into `folder`, ready for the template."""
    from forsooth.report.figures import draw  # matplotlib takes a second to import: only who draws pays

    shown: dict[str, list[dict[str, str]]] = {"leaderboard": [], "accuracy_figure": [], "figures": []}
    for exhibit in dict.fromkeys(["leaderboard", *results.run["exhibits"]]):
        place = shown[PLACES.get(exhibit, "figures")]
        for drawing in draw(exhibit, results, tables, figures):
            place.append({"id": f"{prefix}-{drawing.name}", **_embedded(drawing, folder)})
    return shown


PLACES = {"leaderboard": "leaderboard", "accuracies": "accuracy_figure"}


def _embedded(drawing: "Drawing", folder: Path) -> dict[str, str]:
    """The drawing as text for the page; its files are written beside."""
    from forsooth.report.drawing import rendered, slim

    vector = rendered(drawing.figure, "svg")
    raster = rendered(drawing.figure, "png")
    name = safe_name(drawing.name)
    _write(folder / f"{name}.svg", vector)
    _write(folder / f"{name}.png", raster)
    if len(vector) <= VECTOR:
        source = _data_url("svg+xml", vector)
    else:
        source = _data_url("png", slim(raster))
    return {"source": source, "title": drawing.title, "caption": drawing.caption, "alt": drawing.alt}


def safe_name(name: str) -> str:
    """The name of a drawing as that of a file in its folder: names of models and metrics come from strangers' runs.

    What is no plain name gets a hash of the whole, so that two names never share a file.

    >>> safe_name("boxes_emd"), safe_name("../x")
    ('boxes_emd', '_x-d6b96a97')
    """
    plain = UNSAFE.sub("_", name).lstrip(".")[:LONGEST]
    if plain == name:
        return name
    return f"{plain}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def _data_url(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _compared(tables: Sequence[Tables], names: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """metric -> lines of method and one column per run, for the metrics that all runs share; nothing for one run."""
    if len(tables) < 2:
        return {}
    shared = [metric for metric in tables[0] if all(metric in own for own in tables)]
    return {metric: _side_by_side([own[metric] for own in tables], names) for metric in shared}


def _side_by_side(tables: Sequence[Medians], names: Sequence[str]) -> list[dict[str, str]]:
    """A line for each method, with its score in each run."""
    boards = {name: board(table).set_index("method") for name, table in zip(names, tables, strict=True)}
    methods = dict.fromkeys(method for lines in boards.values() for method in lines.index)
    return [{"method": method, **{name: _brief(lines, method) for name, lines in boards.items()}} for method in methods]


def _brief(lines: pd.DataFrame, method: str) -> str:
    if method not in lines.index:
        return "–"
    line = lines.loc[method]
    score = f"{number(line['score'])} [{number(line['low'])}–{number(line['high'])}]"
    if pd.isna(line["rank"]):
        return score
    return f"{score} #{line['rank']}"


def _html(*, title: str, runs: Sequence[Mapping[str, Any]], compared: Mapping[str, Any]) -> str:
    """The page; everything that comes from a run is escaped, for messages come from other people's code."""
    here = resources.files("forsooth.report")
    # StrictUndefined: a name that the template misspells is an error, not a blank
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((here / "page.html").read_text(encoding="utf-8"))
    style = Markup((here / "page.css").read_text(encoding="utf-8"))  # ours, and no text of a run in it
    return template.render(title=title, runs=runs, compared=compared, meaning=MEANING, style=style)


def _write(path: Path, content: bytes) -> None:
    if path.parent.is_symlink():
        raise UsageError(f"`out` must not lead elsewhere, but {path.parent} is a link: remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"`out` must be a place one can write to, got {path}: {error.strerror}") from error
    write_atomically(path, content)
