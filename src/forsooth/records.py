"""The nouns. Frozen, without work: every room speaks in these and in tensors."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from forsooth.errors import FailedTasks as FailedTasks
from forsooth.errors import UsageError as UsageError

if TYPE_CHECKING:  # pandas takes a second to import, and tables are made far above
    import pandas as pd

Need = Literal["gradient", "module", "background", "fit", "generator", "generators", "layer", "truth"]
Read = Literal["truth", "model", "x", "target", "total", "anchor"]


@dataclass(frozen=True)
class Dataset:
    """Inputs, labels and the truth of what mattered.

    x       (n, *shape) float
    y       (n,) int
    truth   (n, *map) bool, what could matter; None where nobody knows
    splits  name -> indices (k,) into the n samples
    facts   what a reader of the results must know about how the data were made
    strata  (n,) int, kinds finer than the classes that are drawn evenly too; None: the classes are all there is
    """

    name: str
    x: Tensor
    y: Tensor
    truth: Tensor | None
    splits: Mapping[str, Tensor]
    facts: Mapping[str, Any] = field(default_factory=dict)
    strata: Tensor | None = None


@dataclass(frozen=True)
class Architecture:
    """A network to train, whose forward gives logits (n, classes).

    function  builds it, with arguments of its own; `models.build` builds all networks of images and tables alike
    layer     dotted name of the module whose output Grad-CAM reads; None where there is no convolution
    attends   whether it weighs tokens by attention, which some methods read
    channels_last  whether an accelerator is faster where the channels of a pixel lie together; for small nets it is not
    """

    name: str
    function: Callable[..., torch.nn.Module]
    layer: str | None
    cite: str
    version: int
    channels_last: bool = False
    attends: bool = False


Status = Literal[
    "ok",
    "broken promise",  # the map has a score, but its sum is not the one that its method promises
    "zero map",
    "not finite",
    "undefined",
    "error",  # the method raised
    "wrong shape",
    "skipped",  # method and model cannot meet
    "below gate",  # the network is not explained
    "no model",  # no network of the panel passed its gate
    "no correct input",  # nothing that every network gets right
    "no such words",  # the document has no word that the metric is about
    "too few players",
    "no anchor",  # the Shapley values are all zero, or all noise
    "no patch",  # no functionless patch was found for the input
]
BROKEN: Status = "broken promise"
NO_PATCH: Status = "no patch"
SCORED: tuple[Status, ...] = ("ok", BROKEN)  # statuses of rows whose value counts as it is
Value = str | int | float | bool | None  # of a cell in a table
Facts = dict[str, Any]  # by name, as cells and run.json keep them
Line = Mapping[str, Any]  # of a table, by column
Columns = Mapping[str, Value]  # of a row, by name
Tensors = Mapping[str, Tensor]  # by name, or by role
Names = tuple[str, ...]
Sentences = Iterable[str]  # of a judgement, each a line of its own
NO_MODEL = "none"  # the model of a map that ignores every model
NOTHING: Columns = {}
WHOLE = -1  # the sample of a row that is about no single one
# Above this gap a promise counts as broken. Exact methods stay below 0.001 in single precision; of paths of fifty steps
# across kinks 97 in 100 stay below 0.1, and a method that follows other rules than its own misses by far more.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Method:
    """An attribution method in one published setting.

    `function(model, x, target, *, <needs>, **settings) -> tensor shaped like x`. Of `needs`, `gradient` and `module`
    say what the model must allow; the others are passed as keywords of the same name: `background` (k, *shape)
    reference inputs, `fit` (k, *shape) training inputs, `generator` (one, seeded alike for every slice of a batch),
    `generators` (n of them, one for each input, seeded by its number), `layer` (dotted name of a module), `truth`
    (the oracle alone). What a method draws for an input comes from that input's generator, so that two inputs never
    share a draw; `generator` is for what all may share.

    promise   "complete": the map sums to f(x) - f(baseline), by default of zeros; "complete to background": to f(x)
              less the mean of f over the background; "conserve": to f(x) less what is `retained`; None: no promise
    retained  function(model, x, target, **settings) -> (n,): what biases keep of f(x), where a method knows it

    What others must know of a method they ask the record, and never its name:

    inputs      kinds of input that it can read
    cost        "passes": a few forward and backward passes for a map; "forwards": many forwards; "expensive": hundreds
                of gradients, one at each step of a path for each noisy copy
    values      "derivative": the map is a derivative along the input; "contribution": it says what each entry gave
    hides       whether it works by hiding parts of the input, as Shapley values do
    quadratic   whether it solves a system of players × players, so that there cannot be too many
    blind       whether its map depends on neither the model nor the input nor the truth
    output      what its authors explain, where a suite follows them; None: whatever the suite explains
    units       function(model, x, target, *, layer) -> (n, *places of the layer): what it says of the units of a layer
                themselves, asked about some of the inputs at a time; None: it does not speak of units
    belongs_to  names of the models that carry it in them; empty: it can be asked of any
    attends     whether it reads the attention of a transformer, and says nothing of any other model
    variant_of  name of the method of which it is another published setting; empty: of none
    """

    name: str
    function: Callable[..., Tensor]
    needs: tuple[Need, ...]
    random: bool
    signed: bool
    cite: str
    version: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    promise: Literal["complete", "complete to background", "conserve"] | None = None
    null: bool = False  # ignores the model: an end of every scale
    retained: Callable[..., Tensor] | None = None
    inputs: tuple[Literal["image", "table", "words"], ...] = ("image", "table", "words")
    cost: Literal["passes", "forwards", "expensive"] = "passes"
    values: Literal["derivative", "contribution"] = "contribution"
    hides: bool = False
    quadratic: bool = False
    blind: bool = False
    output: Literal["logits", "probabilities"] | None = None
    units: Callable[..., Tensor] | None = None
    belongs_to: tuple[str, ...] = ()
    attends: bool = False
    variant_of: str = ""

    def __call__(self, model: Callable[..., Tensor], x: Tensor, target: Tensor, **given: Any) -> Tensor:
        """The map for each x, handing over exactly what is declared in `needs` from what is `given`."""
        passed = {need: given[need] for need in self.needs if need not in ("gradient", "module")}
        return self.function(model, x, target, **passed, **self.settings)


@dataclass(frozen=True)
class Metric:
    """A score: `function(attribution, *reads) -> (n,)`, nan where undefined.

    reads   what it takes beside the attribution, in this order
    better  which way is better
    bounds  the least and the largest value it can take
    """

    name: str
    function: Callable[..., Tensor]
    reads: tuple[Read, ...]
    better: Literal["higher", "lower"]
    bounds: tuple[float, float]
    cite: str
    version: int


@dataclass(frozen=True)
class Row:
    """One line of `scores.parquet`: the value of one metric for one sample, or why there is none.

    part     the table it belongs to: "scores" are ranked, "training" holds accuracies, a suite has others of its own
    sample   number of the input in its dataset; `WHOLE` where the row is about all of them
    value    nan where a map has no score; None where nothing was asked
    columns  the suite's own columns: factors of the panel, and what stands beside the value
    """

    suite: str
    part: str
    dataset: str | None = None
    model: str | None = None
    model_seed: int | None = None
    method: str | None = None
    metric: str | None = None
    sample: int | None = None
    value: float | None = None
    status: Status = "ok"
    message: str = ""
    columns: Mapping[str, Value] = field(default_factory=dict)

    def having(self, columns: Mapping[str, Any] = NOTHING, /, *, status: Status | None = None, **changes: Any) -> "Row":
        """The row with some of its fields changed; every other name is a column of the suite's own.

        columns  changes whose names are known when it runs, or that somebody wrote before
        status   None: as it was
        """
        changes = {**columns, **changes}
        if status is not None:
            changes["status"] = status
        own = {name: value for name, value in changes.items() if name not in FIELDS}
        fields = {name: value for name, value in changes.items() if name in FIELDS}
        return replace(self, **fields, columns={**self.columns, **own})

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> "Row":
        """The row that was written with these columns; what a row has always, it has in old cells too."""
        return cls(suite="", part="").having(columns)

    def flat(self) -> dict[str, Value]:
        """All columns side by side, as the row is written."""
        return {**{name: getattr(self, name) for name in FIELDS}, **self.columns}


FIELDS = tuple(part.name for part in fields(Row) if part.name != "columns")


@dataclass(frozen=True)
class Cell:
    """What one finished task leaves: tidy rows, named tensors and small facts."""

    rows: tuple[Row, ...] = ()
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """One piece of work. `function(*cells of needs, **arguments) -> Cell`; arguments are plain JSON values.

    id       what kind of work it is, `suite.job`; stands in the key, whatever file the function is in
    name     what the progress line says
    version  raised when the same arguments would give other numbers
    needs    keys of the tasks whose cells it takes, in this order
    """

    key: str
    id: str
    name: str
    function: Callable[..., Cell]
    arguments: Mapping[str, Any]
    needs: tuple[str, ...]
    version: int = 1

    @property
    def accelerator(self) -> bool:
        """Whether it computes on an accelerator, of which there are few; every task takes one core and one thread."""
        return any(device != PROCESSOR for device in _devices(self.arguments))

    def on_processor(self) -> "Task":
        """The same task, with the same key, on the processor."""
        return replace(self, arguments=_on_processor(self.arguments))


PROCESSOR = "cpu"


def _devices(value: Any) -> Iterator[str]:
    """What stands under the name `device`, however deep."""
    if isinstance(value, Mapping):
        if isinstance(value.get("device"), str):
            yield value["device"]
        for part in value.values():
            yield from _devices(part)


def _on_processor(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    changed = {name: _on_processor(part) for name, part in value.items()}
    if isinstance(changed.get("device"), str):
        changed["device"] = PROCESSOR
    return changed


Fault = Literal["", "raised", "memory", "died", "late", "lost", "usage"]


@dataclass(frozen=True)
class Trial:
    """How one trial of a task ended.

    fault   empty: it left its cell; "memory": an accelerator's was too small; "died": its process; "late": it took more
            time than allowed; "lost": with a machine or a message, which says nothing of the task; "usage": the user
            must change something
    reason  the same in words, with the name of the task
    halved  how often its work was cut in halves, since an accelerator had too little memory
    """

    key: str
    fault: Fault = ""
    reason: str = ""
    halved: int = 0


@dataclass(frozen=True)
class Choice:
    """What the user chose beside the settings of a preset.

    methods  names of the catalogue or `package.module:name`; empty: the preset's own
    only     factor -> admitted values, compared without regard to case
    data     folder or zip of the user's, where the suite can use one
    """

    methods: tuple[str, ...] = ()
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    data: str | None = None
    device: str = "cpu"
    seed: int = 0


@dataclass(frozen=True)
class Plan:
    """The work of a run: tasks in an order that respects their needs, and rows for those who could not meet."""

    tasks: tuple[Task, ...]
    skips: tuple[Row, ...] = ()
    facts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a finished run left, for a judgement.

    rows      all rows of the run; the column `task` has the id of the task that made them
    facts     what the cells noted, by key
    tasks     and seconds: what kind of work each cell was, and how long it took, by key
    settings  and choice: what the plan was made from, so that a judgement can find the keys of its tasks again
    """

    rows: "pd.DataFrame"
    facts: Mapping[str, Mapping[str, Any]]
    settings: Any
    choice: Choice
    tasks: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """A published table beside ours, and what follows in words."""

    table: "pd.DataFrame"
    words: str


@dataclass(frozen=True)
class Reproduction:
    """A published table or figure that can be made again: a run like any other, then a judgement of its rows.

    settings   the record that `--set` changes
    plan       (settings, choice) -> Plan
    judge      Outcome -> Judgement; pure: it computes nothing that a task could have left behind
    with_data  settings in the place of those where the user's data are given; None: the same
    """

    name: str
    title: str
    settings: Any
    plan: Callable[[Any, Choice], Plan]
    judge: Callable[[Outcome], Judgement]
    with_data: Any = None


@dataclass(frozen=True)
class Suite:
    """A protocol of one paper.

    presets        name -> settings, a frozen dataclass of the suite
    plan           (settings, choice) -> Plan
    factors        columns whose combinations make a panel; the settings list the levels of `size` in `sizes`
    exhibits       names of the figures its page shows
    figures        module with `FIGURES`, name -> function that draws; imported when a page is written, since matplotlib
                   is slow to import
    reproductions  published tables and figures that can be made again
    renamed        settings that had another name before: old -> new
    datasets       (settings, choice) -> names and datasets with a truth, to be explained elsewhere; None: no truth
    """

    name: str
    title: str
    question: str
    presets: Mapping[str, Any]
    plan: Callable[[Any, Choice], Plan]
    factors: tuple[str, ...]
    metrics: Callable[[Any], tuple[Metric, ...]]
    exhibits: tuple[str, ...]
    cite: str
    figures: str = ""
    reproductions: tuple[Reproduction, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    datasets: Callable[[Any, Choice], Iterator[tuple[str, Dataset]]] | None = None
