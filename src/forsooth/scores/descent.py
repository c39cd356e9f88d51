"""The descent to a patch δ that leaves the outputs of a model as they are [yang2019benchmarking, appendix A]."""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from forsooth.games.values import Model, class_outputs
from forsooth.names import unknown
from forsooth.records import UsageError

PIXEL = 255  # steps of a pixel in its range: η1, η2 and the printed step size are meant for these
SPARE = 1.02  # a patch that has become too faint is made stronger by so much more than it must
WORDS = {
    "rule": ("polyak", "plain"),
    "confine": ("mask", "late", "penalty"),
    "bounded": ("project", "penalty", "wrap"),
    "begin": ("replace", "add"),
    "keep": ("best", "last"),
}


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
        for name, known in WORDS.items():
            if getattr(self, name) not in known:
                raise unknown(getattr(self, name), known, argument=name)
        for name in ("eta1", "eta2", "eta3", "tolerance", "steps"):
            if getattr(self, name) < 0:
                raise UsageError(f"`{name}` must be at least 0, got {getattr(self, name)}")
        if self.step_size <= 0 or (self.leash is not None and self.leash <= 0):
            raise UsageError(f"`step_size` and `leash` must be above 0, got {self.step_size} and {self.leash}")
        if not 0 <= self.visible < 0.5:  # a grey image cannot change by more
            raise UsageError(f"`visible` must lie in [0, 0.5), got {self.visible}")


@dataclass(frozen=True)
class Place:
    """Where the patches of n samples may be.

    x            (n, *shape) the inputs
    mask         (n, *shape) bool
    least, most  (n, *shape) the δ that reaches the lower and the upper bound, in steps of a pixel
    """

    x: Tensor
    mask: Tensor
    least: Tensor
    most: Tensor

    def __getitem__(self, samples: Tensor) -> "Place":
        """The places of some samples (n,) bool."""
        return Place(self.x[samples], self.mask[samples], self.least[samples], self.most[samples])


@dataclass(frozen=True)
class Walk:
    """Samples whose search goes on.

    rows    (n,) int64, their numbers
    place   of their patches
    begin   (n, *shape) δ at its start
    delta   (n, *shape) δ now
    logits  (n, classes) of the inputs without a patch
    """

    rows: Tensor
    place: Place
    begin: Tensor
    delta: Tensor
    logits: Tensor

    def __getitem__(self, samples: Tensor) -> "Walk":
        """The walks of some samples (n,) bool."""
        return Walk(
            self.rows[samples],
            self.place[samples],
            self.begin[samples],
            self.delta[samples],
            self.logits[samples],
        )


def descend(model: Model, place: Place, delta: Tensor, grain: Tensor, search: Search) -> Tensor:
    """δ (n, *shape) at the end of the search, in steps of a pixel.

    delta  (n, *shape) at its start
    grain  (*shape) one step of a pixel
    """
    walk = started(model, place, delta, search)
    patch = walk.delta.clone()
    least = delta.new_full((len(delta),), torch.inf)
    for step in range(search.steps + 1):
        distance, gradient = pull(model, walk, grain)
        seen = mean_inside(walk.delta.abs(), walk.place.mask) >= search.visible * PIXEL
        better = seen & (distance < least[walk.rows])
        if search.keep == "last":
            better = torch.ones_like(seen)
        patch[walk.rows[better]] = walk.delta[better]
        least[walk.rows[better]] = distance[better]
        going = ~seen | (distance > search.tolerance * walk.logits.norm(dim=1))
        if step == search.steps or not going.any():
            break
        if not going.all():
            walk = walk[going]
            distance = distance[going]
            gradient = gradient[going]
        walk = stepped(walk, distance, gradient, search)
    return patch


def started(model: Model, place: Place, delta: Tensor, search: Search) -> Walk:
    """The walks of all samples, from δ (n, *shape)."""
    with torch.no_grad():
        logits = class_outputs(model, place.x, 0)
    if search.confine == "mask":
        delta = projected(delta, delta, place, search)
    return Walk(torch.arange(len(delta), device=delta.device), place, delta, delta, logits)


def pull(model: Model, walk: Walk, grain: Tensor) -> tuple[Tensor, Tensor]:
    """‖f(x + δ) - f(x)‖₂ (n,), and its gradient (n, *shape) by δ; the sum over samples holds that of each."""
    with torch.enable_grad():
        leaf = walk.delta.detach().clone().requires_grad_()
        distance = (model(walk.place.x + leaf * grain) - walk.logits).norm(dim=1)
        return distance.detach(), torch.autograd.grad(distance.sum(), leaf)[0]


def stepped(walk: Walk, distance: Tensor, gradient: Tensor, search: Search) -> Walk:
    """The walks one step on."""
    delta = walk.delta - move(distance, gradient, walk, search)
    return replace(walk, delta=projected(delta, walk.begin, walk.place, search))


def move(distance: Tensor, gradient: Tensor, walk: Walk, search: Search) -> Tensor:
    """What a step takes from δ (n, *shape)."""
    rest = penalties(walk.delta, walk.place, search)
    if search.confine != "penalty":
        gradient = gradient * walk.place.mask
    if search.rule == "plain":
        return search.step_size * (gradient + rest)
    if search.bounded == "project":
        gradient = gradient * ~stuck(walk, gradient)
    steep = wide(gradient.flatten(1).norm(dim=1), gradient)
    flat = steep == 0  # nothing to follow: the model does not see δ here
    way = wide(distance, gradient) / steep.masked_fill(flat, 1.0)
    return search.step_size * way * (gradient / steep.masked_fill(flat, 1.0) + rest)


def penalties(delta: Tensor, place: Place, search: Search) -> Tensor:
    """The gradient (n, *shape) of - η1 ‖δ‖₂ + R by δ."""
    length = wide(delta.flatten(1).norm(dim=1), delta).clamp(min=1e-12)
    outside = (delta > place.most).to(delta) - (delta < place.least).to(delta)
    rest = search.eta2 * outside - search.eta1 * delta / length
    if search.confine == "penalty":
        rest = rest + search.eta3 * delta.sign() * ~place.mask
    return rest


def stuck(walk: Walk, gradient: Tensor) -> Tensor:
    """(n, *shape) bool: what would leave the range cannot move, and must not shorten the step."""
    upwards = (walk.delta >= walk.place.most) & (gradient < 0)
    downwards = (walk.delta <= walk.place.least) & (gradient > 0)
    return upwards | downwards


def projected(delta: Tensor, begin: Tensor, place: Place, search: Search) -> Tensor:
    """δ (n, *shape) made visible, near its start, in range and in its mask, as far as the search asks."""
    if search.visible > 0:
        delta = strengthened(delta, place.mask, search.visible)
    if search.leash is not None:
        delta = leashed(delta, begin, place.mask, search)
    if search.bounded == "project":
        delta = torch.minimum(torch.maximum(delta, place.least), place.most)
    if search.confine == "penalty":
        return delta
    return delta * place.mask


def strengthened(delta: Tensor, mask: Tensor, visible: float) -> Tensor:
    """δ (n, *shape), stronger where its mean in the mask is below `visible`, a share of the range."""
    seen = mean_inside(delta.abs(), mask)
    faint = (seen < visible * PIXEL) & (seen > 0)
    return delta * wide(torch.where(faint, SPARE * visible * PIXEL / seen, 1.0), delta)


def leashed(delta: Tensor, begin: Tensor, mask: Tensor, search: Search) -> Tensor:
    """δ (n, *shape) brought back to the largest distance from its start."""
    assert search.leash is not None
    away = delta - begin
    if search.confine != "penalty":
        away = away * mask
    reach = (away.square().flatten(1).sum(1) / mask.flatten(1).sum(1)).sqrt().clamp(min=1e-12)
    return begin + away * wide((search.leash * PIXEL / reach).clamp(max=1), delta)


def mean_inside(values: Tensor, mask: Tensor) -> Tensor:
    """(n,) the mean of values (n, *shape) over the mask (n, *shape)."""
    return (values * mask).flatten(1).sum(1) / mask.flatten(1).sum(1)


def wide(values: Tensor, like: Tensor) -> Tensor:
    """values (n,) ready to broadcast against `like` (n, *shape)."""
    return values.view(-1, *[1] * (like.ndim - 1))
