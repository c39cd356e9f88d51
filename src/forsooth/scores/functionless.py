"""Patches that are seen but change nothing: x + δ with f(x + δ) ≈ f(x) [yang2019benchmarking].

What a model says is the same with and without such a patch, so an attribution that draws attention to it is a false
positive; `contrast.iir` counts them. Any model with gradients and any input will do.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from forsooth.chunks import over
from forsooth.games.values import Model, class_outputs, rows_at_once
from forsooth.records import UsageError
from forsooth.scores.descent import PIXEL, Place, descend, mean_inside, wide
from forsooth.scores.descent import Search as Search

TILE = 4  # pixels a side of the tiles of which a patch is made where none is given


DEFAULT = Search()
# As printed: η1 and the step size are in the text; 300 steps, η2, and η3 of the same size are taken from the code. The
# text keeps δ within a "small" L2 distance of its start and gives no number: here a tenth of the range.
PRINTED = Search(
    leash=0.1,
    eta3=0.01,
    rule="plain",
    step_size=500.0,
    tolerance=0.0,
    visible=0.0,
    confine="penalty",
    bounded="penalty",
    keep="last",
)
# Departure: the released code also saves x + δ as a JPEG, which is not done here.
RELEASED = replace(PRINTED, leash=None, eta3=0.0, confine="late", bounded="wrap", begin="add")


@dataclass(frozen=True)
class Patched:
    """Inputs with a patch.

    x         (n, *shape) x + δ: in range, and outside the mask the same bits as x
    distance  (n,) ‖f(x + δ) - f(x)‖₂, of the x above
    ratio     (n,) the same as a share of ‖f(x)‖₂
    change    (n,) mean of |δ| in the mask as a share of the range
    """

    x: Tensor
    distance: Tensor
    ratio: Tensor
    change: Tensor

    def found(self, *, ratio: float = 0.05, change: float = 0.1) -> Tensor:
        """(n,) bool: the outputs differ by less than `ratio`, and the patch can be seen."""
        return (self.ratio < ratio) & (self.change >= change)


@torch.inference_mode(False)  # gradients are needed, also where the caller wants none
def functionless(
    model: Model,
    x: Tensor,
    mask: Tensor,
    *,
    start: Tensor | torch.Generator,
    bounds: tuple[float | Tensor, float | Tensor] = (0.0, 1.0),
    search: Search = DEFAULT,
) -> Patched:
    """Patches inside the masks that leave the outputs of the model as they are.

    model      in eval mode, x -> (n, classes); logits, as in the paper
    x          (n, *shape) within the bounds
    mask       (n, *space) bool, with shape = (channels, *space), or (n, *shape); never empty
    start      (*shape) or (n, *shape), what the patch is made of at first, such as an object pasted into x; or a
               generator: tiles of random colours, or their negative, whichever is farther from x
    bounds     least and largest value of an input: numbers, or tensors that broadcast to (*shape)

    [yang2019benchmarking], appendix A. Departure: by default steps have Polyak's length [polyak1969minimization] and δ
    is projected into its mask and range, so that nearly every input has a patch after some tens of steps; with steps
    of one length the distance, which is not squared, stays far from 0. Appendix A writes the term of η3 without the
    absolute value, where it has no minimum. A sample is never seen by its neighbours.
    """
    mask = whole_mask(x, mask).clone()
    x = x.detach().clone()  # a clone of an inference tensor is an ordinary one
    ends = whole_bounds(x, bounds)
    if isinstance(start, torch.Generator):
        start = tiles(x, mask, start, ends)
    start = whole_start(x, start).detach().clone()
    size = max(8, rows_at_once(x, model) // 4)

    def part(x: Tensor, mask: Tensor, start: Tensor) -> Tensor:
        return patched(model, x, mask, start, ends, search)

    done = over(part, x, mask, start, size=size)
    return judged(model, x, done, mask, ends[1] - ends[0], size=size)


def patched(
    model: Model, x: Tensor, mask: Tensor, start: Tensor, ends: tuple[Tensor, Tensor], search: Search
) -> Tensor:
    """x + δ (n, *shape) for a few inputs; mask and start are (n, *shape), the ends of the range (*shape)."""
    low, high = ends
    grain = (high - low) / PIXEL
    ground = (low + high) / 2
    if search.begin == "replace":
        ground = x
    place = Place(x, mask, (low - x) / grain, (high - x) / grain)
    delta = descend(model, place, (start - ground) / grain, grain, search)
    return torch.where(mask, in_range(x + delta * grain, ends, search), x)


def whole_mask(x: Tensor, mask: Tensor) -> Tensor:
    """The mask as (n, *shape) bool, or an error."""
    places = x.shape[:1] + x.shape[2:]
    if mask.dtype != torch.bool or mask.shape not in (x.shape, places):
        wanted = f"{tuple(places)} or {tuple(x.shape)} bool"
        raise UsageError(f"`mask` must be {wanted}, got {tuple(mask.shape)} {mask.dtype}")
    empty = (~mask.flatten(1).any(1)).nonzero()[:, 0].tolist()
    if empty:
        raise UsageError(f"`mask` must hold at least one pixel of every sample, got none at {empty[0]}")
    if mask.shape != x.shape:
        mask = mask[:, None]
    return mask.to(x.device).expand_as(x)


def whole_bounds(x: Tensor, bounds: tuple[float | Tensor, float | Tensor]) -> tuple[Tensor, Tensor]:
    """The least and the largest value of every entry, each (*shape), or an error."""
    low, high = (torch.as_tensor(end, dtype=x.dtype, device=x.device).clone().expand(x.shape[1:]) for end in bounds)
    if bool((x < low).any() or (x > high).any()) or not bool((low < high).all()):
        raise UsageError(f"`x` must lie within the bounds, got {x.min().item():g} to {x.max().item():g}")
    return low, high


def whole_start(x: Tensor, start: Tensor) -> Tensor:
    """The start for every sample (n, *shape), or an error."""
    if start.shape not in (x.shape, x.shape[1:]):
        wanted = f"the shape of one input {tuple(x.shape[1:])} or of all {tuple(x.shape)}"
        raise UsageError(f"`start` must have {wanted}, got {tuple(start.shape)}")
    return start.to(x).expand_as(x)


def tiles(x: Tensor, mask: Tensor, generator: torch.Generator, ends: tuple[Tensor, Tensor]) -> Tensor:
    """Tiles at the ends of the range, the same draw for every sample, or their negative: (n, *shape)."""
    low, high = ends
    bright = bright_tiles(x, generator)
    first = torch.where(bright, high, low)
    second = torch.where(bright, low, high)
    near = mean_inside((first - x).abs() / (high - low), mask)
    farther = near >= mean_inside((second - x).abs() / (high - low), mask)
    return torch.where(wide(farther, x), first, second)


def bright_tiles(x: Tensor, generator: torch.Generator) -> Tensor:
    """Which entries are bright, tile by tile, as likely as not: (*shape) bool, on the device of x (n, *shape)."""
    coarse = [x.shape[1], *(-(-side // TILE) for side in x.shape[2:])]
    bright = torch.rand(coarse, generator=generator).to(x.device) < 0.5
    for axis, side in enumerate(x.shape[2:], start=1):
        bright = bright.repeat_interleave(TILE, axis).narrow(axis, 0, side)
    return bright


def in_range(x: Tensor, ends: tuple[Tensor, Tensor], search: Search) -> Tensor:
    """x (n, *shape) as an image in range."""
    low, high = ends
    if search.bounded == "wrap":
        grain = (high - low) / PIXEL
        x = low + ((x - low) / grain).trunc().remainder(PIXEL + 1) * grain
    return torch.minimum(torch.maximum(x, low), high)


def judged(model: Model, x: Tensor, done: Tensor, mask: Tensor, span: Tensor, *, size: int) -> Patched:
    """The patched inputs with what became of their outputs."""
    with torch.no_grad():
        before, after = (over(lambda part: class_outputs(model, part, 0), one, size=size) for one in (x, done))
    distance = (after - before).norm(dim=1)
    return Patched(done, distance, distance / before.norm(dim=1), mean_inside((done - x).abs() / span, mask))
