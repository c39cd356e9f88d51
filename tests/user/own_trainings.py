"""Training functions as users write them, good and bad."""

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

LOG = Path("calls.txt")  # in the folder where the test stands


def net(width: int = 2) -> nn.Sequential:
    return nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(3, 4, 1), nn.Flatten(), nn.LazyLinear(width))


def learns(dataset):
    """A convolution and a line over the places: enough for a dark centre."""
    with LOG.open("a") as log:
        log.write(json.dumps([dataset.name, tuple(dataset.x.shape), sorted(dataset.splits)]) + "\n")
    model, rows = net(), dataset.splits["train"]
    model(dataset.x[:1])
    step = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(40):
        step.zero_grad()
        nn.functional.cross_entropy(model(dataset.x[rows]), dataset.y[rows]).backward()
        step.step()
    return model


def has_no_map(dataset):
    """The same on flat images: no place is left for Grad-CAM to look at."""
    return nn.Sequential(nn.Flatten(), Unflat(learns(dataset)))


class Unflat(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.line = nn.Linear(3 * 32 * 32, 2)
        eye = torch.eye(3 * 32 * 32).reshape(-1, 3, 32, 32)
        with torch.no_grad():
            bias = inner(torch.zeros(1, 3, 32, 32))[0]
            self.line.weight.copy_((inner(eye) - bias).T)
            self.line.bias.copy_(bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.line(x)


def is_stopped_at_the_second(dataset):
    """Somebody presses ctrl-C while the second artefact is trained, the first time."""
    if LOG.is_file() and len(LOG.read_text().splitlines()) == 1:
        LOG.write_text(LOG.read_text() + "stopped\n")
        raise KeyboardInterrupt
    return learns(dataset)


def does_not_learn(dataset):
    model = net()
    model(dataset.x[:1])
    return model


class ByHeart(nn.Module):
    """Knows every image that it was given, those of the test split included."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        super().__init__()
        self.register_buffer("x", x.flatten(1))
        self.register_buffer("y", nn.functional.one_hot(y, 2).float())

    def forward(self, x: Tensor) -> Tensor:
        return self.y[torch.cdist(x.flatten(1), self.x).argmin(1)] + 0 * x.flatten(1).sum(1, keepdim=True)


def learns_by_heart(dataset):
    return ByHeart(dataset.x, dataset.y)


def writes_into_its_data(dataset):
    dataset.x.sub_(0.5)
    dataset.y.mul_(0)
    dataset.splits["test"].zero_()
    return does_not_learn(dataset)


def looks_for_the_truth(dataset):
    assert dataset.truth is None and dataset.x.min() >= 0 and dataset.x.max() <= 1 and set(dataset.y.tolist()) == {0, 1}
    assert set(dataset.facts) == {"labels", "device", "seed"}
    return does_not_learn(dataset)


def raises(dataset):
    raise ValueError("no more memory for you")


def leaves(dataset):
    raise SystemExit(3)


def gives_weights(dataset):
    return net().state_dict()


def gives_a_class(dataset):
    return ByHeart


def gives_ten_logits(dataset):
    return nn.Sequential(nn.Flatten(), nn.Linear(dataset.x[0].numel(), 10))


def gives_one_logit(dataset):
    return nn.Sequential(nn.Flatten(), nn.Linear(dataset.x[0].numel(), 1))


def gives_nan(dataset):
    model = does_not_learn(dataset)
    nn.init.constant_(model[-1].weight, float("nan"))
    return model


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, x


def gives_pairs(dataset):
    return Pair()


def expects_other_images(dataset):
    return nn.Sequential(nn.Flatten(), nn.Linear(7, 2))


NUMBER = 3


def bad_for_the_watermark(dataset):
    if "watermark" in dataset.name:
        raise ValueError("not this one")
    return learns(dataset)


def my_map(model, x, target):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(model(x).gather(1, target[:, None]).sum(), x)[0]


def leaves_autocast(dataset):
    model = learns(dataset)
    torch.autocast("cpu", torch.bfloat16).__enter__()
    return model


def draws_from_numpy(dataset):
    """A network that torch's generator alone does not decide."""
    model = learns(dataset)
    model[-1].bias.data += 1e-3 * torch.from_numpy(np.random.normal(size=2)).float()  # noqa: NPY002
    return model
