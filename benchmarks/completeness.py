"""Do maps sum to what their methods promise? Ours beside Captum's, the same call on the same network in float64.

Printed is the largest gap over eight inputs, |sum of the map - total|, relative to the largest |total|. LRP promises
f(x) where biases are zero; DeepLIFT promises f(x) - f(baseline) and Deep SHAP f(x) - mean f(background), biases
included.
"""

import warnings
from collections.abc import Callable

import captum.attr
import torch
from torch import Tensor, nn

from forsooth.attributions.differences import deep_lift, deep_shap
from forsooth.attributions.propagation import lrp
from forsooth.models.resnet import small_resnet
from forsooth.models.small import cnn
from forsooth.models.specimens import without_shifts
from forsooth.seeds import generator

Explain = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]  # model, x, target, other inputs -> maps


class Reused(nn.Module):
    """A residual network as it is often written: one in-place ReLU for all, max-pooling in front, `y += z`."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.conv1, self.conv2 = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 1)
        self.bn, self.relu, self.pool = nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.pool(self.relu(self.bn(self.stem(x))))
        z = self.conv2(self.relu(self.conv1(y)))
        z += y
        return self.head(self.relu(z).mean((2, 3)))


def drawn(model: nn.Module) -> nn.Module:
    """The model in float64 and eval mode, with He-normal weights, and biases and batch statistics that are not zero."""
    source = generator(0, "weights")
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if value.is_floating_point():
            noise = torch.randn(value.shape, generator=source, dtype=torch.float64)
            fan = max(1, value[0].numel())
            new = noise * (2 / fan) ** 0.5 if value.ndim > 1 else 0.1 * noise
            value.data = (
                1 + new.abs() if name.endswith("running_var") or (value.ndim == 1 and name.endswith("weight")) else new
            )
    return model.eval()


def score(model: nn.Module, x: Tensor, target: Tensor) -> Tensor:
    """(n,) the targets' outputs"""
    with torch.no_grad():
        return model(x).gather(1, target.unsqueeze(1)).squeeze(1)


def background_score(model: nn.Module, target: Tensor, background: Tensor) -> Tensor:
    """(n,) the targets' mean outputs over the background (k, *shape)"""
    with torch.no_grad():
        return model(background).mean(0)[target]


def gap(explain: Explain, model: nn.Module, x: Tensor, target: Tensor, other: Tensor, total: Tensor) -> str:
    """The largest gap relative to the largest total, or the beginning of the error message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            maps = explain(model, x.clone(), target, other)
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:58]}…"
    found = maps.detach().flatten(1).sum(1)
    return f"{((found - total).abs().max() / total.abs().max()).item():.1e}"


def captum_lrp(model: nn.Module, x: Tensor, target: Tensor, other: Tensor) -> Tensor:
    return captum.attr.LRP(model).attribute(x, target=target)


def captum_zero(model: nn.Module, x: Tensor, target: Tensor, other: Tensor) -> Tensor:
    return captum.attr.DeepLift(model).attribute(x, torch.zeros_like(x), target=target)


def captum_random(model: nn.Module, x: Tensor, target: Tensor, other: Tensor) -> Tensor:
    return captum.attr.DeepLift(model).attribute(x, other, target=target)


def captum_shap(model: nn.Module, x: Tensor, target: Tensor, other: Tensor) -> Tensor:
    return captum.attr.DeepLiftShap(model).attribute(x, other, target=target)


def main() -> None:
    torch.set_num_threads(1)
    networks = {
        "CNN 8×8": (cnn(size=8), 8),
        "CNN 64×64, pool stride 1": (cnn(size=64), 64),
        "residual network, y + z": (small_resnet(channels_in=1, classes=2, width=4, blocks=(1, 1)), 16),
        "residual, one ReLU for all": (Reused(), 16),
    }
    print(f"{'network':<28}{'method':<28}{'forsooth':<12}captum {captum.__version__}")
    for name, (net, size) in networks.items():
        model, source = drawn(net), generator(0, "inputs")
        x, other = (torch.randn(8, 1, size, size, generator=source, dtype=torch.float64) for _ in range(2))
        target = model(x).argmax(1)
        full, bare = score(model, x, target), without_shifts(model)
        zero = torch.zeros_like(x)
        calls: tuple[tuple[str, nn.Module, Explain, Explain, Tensor], ...] = (
            ("LRP, no biases", bare, lambda m, x, t, o: lrp(m, x, t), captum_lrp, score(bare, x, target)),
            ("DeepLIFT, zero baseline", model, lambda m, x, t, o: deep_lift(m, x, t), captum_zero,
             full - score(model, zero, target)),
            ("DeepLIFT, random baseline", model, lambda m, x, t, o: deep_lift(m, x, t, baseline=o), captum_random,
             full - score(model, other, target)),
            ("Deep SHAP, 8 baselines", model, lambda m, x, t, o: deep_shap(m, x, t, background=o), captum_shap,
             full - background_score(model, target, other)),
        )  # fmt: skip
        for method, used, ours, theirs, total in calls:
            mine, captums = (gap(explain, used, x, target, other, total) for explain in (ours, theirs))
            print(f"{name:<28}{method:<28}{mine:<12}{captums}")


if __name__ == "__main__":
    main()
