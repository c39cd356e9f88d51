"""What doors ask of a transformer where the user names no method."""

import pytest
import torch

import forsooth
from forsooth.models import build
from forsooth.user.requests import suited

IMAGES = torch.rand(3, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def net(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    return build(name, shape=(1, 8, 8), classes=2).eval()


def test_relevance_is_propagated_by_the_rules_for_attention_where_there_is_some():
    assert suited(["gradient", "lrp"], net("vit"), IMAGES) == ["gradient", "attn_lrp"]
    assert suited(["gradient", "lrp"], net("mlp"), IMAGES) == ["gradient", "lrp"]


@pytest.mark.parametrize("door", ["bias", "independence"])
def test_no_default_fails_on_a_transformer(door):
    more = {"bias": {"players": "grid:2", "permutations": 4}, "independence": {"patch": "grid:2"}}
    table = getattr(forsooth, door)(net("vit"), IMAGES, **more[door]).table.set_index("method")
    assert "attn_lrp" in table.index and "lrp" not in table.index
    assert set(table["status"]) == {"ok"}, table["message"]
