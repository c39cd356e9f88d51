"""One self-contained page for one run, or for several side by side."""

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from forsooth.names import grouped
from forsooth.records import UsageError
from forsooth.report.aggregate import Record, Results, Values, Written, read
from forsooth.report.anchors import anchor, safe_name
from forsooth.report.chapter import chapter
from forsooth.report.leaderboard import board
from forsooth.report.medians import Medians, Tables, all_medians
from forsooth.report.tables import MEANING
from forsooth.store import write_atomically
from forsooth.wording import listed, number, plural

if TYPE_CHECKING:
    from forsooth.report.drawing import Drawing

VECTOR = 300_000  # bytes; larger drawings go into the page as PNG
SHRINKS = 4  # times that an SVG may become smaller on its way into the page
MOST_CELLS = 500  # keys that the page lists; run.json has them all
SCRIPTS = ("page.js", "tables.js", "viewer.js", "passages.js")
Figures = Mapping[str, Callable[..., Any]]  # name -> function that draws
Folders = str | Path | Sequence[str | Path]


def write_page(
    run_dirs: Folders,
    out: str | Path | None = None,
    *,
    figures: Figures | None = None,
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
        beside = page.parent / "figures" / (name if len(runs) > 1 else "")
        drawn = _drawings(results, own, figures or {}, folder=beside, prefix=f"run{k}")
        shown = {**drawn, **_seen_closely(results, f"run{k}"), "id": f"run{k}", "name": name}
        chapters.append({**chapter(results, own), **shown})
    compared = _compared(tables, names)
    html = _html(title=_title(runs, bool(compared)), runs=chapters, compared=compared)
    _write(page, html.encode(errors="replace"))  # JSON can hold lone surrogates, UTF-8 cannot
    return page


def _seen_closely(results: Results, prefix: str) -> dict[str, list[Values]]:
    """The galleries of maps and texts of a run."""
    from forsooth.report.gallery import galleries  # matplotlib takes a second to import: only who draws pays
    from forsooth.report.passages import passages

    made = [{**gallery, "id": f"{prefix}-{gallery['kind']}s"} for gallery in galleries(results)]
    return {"galleries": made, "passages": passages(results)}


def folders_of(run_dirs: Folders, out: str | Path | None) -> list[Path]:
    if isinstance(run_dirs, str | Path):
        return [Path(run_dirs)]
    folders = [Path(folder) for folder in run_dirs]
    if not folders or (out is None and len(folders) > 1):
        raise UsageError(f"`run_dirs` must be one run, or several with `out`; got {len(folders)} and out={out}")
    return folders


def place_of(folders: Sequence[Path], out: str | Path | None) -> Path:
    """The path of the page."""
    target = folders[0] if out is None else Path(out)
    return target if target.suffix == ".html" else target / "report.html"


def _title(runs: Sequence[Results], compared: bool) -> str:
    """Of one run its own; runs of different suites have no score in common."""
    if len(runs) == 1:
        return str(runs[0].run["title"])
    together = "side by side" if compared else "on whether attributions tell the truth"
    return f"{len(runs)} runs {together}"


def _names(folders: Sequence[Path]) -> list[str]:
    """Folder names, numbered where two are the same."""
    plain = [folder.resolve().name for folder in folders]
    return [name if plain.count(name) == 1 else f"{name} ({k})" for k, name in enumerate(plain, start=1)]


def _drawings(
    results: Results, tables: Tables, figures: Figures, *, folder: Path, prefix: str
) -> dict[str, list[Written]]:
    """The drawings of the run's exhibits, written into `folder`, ready for the template.

    They are written as PNG and SVG; what the page has as a table to look at closely, as PNG alone.
    """
    from forsooth.report.figures import draw  # matplotlib takes a second to import: only who draws pays

    shown: dict[str, list[Written]] = {"leaderboard": [], "accuracy_figure": [], "figures": []}
    for exhibit in dict.fromkeys(["leaderboard", *results.run["exhibits"]]):
        for drawing in draw(exhibit, results, tables, figures):
            raster = _file(drawing, "png", folder)
            if drawing.aside:
                continue
            vector = _file(drawing, "svg", folder)
            short = f"{prefix}-{sum(map(len, shown.values()))}"
            embedded = _embedded(drawing, vector, raster, name=short)
            placed = {**embedded, "id": f"{prefix}-figure-{anchor(drawing.name)}"}
            shown[PLACES.get(exhibit, "figures")].append(placed)
    return shown


PLACES = {"leaderboard": "leaderboard", "accuracies": "accuracy_figure"}


def _file(drawing: "Drawing", kind: str, folder: Path) -> bytes:
    """The drawing as "png" or "svg", which is written into the folder, too."""
    from forsooth.report.drawing import rendered

    content = rendered(drawing.figure, kind)
    _write(folder / f"{safe_name(drawing.name)}.{kind}", content)
    return content


def _embedded(drawing: "Drawing", vector: bytes, raster: bytes, *, name: str) -> Values:
    """The drawing as a part of the page: as text where it is small, its ids beginning with `name`; else as PNG."""
    from forsooth.report.drawing import png_url, slim
    from forsooth.report.svg import inline

    words = {"title": drawing.title, "caption": drawing.caption, "alt": drawing.alt}
    if len(vector) <= SHRINKS * VECTOR:
        small = inline(vector.decode(), name=name, alt=escape(drawing.alt))
        if len(small) <= VECTOR:
            return {**words, "inline": Markup(small)}
    return {**words, "inline": "", "source": png_url(slim(raster))}


def _compared(tables: Sequence[Tables], names: Sequence[str]) -> dict[str, list[Written]]:
    """metric -> lines of method and one column per run, for the metrics that all runs share; nothing for one run."""
    if len(tables) < 2:
        return {}
    shared = [metric for metric in tables[0] if all(metric in own for own in tables)]
    return {metric: _side_by_side([own[metric] for own in tables], names) for metric in shared}


def _side_by_side(tables: Sequence[Medians], names: Sequence[str]) -> list[Written]:
    """A line for each method, with its score in each run."""
    boards = {name: board(table).set_index("method") for name, table in zip(names, tables, strict=True)}
    methods = dict.fromkeys(method for lines in boards.values() for method in lines.index)
    return [{"method": method, **{name: _brief(lines, method) for name, lines in boards.items()}} for method in methods]


def _brief(lines: pd.DataFrame, method: str) -> str:
    if method not in lines.index:
        return "–"
    line = lines.loc[method]
    score = f"{number(line['score'])} [{number(line['low'])}–{number(line['high'])}]"
    return score if pd.isna(line["rank"]) else f"{score} #{line['rank']}"


def _html(*, title: str, runs: Sequence[Record], compared: Record) -> str:
    """The page; everything that comes from a run is escaped, for messages come from other people's code."""
    from forsooth.report.gallery import magma

    # StrictUndefined: a name that the template misspells is an error, not a blank
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(_source)
    )
    environment.filters |= {"plural": plural, "anchor": anchor, "listed": listed, "code": code}
    return environment.get_template("page.html").render(
        title=title,
        runs=[{**run, "contents": contents(run)} for run in runs],
        compared=compared,
        short=_in_short(runs),
        meaning=MEANING,
        **_shared(runs),
        most_cells=MOST_CELLS,
        style=Markup(_source("page.css")),  # ours, and no text of a run in it
        script=Markup(f"const FACTS_PALETTE = {magma().tolist()};\n" + "".join(map(_source, SCRIPTS))),
    )


def code(words: Any) -> Markup:
    """Words with `code` in them, escaped, as the page shows them.

    >>> str(code("see `forsooth bias`, where a < b"))
    'see <code>forsooth bias</code>, where a &lt; b'
    """
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(words))))


def _in_short(runs: Sequence[Record]) -> dict[str, list[str]]:
    """What to do -> titles of the runs that say so: what many say is said once."""
    return grouped((run["advice"] or run["verdict"][0], run["title"]) for run in runs)


def _shared(runs: Sequence[Record]) -> Values:
    """What all chapters have together: papers by key, facts on methods by name, and names of panels."""
    papers = {paper.key: paper for run in runs for paper in run["references"]}
    panels = [name for run in runs for table in run["heat"].values() for name in table["names"]]
    return {
        "papers": dict(sorted(papers.items())),
        "facts": {name: fact for run in runs for name, fact in run["about_methods"].items()},
        "panels": list(dict.fromkeys(panels)),
    }


def _source(name: str) -> str:
    """A file that lies beside this one."""
    return (resources.files("forsooth.report") / name).read_text(encoding="utf-8")


CONTENTS = (  # place, words, what a chapter must have for it
    ("findings", "Findings", "verdict"),
    ("answer", "The answer", "table"),
    ("published", "Ours beside theirs", "reproduction"),
    ("boards", "Leaderboards", "boards"),
    ("panels", "Panel by panel", "boards"),
    ("maps", "Maps", "galleries"),
    ("texts", "Texts", "passages"),
    ("figures", "Figures", "figures"),
    ("accuracy", "Trained accuracy", "accuracies"),
    ("failures", "Failures and skips", ""),
    ("run", "What was run", ""),
    ("repeat", "Repeat it", ""),
)


def contents(run: Record) -> list[tuple[str, str]]:
    """Place and words of every section that a chapter has."""
    return [(place, words) for place, words, needed in CONTENTS if not needed or run[needed]]


def _write(path: Path, content: bytes) -> None:
    if path.parent.is_symlink():
        raise UsageError(f"`out` must not lead elsewhere, but {path.parent} is a link: remove it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"`out` must be a place one can write to, got {path}: {error.strerror}") from error
    write_atomically(path, content)
