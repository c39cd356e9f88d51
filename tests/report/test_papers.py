import pandas as pd
import pytest

from forsooth import papers
from forsooth.records import UsageError


def test_tables_as_printed() -> None:
    large, small = papers.table("xaitris_table_1"), papers.table("xaitris/table-b2")
    assert large.columns.tolist() == small.columns.tolist() == ["scenario", "background", "model", "alpha", "accuracy"]
    assert (len(large), len(small)) == (27, 18)
    key = ["scenario", "background", "model"]
    assert large.set_index(key).loc[("RIGID", "WHITE", "MLP")].tolist() == [0.575, 88.9]
    assert large.set_index(key).loc[("LIN", "IMAGENET", "CNN")].tolist() == [0.1, 93.9]
    assert small.set_index(key).loc[("LIN", "CORR", "CNN")].tolist() == [0.0125, 86.4]
    assert not large.duplicated(key).any() and not small.duplicated(key).any()
    sums = {"WHITE": 842.3, "CORR": 887.1, "IMAGENET": 841.9}  # of the printed columns, by hand
    assert large.groupby("background")["accuracy"].sum().to_dict() == pytest.approx(sums)
    assert small.groupby("background")["accuracy"].sum().to_dict() == pytest.approx({"WHITE": 816.8, "CORR": 864.4})


def test_unknown_table_offers_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"`name` must be a known name, got 'xaitris_table_b3'; did you mean xaitris_table_b"
    ):
        papers.table("xaitris_table_b3")


def test_published_numbers_stand_beside_ours_under_other_names() -> None:
    ours = pd.DataFrame({"method": ["lrp", "grad_cam"], "rho": [0.1, 0.8]})
    table = papers.beside(ours, "bam_figure_13", ["method"], rho="published")
    assert list(table) == ["method", "rho", "published"] and table["rho"].tolist() == [0.1, 0.8]
    assert table["published"].isna().tolist() == [True, False] and table["published"][1] == 0.92
