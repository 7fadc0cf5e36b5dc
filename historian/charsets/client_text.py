"""Text of a statement as its client sent it: read for its quotes first, converted literal by literal then, as servers do.

Where bytes are no characters, or characters that a lexer would take for quotes, :func:`lexed` gives single surrogates,
U+DC00 and the byte. :func:`converted` makes of a literal what the server made of it, replacements included:
``copy_and_convert`` and ``mb_wc`` of each set in MySQL's strings/ and MariaDB's strings/.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from historian.charsets.conversion import decoded, encoded, fitted
from historian.charsets.multi_byte import MULTI_BYTE
from historian.charsets.single_byte import NONE, SINGLE_BYTE, characters

__all__ = ["converted", "declared_label", "lexed", "printable", "raw_bytes", "read_as_one", "stored_label", "unchanged"]

_FIRST = 0xDC00
_NO_UTF8 = re.compile(r"\\x[0-9a-f]{2}")
_SURROGATES = re.compile("[\udc00-\udcff]+")
_REPLACED = "?"
_UTF8 = frozenset(("", "utf8", "utf8mb3", "utf8mb4", "binary"))
_WITHOUT_GAPS = frozenset(("tis620",))
"""Sets whose tables have U+FFFD where others have nothing."""
_THREE_BYTES = frozenset(("utf8", "utf8mb3"))
_NOT_ASCII = "swe7"
"""The one set of a client in which bytes below 128 are other characters; quotes and backslashes are where they are in ASCII."""

_Range = tuple[int, int]
_CUTS = ((0xC2, 0xDF, 2), (0xE0, 0xEF, 3), (0xF0, 0xFF, 4))
"""MySQL cuts text off at a byte from the first to the second, behind which fewer stand than a character of it takes."""
_CUTS_BEFORE_8 = (*_CUTS[:2], (0xF0, 0xF7, 4))
"""The same of MySQL 5.7."""
_HIGH, _GBK_TRAIL = (0xA1, 0xFE), ((0x40, 0x7E), (0x80, 0xFE))
_SJIS_LEAD, _SJIS_TRAIL = ((0x81, 0x9F), (0xE0, 0xFC)), ((0x40, 0x7E), (0x80, 0xFC))
_PAIRS: dict[str, tuple[tuple[_Range, ...], tuple[_Range, ...]]] = {
    "big5": (((0xA1, 0xF9),), ((0x40, 0x7E), _HIGH)),
    "gb2312": (((0xA1, 0xF7),), (_HIGH,)),
    "gbk": (((0x81, 0xFE),), _GBK_TRAIL),
    "gb18030": (((0x81, 0xFE),), _GBK_TRAIL),
    "euckr": (((0x81, 0xFE),), ((0x41, 0x5A), (0x61, 0x7A), (0x81, 0xFE))),
    "sjis": (_SJIS_LEAD, _SJIS_TRAIL),
    "cp932": (_SJIS_LEAD, _SJIS_TRAIL),
    "ujis": ((_HIGH,), (_HIGH,)),
    "eucjpms": ((_HIGH,), (_HIGH,)),
}
"""Bytes that may be the first and the second of a pair (``ismbchar``)."""
_JAPANESE_EUC = frozenset(("ujis", "eucjpms"))
_TAKES_ANY_PAIR = frozenset(("big5", "gb2312", "gbk", "euckr"))
"""Sets in which MySQL replaces a byte together with the next one, whatever that is."""


def lexed(data: bytes, charset: str) -> str:
    """The statement's text for a lexer, one character or surrogate for what the server's lexer takes for one."""
    if data.isascii():
        return data.decode("ascii")
    if charset in _UTF8:
        text = data.decode("utf-8", "surrogateescape")
        if charset in _THREE_BYTES and max(text) > "\uffff":
            return "".join(char if char <= "\uffff" else _surrogates(char.encode()) for char in text)
        return text
    if charset in MULTI_BYTE:
        return "".join(_lexed_units(data, charset))
    if charset not in SINGLE_BYTE or charset == _NOT_ASCII:
        return data.decode("ascii", "surrogateescape")
    return data.decode("latin-1").translate(_single_units(charset))


def unchanged(text: str, charset: str) -> bool:
    """Whether the literal *text* is as the lexer has it, so that there is nothing to convert.

    Text of no known charset is that of a file in UTF-8: surrogates stay.
    """
    return not charset or (charset != _NOT_ASCII and _SURROGATES.search(text) is None)


def raw_bytes(text: str, charset: str) -> bytes:
    """The bytes that the client sent for what :func:`lexed` gave."""
    if charset == _NOT_ASCII:
        charset = "ascii"
    parts = []
    at = 0
    for found in _SURROGATES.finditer(text):
        parts += [encoded(text[at : found.start()], charset), bytes(ord(char) - _FIRST for char in found.group())]
        at = found.end()
    return b"".join((*parts, encoded(text[at:], charset)))


def converted(raw: bytes, charset: str, flavor: str, version: int = 0) -> str:
    """The text that a server of that *flavor* makes of a literal's bytes: a question mark, or U+FFFD, for what is no character.

    Args:
        version: of the server; 0: a present one.
    """
    try:
        return decoded(raw, charset)
    except UnicodeError:
        pass
    if charset in _UTF8:
        most = 3 if charset in _THREE_BYTES else 4
        cuts = () if flavor != "mysql" else _CUTS_BEFORE_8 if 0 < version < 80000 else _CUTS
        return _converted_utf8(raw, most, cuts)
    if charset in MULTI_BYTE:
        return _converted_units(raw, charset, is_mysql=flavor == "mysql")
    if charset in SINGLE_BYTE:
        replaced = NONE if charset in _WITHOUT_GAPS else _REPLACED
        return "".join(characters(charset)[byte].replace(NONE, replaced) for byte in raw)
    return raw.decode("ascii", "replace").replace("\ufffd", _REPLACED)


def stored_label(raw: bytes, charset: str, flavor: str, version: int = 0) -> str:
    """The text of an ENUM or SET label that a column in that set holds as *raw*; of ``binary`` as UTF-8 with backslashes for other bytes."""
    return raw.decode("utf-8", "backslashreplace") if charset == "binary" else converted(raw, charset, flavor, version)


def read_as_one(labels: Sequence[str]) -> str:
    """What two labels of bytes read, of which one may be no UTF-8 and the other the text that stands for it; "": none do."""
    if len(set(labels)) == len(labels):
        return ""
    return next((label for label in labels if _NO_UTF8.search(label) and labels.count(label) > 1), "")


def declared_label(label: str | bytes, client: str, charset: str, flavor: str, version: int = 0) -> str:
    """What a column in the set *charset* makes of a label, as :func:`lexed` gave it or of the bytes of a binary literal."""
    if isinstance(label, bytes):
        text = stored_label(label, charset, flavor, version)
    elif not client and not label.isascii() and _SURROGATES.search(label):
        return label
    elif "binary" in (client, charset):
        text = stored_label(raw_bytes(label, client), charset, flavor, version)
    else:
        text = label if unchanged(label, client) else converted(raw_bytes(label, client), client, flavor, version)
        text = text if client == charset else fitted(text, charset)
    # Trailing blanks are cut off, those of bytes are not.
    return text if charset == "binary" else text.rstrip(" ")


def printable(text: str) -> str:
    """*text* with backslashes and hexadecimal digits for the surrogates of :func:`lexed`: for messages, and to be stored."""
    return _SURROGATES.sub(lambda found: "".join(f"\\x{ord(char) - _FIRST:02x}" for char in found.group()), text)


def _surrogates(data: bytes) -> str:
    return "".join(chr(_FIRST + byte) for byte in data)


@cache
def _single_units(charset: str) -> str:
    """Of each byte its character where a lexer takes it for none else and the character gives the byte back, else a surrogate."""
    return "".join(
        char if char != NONE and _comes_back(char, bytes((byte,)), charset) else chr(_FIRST + byte)
        for byte, char in enumerate(characters(charset))
    )


def _lexed_units(data: bytes, charset: str) -> list[str]:
    found = []
    at = 0
    while at < len(data):
        size = _size(data, at, charset)
        unit = data[at : at + size]
        text = _character(unit, charset)
        found.append(text if text is not None and _comes_back(text, unit, charset) else _surrogates(unit))
        at += size
    return found


def _comes_back(text: str, unit: bytes, charset: str) -> bool:
    """Whether the bytes can be told from the character, which a lexer must not take for a quote."""
    try:
        return encoded(text, charset) == unit and (unit[0] < 0x80 or not text.isascii())
    except UnicodeError:
        return False


def _size(data: bytes, at: int, charset: str) -> int:
    """Bytes of what has the form of a character there; 1 where nothing has."""
    first, rest = data[at], data[at + 1 : at + 4]
    if first < 0x80 or not rest:
        return 1
    if charset in _JAPANESE_EUC:
        if first == 0x8F and len(rest) > 1 and _in(rest[0], (_HIGH,)) and _in(rest[1], (_HIGH,)):
            return 3
        if first == 0x8E and _in(rest[0], ((0xA0, 0xDF),)):
            return 2
    if charset == "gb18030" and len(rest) == 3 and _is_four_bytes(first, rest):
        return 4
    leads, trails = _PAIRS[charset]
    return 2 if _in(first, leads) and _in(rest[0], trails) else 1


def _is_four_bytes(first: int, rest: bytes) -> bool:
    digits, high = ((0x30, 0x39),), ((0x81, 0xFE),)
    return _in(first, high) and _in(rest[0], digits) and _in(rest[1], high) and _in(rest[2], digits)


def _in(byte: int, ranges: tuple[_Range, ...]) -> bool:
    return any(first <= byte <= last for first, last in ranges)


def _character(unit: bytes, charset: str) -> str | None:
    try:
        return decoded(unit, charset)
    except UnicodeError:
        return None


def _converted_utf8(raw: bytes, most: int, cuts: Sequence[tuple[int, int, int]]) -> str:
    """Characters of at most *most* bytes; *cuts*: as :data:`_CUTS`."""
    found = ""
    while raw:
        if any(first <= raw[0] <= last and len(raw) < needed <= most for first, last, needed in cuts):
            return found
        width = 1 if raw[0] < 0xC2 else 2 if raw[0] < 0xE0 else 3 if raw[0] < 0xF0 else 4 if raw[0] < 0xF5 else 1
        width = width if width <= most else 1
        char = _character(raw[:width], "utf8mb4")
        found += _REPLACED if char is None else char
        raw = raw[1 if char is None else width :]
    return found


def _converted_units(raw: bytes, charset: str, *, is_mysql: bool) -> str:
    found = []
    at = 0
    while at < len(raw):
        size = _size(raw, at, charset)
        text = _character(raw[at : at + size], charset)
        if text is None and is_mysql:
            if len(raw) - at < _needed(raw, at, charset):
                break
            size = 2 if charset in _TAKES_ANY_PAIR else size
        found.append(_REPLACED if text is None else text)
        at += size
    return "".join(found)


def _needed(raw: bytes, at: int, charset: str) -> int:
    """How many bytes MySQL wants to see before it says that they are no character."""
    first = raw[at]
    if charset in _JAPANESE_EUC:
        return 3 if first == 0x8F else 2 if first == 0x8E or _in(first, (_HIGH,)) else 1
    if charset == "gb18030":
        is_long = at + 1 < len(raw) and _in(raw[at + 1], ((0x30, 0x39),))
        return 1 if not _in(first, ((0x81, 0xFE),)) else 4 if is_long else 2
    return 2
