"""Texts of the source made harmless for a terminal: names, reasons and statements may hold anything."""

from __future__ import annotations

import re
import textwrap
import unicodedata

__all__ = ["as_lines", "broken", "harmless", "one_line", "without_controls"]

_LONGEST = 2000
_WIDE = 120
_IN_BACKTICKS = re.compile(r"`[^`\n]*`")
_KEPT_BLANK = "\0"
_HARMFUL = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Kinds of characters that move the cursor, turn text round, or are none."""


def one_line(text: str) -> str:
    """The text in one line, without what a terminal would obey; of a very long one the begin."""
    return without_controls(" ".join(text[:_LONGEST].split()))


def harmless(text: str) -> str:
    """The text with its lines as they are, each as of :func:`without_controls`."""
    return "\n".join(map(without_controls, text.split("\n")))


def as_lines(text: str) -> str:
    """As :func:`harmless`; lines behind the first are indented, so that no name of a source passes for a line of ours."""
    return re.sub(r"\n(?=[^ \n])", "\n  ", harmless(text))


def broken(line: str, *, indent: str) -> str:
    """A line of prose as lines of 120 characters, the later ones behind *indent*. Words stay whole, and so does what stands between backticks."""
    if len(line) <= _WIDE:
        return line
    kept = _IN_BACKTICKS.sub(lambda match: match[0].replace(" ", _KEPT_BLANK), line)
    lines = textwrap.wrap(kept, _WIDE, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(_KEPT_BLANK, " ")


def without_controls(line: str) -> str:
    """The line with characters that a terminal would obey as escapes of Python's; a tab becomes a blank."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(_shown(character) for character in line)


def _shown(character: str) -> str:
    if character == "\t":
        return " "
    if unicodedata.category(character) in _HARMFUL:
        return character.encode("unicode_escape", "surrogatepass").decode("ascii")
    return character
