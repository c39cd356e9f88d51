"""Which states of a training are kept, and when it is over."""

from math import isfinite
from typing import NamedTuple

from torch import Tensor, nn

from forsooth.models.recipes import Recipe


class Checkpoint(NamedTuple):
    """The network after so many epochs: its accuracy on `val`, in [0, 1], and its state dict."""

    epoch: int
    val_accuracy: float
    state: dict[str, Tensor]


class Keeper:
    """Which states of a training are kept, and whether it is over.

    state  that of the least validation loss so far, or the one that reached `stop_at`
    curve  the validation loss by epoch
    saved  the states that the recipe wants beside it
    """

    def __init__(self, module: nn.Module, recipe: Recipe) -> None:
        self.module = module
        self.recipe = recipe
        self.state = _state(module)
        self.curve: list[float] = []
        self.saved: list[Checkpoint] = []
        self.best = 0  # epoch of `state`
        self.over = False

    def see(self, loss: float, accuracy: float) -> None:
        """Take note of the module as it is after one more epoch, by its validation loss and accuracy."""
        epoch = len(self.curve)
        self.curve.append(loss)
        reached = self.recipe.stop_at is not None and accuracy >= self.recipe.stop_at
        if loss == min(self.curve) or reached:
            self.state = _state(self.module)
            self.best = epoch
        if self._is_step_up(accuracy):
            self.saved.append(Checkpoint(epoch + 1, accuracy, _state(self.module)))
        last = epoch + 1 == self.recipe.epochs
        self.over = reached or last or not isfinite(loss) or self._is_idle(epoch)

    @property
    def sound(self) -> bool:
        """Whether the training met no nan."""
        return isfinite(self.curve[-1])

    def _is_idle(self, epoch: int) -> bool:
        """Whether there was no better state for so long that the training is given up."""
        return self.recipe.patience is not None and epoch - self.best >= self.recipe.patience

    def _is_step_up(self, accuracy: float) -> bool:
        """Whether this epoch's state is kept beside the best one."""
        last = 0.0
        if self.saved:
            last = self.saved[-1].val_accuracy
        return self.recipe.checkpoints is not None and accuracy > last + self.recipe.checkpoints


def _state(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}
