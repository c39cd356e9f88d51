"""Kernel SHAP and LIME against Captum: time an image of 8x8, and error to exact Shapley values.

One thread, processor time. Captum is tuned: all perturbations of an image in one forward. The exact values come from
enumerating all coalitions of 12 players. Run: python benchmarks/surrogates.py
"""

import itertools
import math
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import KernelShap, Lime
from forwards import perceptron
from torch import Tensor, nn

from forsooth.attributions.shapley import kernel_shap, kernel_shap_unconstrained
from forsooth.attributions.surrogates import lime, lime_lasso
from forsooth.games import coalition_values
from forsooth.models.small import cnn
from forsooth.seeds import generator


def drawn(net: nn.Module) -> nn.Module:
    """Weights so large that a lasso has something to find, as after training: torch's own leave outputs near zero."""
    source = generator(0, "weights")
    for parameter in net.requires_grad_(False).parameters():
        spread = (2 / parameter[0].numel()) ** 0.5 if parameter.ndim > 1 else 0.1
        parameter.copy_(torch.randn(parameter.shape, generator=source) * spread)
    return net.eval()


MODEL = perceptron((64, 32, 16, 8, 2))
CNN = drawn(cnn(size=8, variant="released"))
Explain = Callable[..., Tensor]


def seconds(explain: Explain, x: Tensor, target: Tensor, *, rounds: int) -> float:
    explain(x[:2], target[:2])
    best = math.inf
    for _ in range(rounds):
        start = time.thread_time()
        explain(x, target)
        best = min(best, time.thread_time() - start)
    return best


def pairs_of(model: nn.Module) -> tuple[tuple[str, Explain, Explain], ...]:
    """Ours and Captum's, with as many masks."""
    shap, lasso, ridge = KernelShap(model), Lime(model), Lime(model, interpretable_model=SkLearnRidge(alpha=1.0))
    pairs = []
    for masks in (100, 500):
        theirs = {"n_samples": masks, "perturbations_per_eval": masks}
        shapley = partial(kernel_shap, model, generator=generator(0), samples=masks - 2)
        pairs.append((f"Kernel SHAP, {masks} masks", shapley, partial(shap.attribute, **theirs)))
        local = partial(lime, model, generator=generator(0), samples=masks)
        pairs.append((f"LIME, {masks} masks, ridge", local, partial(ridge.attribute, **theirs)))
    few = {"n_samples": 25, "perturbations_per_eval": 25}
    least = partial(kernel_shap_unconstrained, model, generator=generator(0))
    pairs.append(("Kernel SHAP, 25 masks, least norm", least, partial(shap.attribute, **few)))
    pairs.append(
        ("LIME, 25 masks, lasso", partial(lime_lasso, model, generator=generator(0)), partial(lasso.attribute, **few))
    )
    return tuple(pairs)


def speed(model: nn.Module, images: int) -> None:
    """Seconds of both on the same images; Captum's time grows with their number, so it gets an eighth of them."""
    x, target = torch.randn(images, 1, 8, 8, generator=generator(0, "x")), torch.arange(images) % 2
    for name, ours, theirs in pairs_of(model):
        fast, slow = [], []
        for _ in range(3):
            fast.append(seconds(lambda x, t: ours(x=x, target=t), x, target, rounds=2) / images)  # noqa: B023
            some = images // 8
            slow.append(seconds(lambda x, t: theirs(x, target=t), x[:some], target[:some], rounds=1) / some)  # noqa: B023
        figures = f"ours {1e3 * min(fast):7.3f} ms   Captum {1e3 * min(slow):7.2f} ms"
        print(f"  {name:36} {figures}   {min(slow) / min(fast):6.0f} times as fast", flush=True)


def exact(x: Tensor, target: Tensor, players: Tensor, count: int) -> Tensor:
    """Shapley values (n, count) from the values of all coalitions."""
    masks = torch.tensor(list(itertools.product((False, True), repeat=count)))
    values = coalition_values(MODEL, x, target, masks, players=players).double()  # (n, 2^count)
    sizes = masks.sum(dim=1)
    weight = torch.tensor([1 / (count * math.comb(count - 1, size)) for size in range(count)], dtype=torch.float64)
    phi = []
    for player in range(count):
        inside = masks[:, player]
        gain = values[:, inside] @ weight[sizes[inside] - 1] - values[:, ~inside] @ weight[sizes[~inside]]
        phi.append(gain)
    return torch.stack(phi, dim=1)


def error() -> None:
    """Root mean square error of the players' values, as a share of the root mean square of the exact ones."""
    x, target = torch.randn(8, 1, 8, 8, generator=generator(1, "x")), torch.arange(8) % 2
    piece = torch.arange(8)
    players, count = (piece[:, None] * 3 // 8) * 4 + piece * 4 // 8, 12  # three rows of four patches
    truth, sizes = exact(x, target, players, count), torch.bincount(players.flatten())

    def relative(map_: Tensor, *, shared: bool) -> float:
        sums = torch.zeros(len(map_), count).index_add_(1, players.flatten(), map_.flatten(1).float())
        found = sums if shared else sums / sizes  # Captum repeats a player's value in all its pixels
        return ((found - truth).square().mean() / truth.square().mean()).sqrt().item()

    shap, ridge = KernelShap(MODEL), Lime(MODEL, interpretable_model=SkLearnRidge(alpha=1.0))
    labels, seeds = players[None, None], range(5)
    for samples in (50, 100, 300, 1000):
        mine, theirs = {"players": players}, {"feature_mask": labels, "n_samples": samples}
        theirs["perturbations_per_eval"] = samples
        rows: dict[str, list[float]] = {"Kernel SHAP": [], "its Captum": [], "LIME": [], "its Captum ": []}
        for seed in seeds:
            torch.manual_seed(seed)  # Captum draws from the global generator
            map_ = kernel_shap(MODEL, x, target, generator=generator(seed), samples=samples - 2, **mine)
            rows["Kernel SHAP"].append(relative(map_, shared=True))
            rows["its Captum"].append(relative(shap.attribute(x, target=target, **theirs), shared=False))
            map_ = lime(MODEL, x, target, generator=generator(seed), samples=samples, **mine)
            rows["LIME"].append(relative(map_, shared=True))
            rows["its Captum "].append(relative(ridge.attribute(x, target=target, **theirs), shared=False))
        text = "   ".join(f"{name.strip()} {sum(found) / len(found):7.4f}" for name, found in rows.items())
        print(f"  {samples:5} forwards   {text}")


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="You are providing multiple inputs for Lime")
    for name, model in (("MLP 64-32-16-8-2", MODEL), ("CNN as released", CNN)):
        print(f"256 images of 8x8, {name}, every pixel a player, one image")
        speed(model, 256)
    print("12 players, error to exact Shapley values at equal numbers of forwards, mean of 8 images and 5 seeds")
    error()


if __name__ == "__main__":
    main()
