"""The tables of `studies/xaitris.md` and what the README shows of them: python studies/xaitris.py FOLDER.

FOLDER is the folder of `forsooth run xaitris --preset quick --out FOLDER`, finished or not; what is missing is run.
Parts (`--parts`, all but the expensive ones unless asked for):

quick        quick-emd.csv, quick-ima.csv, quick-precision.csv (boards), quick-panels.csv (a board for each panel),
             quick-nulls.csv (the best method beside the best null) and suppressors.csv under `studies/xaitris/`, and
             the README's picture docs/leaderboard.png
readme       the printed table below the README's ten lines of Python, which are run
seeds        xor-seeds.csv: XOR with the MLP, other seeds for data, networks and draws, minutes
few-samples  few-samples.csv, minutes
table-b2     table-b2.csv, about half an hour per preset on two cores
vit-64       vit-64.csv (a board for each panel) and vit-64-accuracies.csv: a vision transformer at 64×64, about an hour

Then `python studies/findings.py` prints sentences on them, each with its line for `studies/sentences/`.
"""

import argparse
import dataclasses
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

import forsooth
from forsooth import report
from forsooth.progress import Lines
from forsooth.report.drawing import rendered
from forsooth.report.figures import draw
from forsooth.report.medians import Medians, medians
from forsooth.stats import mean_interval

ROOT = Path(__file__).parent.parent
METRICS = ("emd", "ima", "precision")
PANEL = ["scenario", "background", "model"]
PARTS = ("quick", "readme", "seeds", "few-samples", "table-b2", "vit-64")
SEEDS = (0, 7, 11, 23, 42)
XOR = ("pattern_attribution", "pattern_net", "pfi", "deep_shap", "saliency", "laplace", "random")
VIT = {"sizes": 64, "models": "vit", "trainings": 2, "restarts": 0, "samples": 50, "sweep": (), "emd_tolerance": 0.001}
ON_VIT = (  # what most papers compare, what is made for attention, and the nulls
    *("saliency", "gradient_x_input", "smooth_grad", "integrated_gradients", "gradient_shap", "deep_lift"),
    *(
        "guided_backprop",
        "lrp",
        "attn_lrp",
        "cp_lrp",
        "token_grad_cam",
        "attention_rollout",
        "gradient_attention",
        "legrad",
    ),
    *("rise", "occlusion_windows", "random", "constant", "sobel", "laplace", "absolute_input", "oracle"),
)
SHOWN = re.compile(r"(```python\n(?P<code>.*?)```\n\n```\n)(?P<printed>.*?)(```)", flags=re.S)


def quick_run(folder: Path, settings: dict[str, str], only: dict[str, str]) -> forsooth.Run:
    """The run in `folder` as it is if it is finished, else made."""
    if (folder / "run.json").is_file():
        return forsooth.Run(folder)
    return forsooth.run("xaitris", settings=settings, only=only, out=folder, workers=2, progress=Lines())


def panel_boards(results: report.Results, metric: str) -> pd.DataFrame:
    """The leaderboard of each panel by itself: score, interval and rank over one panel alone.

    `wins` is 1 where a method is clearly better than every null of the panel, as the board of the whole run counts it:
    what trainings do is known from all panels together, where one panel has too few of them to claim anything.
    """
    rows = results.rows
    whole = medians(results, metric)
    clear = pd.DataFrame(whole.wins, columns=list(whole.methods)).astype(int)
    boards = []
    for place, panel in whole.panels[PANEL].iterrows():
        data = rows["scenario"].eq(panel["scenario"]) & rows["background"].eq(panel["background"])
        own = rows[data & rows["model"].isin([panel["model"], "none"])]
        board = report.leaderboard(dataclasses.replace(results, rows=own), metric)
        boards.append(board.assign(metric=metric, wins=board["method"].map(clear.loc[place]), **panel))
    columns = ["score", "low", "high", "rank", "failed", "wins", "null"]
    return pd.concat(boards)[["metric", *PANEL, "method", *columns]].round(3)


def against_nulls(panels: pd.DataFrame) -> pd.DataFrame:
    """For each panel the best method beside the best null, and how many methods are clearly better than every null."""
    lines = []
    ranked = panels[panels["rank"].notna()]
    for key, board in ranked.groupby(["metric", *PANEL], sort=False):
        methods = board[~board["null"]]
        line = dict(zip(["metric", *PANEL], key, strict=True))
        line |= {"winners": int((methods["wins"] > 0).sum()), "methods": len(methods), "rivals": len(board)}
        for kind, part in (("method", methods), ("null", board[board["null"]])):
            best = part.sort_values("rank").iloc[0]
            line |= {kind: best["method"]}
            line |= {f"{kind}_{column}": best[column] for column in ("score", "low", "high", "rank")}
        lines.append(line)
    return pd.DataFrame(lines)


def suppressors(table: Medians) -> pd.DataFrame:
    """Mean over methods of a panel's median, WHITE and CORR side by side, and their difference, with intervals.

    Correlated noise makes suppressors of background pixels. Intervals are over methods, paired in the difference.
    """
    value = pd.DataFrame(table.value, columns=list(table.methods)).loc[:, ~table.null]
    lines = []
    for (scenario, model), pair in table.panels[PANEL].groupby(["scenario", "model"], sort=False):
        place = {background: row for row, background in pair["background"].items()}
        line: dict[str, object] = {"scenario": scenario, "model": model}
        for background, row in place.items():
            line |= with_interval(background, value.loc[row])
        if len(place) == 2:
            line |= with_interval("difference", value.loc[place["CORR"]] - value.loc[place["WHITE"]])
        lines.append(line)
    return pd.DataFrame(lines).round(3)


def with_interval(name: str, by_method: pd.Series) -> dict[str, float]:
    interval = mean_interval(by_method)
    return {name: interval.mean, f"{name}_low": interval.low, f"{name}_high": interval.high}


def write_quick(run: forsooth.Run, tables: Path, picture: Path, *, metrics: tuple[str, ...] = METRICS) -> None:
    results = report.read(run.folder)
    for metric in metrics:
        run.leaderboard(metric).round(3).to_csv(tables / f"quick-{metric}.csv", index=False)
    panels = pd.concat([panel_boards(results, metric) for metric in metrics])
    panels.to_csv(tables / "quick-panels.csv", index=False)
    against_nulls(panels).to_csv(tables / "quick-nulls.csv", index=False)
    suppressors(medians(results, "ima")).to_csv(tables / "suppressors.csv", index=False)
    drawing, *_ = draw("leaderboard", results, {metric: medians(results, metric) for metric in metrics})
    picture.write_bytes(rendered(drawing.figure, "png"))


def write_readme(readme: Path) -> None:
    """Run the README's Python and put what it prints below it."""
    text = readme.read_text()
    shown = SHOWN.search(text)
    if shown is None:
        raise SystemExit(f"{readme} must hold a block of Python and below it what it prints, found none")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", shown["code"]], cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"the Python of {readme} fails, see above; nothing was changed")
    readme.write_text(text[: shown.start("printed")] + done.stdout + text[shown.end("printed") :])


def xor_seeds(folder: Path) -> pd.DataFrame:
    """Median IMA in XOR with the MLP by seed: a run's interval knows its own data alone, not those of another seed."""
    parts = []
    for seed in SEEDS:
        run = forsooth.run(
            "xaitris",
            methods=list(XOR),
            only={"scenario": "XOR", "model": "mlp"},
            settings={"sweep": (), "trainings": 3},
            seed=seed,
            out=folder / f"seed-{seed}",
            workers=2,
            progress=Lines(),
        )
        board = run.leaderboard("ima", by="background")
        parts.append(board.assign(seed=seed)[["seed", "background", "method", "score", "low", "high"]])
    return pd.concat(parts).round(3)


def write_vit(folder: Path, tables: Path) -> None:
    """Boards of what explains a vision transformer at 64x64, and how accurate its trainings are."""
    run = forsooth.run(
        "xaitris",
        methods=list(ON_VIT),
        only={"scenario": "LIN", "background": ["WHITE", "CORR"]},
        settings=VIT,
        out=folder / "vit-64",
        workers=2,
        progress=Lines(),
    )
    results = report.read(run.folder)
    panels = pd.concat([panel_boards(results, metric) for metric in METRICS])
    panels.to_csv(tables / "vit-64.csv", index=False)
    trained = run.rows[run.rows["metric"].eq("accuracy")]
    columns = [*PANEL, "model_seed", "value", "status"]
    trained[columns].round(3).to_csv(tables / "vit-64-accuracies.csv", index=False)


def write_reproduction(name: str, folder: Path, tables: Path) -> None:
    table, words = forsooth.reproduce(f"xaitris/{name}", workers=2, out=folder / "reproductions", progress=Lines())
    table.to_csv(tables / f"{name}.csv", index=False)
    print(words)


def pairs(words: list[str]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["quick", "readme"])
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--only", action="append", default=[], metavar="FACTOR=VALUE")
    parser.add_argument("--tables", type=Path, default=ROOT / "studies" / "xaitris", help="where the csv files go")
    parser.add_argument("--picture", type=Path, default=ROOT / "docs" / "leaderboard.png")
    parser.add_argument("--readme", type=Path, default=ROOT / "README.md")
    arguments = parser.parse_args(words)
    arguments.tables.mkdir(parents=True, exist_ok=True)
    if "quick" in arguments.parts:
        run = quick_run(arguments.folder, pairs(arguments.settings), pairs(arguments.only))
        write_quick(run, arguments.tables, arguments.picture)
    if "readme" in arguments.parts:
        write_readme(arguments.readme)
    if "seeds" in arguments.parts:
        xor_seeds(arguments.folder).to_csv(arguments.tables / "xor-seeds.csv", index=False)
    if "vit-64" in arguments.parts:
        write_vit(arguments.folder, arguments.tables)
    for name in ("few-samples", "table-b2"):
        if name in arguments.parts:
            write_reproduction(name, arguments.folder, arguments.tables)


if __name__ == "__main__":
    main()
