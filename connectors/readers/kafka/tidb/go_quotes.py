"""Bytes as Go's ``strconv.Quote`` writes a string."""

from __future__ import annotations

import re

__all__ = ["unescaped"]

_ESCAPE = re.compile(r'(\\(?:[abfnrtv\\"]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}))')
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def unescaped(text: str) -> bytes:
    """The bytes of a string that is written so, without its quotes. ValueError where it is none.

    A byte that is no text stands there by its number; so does a character that is not printable, whose bytes are those of UTF-8.
    """
    plain = _ESCAPE.sub("", text)
    if "\\" in plain:
        raise ValueError(f"an escape that is none of Go's: {text[:60]}")
    return b"".join(
        _unescaped_one(part[1:]) if part.startswith("\\") else part.encode("utf-8") for part in _ESCAPE.split(text)
    )


def _unescaped_one(escape: str) -> bytes:
    kind, digits = escape[0], escape[1:]
    if not digits:
        return _CONTROLS.get(kind, kind).encode("ascii")
    return bytes.fromhex(digits) if kind == "x" else chr(int(digits, 16)).encode("utf-8")
