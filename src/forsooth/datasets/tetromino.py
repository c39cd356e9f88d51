"""XAI-TRIS: tetrominoes on noise, so that the pixels that matter are known by construction [clark2024xaitris]."""

import math
from collections.abc import Iterable
from dataclasses import asdict

import torch
from torch import Tensor

from forsooth.datasets import patterns
from forsooth.datasets.crops import crops, provenance
from forsooth.datasets.folders import Photos
from forsooth.datasets.scenes import dead_leaves
from forsooth.datasets.settings import CORR_SIGMA, HELD, Recipe, Setting, resolve
from forsooth.records import Dataset, UsageError
from forsooth.seeds import derive, generator

CHUNK = 1000  # samples per named generator and per pass; a constant, for other values give other noise
KINDS = {"XOR": ("++", "--", "+-", "-+")}  # signs of T and L; the other scenarios show one of the pieces
PIECES = ("T", "L")
LEAVES = 256  # dead-leaves "photographs" from which the stand-in crops are cut, twice as wide as a crop


def tetromino(setting: Setting, *, seed: int, photos: Photos | None = None) -> Dataset:
    """T against L (or their signs) on noise, correlated noise or photographs.

    x      (n, 1, size, size) float32, the largest |x| of the whole set is 1
    y      (n,) int in {0, 1}
    truth  (n, size, size) bool; RIGID: the piece of the sample; else T and L together, one mask seen n times
    strata (n,) int, the kinds of `draw_kinds`, whose names are in `facts`

    Equations 1 (LIN, RIGID, XOR) and 2 (MULT) of [clark2024xaitris]; where its text and code part, `setting.variant`
    decides. Without `photos`, IMAGENET takes crops of dead leaves, and `facts` says so. No photograph is in two splits.
    """
    recipe = resolve(setting)
    kinds, pose = draw_kinds(recipe, seed=seed), draw_poses(recipe, seed=seed)
    x, source = backgrounds(recipe, seed=seed, photos=photos)
    truth = imprint(x, kinds, pose, recipe)
    scale(x, recipe.variant.storage)
    splits = split_of(kinds, recipe, seed=seed)
    name = f"tetromino-{recipe.scenario}-{recipe.background}-{recipe.size}"
    unreadable = photos.unreadable if photos and recipe.background == "IMAGENET" else ()
    names = list(KINDS.get(recipe.scenario, PIECES))
    facts = {**asdict(recipe), "kinds": names, "background_from": source, "unreadable": list(unreadable)}
    return Dataset(name, x[:, None], labels(kinds, recipe), truth, splits, facts, strata=kinds)


def draw_kinds(recipe: Recipe, *, seed: int) -> Tensor:
    """(n,) int, numbers of `KINDS` or `PIECES`: LIN, MULT, RIGID: 0 T, 1 L; XOR: 0 ++, 1 --, 2 +-, 3 -+."""
    count = len(KINDS.get(recipe.scenario, PIECES))
    if recipe.variant.labels == "balanced":
        return torch.arange(recipe.n) * count // recipe.n
    g = generator(seed, "kinds", recipe.scenario, recipe.background)
    return torch.randint(0, count, (recipe.n,), generator=g)


def labels(kinds: Tensor, recipe: Recipe) -> Tensor:
    """(n,) int in {0, 1}: the piece, or in XOR whether the two signs differ."""
    return kinds // 2 if recipe.scenario == "XOR" else kinds


def draw_poses(recipe: Recipe, *, seed: int) -> Tensor:
    """(n, 3) int: quarter turns, row and column for RIGID (the other scenarios do not read them)."""
    g = generator(seed, "poses", recipe.scenario, recipe.background)
    return patterns.poses(recipe.n, size=recipe.size, positions=recipe.variant.positions, generator=g)


def backgrounds(recipe: Recipe, *, seed: int, photos: Photos | None) -> tuple[Tensor, str]:
    """(n, size, size) float32 of unscaled noise or zero-mean photographs, and where it comes from."""
    n, size = recipe.n, recipe.size
    names = () if recipe.variant.noise == "shared" else (recipe.scenario, recipe.background)
    if recipe.background == "IMAGENET":
        source = "dead leaves (generated stand-in for photographs)" if photos is None else provenance(photos, n)
        given = leaves(size, seed=seed) if photos is None else photos
        parts = list(split_of(draw_kinds(recipe, seed=seed), recipe, seed=seed).values())
        return crops(given, parts, size=size, seed=derive(seed, "crops", *names)), source
    noise = torch.empty(n, size, size)
    sigma = CORR_SIGMA[size] if recipe.background == "CORR" else 0.0
    kernel = patterns.smoother(size, sigma)
    for k, part in enumerate(noise.split(CHUNK)):
        part.normal_(generator=generator(seed, "noise", *names, k))  # of any variance: the norm is divided out
        if sigma:
            part.copy_(kernel @ part @ kernel.T)
    return noise, f"Gaussian-smoothed noise, sigma {sigma:g}" if sigma else "white noise"


def leaves(size: int, *, seed: int) -> Photos:
    """Dead leaves in place of photographs, the same for all scenarios of a seed."""
    scenes = dead_leaves(LEAVES, size=2 * size, generator=generator(seed, "dead leaves", size))
    return Photos((scenes * 255).round().byte(), "dead leaves")


def signals(kinds: Tensor, pose: Tensor, recipe: Recipe) -> tuple[Tensor, Tensor]:
    """What enters x, and the truth: (n, size, size) float and bool, for kinds (n,) and poses (n, 3)."""
    size = recipe.size
    if recipe.scenario == "RIGID":
        return patterns.signal(patterns.rigid(kinds, pose, size=size, order=recipe.variant.rigid), recipe.variant)
    kernel = patterns.smoother(size, patterns.SIGMA[size])
    sharp = patterns.fixed(recipe.scenario, size=size)
    entering, truth = patterns.signal(kernel @ sharp @ kernel.T, recipe.variant)
    return entering[kinds], truth.any(0).expand(len(kinds), -1, -1)  # eq. 4: a missing T says as much as an L


def imprint(x: Tensor, kinds: Tensor, pose: Tensor, recipe: Recipe) -> Tensor:
    """Turn backgrounds x (n, size, size) into samples, in place, but for the scale; returns the truth of that shape.

    MULT with the "factor" order: the norms of the factor and of the noise are two numbers for the whole set, which the
    scale divides out again, so they are left out here.
    """
    noise_norm = frobenius(x.split(CHUNK))
    if noise_norm < 1e-5 * math.sqrt(x.numel()):  # not 0: taking away the mean leaves rounding errors
        raise UsageError("`photos` must not all be blank, but every background made of them has one grey only")
    parts = list(zip(x.split(CHUNK), kinds.split(CHUNK), pose.split(CHUNK), strict=True))
    norm = frobenius(signals(kind, place, recipe)[0] for _, kind, place in parts)
    truth = signals(kinds[:1], pose[:1], recipe)[1].expand(x.shape)
    if recipe.scenario == "RIGID":
        truth = torch.empty(x.shape, dtype=torch.bool)
    for (part, kind, place), own in zip(parts, truth.split(CHUNK), strict=True):
        pattern, mask = signals(kind, place, recipe)
        if recipe.scenario == "MULT":
            part *= 1 - recipe.alpha / (norm if recipe.variant.product == "pattern" else 1) * pattern
        else:
            part.mul_((1 - recipe.alpha) / noise_norm).add_(pattern, alpha=recipe.alpha / norm)
        if recipe.scenario == "RIGID":
            own.copy_(mask)
    return truth


def frobenius(parts: Iterable[Tensor]) -> float:
    """Root of the sum of squares over all parts, summed in double precision."""
    return math.sqrt(sum(float(part.double().square().sum()) for part in parts))


def scale(x: Tensor, storage: str) -> None:
    """Divide x by its largest magnitude, in place, and round it to half precision if `storage` says so."""
    largest = max(float(part.abs().max()) for part in x.split(CHUNK))
    for part in x.split(CHUNK):
        part /= largest
        if storage == "float16":
            part.copy_(part.half())


def split_of(kinds: Tensor, recipe: Recipe, *, seed: int) -> dict[str, Tensor]:
    """The splits of the samples with these kinds (n,)."""
    return split(labels(kinds, recipe), held=HELD[recipe.size], seed=seed)


def split(y: Tensor, *, held: int, seed: int) -> dict[str, Tensor]:
    """Indices (k,) of train, val and test: of the samples in the order of class, at random inside each class, one in
    `held` goes to val and one to test, so that the classes are shared out evenly (within one).
    """
    order = torch.randperm(len(y), generator=generator(seed, "split"))
    order = order[y[order].argsort(stable=True)]
    place = torch.arange(len(y)) % held
    val, test = place == 0, place == held // 2
    return {
        name: order[chosen].sort().values for name, chosen in (("train", ~(val | test)), ("val", val), ("test", test))
    }
