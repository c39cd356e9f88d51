"""Numbers in documents held against the tables they were read from: the language of `studies/sentences/*.txt`.

`text :: table :: rows :: values` says that the numbers of `text`, in this order, are `values` of the csv file `table`
where `rows` (a pandas query, may be empty) holds. `text :: why: reason` lets numbers stand that no table can hold.
A markdown table has one line for itself and one for each of its rows and columns:

    TABLE the beginning of its first line
    ROW label :: table :: rows :: values
    COLUMN label :: table :: rows :: values

A cell is under the queries of both; table and values stand in either. Values are separated by `;`. `_` skips a number
that is no result (a setting), `printed` one that the command beside it prints and no table holds.
"""

import ast
import functools
import itertools
import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

ROOT = Path(__file__).parent.parent
NUMBER = re.compile(r"(?<![\w.·⁻-])[−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\d⁻])")
# What a reader takes for a result: a decimal, a percentage, a count of a whole, so many times or points.
RESULT = re.compile(r"\d*\.\d+|\d+(?=(?:, \d+\])? ?%)|\d+(?= of (?:the )?\d)|(?<=\d of )\d+|\d+(?= (?:times|points))")
SKIPPED = ("_", "printed")
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.BitAnd: operator.and_,
}


def student(values: pd.Series, end: int) -> float:
    """An end of the 95 % interval of the mean."""
    return float(stats.t.interval(0.95, len(values) - 1, values.mean(), values.sem())[end])


FUNCTIONS = {
    "mean": np.mean,
    "median": np.median,
    "min": np.min,
    "max": np.max,
    "sum": np.sum,
    "count": lambda values: values.sum() if values.dtype == bool else len(values),
    "distinct": lambda values: values.nunique(),
    "abs": np.abs,
    "log": np.log,
    "rank": lambda values: values.rank(method="min", ascending=False),
    "low": lambda values: student(values, 0),
    "high": lambda values: student(values, 1),
    "rho": lambda one, two: stats.spearmanr(one, two).statistic,
    "pearson": lambda one, two: np.corrcoef(one, two)[0, 1],
}


@dataclass(frozen=True)
class Entry:
    """One line: where the numbers of `text` come from, or why none is needed.

    kind  sentence, why, table, row or column
    """

    kind: str
    text: str
    table: str = ""
    rows: str = ""
    values: str = ""


def entry_of(line: str) -> Entry:
    head, *rest = [part.strip() for part in line.split(" :: ")]
    word, _, label = head.partition(" ")
    if word in ("TABLE", "ROW", "COLUMN"):
        return Entry(word.lower(), label, *rest)
    if len(rest) == 1 and rest[0].startswith("why: "):
        return Entry("why", head)
    if len(rest) != 3:
        raise ValueError(f"a line must read `text :: table :: rows :: values` or `text :: why: reason`, got: {line}")
    return Entry("sentence", head, *rest)


def entries(path: Path) -> list[Entry]:
    lines = [re.sub(r" ::$", " :: ", line.rstrip()) for line in path.read_text().splitlines()]
    return [entry_of(line) for line in lines if line and not line.startswith("#")]


@functools.cache
def table_of(name: str) -> pd.DataFrame:
    """A csv file of `studies/`, or of the published numbers where its name begins with `papers/`."""
    folder = ROOT / ("src/forsooth" if name.startswith("papers/") else "studies")
    frame = pd.read_csv(folder / name)
    return frame.rename(columns=lambda column: re.sub(r"\W+", "_", column))


def evaluate(node: ast.AST, frame: pd.DataFrame) -> Any:
    """An expression of columns, numbers, + - * / < > ==, & and the functions above; nothing else is allowed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    if isinstance(node, ast.Name) and node.id in frame:
        return frame[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -evaluate(node.operand, frame)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](evaluate(node.left, frame), evaluate(node.right, frame))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        return OPERATORS[type(node.ops[0])](evaluate(node.left, frame), evaluate(node.comparators[0], frame))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        return FUNCTIONS[node.func.id](*[evaluate(argument, frame) for argument in node.args])
    raise ValueError(f"not a column, a number or one of {', '.join(FUNCTIONS)}: {ast.unparse(node)}")


def value_of(expression: str, frame: pd.DataFrame) -> float:
    value = evaluate(ast.parse(expression, mode="eval").body, frame)
    if isinstance(value, pd.Series):
        if len(value) != 1:
            raise ValueError(f"{expression} must be one value, got {len(value)}: narrow the rows or say mean, max, …")
        value = value.iloc[0]
    return float(value)


def numbers_of(text: str) -> list[str]:
    return NUMBER.findall(text)


def agrees(printed: str, value: float) -> bool:
    """Is `value` the printed number at its precision? The table is rounded too, so a half may go either way."""
    plain = printed.replace(",", "").replace("−", "-")
    digits = len(plain.partition(".")[2])
    return abs(float(plain) - value) <= 0.5 * 10**-digits + 1e-9


def faults(entry: Entry) -> list[str]:
    """What the table says otherwise than the text, in words."""
    frame = table_of(entry.table)
    frame = frame.query(entry.rows) if entry.rows else frame
    wanted = [value.strip() for value in entry.values.split(";")]
    printed = numbers_of(entry.text)
    if len(printed) != len(wanted):
        return [f"“{entry.text}” has the numbers {printed}, and the values are {wanted}"]
    pairs = [pair for pair in zip(printed, wanted, strict=True) if pair[1] not in SKIPPED]
    values = [value_of(expression, frame) for _, expression in pairs]
    return [
        f"“{entry.text}” says {number}, and {entry.table} [{entry.rows}] {expression} is {value:.5g}"
        for (number, expression), value in zip(pairs, values, strict=True)
        if not agrees(number, value)
    ]


def plain(document: str) -> str:
    """The document without its blocks of code and with one space for every gap; inline code is kept."""
    return re.sub(r"\s+", " ", re.sub(r"^```.*?^```", "", document, flags=re.S | re.M))


def spans(text: str, document: str) -> Iterator[tuple[int, int]]:
    """Where `text` stands in the plain document, not as a part of a longer number."""
    for match in re.finditer(r"(?<![\d.])(?<!\d,)" + re.escape(text) + r"(?!\d|\.\d)", document):
        yield match.span()


@dataclass(frozen=True)
class Cell:
    """One cell of a markdown table, its place in the document, and the lines of the list for its row and column."""

    span: tuple[int, int]
    row: Entry
    column: Entry
    text: str

    @property
    def entry(self) -> Entry:
        """What its numbers must be: under the queries of both; table and values of either."""
        rows = " and ".join(f"({query})" for query in (self.row.rows, self.column.rows) if query)
        table = self.row.table or self.column.table
        return Entry("cell", self.text, table, rows, self.row.values or self.column.values)


def cells_of(named: dict[tuple[str, str], Entry], start: int, document: str) -> Iterator[Cell]:
    """The cells with numbers, of the markdown table that begins at `start`, whose row and column are named."""
    header: list[str] = []
    for line in re.finditer(r"\|.*\n?", document[start:].split("\n\n")[0]):
        parts = list(re.finditer(r"[^|]+", line.group().rstrip()))
        texts = [part.group().strip() for part in parts]
        header = header or texts
        row = named.get(("row", texts[0]))
        for label, text, part in zip(header[1:], texts[1:], parts[1:], strict=False):
            column = named.get(("column", label))
            if row and column and numbers_of(text):
                begin = start + line.start()
                yield Cell((begin + part.start(), begin + part.end()), row, column, text)


def table_cells(listed: list[Entry], document: str) -> Iterator[Cell]:
    """The cells of every markdown table in the list."""
    for place, table in enumerate(listed):
        if table.kind == "table":
            following = itertools.takewhile(lambda entry: entry.kind in ("row", "column"), listed[place + 1 :])
            named = {(entry.kind, entry.text): entry for entry in following}
            if document.count(table.text) != 1:
                raise ValueError(f"a table must begin with “{table.text}” once, got {document.count(table.text)} times")
            yield from cells_of(named, document.index(table.text), document)


def blanked(document: str, cells: list[Cell]) -> str:
    """The document with nothing in these cells."""
    letters = list(document)
    for cell in cells:
        letters[slice(*cell.span)] = " " * (cell.span[1] - cell.span[0])
    return "".join(letters)


def uncovered(document: str, listed: list[Entry]) -> list[str]:
    """Results of the document that no line of the list names, each with the words around it."""
    text = plain(blanked(document, list(table_cells(listed, document))))
    covered = np.zeros(len(text), dtype=bool)
    for match in re.finditer(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", text):
        covered[slice(*match.span())] = True
    for entry in listed:
        if entry.kind in ("sentence", "why"):
            for start, end in spans(entry.text, text):
                covered[start:end] = True
    missing = [match.span() for match in RESULT.finditer(text) if not covered[slice(*match.span())].all()]
    return [f"{text[start:end]} in “{text[max(0, start - 60) : end + 40]}”" for start, end in missing]


def misquoted(document: str, listed: list[Entry]) -> list[str]:
    """Quotes that do not stand in the document once, reasons for what it does not hold, and unused rows and columns."""
    text = plain(document)
    times = {entry: len(list(spans(entry.text, text))) for entry in listed if entry.kind in ("sentence", "why")}
    wrong = [entry for entry, count in times.items() if count == 0 or (count > 1 and entry.kind == "sentence")]
    lines = [f"“{entry.text}” stands {times[entry]} times in the document" for entry in wrong]
    used = {entry for cell in table_cells(listed, document) for entry in (cell.row, cell.column)}
    unused = [entry for entry in listed if entry.kind in ("row", "column") and entry not in used]
    return lines + [f"no cell is in the {entry.kind} “{entry.text}”" for entry in unused]


def problems(document: str, listed: list[Entry]) -> list[str]:
    """All that is wrong between a document and the tables."""
    checked = [entry for entry in listed if entry.kind == "sentence"]
    checked += [cell.entry for cell in table_cells(listed, document)]
    wrong = [fault for entry in checked for fault in faults(entry)]
    return misquoted(document, listed) + wrong + uncovered(document, listed)
