"""What the tasks of the BAM suite are asked with. Words in keys of cells stay as they were: see `metadata`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal

from forsooth.attributions import concepts
from forsooth.records import WHOLE, Row
from forsooth.suites.bam.settings import AS_BUILT

Shown = Literal["os", "s", "og"]  # object in scene, scene alone, object alone on grey
DATASET = "pasted"


@dataclass(frozen=True)
class NetSpec:
    """A network: its labels, and the set that it is trained on.

    label  what it tells apart: classes of scenes, or of objects
    shown  whether its images have objects
    k      commonality of the common feature in X^k_{o,s}; None: it is trained on X_{o,s}
    """

    name: str
    label: Literal["scene", "object"]
    shown: Shown
    k: float | None


def fine_name(k: float) -> str:
    """The network trained on X^k_{o,s}."""
    return f"f_s_{k:g}"


@dataclass(frozen=True)
class Panel:
    """One architecture in one training: what all rows of a task share."""

    model: str
    model_seed: int
    placing: str = AS_BUILT
    suite: str = "bam"

    def row(self, part: str, *, method: str = "") -> Row:
        """A row about no single sample, for others to complete."""
        return Row(self.suite, part, DATASET, sample=WHOLE).having(method=method, **asdict(self))


@dataclass(frozen=True)
class Ask:
    """What a method is asked.

    method, version, code  which method, in which version; and the hash of a user's code, else empty
    samples                images for MCS, IDR and IIR; others for each k, and for each other size or place
    trials                 parts into which the images are divided, whose means are ranked
    percentile, lowest     of the reduction of a map to [0, 1], see `scores.contrast.reduced`
    zero                   what IIR is where a place has no attribution before and after
    metrics                names and versions of the scores
    """

    method: str
    version: int
    code: str
    samples: int
    samples_per_k: int = field(metadata={"key": "fine"})
    samples_robustness: int = field(metadata={"key": "robust"})
    placings: tuple[str, ...]
    trials: int
    percentile: float
    lowest: Literal["minimum", "zero"]
    zero: Literal["undefined", "failure"]
    metrics: Mapping[str, int]
    seed: int
    device: str

    def count(self, placing: str) -> int:
        """Images that are explained with objects of that size and place."""
        if placing == AS_BUILT:
            return self.samples
        return self.samples_robustness


@dataclass(frozen=True)
class ConceptAsk:
    """What TCAV is asked.

    examples     images of the concept, and of each random set
    random_sets  how many there are
    count        inputs whose sensitivity is taken
    level        p-value that a layer must reach
    """

    examples: int
    random_sets: int = field(metadata={"key": "sets"})
    count: int
    level: float
    settings: concepts.Settings
    seed: int
    device: str
