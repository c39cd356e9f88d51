"""Which methods give a map of which transformer, and whether sums are kept.

Our ViT, PyTorch's encoder, and those of Hugging Face and timm from a configuration, with random weights.
For each model: how many methods give a finite map, who refuses and over which operation; the gap of LRP without biases,
of integrated gradients and of DeepLIFT. AttnLRP keeps a part of the output in the constants of its Taylor expansions of
softmax by its own rule, so its gap stands with that part taken off, and raw. Integrated gradients are asked with 50
steps, the default, and with 400, since a rule of few nodes misses the kinks of ReLUs. A model whose library is not
installed is left out, and the table says so.

Run: python benchmarks/transformers.py [--goal 30]
"""

import argparse
import copy
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from forsooth.adapters.outputs import unwrapped
from forsooth.adapters.texts import opened
from forsooth.attributions import METHODS
from forsooth.attributions.differences import deep_lift
from forsooth.attributions.paths import integrated_gradients
from forsooth.attributions.propagation import attn_lrp, attn_lrp_retained, cp_lrp, cp_lrp_retained
from forsooth.models import build
from forsooth.records import Method, UsageError
from forsooth.scores.promises import completeness_gap
from forsooth.seeds import generator, generators

# In the place of this folder, in which this very file would be taken for the library.
sys.path[0] = str(Path(__file__).parents[1] / "tests")
from without_torchvision import hollow  # noqa: E402

TARGET = torch.tensor([0, 1, 1, 0])


@dataclass(frozen=True)
class Case:
    """A transformer and inputs x (4, *shape) of it; layer: what CAMs read."""

    name: str
    model: nn.Module
    x: Tensor
    others: Tensor
    layer: str


class Encoder(nn.Module):
    """Patches of 2×2 into PyTorch's own encoder."""

    def __init__(self, activation: str = "gelu") -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation=activation)
        self.patches, self.head = nn.Conv2d(1, 16, 2, stride=2), nn.Linear(16, 2)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


def drawn(model: nn.Module) -> nn.Module:
    """In float64 and eval mode, all weights from a seed: as after a training, none is 0 or 1."""
    source = generator(0, "net")
    for value in model.parameters():
        scale = 1 / max(1, value[0].numel()) ** 0.5
        value.data = torch.randn(value.shape, generator=source, dtype=torch.float64) * scale
    return model.double().eval()


def images(name: str, model: nn.Module, layer: str) -> Case:
    x, others = (torch.rand(n, 1, 8, 8, generator=generator(n, "x"), dtype=torch.float64) for n in (4, 40))
    return Case(name, unwrapped(drawn(model), x), x, others, layer)


def of_timm() -> Case:
    with hollow():
        from timm.models import VisionTransformer
    sizes = {"img_size": 8, "patch_size": 2, "in_chans": 1, "embed_dim": 16, "depth": 2, "num_heads": 2}
    return images("timm ViT", VisionTransformer(**sizes, num_classes=2), "blocks.1")


def of_hugging_face() -> Case:
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = ViTConfig(**sizes, image_size=8, patch_size=2, num_channels=1, num_labels=2)
    return images("Hugging Face ViT", ViTForImageClassification(config), "inner.vit.layernorm")


def of_bert() -> Case:
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(**sizes, vocab_size=50, max_position_embeddings=8, num_labels=2)
    ids = torch.randint(1, 50, (44, 8), generator=generator(0, "ids"))
    read = opened(drawn(BertForSequenceClassification(config)), ids)
    assert read is not None
    return Case("Hugging Face BERT", read.module, read.x[:4], read.x[4:], "inner.bert.encoder")


CASES: dict[str, Callable[[], Case]] = {
    "our ViT": lambda: images("our ViT", build("vit", shape=(1, 8, 8), classes=2), "grid"),
    "nn.TransformerEncoder": lambda: images("nn.TransformerEncoder", Encoder(), "encoder"),
    "nn.TransformerEncoder, ReLU": lambda: images("nn.TransformerEncoder, ReLU", Encoder("relu"), "encoder"),
    "Hugging Face ViT": of_hugging_face,
    "Hugging Face BERT": of_bert,
    "timm ViT": of_timm,
}


def asked(method: Method, case: Case) -> str:
    """Empty where the method gives a finite map like x; else why not."""
    lent = {
        "background": case.others[:5],
        "fit": case.others,
        "layer": case.layer,
        "truth": case.x > 0,
        "generator": generator(0, "a"),
        "generators": generators(0, "a", range(4)),
    }
    try:
        maps = method(case.model, case.x, TARGET, **lent)
    except UsageError as error:
        return str(error)
    if maps.shape != case.x.shape or not maps.isfinite().all():
        return f"WRONG: a map {tuple(maps.shape)} with {int((~maps.isfinite()).sum())} values that are not finite"
    return ""


def shiftless(model: nn.Module) -> nn.Module:
    """A copy in which no constant is added anywhere: no bias, no position, no class token."""
    model = copy.deepcopy(model)
    positions = ("positions.weight", "pos_embed", "position_embeddings", "position_embeddings.weight")
    constants = ("bias", "cls_token", "token_type_embeddings.weight", *positions)
    for name, value in model.named_parameters():
        if name.endswith(constants):
            value.data.zero_()
    return model


def gap(maps: Tensor, total: Tensor) -> float:
    return completeness_gap(maps.detach(), total.detach()).median().item()


def sums(case: Case) -> dict[str, float]:
    """method -> the median gap between the sum of its map and what that must be."""

    def output(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).gather(1, TARGET[:, None])[:, 0]

    bare = shiftless(case.model)
    total = output(bare, case.x)
    rise = output(case.model, case.x) - output(case.model, torch.zeros_like(case.x))
    kept = {attn_lrp: attn_lrp_retained, cp_lrp: cp_lrp_retained}
    found: dict[str, float] = {}
    for ours, retained in kept.items():
        maps = ours(bare, case.x, TARGET)
        found[ours.__name__] = gap(maps, total - retained(bare, case.x, TARGET))
        found[f"{ours.__name__}, raw"] = gap(maps, total)
    for ours in (integrated_gradients, deep_lift):
        found[ours.__name__] = gap(ours(case.model, case.x, TARGET), rise)
    found["integrated_gradients, 400 steps"] = gap(integrated_gradients(case.model, case.x, TARGET, steps=400), rise)
    return found


def reason(message: str) -> str:
    """The operation, or the first words."""
    named = re.search(r"operation `([^`]+)`", message)
    if named:
        return f"no rule for {named[1]}"
    return message[:90]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--goal", type=int, default=30)
    goal = parser.parse_args().goal
    torch.set_num_threads(1)
    for name, make in CASES.items():
        try:
            case = make()
        except ImportError as error:
            print(f"{name}: not installed ({error})")
            continue
        answers = {method.name: asked(method, case) for method in METHODS if not method.null}
        maps = [method for method, answer in answers.items() if not answer]
        gaps = "; ".join(f"{method} {value:.1e}" for method, value in sums(case).items())
        print(f"{name}: {len(maps)} of {len(answers)} methods give a map (goal {goal}); gaps: {gaps}", flush=True)
        for method, answer in answers.items():
            if answer:
                print(f"    {method}: {reason(answer)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
