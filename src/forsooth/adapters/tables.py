"""Tables with text, categories or gaps: a cell is the number of its value, and a hidden cell is 0.

Numbers can be averaged, blurred and walked along; categories and gaps cannot. What can be asked of any table is what
the model says when some of its columns come from other rows. So a column that is hidden takes its values from some
background rows, one after another, and the outputs are averaged.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from forsooth.adapters import inputs
from forsooth.adapters.outputs import as_tensor
from forsooth.plugins import describe_error
from forsooth.records import UsageError

ROWS = "rows"  # the baseline's name; rows:N takes N of them
USUAL_ROWS = 20
AT_ONCE = 2**15  # most rows of a table in one call of the model
HIDDEN = 0
Ask = Callable[[pd.DataFrame], Any]


@dataclass(frozen=True)
class Table:
    """Inputs and data as numbers of values.

    x, data   (n, columns), (k, columns) float64: 1 is the first value of a column, 0 would be a hidden cell
    values    the distinct values of each column, as it holds them: text, categories, whole numbers, a gap
    named     the columns have names that the model may want to hear
    odd       why they are no finite numbers, in words; empty where they are
    digest    tells these cells from any others
    """

    x: Tensor
    data: Tensor
    columns: tuple[Any, ...]
    values: tuple[Any, ...]
    named: bool
    odd: str
    digest: str

    def frame(self, codes: Tensor) -> pd.DataFrame:
        """The rows that codes (n, columns) stand for; an error where one stands for none."""
        places = codes.detach().cpu().numpy() - 1
        last = np.array([len(values) - 1 for values in self.values])
        if (places != np.round(places)).any() or (places < 0).any() or (places > last).any():
            raise UsageError(
                "`methods` must ask about rows of the table with whole columns hidden, as it holds text, categories or "
                "gaps; got values between those of the table"
            )
        cells = places.astype(np.int64).T
        return pd.DataFrame({place: values.take(cells[place]) for place, values in enumerate(self.values)}).set_axis(
            pd.Index(self.columns), axis=1
        )


def loaded(value: Any, argument: str) -> Any:
    """A data frame in place of the path of a table; anything else as it is."""
    if inputs.is_table(value):
        return inputs.read_table(Path(value), argument)
    return value


def framed(value: Any) -> pd.DataFrame | None:
    """What has rows and columns, of whatever values, as a data frame; None of anything else."""
    if isinstance(value, pd.DataFrame):
        return value
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "OUTbiuf":
        return pd.DataFrame(value).infer_objects()
    return None


def needed(value: Any) -> bool:
    """Whether this is a table that cannot be read as finite numbers: text, categories, or gaps."""
    frame = framed(value)
    return frame is not None and any(why_not(frame[name]) for name in frame.columns[~frame.columns.duplicated()])


def why_not(column: pd.Series) -> str:
    """What keeps a column from being finite numbers; empty where nothing does."""
    numeric = pd.api.types.is_numeric_dtype(column.dtype)
    if not numeric:
        return "text or categories"
    if not np.isfinite(column.to_numpy(dtype=np.float64, na_value=np.nan)).all():
        return "gaps"
    return ""


def wanted(given: Any, data: Any, baseline: Any) -> bool:
    """Whether inputs are to be played as a table of values: if they cannot be numbers, or if rows are asked for."""
    if isinstance(baseline, str) and baseline.partition(":")[0] == ROWS:
        if framed(given) is None:
            raise UsageError(f"`baseline` {baseline} must be asked of a table (n, columns), got {type(given).__name__}")
        return True
    return needed(given) or needed(data)


def rows_of(baseline: Any) -> int:
    """How many background rows stand for what is hidden, from the words auto, rows or rows:N."""
    word, colon, number = str(baseline).partition(":")
    if word == ROWS and number.isdecimal() and int(number) > 0:
        return int(number)
    if baseline == "auto" or (word == ROWS and not colon):
        return USUAL_ROWS
    raise UsageError(
        f"`baseline` must be {ROWS} or {ROWS}:N for a table with text, categories or gaps, since such columns have no "
        f"mean; got {baseline!r}"
    )


def read(model: Any, given: Any, data: Any) -> Table:
    """The table of the inputs and of the data; no data are the inputs once more."""
    frame = framed(given)
    others = frame if data is None else framed(data)
    if frame is None or others is None:
        what = type(given if frame is None else data).__name__
        raise UsageError(f"`inputs` and `data` must both be tables where one has text, categories or gaps, got {what}")
    check_names(frame, others)
    odd = oddities(frame) or oddities(others)
    if odd and isinstance(model, nn.Module):
        cure = "give a function of a data frame that makes them numbers and asks the module"
        raise UsageError(f"`inputs` must be finite numbers for a torch module, got {odd}; {cure}")
    columns = list(frame.columns)
    inputs.check_columns(model, columns)
    if not len(frame) or not len(others) or len(others.columns) != len(columns):
        raise UsageError(f"`data` must have the {len(columns)} columns of `inputs` and some rows, got {others.shape}")
    both = pd.concat([frame, inputs.in_order(others, "data", columns)], ignore_index=True)
    codes, values = zip(*(pd.factorize(both[name], use_na_sentinel=False) for name in both), strict=True)
    cells = torch.from_numpy(np.stack(codes, axis=1).astype(np.float64)) + 1
    return Table(
        x=cells[: len(frame)],
        data=cells[len(frame) :],
        columns=tuple(columns),
        values=values,
        named=isinstance(given, pd.DataFrame),
        odd=odd,
        digest=hashlib.sha256(pd.util.hash_pandas_object(both, index=False).to_numpy().tobytes()).hexdigest(),
    )


def check_names(*frames: pd.DataFrame) -> None:
    """UsageError where columns share a name."""
    if any(frame.columns.has_duplicates for frame in frames):
        raise UsageError("`inputs` must have a name of its own for each column, and two have the same")


def oddities(frame: pd.DataFrame) -> str:
    """Which columns are no finite numbers, and why; empty where all are."""
    found = {str(name): why_not(frame[name]) for name in frame}
    return ", ".join(f"{why} in {name}" for name, why in found.items() if why)


def known(table: Any, model: Any) -> Any:
    """Of a data frame with more columns than the model was fitted on, those that it was; anything else as it is."""
    fitted = list(getattr(model, "feature_names_in_", []))
    if not fitted or not isinstance(table, pd.DataFrame) or not set(fitted) < set(table.columns):
        return table
    return table[fitted]


@dataclass(frozen=True)
class Coded:
    """A model of codes (n, columns) with hidden ones. Returns (n, classes).

    ask         the user's model on a data frame
    background  (k, columns) codes, none of them hidden; None: nothing may be hidden
    softmax     the outputs are made probabilities
    """

    table: Table
    ask: Ask
    background: Tensor | None = None
    softmax: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        hidden = x == HIDDEN
        if self.background is None or not hidden.any():
            return self.plain(x)
        size = max(1, AT_ONCE // len(self.background))
        return torch.cat([self.averaged(part) for part in x.split(size)])

    def averaged(self, x: Tensor) -> Tensor:
        """The mean of the outputs over the background, whose rows give their values to what is hidden."""
        assert self.background is not None
        rows = torch.where((x == HIDDEN)[:, None], self.background[None], x[:, None])  # (n, k, columns)
        outputs = self.plain(rows.flatten(0, 1))
        return outputs.view(len(x), len(self.background), -1).mean(dim=1)

    def plain(self, x: Tensor) -> Tensor:
        answer = as_tensor(self.ask(self.table.frame(x)), x).double()
        if answer.ndim == 1:
            return answer[:, None]
        if self.softmax:
            return answer.softmax(1)
        return answer

    def behind(self, background: Tensor) -> "Coded":
        """The same, with these rows for what is hidden."""
        return replace(self, background=background)


def opened(model: Any, table: Table) -> tuple[Coded, str]:
    """What is asked about codes, and what the user gave, in words."""
    name = type(model).__name__
    for method, kind in {"predict_proba": "an estimator", "predict": "a regressor"}.items():
        if hasattr(model, method):
            return Coded(table, of_estimator(getattr(model, method), model)), f"{kind} ({name})"
    if not callable(model):
        expected = "an estimator with predict_proba or predict, or a function of a data frame"
        raise UsageError(f"`model` must be {expected}, got {name}")
    return Coded(table, of_function(model, table)), "a function"


def of_estimator(method: Callable[..., Any], model: Any) -> Ask:
    """predict or predict_proba, with names of columns where the model was fitted with names."""
    nameless = getattr(model, "n_features_in_", None) is not None and not hasattr(model, "feature_names_in_")

    def ask(frame: pd.DataFrame) -> Any:
        return method(frame.to_numpy() if nameless else frame)

    return ask


def of_function(function: Callable[..., Any], table: Table) -> Ask:
    """A function of data frames or of arrays: which of the two is tried out on two rows."""
    ways: dict[str, Ask] = {"a data frame": function, "a numpy array": lambda frame: function(frame.to_numpy())}
    if not table.named:
        ways = dict(reversed(ways.items()))
    refused = []
    for kind, ask in ways.items():
        try:
            Coded(table, ask).plain(table.x[:2])
        except UsageError:
            raise
        except Exception as error:  # the user's function may raise anything
            refused.append(f"{kind} it raised {describe_error(error)}")
        else:
            return ask
    raise UsageError(f"`model` must take rows of the table, but with {', and with '.join(refused)}")
