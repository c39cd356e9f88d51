"""Vector figures for the page: matplotlib's SVG made small, its text text, its greys those of the page's theme.

matplotlib writes every number with six decimals, every style in full, and an id on every group. Inside a page those
ids would clash and those styles would leak; here they go, and a figure keeps a third of its bytes.
"""

import re
from collections import Counter

from forsooth.report.drawing import FAINT, INK, LINE, MUTED, NULL

# colours of the page, by the theme; hues of data stay as they are
THEMED = {
    **{"#ffffff": "var(--paper)", "white": "var(--paper)", INK: "var(--ink)", MUTED: "var(--muted)"},
    **{LINE: "var(--line)", FAINT: "var(--faint)", NULL: "var(--null)", "#000000": "var(--ink)"},
    **{"#f1f3f6": "var(--faint)", "#e1e5ea": "var(--faint)", "#d2d7de": "var(--line)"},
}
PREAMBLE = re.compile(
    r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.S
)
NUMBERS = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
GEOMETRY = re.compile(r' (?:d|points|transform|x|y|x1|x2|y1|y2|width|height|cx|cy|r)="[^"]*"')
ID = re.compile(r' id="([^"]*)"')
USED = re.compile(r'(?:href="#|url\(#)([^")]*)')
STYLE = re.compile(r' style="([^"]*)"')
FONT = re.compile(r"font(?:-family)?: ?(?:[\d.]+px )?'[^;]*(?:;|$)")
GROUP = re.compile(r"<g/>|<g(?: [^>]*)?>|</g>")
Found = re.Match[str]
HEAD = re.compile(r"<svg[^>]*?viewBox=\"([\d. -]*)\"[^>]*>")


def inline(svg: str, *, name: str, alt: str) -> str:
    """The SVG of a figure as a piece of HTML.

    name  unlike that of every other figure of the page, and short: its ids and classes begin with it, hundreds of times
    alt   escaped words for those who cannot see it
    """
    body = PREAMBLE.sub("", svg)
    body = re.sub(r">\s+<", "><", body.replace("xlink:href", "href"))
    body = _with_own_ids(body, name)
    body = GEOMETRY.sub(_short_geometry, body)
    body = STYLE.sub(lambda found: f' style="{_slim(found[1])}"', body)
    body = _without_bare_groups(body)
    body, rules = _with_classes(body, name)
    size = HEAD.search(body)
    box = size[1] if size else "0 0 100 100"
    head = f'<svg class="plot" role="img" aria-label="{alt}" viewBox="{box}" style="--wide:{box.split()[2]}">'
    return head + rules + HEAD.sub("", body, count=1)


def _rounded(found: Found) -> str:
    """Two decimals of a seventy-second of an inch are finer than any screen."""
    short = f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _short_geometry(found: Found) -> str:
    """Coordinates without spare digits, spaces and turns by nothing."""
    if found[0].startswith(' transform="rotate(-0 '):
        return ""
    short = NUMBERS.sub(_rounded, " ".join(found[0].split()))
    return " " + re.sub(r" ?([MLCQzZ]) ?", r"\1", short).replace(' "', '"')


def _without_bare_groups(body: str) -> str:
    """The same without groups that say nothing of what is in them."""
    kept: list[bool] = []

    def decided(found: Found) -> str:
        tag = found[0]
        if tag == "<g/>":
            return ""
        if tag == "</g>":
            return tag if kept.pop() else ""
        kept.append(tag != "<g>")
        return tag if kept[-1] else ""

    return GROUP.sub(decided, body)


def _with_own_ids(body: str, name: str) -> str:
    """Ids that something refers to get the figure's name before them; the others go."""
    used = set(USED.findall(body))

    def kept(found: Found) -> str:
        if found[1] not in used:
            return ""
        return f' id="{name}-{found[1]}"'

    body = ID.sub(kept, body)
    return USED.sub(lambda found: found[0].replace(f"#{found[1]}", f"#{name}-{found[1]}"), body)


def _slim(style: str) -> str:
    """A style without spaces and defaults, in colours of the theme; the font's size stays, its family is the page's."""
    size = re.search(r"[\d.]+px", style)
    parts = {"font-size": size[0]} if size else {}
    for part in FONT.sub("", style).split(";"):
        key, _, value = part.strip().partition(":")
        value = value.strip()
        if key and key != "font-size" and (key, value) not in DEFAULTS:
            parts[key] = THEMED.get(value, NUMBERS.sub(_rounded, value))
    return ";".join(f"{key}:{value}" for key, value in parts.items())


DEFAULTS = {("stroke-linejoin", "miter"), ("stroke-linecap", "butt"), ("opacity", "1")}
OFTEN = 3  # times that a style occurs before it gets a name


def _with_classes(body: str, name: str) -> tuple[str, str]:
    """Styles that occur often as classes, and the rules of these; no rule reaches beyond the figure."""
    counts = Counter(STYLE.findall(body))
    often = {style: f"{name}-{k}" for k, (style, count) in enumerate(counts.items()) if count >= OFTEN and style}

    def named(found: Found) -> str:
        if found[1] in often:
            return f' class="{often[found[1]]}"'
        return found[0] * bool(found[1])

    rules = "".join(f".{label}{{{style}}}" for style, label in often.items())
    return STYLE.sub(named, body), f"<style>{rules}</style>"
