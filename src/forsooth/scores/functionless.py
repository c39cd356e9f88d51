"""Patches that are seen but change nothing: x + δ with f(x + δ) ≈ f(x) [yang2019benchmarking].

What a model says is the same with and without such a patch, so an attribution that draws attention to it is a false
positive; `contrast.iir` counts them. Any model with gradients and any input will do.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from forsooth.chunks import over
from forsooth.games.values import Model, class_outputs, rows_at_once
from forsooth.names import unknown
from forsooth.records import UsageError

PIXEL = 255  # steps of a pixel in its range: η1, η2 and the printed step size are meant for these
SPARE = 1.02  # a patch that has become too faint is made stronger by so much more than it must
TILE = 4  # pixels a side of the tiles of which a patch is made where none is given


@dataclass(frozen=True)
class Search:
    """How to look for δ: descent on ‖f(x + δ) - f(x)‖₂ - η1 ‖δ‖₂ + R, with R of appendix A.

    eta1       weight of the length of δ, which keeps it from vanishing
    eta2       weight of what leaves the range
    eta3       weight of what is outside the mask, for confine="penalty"
    rule       "polyak": the step is as long as would bring the distance to 0 if it were linear, times `step_size`, and
               the weights are relative to the length of its gradient; "plain": `step_size` times the gradient, with
               pixels in 255 steps
    steps      at most so many
    tolerance  a sample is done when its distance is at most this share of ‖f(x)‖ and it is visible; 0: never done
    visible    least mean of |δ| in the mask as a share of the range; what is fainter is made stronger
    leash      largest L2 distance from the start, as a root mean square over the mask and a share of the range; None:
               any
    confine    "mask": δ is 0 outside it; "late": from the first step on, as released; "penalty": at the end
    bounded    "project": back into the range in every step; "penalty": at the end; "wrap": at the end, cast to bytes,
               where 256 becomes 0, as released
    begin      "replace": the pixels of the start stand for those of x; "add": they are added, less mid-grey
    keep       the "best" visible δ of the way, or the "last"
    """

    eta1: float = 0.01
    eta2: float = 0.01
    eta3: float = 0.0
    rule: Literal["polyak", "plain"] = "polyak"
    step_size: float = 0.7
    steps: int = 300
    tolerance: float = 0.02
    visible: float = 0.1
    leash: float | None = None
    confine: Literal["mask", "late", "penalty"] = "mask"
    bounded: Literal["project", "penalty", "wrap"] = "project"
    begin: Literal["replace", "add"] = "replace"
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        words = {
            "rule": ("polyak", "plain"),
            "confine": ("mask", "late", "penalty"),
            "bounded": ("project", "penalty", "wrap"),
            "begin": ("replace", "add"),
            "keep": ("best", "last"),
        }
        for name, known in words.items():
            if getattr(self, name) not in known:
                raise unknown(getattr(self, name), known, argument=name)
        for name in ("eta1", "eta2", "eta3", "tolerance", "steps"):
            if getattr(self, name) < 0:
                raise UsageError(f"`{name}` must be at least 0, got {getattr(self, name)}")
        if self.step_size <= 0 or (self.leash is not None and self.leash <= 0):
            raise UsageError(f"`step_size` and `leash` must be above 0, got {self.step_size} and {self.leash}")
        if not 0 <= self.visible < 0.5:  # a grey image cannot change by more
            raise UsageError(f"`visible` must lie in [0, 0.5), got {self.visible}")


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
    x, mask = x.detach().clone(), _mask(x, mask).clone()  # a clone of an inference tensor is an ordinary one
    low, high = (torch.as_tensor(end).to(x).clone().expand(x.shape[1:]) for end in bounds)
    if bool((x < low).any() or (x > high).any()) or not bool((low < high).all()):
        raise UsageError(f"`x` must lie within the bounds, got {x.min().item():g} to {x.max().item():g}")
    start = _start(x, start) if isinstance(start, Tensor) else _tiles(x, mask, start, (low, high))
    grain = (high - low) / PIXEL
    size = max(8, rows_at_once(x, model) // 4)

    def part(x: Tensor, mask: Tensor, start: Tensor) -> Tensor:
        delta = (start - (x if search.begin == "replace" else (low + high) / 2)) / grain
        delta = _walk(model, (x, mask, (low - x) / grain, (high - x) / grain), delta, grain, search)
        return torch.where(mask, _pixels(x + delta * grain, (low, high), search), x)

    done = over(part, x, mask, start.detach().clone(), size=size)
    return _judged(model, x, done, mask, high - low, size=size)


def _mask(x: Tensor, mask: Tensor) -> Tensor:
    """The mask as (n, *shape) bool, or an error."""
    if mask.dtype != torch.bool or mask.shape not in (x.shape, x.shape[:1] + x.shape[2:]):
        wanted = f"{tuple(x.shape[:1] + x.shape[2:])} or {tuple(x.shape)} bool"
        raise UsageError(f"`mask` must be {wanted}, got {tuple(mask.shape)} {mask.dtype}")
    empty = (~mask.flatten(1).any(1)).nonzero()[:, 0].tolist()
    if empty:
        raise UsageError(f"`mask` must hold at least one pixel of every sample, got none at {empty[0]}")
    return (mask if mask.shape == x.shape else mask[:, None]).to(x.device).expand_as(x)


def _start(x: Tensor, start: Tensor) -> Tensor:
    """The given start for every sample (n, *shape), or an error."""
    if start.shape not in (x.shape, x.shape[1:]):
        wanted = f"the shape of one input {tuple(x.shape[1:])} or of all {tuple(x.shape)}"
        raise UsageError(f"`start` must have {wanted}, got {tuple(start.shape)}")
    return start.to(x).expand_as(x)


def _tiles(x: Tensor, mask: Tensor, generator: torch.Generator, ends: tuple[Tensor, Tensor]) -> Tensor:
    """Tiles at the ends of the range, the same draw for every sample, or their negative: (n, *shape)."""
    coarse = [x.shape[1], *(-(-side // TILE) for side in x.shape[2:])]
    tiles = torch.rand(coarse, generator=generator).to(x.device) < 0.5
    for axis, side in enumerate(x.shape[2:], start=1):
        tiles = tiles.repeat_interleave(TILE, axis).narrow(axis, 0, side)
    first, second = torch.where(tiles, ends[1], ends[0]), torch.where(tiles, ends[0], ends[1])
    span = ends[1] - ends[0]
    farther = _mean((first - x).abs() / span, mask) >= _mean((second - x).abs() / span, mask)
    return torch.where(_wide(farther, x), first, second)


def _walk(model: Model, place: tuple[Tensor, ...], delta: Tensor, grain: Tensor, search: Search) -> Tensor:
    """δ (n, *shape) at the end of the search, in steps of a pixel.

    place  x, mask, and the least and the largest δ that stay in range, each (n, *shape)
    delta  (n, *shape) at its start
    """
    with torch.no_grad():
        logits = class_outputs(model, place[0], 0)
    if search.confine == "mask":
        delta = _projected(delta, delta, place, search)
    found, least = delta.clone(), delta.new_full((len(delta),), torch.inf)
    rows, begin = torch.arange(len(delta), device=delta.device), delta
    for step in range(search.steps + 1):
        distance, gradient = _pull(model, place[0], delta, grain, logits)
        seen = _mean(delta.abs(), place[1]) >= search.visible * PIXEL
        better = seen & (distance < least[rows]) if search.keep == "best" else torch.ones_like(seen)
        found[rows[better]], least[rows[better]] = delta[better], distance[better]
        going = ~seen | (distance > search.tolerance * logits.norm(dim=1))
        if step == search.steps or not going.any():
            break
        if not going.all():
            place = tuple(one[going] for one in place)
            rows, begin, delta, logits, distance, gradient = (
                one[going] for one in (rows, begin, delta, logits, distance, gradient)
            )
        delta = _projected(delta - _move(distance, gradient, delta, place, search), begin, place, search)
    return found


def _pull(model: Model, x: Tensor, delta: Tensor, grain: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """‖f(x + δ) - f(x)‖₂ (n,), and its gradient (n, *shape) by δ; the sum over samples holds that of each."""
    with torch.enable_grad():
        leaf = delta.detach().clone().requires_grad_()
        distance = (model(x + leaf * grain) - logits).norm(dim=1)
        return distance.detach(), torch.autograd.grad(distance.sum(), leaf)[0]


def _move(distance: Tensor, gradient: Tensor, delta: Tensor, place: tuple[Tensor, ...], search: Search) -> Tensor:
    """What a step takes from δ (n, *shape)."""
    _, mask, least, most = place
    length = _wide(delta.flatten(1).norm(dim=1), delta).clamp(min=1e-12)
    rest = search.eta2 * ((delta > most).to(delta) - (delta < least).to(delta)) - search.eta1 * delta / length
    if search.confine == "penalty":
        rest = rest + search.eta3 * delta.sign() * ~mask
    else:
        gradient = gradient * mask
    if search.rule == "plain":
        return search.step_size * (gradient + rest)
    if search.bounded == "project":  # what would leave the range cannot move, and must not shorten the step
        gradient = gradient * ~(((delta >= most) & (gradient < 0)) | ((delta <= least) & (gradient > 0)))
    steep = _wide(gradient.flatten(1).norm(dim=1), delta)
    flat = steep == 0  # nothing to follow: the model does not see δ here
    way = _wide(distance, delta) / steep.masked_fill(flat, 1.0)
    return search.step_size * way * (gradient / steep.masked_fill(flat, 1.0) + rest)


def _projected(delta: Tensor, begin: Tensor, place: tuple[Tensor, ...], search: Search) -> Tensor:
    """δ (n, *shape) made visible, near its start, in range and in its mask, as far as the search asks."""
    _, mask, least, most = place
    if search.visible > 0:
        seen = _mean(delta.abs(), mask)
        faint = (seen < search.visible * PIXEL) & (seen > 0)
        delta = delta * _wide(torch.where(faint, SPARE * search.visible * PIXEL / seen, 1.0), delta)
    if search.leash is not None:
        away = delta - begin if search.confine == "penalty" else (delta - begin) * mask
        reach = (away.square().flatten(1).sum(1) / mask.flatten(1).sum(1)).sqrt().clamp(min=1e-12)
        delta = begin + away * _wide((search.leash * PIXEL / reach).clamp(max=1), delta)
    if search.bounded == "project":
        delta = torch.minimum(torch.maximum(delta, least), most)
    return delta if search.confine == "penalty" else delta * mask


def _pixels(x: Tensor, ends: tuple[Tensor, Tensor], search: Search) -> Tensor:
    """x (n, *shape) as an image in range."""
    low, high = ends
    if search.bounded == "wrap":
        grain = (high - low) / PIXEL
        x = low + ((x - low) / grain).trunc().remainder(PIXEL + 1) * grain
    return torch.minimum(torch.maximum(x, low), high)


def _judged(model: Model, x: Tensor, done: Tensor, mask: Tensor, span: Tensor, *, size: int) -> Patched:
    """The patched inputs with what became of their outputs."""
    with torch.no_grad():
        before, after = (over(lambda part: class_outputs(model, part, 0), one, size=size) for one in (x, done))
    distance = (after - before).norm(dim=1)
    return Patched(done, distance, distance / before.norm(dim=1), _mean((done - x).abs() / span, mask))


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """(n,) the mean of values (n, *shape) over the mask (n, *shape)."""
    return (values * mask).flatten(1).sum(1) / mask.flatten(1).sum(1)


def _wide(values: Tensor, like: Tensor) -> Tensor:
    """values (n,) ready to broadcast against `like` (n, *shape)."""
    return values.view(-1, *[1] * (like.ndim - 1))
