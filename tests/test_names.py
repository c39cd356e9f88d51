import pytest

from forsooth.names import find, unknown
from forsooth.records import Metric, UsageError

METRICS = tuple(
    Metric(name=name, function=abs, reads=(), better="higher", bounds=(0, 1), cite="x", version=1)
    for name in ("precision", "emd", "ima")
)


def test_a_known_name_is_found():
    assert find("emd", METRICS, argument="metrics") is METRICS[1]


def test_a_misspelled_name_is_answered_with_the_nearest():
    with pytest.raises(UsageError, match=r"`metrics` must be a known name, got 'precison'; did you mean precision\?"):
        find("precison", METRICS, argument="metrics")


def test_the_last_part_of_a_name_is_answered_with_all_that_end_so():
    names = ["bam/figure-5", "bam/figure-4", "bias/figure-5", "bias/figure-15", "articles/figure-5", "planted/figure-5"]
    message = "did you mean bam/figure-5 or bias/figure-5 or articles/figure-5 or planted/figure-5?"
    assert str(unknown("Figure-5", names, argument="artefact")).endswith(message)


def test_where_nothing_is_known_that_is_said():
    assert str(unknown("zzz", [], argument="methods")).endswith("got 'zzz'; known: none")


def test_a_name_unlike_all_is_answered_with_the_list():
    assert str(unknown("zzz", ["b", "a"], argument="preset")).endswith("got 'zzz'; known: a, b")
