"""Local linear fits to the model around an input: masks of roles, who plays which drawn by each input, one system."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from forsooth.attributions.lasso import lasso
from forsooth.chunks import over
from forsooth.games.chains import prepared
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
    rewrite_model: bool = True,
) -> Tensor:
    """Coefficients of a ridge regression of the target's output on who takes part.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same masks
    samples     random masks; None: 2 · players, and at least 1,000
    players     (*spatial) or (*shape) integer labels; None: each pixel
    baseline    (*shape), what stands for an absent player; None: zeros
    rewrite_model  the network may be asked in a faster way, which says the same but for the order of sums
    returns     (n, *shape)

    [ribeiro2016why], with masks that weigh exp(-d² / 2) by their cosine distance d to the full mask, and penalty 1.
    Departures: `generator` draws masks of roles, so one factorisation serves all samples, and each input draws who
    plays which role; the masks come in complementary pairs, which lowers the error; the kernel is as wide as
    Captum's, since the narrow one of the authors' package (0.25) prefers nearly full masks and moves the coefficients
    away from Shapley values.
    """
    played = game(model, x, target, players=players, baseline=baseline, rewrite_model=rewrite_model)
    played = shuffled(played, generators)
    if samples is None:
        samples = max(1000, 2 * played.count)
    played = prepared(played, len(x) * samples)
    masks = bernoulli_masks(samples, played.count, generator, paired=True).to(x.device)
    return played.map(ridge(masks, proximity(masks), values_of(played, masks).double(), penalty=1.0))


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
    rewrite_model: bool = True,
) -> Tensor:
    """LIME as Captum computes it by default: a lasso with penalty 0.01, weights by the distance of the inputs.

    x           (n, *shape)
    target      (n,) int64, the explained class
    generators  one for each input, for the roles of its players; None: all inputs play the same masks
    rewrite_model  the network may be asked in a faster way, which says the same but for the order of sums
    returns     (n, *shape); zero wherever the penalty outweighs the output, which for small outputs is everywhere

    [kokhlikyan2020captum]; this is how [clark2024xaitris] ran LIME, with 25 samples for 4,096 pixels. Departure: the
    masks are of roles, and each input draws who plays which.
    """
    played = game(model, x, target, players=players, baseline=baseline, rewrite_model=rewrite_model)
    played = shuffled(played, generators)
    played = prepared(played, len(x) * samples)
    masks = bernoulli_masks(samples, played.count, generator).to(x.device)
    distance = 1 - cosines(played, masks)  # (n, samples)
    weights = torch.exp(-(distance**2) / 2)
    values = values_of(played, masks).double()
    size = max(1, 2**20 // played.count)  # samples at a time, which share nothing but the masks
    return played.map(over(lambda w, v: lasso(masks, w, v, penalty=0.01), weights, values, size=size))


def bernoulli_masks(samples: int, count: int, generator: torch.Generator, *, paired: bool = False) -> Tensor:
    """Every player takes part in every mask with probability one half. Returns (samples, count) bool.

    paired  the second half of the masks are the complements of the first
    """
    if samples < 2:
        raise UsageError(f"`samples` must be at least 2, got {samples}")
    if not paired:
        return torch.rand(samples, count, generator=generator) < 0.5
    drawn = torch.rand((samples + 1) // 2, count, generator=generator) < 0.5
    return torch.cat([drawn, ~drawn])[:samples]


def proximity(masks: Tensor, width: float = 1.0) -> Tensor:
    """The weights √exp(-d² / width²), with d the cosine distance of masks (m, players) to the full one. (m,) float64"""
    distance = 1 - masks.double().mean(dim=1).sqrt()  # the cosine between a 0/1 vector and ones is a root mean
    return torch.exp(-(distance**2) / (2 * width**2))


def cosines(played: Game, masks: Tensor) -> Tensor:
    """Cosine between every input and itself under every mask. Nothing is built: all sums go by player.

    masks    (m, players) bool, of players or of their roles
    returns  (n, m) float64
    """
    x = played.x.double()
    baseline = played.baseline.double()
    here = masks.double().T  # (players, m)
    gone = (~masks).double().T
    square = by_player(played, x * x)
    dot = square @ here + by_player(played, x * baseline) @ gone
    length = square @ here + by_player(played, baseline * baseline) @ gone
    return dot / (square.sum(dim=1, keepdim=True) * length).sqrt().clamp(min=1e-16)


def by_player(played: Game, products: Tensor) -> Tensor:
    """The sums (n or 1, players) of products (n or 1, *shape) over the entries of each player, or of its role."""
    entries = played.labels.expand(products.shape[1:]).flatten()
    sums = products.new_zeros(len(products), played.count)
    sums.index_add_(1, entries, products.flatten(1))
    if played.roles is None:
        return sums
    return sums.new_empty(played.roles.shape).scatter_(1, played.roles, sums.expand_as(played.roles))


def ridge(masks: Tensor, weights: Tensor, values: Tensor, *, penalty: float) -> Tensor:
    """Coefficients of weighted ridge regressions with intercept, for all samples at once.

    masks    (m, players) bool
    weights  (m,) float64
    values   (n, m) float64
    returns  (n, players) float64

    The smaller of the two normal systems, over players or over masks, is solved.
    """
    share = weights / weights.sum()
    root = weights.sqrt()
    design = (masks.double() - share @ masks.double()) * root[:, None]  # (m, players)
    goal = ((values - (values @ share)[:, None]) * root).T  # (m, n)
    if design.shape[0] < design.shape[1]:
        return (design.T @ solved(design @ design.T, goal, penalty)).T
    return solved(design.T @ design, design.T @ goal, penalty).T


def solved(gram: Tensor, goal: Tensor, penalty: float) -> Tensor:
    """The y (k, n) with (gram + penalty) y = goal (k, n), for gram (k, k), which is overwritten."""
    gram.diagonal().add_(penalty)
    return torch.cholesky_solve(goal, torch.linalg.cholesky(gram))


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
    version=3,  # every lasso is proven since
    settings={"samples": 25},
    variant_of=LIME.name,
)
SURROGATES = (LIME, LIME_25)
