"""What all answers have in common."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from forsooth.user.results import Result, or_blank, with_messages
from forsooth.wording import share


@dataclass(frozen=True)
class Answer(Result):
    title: ClassVar[str] = "An answer"

    def shown(self) -> pd.DataFrame:
        return self.table.assign(share=or_blank(self.table["share"], share), status=with_messages(self.table))


TABLE = pd.DataFrame({"method": ["a|b", "c"], "share": [0.5, float("nan")], "status": "ok", "message": ["", "why"]})
ANSWER = Answer(TABLE, TABLE, "Use a.")


def test_a_table_is_shown_with_its_words():
    assert str(ANSWER).splitlines()[0].split() == ["method", "share", "status", "message"]
    assert str(ANSWER).endswith("\n\nUse a.") and "50 %" in str(ANSWER) and "ok: why" in str(ANSWER)


def test_a_page_has_title_table_and_words(tmp_path):
    lines = ANSWER.markdown().splitlines()
    assert lines[0] == "# An answer" and lines[2] == "| method | share | status | message |"
    assert lines[4] == r"| a\|b | 50 % | ok |  |" and lines[5] == "| c |  | ok: why | why |"
    ANSWER.keep(tmp_path, "answer", TABLE)
    assert (tmp_path / "answer.md").read_text() == ANSWER.markdown()
    assert pd.read_csv(tmp_path / "answer.csv")["method"].tolist() == ["a|b", "c"]


def test_what_is_not_shown_otherwise_is_the_table_itself():
    assert Result(TABLE, TABLE, "").shown() is TABLE


def test_a_long_refusal_does_not_widen_the_table():
    reason = "no rule for gelu " * 20
    answer = Answer(TABLE.assign(message=["", reason]), TABLE, "Use a.")
    table, notes, words = str(answer).split("\n\n")
    assert max(map(len, table.splitlines())) < 120
    assert f"c: ok: {reason}" in notes and words == "Use a."


def test_a_notebook_shows_title_table_and_words():
    shown = ANSWER._repr_html_()
    assert "<h4>An answer</h4>" in shown and "<td>a|b</td>" in shown and "<p>Use a.</p>" in shown
