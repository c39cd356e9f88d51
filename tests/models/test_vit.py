import pytest
import torch

from forsooth.models import build
from forsooth.models.vit import vit
from forsooth.records import UsageError


@pytest.mark.parametrize(("shape", "classes"), [((1, 8, 8), 2), ((3, 64, 64), 5), ((3, 32, 32), 10)])
def test_shapes(shape: tuple[int, ...], classes: int) -> None:
    model = build("vit", shape=shape, classes=classes).eval()
    assert model(torch.zeros(2, *shape)).shape == (2, classes)
    tokens = model[:-4](torch.zeros(2, *shape))
    assert tokens.shape == (2, min(64, (shape[1] // 2) ** 2), 32)


def test_it_is_torchs_encoder_layer() -> None:
    """A block with its weights in PyTorch's own layer gives the same tokens."""
    torch.manual_seed(0)
    block = vit(size=8)[2].eval()
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, 0.0, "gelu", batch_first=True, norm_first=True).eval()
    own = block.attention
    state = {
        "self_attn.in_proj_weight": torch.cat([own.query.weight, own.key.weight, own.value.weight]),
        "self_attn.in_proj_bias": torch.cat([own.query.bias, own.key.bias, own.value.bias]),
    }
    pairs = {"self_attn.out_proj": own.out, "linear1": block.wide, "linear2": block.narrow}
    for name, part in {**pairs, "norm1": block.norm1, "norm2": block.norm2}.items():
        state |= {f"{name}.weight": part.weight, f"{name}.bias": part.bias}
    layer.load_state_dict(state)
    tokens = torch.randn(3, 16, 32)
    torch.testing.assert_close(block(tokens), layer(tokens), rtol=1e-4, atol=1e-5)


def test_bad_arguments() -> None:
    with pytest.raises(UsageError, match="`size` must be a multiple of 2 for patches of 2×2, got 7"):
        vit(size=7)
    with pytest.raises(UsageError, match="`variant` must be 'paper' or 'released', got 'x'"):
        vit(size=8, variant="x")
