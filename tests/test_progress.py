"""Who looks on gets a bar: at a terminal and in a notebook, not in a pipe."""

import io
import sys

from forsooth.progress import Bar, Silent, fitting_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_hears_nothing_and_a_terminal_or_a_notebook_sees_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(fitting_progress(), Silent)
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert isinstance(fitting_progress(), Bar)
    monkeypatch.delitem(sys.modules, "ipykernel")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(fitting_progress(), Bar)
