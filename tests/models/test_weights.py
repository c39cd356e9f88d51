"""Weights from files: a round trip, public weights that read CIFAR-10, and every way in which a file can be wrong."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from forsooth.models import RESNET20, RESNET32, RESNET44, RESNET56
from forsooth.models.weights import load
from forsooth.records import UsageError

DATA = Path(__file__).parents[3] / "shared" / "data"  # beside the checkout; not part of the project


def net(seed=0):
    built = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    for value in built.state_dict().values():
        if value.is_floating_point():
            value.copy_(torch.rand(value.shape, generator=torch.Generator().manual_seed(seed)))
    return built


def numbers(module):
    return {name: value.numpy() for name, value in module.state_dict().items()}


def cifar(n):
    """The first n test images (n, 3, 32, 32), standardised as the public weights want them, and labels (n,)."""
    sheet = np.array(Image.open(DATA / "cifar10_test0.webp").convert("RGB"))[: n // 100 * 32]
    images = sheet.reshape(n // 100, 32, 100, 32, 3).transpose(0, 2, 1, 3, 4).reshape(-1, 32, 32, 3)
    mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    with np.load(DATA / "cifar10_labels.npz") as labels:
        y = torch.from_numpy(labels["test_label"][:n].astype(int))
    return ((torch.from_numpy(images) / 255 - mean) / spread).permute(0, 3, 1, 2), y


@pytest.mark.skipif(
    not (DATA / "cifar10_resnet20_weights.npz").exists(), reason="the CIFAR-10 subset and weights are not at hand"
)
@pytest.mark.parametrize(("model", "images"), [(RESNET20, 500), (RESNET32, 100), (RESNET44, 100), (RESNET56, 100)])
def test_public_weights_read_cifar(model, images):
    module = load(model.function(), DATA / f"cifar10_{model.name}_weights.npz").eval()
    x, y = cifar(images)
    with torch.no_grad():
        assert (module(x).argmax(1) == y).double().mean() > 0.9


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_round_trip(tmp_path, suffix):
    path, saved, other = tmp_path / f"net{suffix}", net(0), net(1).double()
    if suffix == ".npz":
        np.savez(path, **numbers(saved))
    else:
        save_file(saved.state_dict(), path)
    assert load(other, str(path)) is other
    for name, value in other.state_dict().items():
        assert torch.equal(value, saved.state_dict()[name].to(value.dtype)), name
    assert other[0].weight.dtype == torch.float64


def test_counts_of_batches_may_be_absent(tmp_path):
    entries = numbers(net(0))
    del entries["1.num_batches_tracked"]
    np.savez(tmp_path / "net.npz", **entries)
    assert torch.equal(load(net(1), tmp_path / "net.npz")[3].weight, net(0)[3].weight)


def test_entries_that_do_not_fit_are_named_and_nothing_changes(tmp_path):
    entries, module = numbers(net(0)), net(1)
    del entries["0.bias"]
    entries |= {f"more.{i}": np.zeros(1) for i in range(7)} | {"3.weight": np.zeros((3, 9))}
    np.savez(tmp_path / "net.npz", **entries)
    with pytest.raises(UsageError) as caught:
        load(module, tmp_path / "net.npz")
    said = str(caught.value)
    assert "weights of this Sequential, got" in said and "missing: 0.bias;" in said
    assert "unexpected: more.0, more.1, more.2, more.3, more.4 and 2 more;" in said
    assert said.endswith("of another shape: 3.weight (3, 9) for (3, 8)")
    for name, value in module.state_dict().items():
        assert torch.equal(value, net(1).state_dict()[name]), name


def test_a_pickle_is_refused_unopened(tmp_path):
    path = tmp_path / "net.pt"
    path.write_bytes(b"never read")
    with pytest.raises(UsageError, match=r"got .*net\.pt\. That is a pickle.*convert it once: .*net\.safetensors"):
        load(net(), path)


class Trap:
    """Fails the test when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


def test_hidden_pickles_are_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "b.npz", weight=np.array([Trap()], dtype=object))
    for name in ("a.npz", "b.npz"):
        with pytest.raises(UsageError, match=rf"`path` must be a sound \.npz file of numbers, got .*{name}"):
            load(net(), tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"no such format", b"PK\x03\x04cut short"])
@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_damaged_files(tmp_path, suffix, content):
    path = tmp_path / f"net{suffix}"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=rf"`path` must be a sound \{suffix} file of numbers, got .*net\{suffix}: \w"):
        load(net(), path)


def test_words_for_numbers_absent_files_and_unknown_formats(tmp_path):
    np.savez(tmp_path / "words.npz", names=np.array(["a", "b"]))
    with pytest.raises(UsageError, match=r"`path` must be a sound \.npz file of numbers, got .*words\.npz"):
        load(net(), tmp_path / "words.npz")
    with pytest.raises(UsageError, match=r"`path` must be a file, got .*absent\.npz, which is not there"):
        load(net(), tmp_path / "absent.npz")
    with pytest.raises(UsageError, match=r"`path` must end in \.npz or \.safetensors, got .*net\.h5$"):
        load(net(), tmp_path / "net.h5")
