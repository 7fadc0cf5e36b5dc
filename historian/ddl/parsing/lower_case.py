"""Names as a server writes them that makes all small (``lower_case_table_names=1``)."""

from __future__ import annotations

__all__ = ["lowered"]

_KEPT = (
    (0x0220, 0x0220),
    (0x023A, 0x037F),
    (0x03CF, 0x03D8),
    (0x03F4, 0x03FF),
    (0x048A, 0x048A),
    (0x04C0, 0x04C0),
    (0x04C5, 0x04C5),
    (0x04C9, 0x04C9),
    (0x04CD, 0x04CD),
    (0x04F6, 0x04F6),
    (0x04FA, 0x052E),
    (0x10A0, 0x1CBF),
    (0x1E9E, 0x1E9E),
    (0x1EFA, 0x1EFE),
    (0x2132, 0x2132),
    (0x2183, 0x2183),
    (0x2C00, 0xA7F5),
    (0x10000, 0x10FFFF),
)
"""Characters that are as they are: they, or their small letters, came to Unicode behind the servers' table of the names' charset."""


def lowered(name: str) -> str:
    """*name* in small letters as all servers make them: each character by itself, by the table of ``utf8mb3_general_ci``.

    A small sigma at a word's end is no other letter here.
    """
    return name.lower() if name.isascii() else "".join(map(_small, name))


def _small(character: str) -> str:
    number = ord(character)
    if any(first <= number <= last for first, last in _KEPT):
        return character
    return character.lower()[0]  # of U+0130 Python makes two: an i, and a dot above it
