"""Steps of a training that an accelerator plays from a graph, recorded once for each number of images in a step."""

from collections.abc import Callable

import torch
from torch import Tensor

from forsooth.models.chain import Drops
from forsooth.models.stacked_adam import StackedAdam

Work = Callable[[Tensor, Drops], None]  # a step on rows (k, n), with what dropout keeps


class Steps:
    """Steps as they are, or played from graphs.

    work  changes what `adam` holds and nothing else
    """

    def __init__(self, work: Work, adam: StackedAdam, *, graph: bool) -> None:
        self.work = work
        self.adam = adam
        self.graph = graph
        self.recorded: dict[int, Recorded] = {}

    def take(self, rows: Tensor, drops: Drops) -> None:
        """One step on rows (k, n)."""
        self.adam.count()
        if not self.graph:
            self.work(rows, drops)
            return
        if rows.shape[1] not in self.recorded:
            self.recorded[rows.shape[1]] = Recorded(self.work, self.adam, rows, drops)
        self.recorded[rows.shape[1]].play(rows, drops)


class Recorded:
    """A step as a graph, which reads its rows and what dropout keeps from places of its own."""

    def __init__(self, work: Work, adam: StackedAdam, rows: Tensor, drops: Drops) -> None:
        self.rows = rows.clone()
        self.drops = [drop.clone() for drop in drops]
        self.graph = torch.cuda.CUDAGraph()
        before = adam.state()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):  # libraries choose their kernels before anything is recorded
                work(self.rows, self.drops)
        torch.cuda.current_stream().wait_stream(aside)
        with torch.cuda.graph(self.graph):
            work(self.rows, self.drops)
        adam.restore(before)

    def play(self, rows: Tensor, drops: Drops) -> None:
        self.rows.copy_(rows)
        for own, drop in zip(self.drops, drops, strict=True):
            own.copy_(drop)
        self.graph.replay()
