"""What is seen of a method: its calls on one kind of input, and what each left behind."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from forsooth.surroundings import same_tensor


@dataclass(frozen=True)
class Trial:
    """One call of a method: what it gave, or why it gave nothing.

    maps     (n, *shape) as it came, detached; None where there is no tensor of that shape
    fault    "raised", "wrong shape" or "" where there is a map
    message  what the fault is
    changed  keys of `words.CHANGES`
    drew     keys of `words.DRAWS`
    graded   gradients were left in .grad of the weights
    """

    maps: Tensor | None
    fault: str
    message: str
    seconds: float
    changed: Sequence[str] = ()
    drew: Sequence[str] = ()
    graded: bool = False


NOT_MADE = Trial(None, "", "", 0.0)


@dataclass(frozen=True)
class Evidence:
    """All trials of a method on one kind of input x (n, *shape).

    first, again  the same seed twice; after a first call without a map no other is made
    reseeded      another seed
    retargeted    other classes
    alone         row -> that input by itself
    gap           how far the sum of a map is from what it promises, or from f(x) - f(0) where nothing is promised: the
                  median, nan where there is none
    """

    input: str
    x: Tensor
    first: Trial
    again: Trial = NOT_MADE
    reseeded: Trial = NOT_MADE
    retargeted: Trial = NOT_MADE
    alone: tuple[tuple[int, Trial], ...] = ()
    gap: float = float("nan")

    @property
    def trials(self) -> list[Trial]:
        """All of them, in their order."""
        return [self.first, self.again, self.reseeded, self.retargeted, *(trial for _, trial in self.alone)]

    @property
    def repeats(self) -> bool:
        """Whether the same seed gives the same map twice."""
        return same_maps(self.first, self.again)


def same_maps(one: Trial, two: Trial) -> bool:
    """Whether two calls gave maps, and the same."""
    if one.maps is None or two.maps is None:
        return False
    return same_tensor(one.maps, two.maps)
