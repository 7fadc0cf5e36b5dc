"""Character sets of several bytes a character: Python's codecs where they do what the servers do, else with the difference.

Compared with MySQL 5.7, 8.0 and 9.7 and MariaDB 10.11 and 11.8, which agree, over all their codes.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["MULTI_BYTE"]


def _codec(name: str) -> Callable[[bytes], str]:
    return lambda piece: piece.decode(name)


def _sjis(piece: bytes) -> str:
    return piece.decode("shift_jis").replace("\uff3c", "\\")


def _cp932(piece: bytes) -> str:
    text = piece.decode("cp932")
    # Python makes something of five single bytes that are no characters of the server's.
    if any(char in text for char in "\x80\uf8f0\uf8f1\uf8f2\uf8f3"):
        raise UnicodeError(text)
    return text


_SWAPPED = str.maketrans({"\ue7c7": "\u1e3f", "\u1e3f": "\ue7c7"})


def _gb18030(piece: bytes) -> str:
    text = piece.decode("gb18030")
    return text if b"\xa8\xbc".decode("gb18030") == "\u1e3f" else text.translate(_SWAPPED)


MULTI_BYTE: dict[str, Callable[[bytes], str]] = {
    "ucs2": _codec("utf_16_be"),
    "utf16": _codec("utf_16_be"),
    "utf16le": _codec("utf_16_le"),
    "utf32": _codec("utf_32_be"),
    "gb2312": _codec("gb2312"),
    "gbk": _codec("gbk"),
    "gb18030": _gb18030,
    "euckr": _codec("cp949"),
    "sjis": _sjis,
    "cp932": _cp932,
}
"""By the server's name of the set: bytes to text; raises UnicodeError for bytes that are no characters."""
