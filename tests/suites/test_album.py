"""Pictures of a cell, and what run.json says of them."""

import torch

from forsooth.records import Row
from forsooth.suites.album import Album, scaled


def test_each_picture_has_a_line_with_the_name_of_its_tensor():
    album = Album({"model": "mlp", "method": "lrp"})
    album.add(torch.zeros(2, 2), "example", kind="example", label=1)
    album.add(torch.ones(2, 2), "example", 2, kind="example", label=0)
    cell = album.cell([Row("any", "scores")], failed=True)
    assert list(cell.tensors) == ["example", "example 2"] and cell.tensors["example 2"].all()
    assert cell.facts["pictures"] == [
        {"model": "mlp", "method": "lrp", "kind": "example", "label": 1, "place": 0, "tensor": "example"},
        {"model": "mlp", "method": "lrp", "kind": "example", "label": 0, "place": 2, "tensor": "example 2"},
    ]
    assert cell.facts["failed"] and cell.rows == (Row("any", "scores"),)


def test_one_tensor_may_be_of_several_labels():
    album = Album({})
    for label in (0, 1):
        album.add(torch.ones(1), "input", label=label)
    assert list(album.tensors) == ["input"] and [one["label"] for one in album.pictures] == [0, 1]


def test_the_largest_value_of_a_map_is_one_and_zeros_stay():
    assert scaled(torch.tensor([[2.0, 8.0]])).tolist() == [[0.25, 1.0]]
    assert scaled(torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]
