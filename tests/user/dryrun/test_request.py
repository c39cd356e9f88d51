"""The words of a dry run: names, defaults, and the command that repeats it."""

import pytest

from forsooth.records import UsageError
from forsooth.user.dryrun import DryRunRequest
from forsooth.user.dryrun.request import NULLS, PLANNED


def test_the_planned_come_first_and_nulls_once_behind():
    asked = DryRunRequest(data="photos", methods=("sobel", "lime", "lime"))
    names = [method.name for method in asked.records()]
    assert names == ["sobel", "lime", *(null for null in NULLS if null != "sobel")]
    kinds = asked.kinds()
    assert (kinds["sobel"], kinds["lime"], kinds["oracle"], kinds["random"]) == ("null", "method", "oracle", "null")
    assert [method.name for method in DryRunRequest(data="photos").records()] == [*PLANNED, *NULLS]


def test_the_model_is_called_by_its_training():
    assert DryRunRequest(data="photos").model == "residual_small"
    assert DryRunRequest(data="photos", train="mine.train:fit").model == "mine.train.fit"


def test_the_command_repeats_the_request():
    asked = DryRunRequest(data="my photos", train="a:b", methods=("lime",), artefacts=("watermark",), images=None)
    assert asked.command() == (
        "forsooth dryrun --data 'my photos' --train a:b --methods lime --artefacts watermark --size 64 --images 0 "
        "--visibility 3 --samples 50 --seed 0 --device cpu"
    )
    assert "--train" not in DryRunRequest(data="photos").command()


@pytest.mark.parametrize(
    "change, message", [({"visibility": -1}, "0 .least. to 4, got -1"), ({"size": 15}, "least 16")]
)
def test_numbers_without_a_meaning(change, message):
    with pytest.raises(UsageError, match=message):
        DryRunRequest(data="photos", **change).check()
