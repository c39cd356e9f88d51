"""How dense the code is, beside projects that read well: python tests/density.py [FOLDER].

FOLDER is a checkout, by default this one; several are printed below each other. A short function is one with little in
it, not one with dense lines: so syntax nodes are counted, and what packs several thoughts into one statement.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
UPPER = ("suites", "user", "doors", "report")  # `user` was called `doors`
# nodes of a function at the 90th percentile, packed assignments and conditional expressions per 1,000 code lines
ANCHORS = {
    "zennit": (140, 0.7, 2.7),
    "einops": (83, 0.0, 5.3),
    "equinox": (174, 0.3, 7.0),
    "benchopt": (233, 0.6, 9.8),
}


@dataclass(frozen=True)
class Density:
    """What was counted in some files.

    functions  syntax nodes of every function, least first
    """

    files: int
    lines: int
    code: int
    nodes: int
    functions: tuple[int, ...]
    packed: int
    conditional: int

    @property
    def ninetieth(self) -> int:
        """Nodes of a function at the 90th percentile."""
        return self.functions[int(0.9 * len(self.functions))] if self.functions else 0

    def per_thousand(self, count: int) -> float:
        return 1000 * count / max(1, self.code)


def density(files: Iterable[Path]) -> Density:
    """The counts of all files together."""
    texts = [file.read_text(encoding="utf-8") for file in files]
    trees = [ast.parse(text) for text in texts]
    everything = [node for tree in trees for node in ast.walk(tree)]
    return Density(
        files=len(texts),
        lines=sum(len(text.splitlines()) for text in texts),
        code=sum(code_lines(text, tree) for text, tree in zip(texts, trees, strict=True)),
        nodes=len(everything),
        functions=tuple(sorted(size(node) for node in everything if isinstance(node, DEFINITIONS))),
        packed=sum(is_packed(node) for node in everything),
        conditional=sum(isinstance(node, ast.IfExp) for node in everything),
    )


def size(node: ast.AST) -> int:
    return sum(1 for _ in ast.walk(node))


def is_packed(node: ast.AST) -> bool:
    """Whether several values are put into several names by one assignment."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)


def code_lines(text: str, tree: ast.AST) -> int:
    """Lines that are neither empty, nor comments, nor docstrings."""
    words = {line for start, end in docstrings(tree) for line in range(start, end + 1)}
    numbered = enumerate(text.splitlines(), 1)
    return sum(1 for number, line in numbered if number not in words and line.strip() and line.strip()[0] != "#")


def docstrings(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """First and last line of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *DEFINITIONS)) and ast.get_docstring(node, clean=False):
            yield node.body[0].lineno, node.body[0].end_lineno or node.body[0].lineno


def rooms(source: Path) -> dict[str, list[Path]]:
    """The files of every room below src/forsooth."""
    found: dict[str, list[Path]] = {}
    for file in sorted(source.rglob("*.py")):
        parts = file.relative_to(source).parts
        found.setdefault(parts[0] if len(parts) > 1 else "(top)", []).append(file)
    return found


def test_lines(root: Path, room: str) -> int:
    return sum(len(file.read_text().splitlines()) for file in (root / "tests" / room).rglob("*.py"))


def table(root: Path) -> list[str]:
    """The lines that are printed for a checkout."""
    by_room = rooms(root / "src" / "forsooth")
    head = f"{'room':<14}{'files':>6}{'lines':>7}{'nodes':>8}{'90 %':>6}{'packed':>8}{'if-else':>9}{'tests/src':>11}"
    lines = [head]
    whole = {**by_room, "all": [file for files in by_room.values() for file in files]}
    for room, files in whole.items():
        one = density(files)
        tested = "" if room in ("all", "(top)") else f"{test_lines(root, room) / max(1, one.lines):.2f}"
        counts = f"{one.files:>6}{one.lines:>7}{one.nodes:>8}{one.ninetieth:>6}"
        rates = f"{one.per_thousand(one.packed):>8.1f}{one.per_thousand(one.conditional):>9.1f}"
        lines.append(f"{room:<14}{counts}{rates}{tested:>11}")
    upper = sum(density(by_room[room]).nodes for room in UPPER if room in by_room)
    return [*lines, f"syntax nodes of suites, user and report together: {upper:,}"]


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:] or [ROOT]):
        print("\n".join([f"{folder.resolve().name}", *table(folder), ""]))
    for name, (nodes, packed, conditional) in ANCHORS.items():
        print(f"{name:<14}{'':>21}{nodes:>6}{packed:>8.1f}{conditional:>9.1f}")
