"""The tetromino data against equations 1 and 2 written out sample by sample, and what their settings promise."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter
from torch.utils._python_dispatch import TorchDispatchMode

from forsooth.datasets import DATASETS, crops
from forsooth.datasets import tetromino as room
from forsooth.datasets.folders import Photos
from forsooth.datasets.tetromino import tetromino
from forsooth.datasets.tetromino_settings import (
    ALPHAS,
    BACKGROUNDS,
    PAPER,
    RELEASED,
    SCENARIOS,
    Setting,
    Variant,
    resolve,
)
from forsooth.records import UsageError
from forsooth.seeds import generator

PIECES = np.array([[[1, 0], [1, 1], [1, 0]], [[1, 0], [1, 0], [1, 1]]], dtype=float)
SIGNS = ((1, 1), (-1, -1), (1, -1), (-1, 1))
LEAST = {8: 20, 64: 40}  # samples


def literal_pattern(recipe, kind, pose):
    """H a or R H a of one sample, on a canvas so wide that nothing touches its border unless it should."""
    size, variant = recipe.size, recipe.variant
    block = {8: 1, 64: 4 if recipe.scenario == "RIGID" else 8}[size]
    left, right = (np.kron(shape, np.ones((block, block))) for shape in PIECES)
    edge = 0 if variant.rigid == "move_then_smooth" else size
    canvas = np.zeros((size + 2 * edge, size + 2 * edge))
    inside = canvas[edge : edge + size, edge : edge + size]
    if recipe.scenario == "RIGID":
        turned = np.rot90((left, right)[kind], pose[0])
        inside[pose[1] : pose[1] + turned.shape[0], pose[2] : pose[2] + turned.shape[1]] = turned
    else:
        signs = SIGNS[kind] if recipe.scenario == "XOR" else ((1, 0), (0, 1))[kind]
        inside[block : 4 * block, block : 3 * block] = signs[0] * left
        inside[4 * block : 7 * block, 5 * block : 7 * block] = signs[1] * right
    smooth = gaussian_filter(canvas, 1.5) if block > 3 else canvas
    return smooth[edge : edge + size, edge : edge + size]


def literal_truth(pattern, variant):
    return abs(pattern) >= (0.05 * abs(pattern).max() if variant.threshold == "relative" else 0.05)


def literal(recipe, noise, kinds, poses):
    """x (n, size, size) and truth, one sample after the other, in double precision."""
    patterns = [literal_pattern(recipe, k, p) for k, p in zip(kinds, poses, strict=True)]
    truth = np.array([literal_truth(p, recipe.variant) for p in patterns])
    if recipe.variant.support == "cut":
        patterns = [np.where(m, p, 0) for p, m in zip(patterns, truth, strict=True)]
    if recipe.scenario != "RIGID":
        both = [literal_truth(literal_pattern(recipe, k, None), recipe.variant) for k in range(2)]
        truth = np.array([both[0] | both[1]] * len(kinds))
    a, e, alpha = np.array(patterns), noise / np.sqrt((noise**2).sum()), recipe.alpha
    if recipe.scenario == "MULT" and recipe.variant.product == "factor":
        factor = 1 - alpha * a
        x = factor / np.sqrt((factor**2).sum()) * e
    elif recipe.scenario == "MULT":
        x = (1 - alpha * a / np.sqrt((a**2).sum())) * e
    else:
        x = alpha * a / np.sqrt((a**2).sum()) + (1 - alpha) * e
    x = x / abs(x).max()
    return (x.astype(np.float16) if recipe.variant.storage == "float16" else x), truth


def check_against_literal(setting, seed, photos=None):
    recipe = resolve(setting)
    noise, _ = room.backgrounds(recipe, seed=seed, photos=photos)
    kinds, poses = room.draw_kinds(recipe, seed=seed), room.draw_poses(recipe, seed=seed)
    x, truth = literal(recipe, noise.double().numpy(), kinds.tolist(), poses.tolist())
    made = tetromino(setting, seed=seed, photos=photos)
    # rounding to half may fall to the other side after an error of 1e-7: one step of half precision is allowed
    tolerance = 1e-3 if recipe.variant.storage == "float16" else 2e-6
    np.testing.assert_allclose(made.x[:, 0], x.astype(float), rtol=tolerance, atol=tolerance / 100 + 1e-6)
    np.testing.assert_array_equal(made.truth, truth)
    assert made.y.tolist() == [k // 2 if recipe.scenario == "XOR" else k for k in kinds.tolist()]


@pytest.mark.parametrize("variant", [PAPER, RELEASED])
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_equations_written_out(scenario, background, variant):
    photos = Photos(torch.randint(0, 256, (9, 80, 80), dtype=torch.uint8, generator=generator(0)), "noise")
    for size, n in LEAST.items():
        check_against_literal(Setting(scenario, background, size, n=n, variant=variant), seed=1, photos=photos)


any_variant = st.builds(
    Variant,
    labels=st.sampled_from(["bernoulli", "balanced"]),
    product=st.sampled_from(["pattern", "factor"]),
    threshold=st.sampled_from(["relative", "absolute"]),
    support=st.sampled_from(["cut", "full"]),
    rigid=st.sampled_from(["smooth_then_move", "move_then_smooth"]),
    positions=st.sampled_from(["all", "but_last"]),
    noise=st.sampled_from(["own", "shared"]),
    storage=st.sampled_from(["float32", "float16"]),
)


@effort(max_examples=20, deadline=None)
@given(any_variant, st.sampled_from(SCENARIOS), st.floats(0, 1, width=16), st.integers(0, 9))
def test_any_mix_of_switches_written_out(variant, scenario, alpha, seed):
    check_against_literal(Setting(scenario, "WHITE", 64, alpha=alpha, n=40, variant=variant), seed=seed)


@pytest.mark.parametrize("size, sigma", [(8, 3.0), (64, 10.0)])
def test_corr_is_the_smoothed_array_of_white_where_noise_is_shared(size, sigma):
    white, corr = (
        room.backgrounds(resolve(Setting(s, b, size, n=40, variant=RELEASED)), seed=5, photos=None)[0]
        for s, b in (("LIN", "WHITE"), ("XOR", "CORR"))
    )
    np.testing.assert_allclose(corr, [gaussian_filter(e.astype(float), sigma) for e in white.numpy()], atol=1e-6)
    assert abs(white.mean()) < 0.1 and abs(white.std() - 1) < 0.1


def test_noise_of_one_s_own_differs_between_scenarios():
    lin, xor = (room.backgrounds(resolve(Setting(s, "WHITE", n=20)), seed=5, photos=None)[0] for s in ("LIN", "XOR"))
    assert not torch.equal(lin, xor)


def test_noise_does_not_depend_on_how_many_samples_follow():
    few, many = (room.backgrounds(resolve(Setting("LIN", "CORR", n=n)), seed=0, photos=None)[0] for n in (1000, 2500))
    assert torch.equal(few, many[:1000]) and not torch.equal(few, many[1000:2000])


@pytest.mark.parametrize("scenario, variant", [(s, v) for s in SCENARIOS for v in (PAPER, RELEASED)])
def test_same_seed_same_tensors(scenario, variant):
    setting = Setting(scenario, "IMAGENET", n=60, variant=variant)
    one, two, other = (tetromino(setting, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(one.x, two.x) and torch.equal(one.y, two.y) and torch.equal(one.truth, two.truth)
    assert all(torch.equal(one.splits[name], two.splits[name]) for name in one.splits)
    assert not torch.equal(one.x, other.x) and not torch.equal(one.splits["train"], other.splits["train"])


@pytest.mark.parametrize("scenario, background", [("LIN", "CORR"), ("RIGID", "WHITE")])
def test_number_of_threads_changes_nothing(scenario, background):
    before, made, variant = torch.get_num_threads(), [], replace(RELEASED, storage="float32")
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            made.append(tetromino(Setting(scenario, background, 64, n=1_100, variant=variant), seed=0).x)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(made[0], made[1]) and torch.equal(made[0], made[2])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_alpha_0_has_no_signal(scenario):
    setting = Setting(scenario, "WHITE", alpha=0, n=50)
    noise, _ = room.backgrounds(resolve(setting), seed=0, photos=None)
    torch.testing.assert_close(tetromino(setting, seed=0).x[:, 0], noise / noise.abs().max())


@pytest.mark.parametrize("scenario, pixels", [("LIN", 4), ("RIGID", 4), ("XOR", 8)])
def test_alpha_1_has_no_noise(scenario, pixels):
    made = tetromino(Setting(scenario, "WHITE", alpha=1, n=50), seed=0)
    assert set(made.x.unique().tolist()) == ({-1.0, 0.0, 1.0} if scenario == "XOR" else {0.0, 1.0})
    assert (made.x.abs().sum((1, 2, 3)) == pixels).all() and made.truth[made.x[:, 0] != 0].all()


def test_multiplied_signal_as_released_and_as_printed():
    released = tetromino(Setting("MULT", "WHITE", alpha=1, n=50, variant=RELEASED), seed=0)
    assert (released.x[:25, 0, 1:4, 1] == 0).all() and (released.x[25:, 0, 1:4, 1] != 0).all()
    setting = Setting("MULT", "WHITE", n=10_000)  # eq. 2 as printed: the normalised pattern is at most 1/200
    noise, _ = room.backgrounds(resolve(setting), seed=0, photos=None)
    ratio = tetromino(setting, seed=0).x[:, 0] / noise
    assert 1 < ratio.abs().max() / ratio.abs().min() < 1.0036


def test_labels_balanced_or_drawn():
    blocks = tetromino(Setting("XOR", "WHITE", alpha=1, n=40, variant=RELEASED), seed=0)
    assert blocks.y.tolist() == [0] * 20 + [1] * 20
    corners = blocks.x[::10, 0][:, [1, 4], [1, 5]]  # one pixel of T and one of L in each of the four blocks
    assert corners.sign().tolist() == [[1, 1], [-1, -1], [1, -1], [-1, 1]]
    drawn = tetromino(Setting("LIN", "WHITE"), seed=0).y
    assert 4_800 < drawn.sum() < 5_200 and drawn.sum() != 5_000 and drawn[:5_000].sum() > 2_000
    kinds = room.draw_kinds(resolve(Setting("XOR", "WHITE")), seed=0)
    assert (torch.bincount(kinds) - 2_500).abs().max() < 200


@pytest.mark.parametrize("size, sizes", [(8, (8_000, 1_000, 1_000)), (64, (36_000, 2_000, 2_000))])
def test_splits_are_disjoint_complete_and_stratified(size, sizes):
    recipe = resolve(Setting("LIN", "WHITE", size))
    y = room.draw_kinds(recipe, seed=0)
    parts = room.split(y, held={8: 10, 64: 20}[size], seed=0)
    assert tuple(len(parts[name]) for name in ("train", "val", "test")) == sizes
    assert torch.cat(list(parts.values())).sort().values.equal(torch.arange(recipe.n))
    for part in parts.values():
        assert abs(y[part].sum() - y.sum() * len(part) / recipe.n) <= 1


def test_defaults_and_shapes():
    made = tetromino(Setting("rigid", "white"), seed=0)
    assert made.x.shape == (10_000, 1, 8, 8) and made.x.dtype == torch.float32 and made.x.abs().max() == 1
    assert made.y.shape == (10_000,) and made.y.dtype == torch.int64
    assert made.truth.shape == (10_000, 8, 8) and made.truth.dtype == torch.bool
    assert made.facts["alpha"] == 0.65 and made.facts["background_from"] == "white noise"
    assert json.loads(json.dumps(made.facts))["variant"]["labels"] == "bernoulli"
    assert resolve(Setting("Xor", "corr", 64)).n == 40_000


def test_published_alphas():
    table = {size: [ALPHAS[size][s, b] for s in SCENARIOS for b in BACKGROUNDS] for size in (8, 64)}
    assert table[64] == [0.03, 0.02, 0.1, 0.64, 0.04, 0.3, 0.575, 0.375, 0.6, 0.1, 0.1, 0.2]
    assert [a for k, a in enumerate(table[8]) if k % 3 < 2] == [0.18, 0.0125, 0.7, 0.1, 0.65, 0.2, 0.35, 0.15]


def test_fixed_truth_is_one_mask_seen_n_times():
    truth = tetromino(Setting("MULT", "WHITE", n=500), seed=0).truth
    assert truth.stride()[0] == 0 and truth.untyped_storage().nbytes() == 64


class Large(TorchDispatchMode):
    """Notes every tensor whose own memory is at least `least` bytes."""

    def __init__(self, least):
        super().__init__()
        self.least, self.seen = least, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().nbytes() >= self.least:
                self.seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return out


@pytest.mark.parametrize("background", ["WHITE", "CORR", "IMAGENET"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_only_x_and_truth_are_of_the_size_of_the_data(scenario, background, monkeypatch):
    monkeypatch.setattr(room, "CHUNK", 20)
    monkeypatch.setattr(crops, "CHUNK", 20)
    photos = Photos(torch.randint(0, 256, (9, 80, 80), dtype=torch.uint8, generator=generator(0)), "noise")
    with Large(least=400 * 64 * 64) as large:
        made = tetromino(Setting(scenario, background, 64, n=400), seed=0, photos=photos)
    assert made.x.untyped_storage().data_ptr() in large.seen
    assert sorted(large.seen.values())[-1] == made.x.nbytes and len(large.seen) <= (2 if scenario == "RIGID" else 1)


def test_photographs_are_used_and_named():
    photos = Photos(
        torch.randint(0, 256, (30, 16, 16), dtype=torch.uint8, generator=generator(0)), "holiday", ("x.jpg: damaged",)
    )
    few = tetromino(Setting("LIN", "IMAGENET", n=40), seed=0, photos=photos).facts
    said = "30 photographs from holiday, random crops and flips because 40 samples were asked"
    assert few["background_from"] == said and few["unreadable"] == ["x.jpg: damaged"]
    enough = tetromino(Setting("LIN", "IMAGENET", n=20), seed=0, photos=photos).facts
    assert enough["background_from"] == "30 photographs from holiday, one centre crop each for 20 samples"
    stand_in = tetromino(Setting("LIN", "IMAGENET", n=20), seed=0).facts
    assert stand_in["background_from"] == "dead leaves (generated stand-in for photographs)"
    corr = tetromino(Setting("LIN", "CORR", n=20), seed=0, photos=photos).facts
    assert corr["background_from"] == "Gaussian-smoothed noise, sigma 3" and corr["unreadable"] == []


@pytest.mark.parametrize("variant", [PAPER, RELEASED])
@pytest.mark.parametrize("given_photos", [True, False])
def test_no_photograph_is_in_two_splits(given_photos, variant):
    greys = torch.randint(0, 256, (200, 16, 16), dtype=torch.uint8, generator=generator(0))
    photos = Photos(greys, "noise") if given_photos else None
    setting = Setting("LIN", "IMAGENET", n=4_000, variant=variant)
    backgrounds, _ = room.backgrounds(resolve(setting), seed=0, photos=photos)
    splits = tetromino(setting, seed=0, photos=photos).splits
    images = {name: {image.numpy().tobytes() for image in backgrounds[rows]} for name, rows in splits.items()}
    assert not (images["train"] & images["test"] or images["train"] & images["val"] or images["val"] & images["test"])


def test_kinds_are_the_strata_and_have_names():
    xor = tetromino(Setting("XOR", "WHITE", alpha=1, n=40, variant=RELEASED), seed=0)
    signs = [xor.facts["kinds"][kind] for kind in xor.strata.tolist()]
    corners = xor.x[:, 0][:, [1, 4], [1, 5]].sign().int().tolist()  # one pixel of T and one of L
    assert signs == ["".join("+" if sign > 0 else "-" for sign in pair) for pair in corners]
    lin = tetromino(Setting("LIN", "WHITE", n=40), seed=0)
    assert torch.equal(lin.strata, lin.y) and lin.facts["kinds"] == ["T", "L"]


@pytest.mark.parametrize("grey", range(0, 256, 15))
def test_blank_photographs_are_refused(grey):
    blank = Photos(torch.full((3, 16, 16), grey, dtype=torch.uint8), "blank")
    with pytest.raises(UsageError, match="`photos` must not all be blank"):
        tetromino(Setting("LIN", "IMAGENET", n=20), seed=0, photos=blank)


LIN = Setting("LIN", "WHITE")


@pytest.mark.parametrize(
    "setting, message",
    [
        (replace(LIN, scenario="LINE"), r"`scenario` must be a known name, got 'LINE'; did you mean LIN\?"),
        (replace(LIN, background="whit"), r"`background` must be a known name, got 'whit'; did you mean WHITE\?"),
        (replace(LIN, background="sky"), "known: CORR, IMAGENET, WHITE"),
        (replace(LIN, size=16), "`size` must be one of 8, 64, got 16"),
        (replace(LIN, alpha=1.3), r"`alpha` must lie in \[0, 1\], got 1.3"),
        (replace(LIN, alpha=-0.1), r"`alpha` must lie in \[0, 1\], got -0.1"),
        (replace(LIN, alpha=float("nan")), r"`alpha` must lie in \[0, 1\], got nan"),
        (replace(LIN, n=19), "`n` must be at least 20 at size 8, got 19"),
        (replace(LIN, n=39, size=64), "`n` must be at least 40 at size 64, got 39"),
    ],
)
def test_bad_settings(setting, message):
    with pytest.raises(UsageError, match=message):
        tetromino(setting, seed=0)


def test_catalogue():
    source = next(source for source in DATASETS if source.name == "tetromino")
    assert source.name == "tetromino" and source.function is tetromino and source.cite == "clark2024xaitris"
