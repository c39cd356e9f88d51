"""What a method is asked about tetrominoes: a trained network, the images that all get right, and who helps."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from forsooth import models
from forsooth.records import Cell, Facts
from forsooth.suites import explain, networks
from forsooth.suites.networks import NetSpec
from forsooth.suites.xaitris import data, training
from forsooth.suites.xaitris.data import DataSpec

SMALL = 8  # pixels; so small an image is quickly explained by networks as they are written


@dataclass(frozen=True)
class Ask:
    """What a method is asked.

    version, code  are here to change the key when the method changes
    samples        images at most; None: all that every network gets right
    softmax        "rule": each method's own, or it refuses; "gradient": DeepLIFT and LRP pass a softmax by the plain
                   gradient, as the published maps did
    sampling_seed  one for the whole run: every method and network of a panel explains the same images with the same
                   references
    """

    method: str
    version: int
    code: str
    samples: int | None
    output: str
    softmax: str
    seed: int
    sampling_seed: int
    device: str


def question(network: Cell | None, spec: DataSpec, chosen: Tensor, ask: Ask) -> explain.Question:
    """What a method is asked of a trained network (None: of none, for methods that ignore it) on chosen images (k,)."""
    dataset = data.dataset(spec)
    model, layer = explained_network(network, spec, ask)
    game: Facts = {"rewrite_model": spec.setting.size > SMALL or attends(network)}
    if ask.softmax == "gradient":
        game["softmax"] = ask.softmax
    return explain.about(
        dataset,
        chosen,
        data.references(dataset, seed=ask.sampling_seed),
        model=model,
        layer=layer,
        seed=ask.seed,
        device=ask.device,
        game=game,
    )


def attends(cell: Cell | None) -> bool:
    """Whether a trained network is a transformer, which is slow as it is written even for small images."""
    return cell is not None and models.architecture(cell.facts["net"]["name"]).attends


def explained_network(cell: Cell | None, spec: DataSpec, ask: Ask) -> tuple[nn.Module, str | None]:
    """The trained network as it is explained, and the name of its last convolution.

    On a processor gradients take half the time where the channels of a pixel lie together. The order of sums is another
    then, so small networks stay as they are.
    """
    if cell is None:
        return nn.Identity(), None
    net = NetSpec(**cell.facts["net"])
    module = networks.loaded(training.untrained(net, spec), cell.tensors, device=ask.device, prefix="net.")
    if spec.setting.size > SMALL and ask.device == "cpu":
        module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    module.train(cell.facts["train_mode"])
    return networks.with_output(module, models.architecture(net.name).layer, ask.output)
