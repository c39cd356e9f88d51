"""The papers that records name by their keys: `references.bib`, read into plain text."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from urllib.parse import quote_plus

ENTRY = re.compile(r"^@\w+\{(\w+), (.*)\}$", re.M)
FIELD = re.compile(r"(\w+)=\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
ARXIV = re.compile(r"arXiv:(\d{4}\.\d{4,5})")
ACCENT = re.compile(r"""\\(['"`^~c])\s*\{?\\?([A-Za-z])\}?""")
MARKS = {"'": "\u0301", '"': "\u0308", "`": "\u0300", "^": "\u0302", "~": "\u0303", "c": "\u0327"}
LETTERS = {r"\ss": "ß", r"\o": "ø", r"\O": "Ø", r"\l": "ł", r"\aa": "å", r"\&": "&", r"\%": "%", "--": "–"}
PLACES = (
    "journal",
    "booktitle",
    "publisher",
    "institution",
    "howpublished",
    "note",
)  # where it appeared, by preference
SEARCH = "https://search.crossref.org/search/works?q="


@dataclass(frozen=True)
class Reference:
    """A paper. link: where it can be read, or else a search for its title."""

    key: str
    authors: str
    title: str
    place: str
    year: str
    link: str


def cited(keys: Iterable[str]) -> list[Reference]:
    """The papers with these keys, each once, by key; what is no key of ours (a user's own words) is left out."""
    known = references()
    return [known[key] for key in sorted(set(keys)) if key in known]


@cache
def references() -> dict[str, Reference]:
    """key -> paper, of all papers that we name."""
    source = (resources.files("forsooth.papers") / "references.bib").read_text(encoding="utf-8")
    return {key: _reference(key, dict(FIELD.findall(body))) for key, body in ENTRY.findall(source)}


def _reference(key: str, fields: dict[str, str]) -> Reference:
    plain = {name: plain_text(value) for name, value in fields.items()}
    return Reference(
        key=key,
        authors=_authors(plain.get("author", "")),
        title=plain.get("title", ""),
        place=next((plain[name] for name in PLACES if name in plain), ""),
        year=plain.get("year", ""),
        link=_link(plain),
    )


def _authors(names: str) -> str:
    """Surnames, the first of many.

    >>> _authors("Clark, Benedict and Wilming, Rick and Haufe, Stefan"), _authors("A, B and C, D and E, F and G, H")
    ('Clark, Wilming and Haufe', 'A et al.')
    """
    surnames = [name.split(",")[0] for name in names.split(" and ")]
    if len(surnames) > 3 or "others" in surnames:
        return f"{surnames[0]} et al."
    return " and ".join([part for part in (", ".join(surnames[:-1]), surnames[-1]) if part])


def _link(fields: dict[str, str]) -> str:
    if "doi" in fields:
        return f"https://doi.org/{fields['doi']}"
    number = ARXIV.search(fields.get("note", ""))
    if number and "follows" not in fields["note"]:  # a paper that follows another is not that one
        return f"https://arxiv.org/abs/{number[1]}"
    return SEARCH + quote_plus(fields.get("title", ""))


def plain_text(words: str) -> str:
    r"""LaTeX as plain text.

    >>> plain_text(r"{\O}ztireli, M{\"u}ller and Gr{\'e}goire: {XAI} \& \"{O}")
    'Øztireli, Müller and Grégoire: XAI & Ö'
    """
    for source, letter in LETTERS.items():
        words = words.replace(source, letter)
    words = ACCENT.sub(lambda found: unicodedata.normalize("NFC", found[2] + MARKS[found[1]]), words)
    return words.replace("{", "").replace("}", "")
