"""Local linear fits to the model around an input: masks of roles, who plays which drawn by each input, one system."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from forsooth.chunks import over
from forsooth.games.draws import shuffled
from forsooth.games.values import Game, Model, game, values_of
from forsooth.records import Method, UsageError


def lime(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generator: torch.Generator,
    generators: Sequence[torch.Generator] | None = None,
    samples: int | None = None,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
) -> Tensor:
    """Coefficients of a ridge regression of the target's output on who takes part.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same masks
    samples     random masks; None: 2 · players, and at least 1,000
    players     (*spatial) or (*shape) integer labels; None: each pixel
    baseline    (*shape), what stands for an absent player; None: zeros
    returns     (n, *shape)

    [ribeiro2016why], with masks that weigh exp(-d² / 2) by their cosine distance d to the full mask, and penalty 1.
    Departures: `generator` draws masks of roles, so one factorisation serves all samples, and each input draws who
    plays which role; the masks come in complementary pairs, which lowers the error; the kernel is as wide as
    Captum's, since the narrow one of the authors' package (0.25) prefers nearly full masks and moves the coefficients
    away from Shapley values.
    """
    played = shuffled(game(model, x, target, players=players, baseline=baseline), generators)
    samples = max(1000, 2 * played.count) if samples is None else samples
    masks = bernoulli_masks(samples, played.count, generator, paired=True).to(x.device)
    distance = 1 - masks.double().mean(dim=1).sqrt()  # the cosine between a 0/1 vector and ones is a root mean
    weights = torch.exp(-(distance**2) / 2)
    return played.map(ridge(masks, weights, values_of(played, masks).double(), penalty=1.0))


def lime_lasso(
    model: Model,
    x: Tensor,
    target: Tensor,
    *,
    generator: torch.Generator,
    generators: Sequence[torch.Generator] | None = None,
    samples: int = 25,
    players: Tensor | None = None,
    baseline: Tensor | None = None,
) -> Tensor:
    """LIME as Captum computes it by default: a lasso with penalty 0.01, weights by the distance of the inputs.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same masks
    returns     (n, *shape); zero wherever the penalty outweighs the output, which for small outputs is everywhere

    [kokhlikyan2020captum]; this is how [clark2024xaitris] ran LIME, with 25 samples for 4,096 pixels. Departure: the
    masks are of roles, and each input draws who plays which.
    """
    played = shuffled(game(model, x, target, players=players, baseline=baseline), generators)
    masks = bernoulli_masks(samples, played.count, generator).to(x.device)
    distance = 1 - cosines(played, masks)  # (n, samples)
    weights, values = torch.exp(-(distance**2) / 2), values_of(played, masks).double()
    size = max(1, 2**20 // played.count)  # samples at a time, which share nothing but the masks
    return played.map(over(lambda w, v: lasso(masks, w, v, penalty=0.01), weights, values, size=size))


def bernoulli_masks(samples: int, count: int, generator: torch.Generator, *, paired: bool = False) -> Tensor:
    """Every player takes part in every mask with probability one half. Returns (samples, count) bool.

    paired  the second half of the masks are the complements of the first
    """
    if samples < 2:
        raise UsageError(f"`samples` must be at least 2, got {samples}")
    drawn = torch.rand((samples + 1) // 2 if paired else samples, count, generator=generator) < 0.5
    return torch.cat([drawn, ~drawn])[:samples]


def cosines(played: Game, masks: Tensor) -> Tensor:
    """Cosine between every input and itself under every mask. Nothing is built: all sums go by player.

    masks    (m, players) bool, of players or of their roles
    returns  (n, m) float64
    """
    x, baseline = played.x.double(), played.baseline.double()
    entries = played.labels.expand(x.shape[1:]).flatten()
    here, gone = masks.double().T, (~masks).double().T  # (players, m)

    def by_player(products: Tensor) -> Tensor:
        sums = products.new_zeros(len(products), played.count)
        sums.index_add_(1, entries, products.flatten(1))  # (n or 1, players)
        if played.roles is None:
            return sums
        return sums.new_empty(played.roles.shape).scatter_(1, played.roles, sums.expand_as(played.roles))

    square = by_player(x * x)
    dot = square @ here + by_player(x * baseline) @ gone
    length = square @ here + by_player(baseline * baseline) @ gone
    return dot / (square.sum(dim=1, keepdim=True) * length).sqrt().clamp(min=1e-16)


def ridge(masks: Tensor, weights: Tensor, values: Tensor, *, penalty: float) -> Tensor:
    """Coefficients of weighted ridge regressions with intercept, for all samples at once.

    masks    (m, players) bool
    weights  (m,) float64
    values   (n, m) float64
    returns  (n, players) float64

    The smaller of the two normal systems, over players or over masks, is solved.
    """
    share, root = weights / weights.sum(), weights.sqrt()
    design = (masks.double() - share @ masks.double()) * root[:, None]  # (m, players)
    goal = ((values - (values @ share)[:, None]) * root).T  # (m, n)
    wide = design.shape[0] < design.shape[1]
    gram = design @ design.T if wide else design.T @ design
    gram.diagonal().add_(penalty)
    factor = torch.linalg.cholesky(gram)
    if wide:
        return (design.T @ torch.cholesky_solve(goal, factor)).T
    return torch.cholesky_solve(design.T @ goal, factor).T


def lasso(masks: Tensor, weights: Tensor, values: Tensor, *, penalty: float) -> Tensor:
    """Coefficients of weighted lasso regressions with intercept, each sample with weights of its own.

    masks    (m, players) bool
    weights  (n, m) float64
    values   (n, m) float64
    returns  (n, players) float64, minimising Σ w (v - z b - c)² / (2 Σ w) + penalty · |b|

    The path of solutions is followed from the penalty at which all are zero, all samples at once, and is exact
    [efron2004least]. It takes about as many turns as there are masks, however many players there are.
    """
    seen = masks.double()
    share = weights / weights.sum(dim=1, keepdim=True)  # (n, m)
    root, centre = share.sqrt(), share @ seen
    rest = root * (values - (share * values).sum(dim=1, keepdim=True))
    zero = torch.zeros_like(centre)
    slope = slopes(seen, Path(root, centre, rest, zero, zero, zero), rest)
    level, first = slope.abs().max(dim=1, keepdim=True)
    signs = zero.scatter(1, first, slope.gather(1, first).sign())
    going = (level > penalty)[:, 0].nonzero()[:, 0]
    path = Path(root, centre, rest, level, signs, zero)[going]
    result = zero.clone()
    for _ in range(100 * len(masks)):
        if len(going) == 0:
            break
        arrived = turn(seen, path, penalty)
        result[going[arrived]] = path.coefficients[arrived]
        if bool(arrived.any()):
            going, path = going[~arrived], path[~arrived]
    return result.index_copy_(0, going, path.coefficients)


@dataclass(frozen=True)
class Path:
    """Where the path of each lasso stands, for n samples, m masks and the players.

    root          (n, m), roots of the weights, which sum to one
    centre        (n, players), weighted means of the masks
    rest          (n, m), what is not yet explained of the weighted, centred values
    level         (n, 1), the penalty reached
    signs         (n, players), of who takes part, and 0 for the others
    coefficients  (n, players)
    """

    root: Tensor
    centre: Tensor
    rest: Tensor
    level: Tensor
    signs: Tensor
    coefficients: Tensor

    def __getitem__(self, samples: Tensor) -> "Path":
        """Copies of the chosen samples."""
        return Path(*(getattr(self, field.name)[samples] for field in fields(self)))


def slopes(seen: Tensor, path: Path, rest: Tensor) -> Tensor:
    """The rest (n, m) taken back through the weighted, centred masks of every sample. Returns (n, players)."""
    weighted = path.root * rest
    return weighted @ seen - path.centre * weighted.sum(dim=1, keepdim=True)


def turn(seen: Tensor, path: Path, penalty: float) -> Tensor:
    """Follow each path, in place, until a player joins, one leaves, or the penalty is reached.

    seen     (m, players), the masks
    returns  (n,) bool, which have reached the penalty
    """
    slots, pace, fall = heading(seen, path)
    slope, change = slopes(seen, path, path.rest), slopes(seen, path, fall)
    joins = torch.minimum(until_met(path.level, slope, change), until_met(path.level, -slope, -change))
    joins, joining = joins.masked_fill(path.signs != 0, torch.inf).min(dim=1, keepdim=True)
    # once the rest is spanned, all slopes fall together, and nobody can join
    joins = joins.masked_fill((pace != 0).sum(dim=1, keepdim=True) == len(seen) - 1, torch.inf)
    held = path.coefficients.gather(1, slots)
    leaves, leaving = torch.where(held * pace < 0, -held / pace, torch.inf).min(dim=1, keepdim=True)
    left = path.level - penalty
    step = torch.minimum(torch.minimum(joins, leaves), left)  # (n, 1)

    path.coefficients.scatter_add_(1, slots, step * pace)
    path.rest.sub_(step * fall)
    path.level.sub_(step)
    leave = ((leaves <= step) & (leaves < left))[:, 0].nonzero()[:, 0]
    for fading in (path.signs, path.coefficients):
        fading[leave, slots.gather(1, leaving)[leave, 0]] = 0
    join = ((joins <= step) & (leaves > step) & (joins < left))[:, 0].nonzero()[:, 0]
    path.signs[join, joining[join, 0]] = (slope - step * change).gather(1, joining)[join, 0].sign()
    return ((joins >= left) & (leaves >= left))[:, 0]


def heading(seen: Tensor, path: Path) -> tuple[Tensor, Tensor, Tensor]:
    """The direction in which the slopes of all who take part fall by one alike.

    returns  (n, k) int64, who takes part, filled up with others; (n, k), the pace of their coefficients, 0 for the
             others; (n, m), the fall of the rest
    """
    most = int(path.signs.count_nonzero(dim=1).max())
    slots = path.signs.abs().topk(most, dim=1).indices
    sign = path.signs.gather(1, slots)
    inside = sign != 0
    columns = seen.T[slots] - path.centre.gather(1, slots)[:, :, None]  # (n, k, m)
    columns = columns * (path.root[:, None] * inside[:, :, None])
    gram = columns @ columns.mT
    ridge = torch.diag_embed(torch.where(inside, 1e-12, 1.0))
    factor = torch.linalg.cholesky(gram + ridge)
    pace = torch.zeros_like(sign[:, :, None])  # (n, k, 1)
    # Refined, since the ridge is felt where columns nearly depend on each other, and then a player joins who must not.
    for _ in range(3):
        pace = pace + torch.cholesky_solve(sign[:, :, None] - gram @ pace, factor)
    return slots, pace[:, :, 0], (columns * pace).sum(dim=1)


def until_met(level: Tensor, slope: Tensor, change: Tensor) -> Tensor:
    """How far until a slope (n, players) that falls by `change` meets the level (n, 1) that falls by 1; inf if never.

    A slope that keeps pace with the level, as that of a player who is a sum of those inside, never counts.
    """
    closing = 1 - change
    return torch.where(closing > 1e-4, ((level - slope) / closing).clamp(min=0), torch.inf)


LIME = Method(
    name="lime",
    function=lime,
    needs=("generator", "generators"),
    random=True,
    signed=True,
    cite="ribeiro2016why",
    version=2,
    cost="forwards",
    hides=True,
    quadratic=True,
    output="probabilities",
)
LIME_25 = replace(
    LIME,
    name="lime_25",
    function=lime_lasso,
    cite="kokhlikyan2020captum",
    settings={"samples": 25},
    variant_of=LIME.name,
)
SURROGATES = (LIME, LIME_25)
