"""Published numbers, one csv per table, as printed in the papers (accuracies in per cent)."""

from collections.abc import Sequence
from importlib import resources

import pandas as pd

from forsooth.names import unknown

ERRATA = "errata.csv"  # numbers that are surely printing errors: table, where, column, printed, corrected, why


def names() -> tuple[str, ...]:
    """The tables we hold, e.g. `xaitris_table_1`."""
    files = (entry.name for entry in resources.files("forsooth.papers").iterdir())
    return tuple(sorted(name.removesuffix(".csv") for name in files if name.endswith(".csv") and name != ERRATA))


def table(name: str) -> pd.DataFrame:
    """The published table called `name`; `xaitris/table-b2` and `xaitris_table_b2` mean the same.

    The tables of XAI-TRIS [clark2024xaitris] have the columns scenario, background, model, alpha and accuracy
    (per cent, the mean of five trainings). `xaitris_figure_b2` has means of ten, which stand beside the authors' code
    and not in print; `xaitris_costs` the hours of Appendix B.3.
    """
    wanted, known = name.lower().replace("/", "_").replace("-", "_"), names()
    if wanted not in known:
        raise unknown(name, known, argument="name")
    return _read(f"{wanted}.csv")


def beside(ours: pd.DataFrame, name: str, on: Sequence[str], **columns: str) -> pd.DataFrame:
    """Our table, and beside each of its lines what the published table called `name` has there; nan where it has none.

    on       columns that tell lines apart, in both tables
    columns  column of the published table -> its name beside ours
    """
    published = table(name)[[*on, *columns]].rename(columns=columns)
    return ours.merge(published, on=list(on), how="left")


def corrected(name: str) -> pd.DataFrame:
    """The published table called `name` without its printing errors, see `errata`."""
    found = table(name)
    for error in errata(name).itertuples():
        where = dict(part.split("=") for part in error.where.split())
        hit = pd.concat([found[key].astype(str).eq(value) for key, value in where.items()], axis=1).all(axis=1)
        found.loc[hit & found[error.column].eq(error.printed), error.column] = error.corrected
    return found


def claim(name: str, section: str, quantity: str) -> float:
    """A number that a section of a paper states, by the table of its claims.

    >>> claim("planted_claims", "5.1", "er")
    0.4
    """
    stated = table(name).astype({"section": str}).set_index(["section", "quantity"])["value"]
    return float(stated.loc[section, quantity])


def errata(name: str) -> pd.DataFrame:
    """Numbers of the table called `name` that are surely printing errors, and why we think so."""
    wanted = name.lower().replace("/", "_").replace("-", "_")
    known = _read(ERRATA)
    return known[known["table"].eq(wanted)]


def _read(file: str) -> pd.DataFrame:
    with resources.as_file(resources.files("forsooth.papers") / file) as path:
        return pd.read_csv(path)
