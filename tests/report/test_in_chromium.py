"""The page as people use it, in a real Chromium: by mouse, by keyboard alone, on a phone, in the dark and on paper."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Page, browser, executable
from report import made_up

from forsooth.runs import write_page

pytestmark = pytest.mark.skipif(executable() is None, reason="no chromium on the PATH")
AXE = "FORSOOTH_AXE"  # environment variable: path of axe.min.js, of the npm package axe-core
BOARD = "run0-board-emd"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small run with maps of several samples."""
    folder = made_up.write(tmp_path_factory.mktemp("page") / "run", samples=6, seeds=1, backgrounds=1)
    about = json.loads((folder / "run.json").read_text())
    about["exhibits"] = ["examples"]
    (folder / "run.json").write_text(json.dumps(about))
    return write_page(folder)


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browser(str(executable())) as page:
        yield page


@pytest.fixture
def page(tab: Page, path: Path) -> Iterator[Page]:
    """The page on a wide screen, as it is when just opened; nothing complains and nothing is fetched."""
    tab.errors.clear()
    tab.requests.clear()
    tab.size(1280)
    tab.prefers("light")
    tab.open(path)
    tab.run("localStorage.clear()")
    yield tab
    assert tab.errors == []
    assert {address.split(":")[0] for address in tab.requests} <= {"file", "data", "blob"}
    assert {address for address in tab.requests if address.startswith("file")} == {path.resolve().as_uri()}


def column(page: Page, heading: str, table: str = BOARD) -> list[str]:
    """The text of a column of a table, of the lines that are shown."""
    code = f"""(() => {{
      const table = document.getElementById({json.dumps(table)});
      const place = [...table.tHead.rows[0].cells].findIndex(cell => cell.textContent.trim() === {json.dumps(heading)});
      return [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[place].textContent.trim());
    }})()"""
    return list(page.run(code))


def press_heading(page: Page, heading: str) -> str:
    """Click a heading; says which way it is sorted then."""
    code = f"""(() => {{
      const table = document.getElementById({json.dumps(BOARD)});
      const head = [...table.tHead.rows[0].cells].find(cell => cell.textContent.trim() === {json.dumps(heading)});
      head.querySelector("button").click();
      return head.getAttribute("aria-sort");
    }})()"""
    return str(page.run(code))


def type_into(page: Page, name: str, words: str) -> None:
    page.run(f"""(() => {{
      const field = document.getElementById("filter").elements[{json.dumps(name)}];
      field.value = {json.dumps(words)};
      field.dispatchEvent(new Event("input", {{ bubbles: true }}));
    }})()""")
    page.run("new Promise(done => setTimeout(done, 250))")


def test_headings_sort_up_down_and_back(page: Page) -> None:
    as_made = column(page, "score")
    assert press_heading(page, "score") == "ascending"
    assert column(page, "score") == sorted(as_made, key=float)
    assert press_heading(page, "score") == "descending"
    assert column(page, "score") == sorted(as_made, key=float, reverse=True)
    press_heading(page, "score")
    assert column(page, "score") == as_made
    press_heading(page, "gap")
    gaps = column(page, "gap")
    assert gaps == sorted(gaps, key=lambda gap: gap == "")  # what is missing stands last


def test_filters_leave_what_was_asked_for(page: Page) -> None:
    type_into(page, "method", "lime, saliency")
    assert {name.split(" ")[0] for name in column(page, "method")} == {"lime", "lime_1000", "saliency"}
    assert "3 methods" in page.run("document.getElementById('count').textContent")
    type_into(page, "method", "")
    type_into(page, "need", "layer")
    assert column(page, "method") == ["guided_grad_cam"]
    type_into(page, "need", "")
    type_into(page, "family", "null")
    assert set(column(page, "method")) == {f"{name} ○" for name in made_up.NULLS}
    page.run("document.getElementById('clear').click()")
    page.run("new Promise(done => setTimeout(done, 100))")
    assert len(column(page, "method")) == len(made_up.NULLS | made_up.GOODNESS)


def test_a_filter_by_panel_takes_columns_and_rows(page: Page) -> None:
    type_into(page, "panel", "xor cnn")
    heads = page.run(
        """[...document.querySelectorAll("#run0-heat-emd thead th:not(.off)")].map(head => head.textContent)"""
    )
    assert heads == ["method", "XOR-CNN"]
    rows = """[...document.querySelectorAll("#run0-examples-table tbody tr:not([hidden])")].map(row => row.dataset.p)"""
    assert page.run(rows) == ["XOR-CNN"]


def test_search_reads_every_table(page: Page) -> None:
    type_into(page, "words", "every attribution is 0")
    assert page.run("document.querySelectorAll('#run0-lost tbody tr:not([hidden])').length") == 1
    assert column(page, "method") == []


@pytest.mark.parametrize(
    "anchor",
    ["run0-board-precision-lime", "run0-heat-ima-p-LIN-MLP", "run0-figure-leaderboard", "run0-examples-XOR-CNN"],
)
def test_a_link_opens_what_it_is_folded_into(tab: Page, path: Path, anchor: str) -> None:
    tab.size(1280)
    tab.open(path, f"?{anchor}#{anchor}")
    box = tab.run(
        f"(() => {{ const box = document.getElementById('{anchor}').getBoundingClientRect(); "
        "return [box.top, box.bottom, box.height, innerHeight]; })()"
    )
    top, bottom, height, window = box
    assert height > 0 and bottom > 0 and top < window


def test_everything_has_a_link(page: Page) -> None:
    rows = page.run("[...document.querySelectorAll('main tbody tr')].filter(row => !row.id).length")
    figures = page.run("[...document.querySelectorAll('figure')].filter(part => !part.id).length")
    panels = page.run("[...document.querySelectorAll('table.heat th[data-p]')].filter(head => !head.id).length")
    assert (rows, figures, panels) == (0, 0, 0)
    assert (
        page.run("document.querySelectorAll('table:not(:has(caption)), tbody tr:not(:has(th[scope=row], td))').length")
        == 0
    )


def test_dark_comes_from_the_system_and_from_the_switch(page: Page) -> None:
    shade = "getComputedStyle(document.body).backgroundColor"
    assert page.run(shade) == "rgb(255, 255, 255)"
    page.prefers("dark")
    assert page.run(shade) == "rgb(20, 24, 29)"
    page.run("document.getElementById('theme').click()")
    assert page.run(shade) == "rgb(255, 255, 255)"
    assert page.run("document.getElementById('theme').getAttribute('aria-pressed')") == "false"


def test_a_phone_needs_no_sideways_scroll_and_keeps_the_names(page: Page) -> None:
    page.size(390, 844)
    page.run("document.querySelectorAll('main details').forEach(part => { part.open = true; })")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    left = page.run(f"""(() => {{
      const scroll = document.getElementById("{BOARD}").closest(".scroll");
      scroll.scrollLeft = 300;
      const name = document.querySelector("#{BOARD} tbody th");
      return name.getBoundingClientRect().left - scroll.getBoundingClientRect().left;
    }})()""")
    assert abs(left) <= 1
    assert page.run("getComputedStyle(document.getElementById('menu')).display") == "none"
    page.run("document.getElementById('fold').click()")
    assert page.run("getComputedStyle(document.getElementById('menu')).display") == "block"


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    page.press("Enter")
    page.run(f"document.querySelector('#{BOARD} thead button').focus()")
    page.press("Tab")
    page.press("Enter")
    assert page.run("document.activeElement.closest('th').getAttribute('aria-sort')") == "ascending"
    names = [name.split(" ")[0] for name in column(page, "method")]
    assert names == sorted(names)
    page.run("document.querySelector('.look').focus()")
    page.press("Enter")
    page.run("new Promise(done => setTimeout(done, 300))")
    assert page.run("document.getElementById('viewer').open")
    title = "document.getElementById('viewer-title').textContent"
    first = page.run(title)
    page.press("ArrowDown")
    page.run("new Promise(done => setTimeout(done, 200))")
    assert page.run(title) != first
    page.press("Escape")
    assert not page.run("document.getElementById('viewer').open")


def test_maps_are_enlarged_stepped_through_and_tell_their_values(page: Page) -> None:
    page.run("document.querySelector('.look').click()")
    page.run("new Promise(done => setTimeout(done, 500))")
    place = "document.getElementById('viewer-place').textContent"
    assert f"sample 1 of {made_up.SHOWN}" in page.run(place)
    page.press("ArrowRight")
    page.run("new Promise(done => setTimeout(done, 200))")
    assert f"sample 2 of {made_up.SHOWN}" in page.run(place)
    told = page.run("""(() => {
      const tiles = [...document.querySelectorAll(".viewer-maps button")];
      const one = name => tiles.find(tile => tile.querySelector("b").textContent === name);
      const box = one("truth").querySelector("canvas").getBoundingClientRect();
      const at = { clientX: box.left + box.width * 2.5 / 8, clientY: box.top + box.height * 2.5 / 8, bubbles: true };
      one("truth").querySelector("canvas").dispatchEvent(new PointerEvent("pointermove", at));
      return [one("truth"), one("saliency")].map(tile => tile.querySelector("output").textContent);
    })()""")
    assert told[0] in ("matters", "does not matter")
    assert "% of the largest" in told[1]
    page.press("Escape")


def test_tables_are_copied_as_csv_latex_and_markdown(page: Page) -> None:
    made = page.run(f"""Object.fromEntries(Object.entries(FORMATS).map(([name, format]) =>
      [name, format.write(contents(document.getElementById("{BOARD}")))]))""")
    lines = made["csv"].splitlines()
    assert lines[0].startswith("rank,method,score,95 % interval,group") and len(lines) == 1 + len(
        column(page, "method")
    )
    assert len(lines[1].split(",")[2]) >= 3
    assert made["Markdown"].splitlines()[1].startswith("| --- | --- |")
    assert "\\toprule" in made["LaTeX"] and "pattern\\_attribution" in made["LaTeX"]
    page.run(
        f"showColumn(document.getElementById('{BOARD}'), document.querySelectorAll('#{BOARD} thead th')[3], false)"
    )
    assert "score" not in page.run(f"contents(document.getElementById('{BOARD}')).heads")


def test_it_prints_with_everything_open(page: Page) -> None:
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 50_000
    assert page.run("document.querySelectorAll('main > article > details[open]').length") >= 1


def test_it_reads_well_without_script(page: Page) -> None:
    page.send("Emulation.setScriptExecutionDisabled", value=True)
    page.reload()
    seen = page.run("""[getComputedStyle(document.getElementById("filter")).display,
      getComputedStyle(document.querySelector("nav")).display, document.querySelectorAll("button.sort").length]""")
    page.send("Emulation.setScriptExecutionDisabled", value=False)
    assert seen == ["none", "block", 0]


def test_axe_finds_nothing_serious(page: Page) -> None:
    script = Path(os.environ.get(AXE, "node_modules/axe-core/axe.min.js"))
    if not script.is_file():
        pytest.skip(f"axe-core is not here: give the path of its axe.min.js in {AXE}")
    page.run(script.read_text(encoding="utf-8") + ";0")
    page.run("document.querySelectorAll('main details').forEach(part => { part.open = true; })")
    for theme in ("light", "dark"):
        page.prefers(theme)
        found = page.run("axe.run(document).then(found => found.violations)")
        serious = [
            (one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], theme
