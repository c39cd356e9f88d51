"""The documents say what is true now: every component has its line, every citation its entry, the README runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forsooth.attributions import METHODS
from forsooth.datasets import DATASETS
from forsooth.models import MODELS
from forsooth.scores import METRICS
from forsooth.suites import REPRODUCTIONS, SUITES

ROOT = Path(__file__).parent.parent
CATALOGUES = {
    "methods": METHODS,
    "metrics": METRICS,
    "models": MODELS,
    "datasets": DATASETS,
    "suites": SUITES,
    "reproductions": REPRODUCTIONS,
}
KEYS = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "src/forsooth/papers/references.bib").read_text(), flags=re.M))


@pytest.mark.parametrize("kind", CATALOGUES)
def test_every_component_has_its_line(kind):
    parts = (ROOT / "docs/catalogue.md").read_text().split("\n## ")
    wanted = (kind, "nulls and oracle") if kind == "methods" else (kind,)
    lines = [line for part in parts if part.split("\n")[0].lower() in wanted for line in part.splitlines()]
    for record in CATALOGUES[kind]:
        assert sum(line.startswith(f"| `{record.name}` |") for line in lines) == 1, record.name


@pytest.mark.parametrize("kind", CATALOGUES)
def test_names_are_unique(kind):
    names = [record.name for record in CATALOGUES[kind]]
    assert len(set(names)) == len(names)


def test_every_citation_has_an_entry():
    text = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    cited = set(re.findall(r"\[([a-z]+\d{4}[a-z]+)\]", text))
    records = [record for kind, catalogue in CATALOGUES.items() if kind != "reproductions" for record in catalogue]
    cited |= {record.cite for record in records}
    assert cited <= KEYS


def numbers(table: str) -> dict[str, list[float]]:
    """method -> score, low, high of a printed leaderboard."""
    lines = [line.split() for line in table.strip().splitlines()[1:]]
    return {line[0]: [float(word) for word in line[1:4]] for line in lines}


def test_the_readmes_python_gives_what_the_readme_says(tmp_path):
    readme = (ROOT / "README.md").read_text()
    code, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", readme, flags=re.S).groups()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    printed, said = numbers(done.stdout), numbers(shown)
    assert printed.keys() == said.keys()
    for method, values in said.items():  # other processors round otherwise, and a training amplifies it
        assert printed[method] == pytest.approx(values, abs=0.1), method


def test_the_readme_fits_on_a_screen_and_leads_everywhere():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 72
    assert len(re.findall(r"^- `(\w+)`: ", readme, flags=re.M)) == len(SUITES)
    for page in ("findings", "tutorial-method", "tutorial-model", "tutorial-papers", "terminal", "catalogue"):
        assert f"(docs/{page}.md)" in readme


def test_every_version_of_the_changelog_has_its_day():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    for heading in headings:
        assert re.match(r"\d+\.\d+\.\d+ \((\d{4}-\d{2}-\d{2}|unreleased)\)|Unreleased", heading), heading


def test_no_document_names_a_place_on_somebodys_machine():
    texts = [p for folder in ("docs", "src", "tests", "studies", "benchmarks") for p in (ROOT / folder).rglob("*.*")]
    for path in [*texts, ROOT / "README.md", ROOT / "CHANGELOG.md"]:
        if path.suffix in (".py", ".md", ".toml", ".csv", ".html", ".css"):
            assert "/work" + "/" not in path.read_text(), path
