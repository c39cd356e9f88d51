"""Published numbers, one csv per table, as printed in the papers (accuracies in per cent)."""

from importlib import resources

import pandas as pd

from forsooth.names import unknown


def names() -> tuple[str, ...]:
    """The tables we hold, e.g. `xaitris_table_1`."""
    files = (entry.name for entry in resources.files("forsooth.papers").iterdir())
    return tuple(sorted(name.removesuffix(".csv") for name in files if name.endswith(".csv")))


def table(name: str) -> pd.DataFrame:
    """The published table called `name`; `xaitris/table-b2` and `xaitris_table_b2` mean the same.

    The tables of XAI-TRIS [clark2024xaitris] have the columns scenario, background, model, alpha and accuracy
    (per cent, the mean of five trainings).
    """
    wanted, known = name.lower().replace("/", "_").replace("-", "_"), names()
    if wanted not in known:
        raise unknown(name, known, argument="name")
    with resources.as_file(resources.files("forsooth.papers") / f"{wanted}.csv") as path:
        return pd.read_csv(path)
