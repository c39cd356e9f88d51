"""What the bias suite plays on: entries, what lies in a folder of the user's, and the data of a spec."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from forsooth.plain import from_plain, to_plain
from forsooth.records import Dataset, UsageError
from forsooth.suites.bias import data
from forsooth.suites.bias.data import DataSpec, data_spec, datasets_in, entry_for
from forsooth.suites.bias.settings import RESNETS

DATA = Path(__file__).parents[3] / "shared" / "data"
LEAVES = DataSpec("leaves", path=None, digest=None, seed=1, weights={}, side=8)


def a_table(place: Path, rows: int = 60) -> Path:
    drawn = np.random.default_rng(0)
    frame = pd.DataFrame(drawn.normal(size=(rows, 4)), columns=list("abcd"))
    frame["label"] = (frame["a"] > 0).astype(int)
    place.parent.mkdir(exist_ok=True)
    frame.to_csv(place, index=False)
    return place


def test_entries_have_names_and_networks_of_their_own() -> None:
    names = [entry.name for entry in data.ENTRIES]
    assert len(set(names)) == len(names) and {"interactions", "leaves", "cifar10", "voc"} <= set(names)
    assert all(entry.models and 0 < entry.gate < 1 for entry in data.ENTRIES)


def test_a_table_of_the_users_has_the_entry_of_all_tables() -> None:
    mine = entry_for("mine")
    assert (mine.name, mine.models, mine.kind, mine.gate) == ("mine", ("mlp5",), "table", 0.55)
    assert mine.recipe == entry_for("interactions").recipe
    assert entry_for("leaves").kind == "image" and entry_for("suppressor").kind == "table"


def test_nothing_is_found_where_nothing_is_given() -> None:
    assert datasets_in(None) == {}


def test_tables_are_found_by_the_names_of_their_files(tmp_path: Path) -> None:
    one = a_table(tmp_path / "one.csv")
    a_table(tmp_path / "two.csv")
    assert datasets_in(str(tmp_path)) == {"one": str(one), "two": str(tmp_path / "two.csv")}
    assert datasets_in(str(one)) == {"one": str(one)}


def test_a_path_stands_in_keys_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_table(tmp_path / "one.csv")
    monkeypatch.chdir(tmp_path)
    assert datasets_in("./one.csv") == {"one": "./one.csv"}


def test_an_empty_or_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is nothing at"):
        datasets_in(str(tmp_path / "nowhere"))
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(UsageError, match=r"`data` must hold CIFAR-10, Pascal VOC or tables"):
        datasets_in(str(tmp_path))


def test_a_zip_of_voc_is_known_by_its_name(tmp_path: Path) -> None:
    (tmp_path / data.voc.ZIP).write_bytes(b"")
    assert datasets_in(str(tmp_path)) == {"voc": str(tmp_path)}


@pytest.mark.skipif(not DATA.is_dir(), reason="the real data are not here")
def test_real_data_are_found_by_their_names() -> None:
    found = datasets_in(str(DATA))
    assert {"cifar10", "voc", "adult", "compas", "german", "heloc"} <= set(found)
    spec = data_spec("cifar10", found["cifar10"], seed=0, side=32)
    assert set(spec.weights) == set(RESNETS)


def test_a_side_is_part_of_the_data_only_where_it_can_be_chosen() -> None:
    assert data_spec("leaves", None, seed=0, side=16).side == 16
    assert data_spec("tetromino", None, seed=0, side=16).side is None
    assert data_spec("interactions", None, seed=3, side=16) == DataSpec("interactions", None, None, 3, {}, None)


def test_a_spec_knows_the_files_it_was_made_from(tmp_path: Path) -> None:
    file = a_table(tmp_path / "mine.csv")
    before = data_spec("mine", str(file), seed=0, side=32)
    assert before.digest is not None and before.path == str(file)
    a_table(file, rows=61)
    assert data_spec("mine", str(file), seed=0, side=32).digest != before.digest


def test_a_spec_goes_through_json_with_the_words_that_keys_have() -> None:
    plain = to_plain(LEAVES)
    assert set(plain) == {"name", "path", "digest", "seed", "weights", "side"}
    assert from_plain(json.loads(json.dumps(plain)), DataSpec) == LEAVES


def test_generated_data_follow_their_seed() -> None:
    interactions = data_spec("interactions", None, seed=1, side=32)
    one = data.dataset(interactions)
    assert data.dataset(interactions) is one  # kept, since tasks come in the order of their datasets
    other = data.dataset(dataclasses.replace(interactions, seed=2))
    assert one.x.shape == other.x.shape and not one.x.equal(other.x)


def test_tetrominoes_lie_anywhere_and_suppressors_have_two_features() -> None:
    tetromino = data.dataset(data_spec("tetromino", None, seed=1, side=32))
    assert tetromino.x.shape[1:] == (1, 8, 8) and set(tetromino.y.tolist()) == {0, 1}
    suppressor = data.dataset(data_spec("suppressor", None, seed=1, side=32))
    assert suppressor.x.shape[1:] == (2,)


def test_data_of_the_users_cannot_be_made_from_nothing() -> None:
    with pytest.raises(UsageError, match="`data` must name a folder with mine"):
        data.dataset(DataSpec("mine", None, None, 0, {}, None))
    with pytest.raises(UsageError, match="`data` must name a folder with cifar10"):
        data.dataset(DataSpec("cifar10", None, None, 0, {}, None))


def test_zero_is_the_mean_colour_of_the_training_images() -> None:
    x = torch.rand(20, 3, 4, 4, generator=torch.Generator().manual_seed(0)) * 5 + 2
    images = Dataset("any", x, torch.zeros(20, dtype=torch.int64), None, {"train": torch.arange(10)})
    train = data.standardised(images).x[:10]
    assert torch.allclose(train.mean((0, 2, 3)), torch.zeros(3), atol=1e-5)
    assert torch.allclose(train.std((0, 2, 3)), torch.ones(3), atol=1e-5)
    assert images.x is x


def test_notes_are_the_sentences_of_the_data() -> None:
    table = Dataset("any", torch.zeros(1, 1), torch.zeros(1), None, {}, facts={"said": ["One.", "Two."]})
    assert data.notes(table) == ["One.", "Two."]
    assert data.notes(dataclasses.replace(table, facts={})) == []


@pytest.mark.parametrize(
    ("net", "shape", "classes"),
    [("mlp5", (10,), 2), ("linear", (2,), 2), ("mlp", (1, 8, 8), 2), ("lenet", (3, 32, 32), 4)],
)
def test_networks_fit_their_data(net: str, shape: tuple[int, ...], classes: int) -> None:
    known = Dataset("any", torch.rand(5, *shape), torch.arange(5) % classes, None, {})
    logits = data.untrained(net, known)(known.x)
    assert logits.shape == (5, classes)
