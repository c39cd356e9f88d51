"""Adam on a matrix whose rows are networks; what changes from step to step stands in tensors, for a graph to read."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from forsooth.models.recipes import Recipe

AHEAD = 1024  # steps for which numbers are made at once
RATES = (0.9, 0.999)  # published [kingma2015adam]


class StackedAdam:
    """As `adam.Adam` for each network by itself.

    modules  whose parameters become pieces of the rows of `flat` (k, all)
    """

    def __init__(self, modules: Sequence[nn.Module], recipe: Recipe) -> None:
        self.modules = modules
        self.recipe = recipe
        parameters = list(modules[0].parameters())
        self.sizes = [p.numel() for p in parameters]
        self.shapes = [p.shape for p in parameters]
        rows = [torch.cat([p.detach().flatten() for p in module.parameters()]) for module in modules]
        self.flat = torch.stack(rows).requires_grad_()
        self.steps = 0
        for module, row in zip(modules, self.flat.detach(), strict=True):
            self._share(module, row)
        self.mean = torch.zeros_like(rows[0]).repeat(len(modules), 1)
        self.square = torch.zeros_like(self.mean)
        self.left = self._left(1)[0]  # 1 - rate^steps, for both rates
        self.coming = self._left(AHEAD)

    def _share(self, module: nn.Module, row: Tensor) -> None:
        """Make the parameters of a module pieces of a row (all,)."""
        for p, piece in zip(module.parameters(), row.split(self.sizes), strict=True):
            p.data = piece.view_as(p)

    def pieces(self) -> list[Tensor]:
        """The parameters of all networks, (k, *shape) each, with a gradient to `flat`."""
        parts = self.flat.split(self.sizes, 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def count(self) -> None:
        """Another step begins."""
        place = self.steps % AHEAD
        if self.steps and not place:
            self.coming = self._left(AHEAD)
        self.steps += 1
        self.left.copy_(self.coming[place])  # on the device: no step waits for the host

    def _left(self, count: int) -> Tensor:
        """1 - rate^steps for both rates in so many steps from now on. (count, 2)"""
        steps = range(self.steps + 1, self.steps + 1 + count)
        values = [[1 - rate**step for rate in RATES] for step in steps]
        return torch.tensor(values, dtype=self.flat.dtype, device=self.flat.device)

    @torch.no_grad()
    def step(self, gradient: Tensor) -> None:
        """Move all networks by their gradients (k, all)."""
        if self.recipe.weight_decay:
            gradient = gradient.add(self.flat, alpha=self.recipe.weight_decay)
        self.mean.lerp_(gradient, 1 - RATES[0])
        self.square.lerp_(gradient.square(), 1 - RATES[1])
        scale = (self.square / self.left[1]).sqrt_().add_(1e-8)
        self.flat.addcdiv_(self.mean, scale.mul_(self.left[0]), value=-self.recipe.learning_rate)

    def state(self) -> list[Tensor]:
        """Copies of all that steps change."""
        return [tensor.detach().clone() for tensor in (self.flat, self.mean, self.square)]

    @torch.no_grad()
    def restore(self, state: Sequence[Tensor]) -> None:
        """What `state` gave, in the same places: a graph goes on reading them."""
        for tensor, before in zip((self.flat, self.mean, self.square), state, strict=True):
            tensor.copy_(before)

    def release(self) -> None:
        """Give every parameter memory of its own."""
        for module in self.modules:
            for parameter in module.parameters():
                parameter.data = parameter.data.clone()
