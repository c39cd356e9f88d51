"""What goes to the terminal: names, messages and paths may come from strangers, and no sign of theirs is obeyed."""

import sys
import unicodedata
import warnings
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

KEPT = "\n\t"
# They turn the direction of writing, so that a name reads as another, or begin a line where a program sees none.
TURNING = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
COMMANDS = [chr(code) for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc" and chr(code) not in KEPT]
SPELLED = str.maketrans({sign: f"\\u{ord(sign):04x}" for sign in (*COMMANDS, *TURNING)})  # as JSON spells them, too


def visible(words: str) -> str:
    r"""The words with every sign spelled out that a terminal would obey instead of showing it.

    >>> print(visible("\x1b[31mred \x9b1m \u202etxt.exe"))
    \u001b[31mred \u009b1m \u202etxt.exe
    >>> visible("two\nlines\tare fine")
    'two\nlines\tare fine'
    """
    return words.translate(SPELLED)


class Printer(Console):
    """A console that shows words as they are: it obeys no sign, and reads no brackets and colons as markup."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Rich makes all words that it prints by this, those in tables, too."""
        return super().render_str(visible(text), **options)


def tell(words: str) -> None:
    """A line for the person, beside the output."""
    sys.stderr.write(visible(words) + "\n")
    sys.stderr.flush()


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """In the place of `warnings.showwarning`: other libraries quote what they were given."""
    tell(warnings.formatwarning(message, category, filename, lineno, line).rstrip())


def put(words: str) -> None:
    """Words that are the output itself."""
    sys.stdout.write(visible(words))
