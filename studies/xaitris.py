"""The figures of `studies/xaitris.md`: python studies/xaitris.py FOLDER writes its tables there, as csv.

The quick run takes minutes; Table B2 takes about half an hour per preset on two cores. Stopped, it goes on.
"""

import sys
from pathlib import Path

import pandas as pd

import forsooth
from forsooth.progress import Lines


def suppressors(run: forsooth.Run) -> pd.DataFrame:
    """Mean over methods of the median IMA, by background: correlated noise makes suppressors of background pixels."""
    rows = run.rows.query("part == 'scores' and metric == 'ima' and model != 'none' and sample >= 0")
    factors = ["scenario", "model", "background", "method"]
    medians = rows.fillna({"value": 0.0}).groupby(factors)["value"].median()
    return medians.groupby(factors[:3]).mean().unstack().round(3)


def main() -> None:
    folder = Path(sys.argv[1])
    run = forsooth.run("xaitris", out=folder / "quick", workers=2, progress=Lines())
    for metric in ("emd", "ima", "precision"):
        run.leaderboard(metric).round(3).to_csv(folder / f"quick-{metric}.csv", index=False)
    suppressors(run).to_csv(folder / "suppressors.csv")
    table, words = forsooth.reproduce("xaitris/few-samples", out=folder / "artefacts", progress=Lines())
    table.to_csv(folder / "few-samples.csv", index=False)
    print(words)
    table, words = forsooth.reproduce("xaitris/table-b2", workers=2, out=folder / "artefacts", progress=Lines())
    table.to_csv(folder / "table-b2.csv", index=False)
    print(words)


if __name__ == "__main__":
    main()
