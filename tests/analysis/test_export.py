"""Boards for papers and pages."""

import forsooth
from forsooth.analysis import export


def test_latex_has_a_line_for_every_method_and_no_bare_sign(folder):
    board = forsooth.Run(folder).leaderboard("ima")
    lines = export.latex(board, "ima").splitlines()
    assert lines[1] == r"\begin{tabular}{lllll}" and lines[-1] == r"\end{tabular}"
    body = lines[2:-1]
    assert body[0] == r"method & score & 95 \% interval & group & failed \\"
    assert len(body) == len(board) + 2
    assert all(line.count(" & ") == 4 for line in body if line != r"\hline")
    (mine,) = [line for line in body if line.startswith(r"pattern\_attribution & ")]
    score = board.set_index("method")["score"]["pattern_attribution"]
    assert mine.split(" & ")[1] == f"{score:.3f}"
    assert any(line.startswith(r"random $\circ$ & ") for line in body)


def test_markdown_has_a_line_for_every_method(folder):
    board = forsooth.Run(folder).leaderboard("ima")
    lines = export.markdown(board, "ima").splitlines()
    assert lines[0] == "## ima" and len([line for line in lines if line.startswith("| ")]) == len(board) + 2
