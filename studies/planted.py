"""The quick run on generated images as a table: python studies/planted.py FOLDER writes `studies/planted/quick.csv`.

FOLDER is the folder of `forsooth run planted --out FOLDER`, finished or not; what is missing is run. The lines it
prints are `sentence :: table :: rows :: values`, as `studies/sentences/` has it.
"""

import sys
from pathlib import Path

import forsooth
from forsooth.progress import Lines

TABLE = Path(__file__).parent / "planted" / "quick.csv"


def main() -> None:
    folder = Path(sys.argv[1])
    finished = (folder / "run.json").is_file()
    run = forsooth.Run(folder) if finished else forsooth.run("planted", out=folder, workers=2, progress=Lines())
    board = run.leaderboard("attr").round(3)
    board.to_csv(TABLE, index=False)
    for _, line in board.iterrows():
        shown = f"{line['score']:.2f} [{line['low']:.2f}, {line['high']:.2f}]"
        print(f"{line['method']} {shown} :: planted/quick.csv :: method == '{line['method']}' :: score; low; high")


if __name__ == "__main__":
    main()
