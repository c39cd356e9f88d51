"""XAI-TRIS: tetrominoes on noise, so that the pixels that matter are known by construction [clark2024xaitris]."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from forsooth.datasets import patterns
from forsooth.datasets.crops import crops, provenance
from forsooth.datasets.folders import Photos
from forsooth.datasets.scenes import dead_leaves
from forsooth.datasets.tetromino_settings import CORR_SIGMA, HELD, ResolvedSetting, Setting, resolve
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
    resolved = resolve(setting)
    kinds = draw_kinds(resolved, seed=seed)
    pose = draw_poses(resolved, seed=seed)
    x, source = backgrounds(resolved, seed=seed, photos=photos)
    truth = imprint(x, kinds, pose, resolved)
    scale(x, resolved.variant.storage)
    splits = split_of(kinds, resolved, seed=seed)
    name = f"tetromino-{resolved.scenario}-{resolved.background}-{resolved.size}"
    facts = _facts(resolved, source, photos)
    return Dataset(name, x[:, None], labels(kinds, resolved), truth, splits, facts, strata=kinds)


def _facts(resolved: ResolvedSetting, source: str, photos: Photos | None) -> dict[str, Any]:
    unreadable: list[str] = []
    if photos and resolved.background == "IMAGENET":
        unreadable = list(photos.unreadable)
    names = list(KINDS.get(resolved.scenario, PIECES))
    return {**asdict(resolved), "kinds": names, "background_from": source, "unreadable": unreadable}


def draw_kinds(resolved: ResolvedSetting, *, seed: int) -> Tensor:
    """(n,) int, numbers of `KINDS` or `PIECES`: LIN, MULT, RIGID: 0 T, 1 L; XOR: 0 ++, 1 --, 2 +-, 3 -+."""
    count = len(KINDS.get(resolved.scenario, PIECES))
    if resolved.variant.labels == "balanced":
        return torch.arange(resolved.n) * count // resolved.n
    g = generator(seed, "kinds", resolved.scenario, resolved.background)
    return torch.randint(0, count, (resolved.n,), generator=g)


def labels(kinds: Tensor, resolved: ResolvedSetting) -> Tensor:
    """(n,) int in {0, 1}: the piece, or in XOR whether the two signs differ."""
    if resolved.scenario == "XOR":
        return kinds // 2
    return kinds


def draw_poses(resolved: ResolvedSetting, *, seed: int) -> Tensor:
    """(n, 3) int: quarter turns, row and column for RIGID (the other scenarios do not read them)."""
    g = generator(seed, "poses", resolved.scenario, resolved.background)
    return patterns.poses(resolved.n, size=resolved.size, positions=resolved.variant.positions, generator=g)


def backgrounds(resolved: ResolvedSetting, *, seed: int, photos: Photos | None) -> tuple[Tensor, str]:
    """(n, size, size) float32 of unscaled noise or zero-mean photographs, and where it comes from."""
    if resolved.background == "IMAGENET":
        return cut_out(resolved, seed=seed, photos=photos)
    if resolved.background == "CORR":
        sigma = CORR_SIGMA[resolved.size]
        return noise(resolved, sigma=sigma, seed=seed), f"Gaussian-smoothed noise, sigma {sigma:g}"
    return noise(resolved, sigma=0.0, seed=seed), "white noise"


def noise_names(resolved: ResolvedSetting) -> tuple[str, ...]:
    """What the draws of the background depend on beside the seed."""
    if resolved.variant.noise == "shared":
        return ()
    return resolved.scenario, resolved.background


def cut_out(resolved: ResolvedSetting, *, seed: int, photos: Photos | None) -> tuple[Tensor, str]:
    """(n, size, size) crops of photographs, or of dead leaves where there are none; and where they come from."""
    size = resolved.size
    if photos is None:
        source = "dead leaves (generated stand-in for photographs)"
        photos = leaves(size, seed=seed)
    else:
        source = provenance(photos, resolved.n)
    splits = split_of(draw_kinds(resolved, seed=seed), resolved, seed=seed)
    own_seed = derive(seed, "crops", *noise_names(resolved))
    return crops(photos, list(splits.values()), size=size, seed=own_seed), source


def noise(resolved: ResolvedSetting, *, sigma: float, seed: int) -> Tensor:
    """(n, size, size) Gaussian noise, smoothed where sigma is not 0; of any variance: the norm is divided out."""
    size = resolved.size
    values = torch.empty(resolved.n, size, size)
    kernel = patterns.smoother(size, sigma)
    names = noise_names(resolved)
    for k, part in enumerate(values.split(CHUNK)):
        part.normal_(generator=generator(seed, "noise", *names, k))
        if sigma:
            part.copy_(kernel @ part @ kernel.T)
    return values


def leaves(size: int, *, seed: int) -> Photos:
    """Dead leaves in place of photographs, the same for all scenarios of a seed."""
    scenes = dead_leaves(LEAVES, size=2 * size, generator=generator(seed, "dead leaves", size))
    return Photos((scenes * 255).round().byte(), "dead leaves")


def signals(kinds: Tensor, pose: Tensor, resolved: ResolvedSetting) -> tuple[Tensor, Tensor]:
    """What enters x, and the truth: (n, size, size) float and bool, for kinds (n,) and poses (n, 3)."""
    size = resolved.size
    if resolved.scenario == "RIGID":
        soft = patterns.rigid(kinds, pose, size=size, order=resolved.variant.rigid)
        return patterns.signal(soft, resolved.variant)
    sharp = patterns.fixed(resolved.scenario, size=size)
    entering, truth = patterns.signal(patterns.softened(sharp, patterns.SIGMA[size]), resolved.variant)
    return entering[kinds], truth.any(0).expand(len(kinds), -1, -1)  # eq. 4: a missing T says as much as an L


def imprint(x: Tensor, kinds: Tensor, pose: Tensor, resolved: ResolvedSetting) -> Tensor:
    """Turn backgrounds x (n, size, size) into samples, in place, but for the scale; returns the truth of that shape.

    MULT with the "factor" order: the norms of the factor and of the noise are two numbers for the whole set, which the
    scale divides out again, so they are left out here.
    """
    noise_norm = _noise_norm(x)
    drawn = list(zip(kinds.split(CHUNK), pose.split(CHUNK), strict=True))
    norm = frobenius(signals(kind, place, resolved)[0] for kind, place in drawn)
    truth = _room_for_truth(x, kinds, pose, resolved)
    for part, own_truth, (kind, place) in zip(x.split(CHUNK), truth.split(CHUNK), drawn, strict=True):
        pattern, mask = signals(kind, place, resolved)
        blend(part, pattern, resolved, noise_norm=noise_norm, pattern_norm=norm)
        if resolved.scenario == "RIGID":
            own_truth.copy_(mask)
    return truth


def _noise_norm(x: Tensor) -> float:
    """The norm of all backgrounds (n, size, size); an error where they are blank."""
    norm = frobenius(x.split(CHUNK))
    if norm < 1e-5 * math.sqrt(x.numel()):  # not 0: taking away the mean leaves rounding errors
        raise UsageError("`photos` must not all be blank, but every background made of them has one grey only")
    return norm


def _room_for_truth(x: Tensor, kinds: Tensor, pose: Tensor, resolved: ResolvedSetting) -> Tensor:
    """A mask of the shape of x: memory for one a sample in RIGID, else the one that all samples share."""
    if resolved.scenario == "RIGID":
        return torch.empty(x.shape, dtype=torch.bool)
    return signals(kinds[:1], pose[:1], resolved)[1].expand(x.shape)


def blend(noise: Tensor, pattern: Tensor, resolved: ResolvedSetting, *, noise_norm: float, pattern_norm: float) -> None:
    """Put patterns (n, size, size) into their noise, in place; the norms are those of the whole set."""
    if resolved.scenario != "MULT":
        noise.mul_((1 - resolved.alpha) / noise_norm).add_(pattern, alpha=resolved.alpha / pattern_norm)
    elif resolved.variant.product == "pattern":
        noise *= 1 - resolved.alpha / pattern_norm * pattern
    else:
        noise *= 1 - resolved.alpha * pattern


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


def split_of(kinds: Tensor, resolved: ResolvedSetting, *, seed: int) -> dict[str, Tensor]:
    """The splits of the samples with these kinds (n,)."""
    return split(labels(kinds, resolved), held=HELD[resolved.size], seed=seed)


def split(y: Tensor, *, held: int, seed: int) -> dict[str, Tensor]:
    """Indices (k,) of train, val and test: of the samples in the order of class, at random inside each class, one in
    `held` goes to val and one to test, so that the classes are shared out evenly (within one).
    """
    order = torch.randperm(len(y), generator=generator(seed, "split"))
    order = order[y[order].argsort(stable=True)]
    place = torch.arange(len(y)) % held
    val = place == 0
    test = place == held // 2
    masks = {"train": ~(val | test), "val": val, "test": test}
    return {name: order[mask].sort().values for name, mask in masks.items()}
