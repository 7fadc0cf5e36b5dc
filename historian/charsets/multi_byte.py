"""Character sets of several bytes a character: Python's codecs where they do what the servers do, else with the difference.

Compared with MySQL 5.7, 8.0 and 9.7 and MariaDB 10.11 and 11.8, which agree, over all their codes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

__all__ = ["DOUBLE_BYTE", "MULTI_BYTE"]


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


def _ucs2(piece: bytes) -> str:
    text = piece.decode("utf_16_be")
    if any(char > "\uffff" for char in text):
        # Two units of UCS-2 are two characters, and these are none.
        raise UnicodeError(text)
    return text


_UJIS_USER_ROWS = 10
_ROW = 94


def _ujis_user_defined(error: UnicodeError) -> tuple[str, int]:
    """Rows 85 to 94 of both planes, for one's own characters: the servers have them in Unicode's private area."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data = error.object[error.start : error.start + 3]
    first, rest = (0xE000, data[:2]) if data[0] != 0x8F else (0xE000 + _UJIS_USER_ROWS * _ROW, data[1:])
    if len(rest) == 2 and 0xF5 <= rest[0] <= 0xFE and 0xA1 <= rest[1] <= 0xFE:
        char = chr(first + (rest[0] - 0xF5) * _ROW + rest[1] - 0xA1)
        return char, error.start + (3 if data[0] == 0x8F else 2)
    raise error


def _ujis(piece: bytes) -> str:
    return piece.decode("euc_jp", "historian.ujis").replace("\uff3c", "\\")


_EUCJPMS_ADDED = (
    "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩ\uff07\uff02㈱№℡炻仼僴凬匇匤\ufa0e咊坙\ufa0f\ufa10增寬峵嵓\ufa11德悅愠敎昻晥\ufa12\uf929栁"
    "\ufa13\ufa14橫櫢淸淲瀨\ufa15\ufa16甁皂皞\ufa17礰\ufa18\ufa19\ufa1a\ufa1b竧\ufa1c\ufa1d綠緖"
    "\ufa1e荢\ufa1f薰\ufa20\ufa21蠇\ufa22譿賴赶\ufa23\ufa24\ufa25郞\ufa26鄕\ufa27\ufa28閒"
    "\uf9dc\ufa29霻靍靑\ufa2a\ufa2b\ufa2c馞髙魲\ufa2d黑"
)
"""Characters of IBM's in the second plane, from 8F F3 F3 on."""
_EUCJPMS_CHANGED = {b"\x8f\xa2\xb7": "\uff5e", b"\x8f\xa2\xc3": "\uffe4"}
_ADDED_FIRST = 0xF3 * 94 + 0xF3 - 0xA1


def _eucjpms(piece: bytes) -> str:
    if piece.isascii():
        return piece.decode("ascii")
    found, at = [], 0
    while at < len(piece):
        lead = piece[at]
        size = 1 if lead < 0x80 else 3 if lead == 0x8F else 2
        found.append(_eucjpms_character(piece[at : at + size], size))
        at += size
    return "".join(found)


def _eucjpms_character(code: bytes, size: int) -> str:
    if len(code) < size:
        raise UnicodeError(code)
    if size == 1 or code[0] == 0x8E:
        return code.decode("euc_jp")
    row, cell = code[-2], code[-1]
    if 0xF5 <= row <= 0xFE or size == 3:
        at = row * 94 + cell - 0xA1 - _ADDED_FIRST
        if row in (0xF3, 0xF4) and 0xA1 <= cell <= 0xFE and at >= 0:
            return _EUCJPMS_ADDED[at]
        return _EUCJPMS_CHANGED.get(code) or code.decode("euc_jp", "historian.ujis")
    if not (0xA1 <= row <= 0xFE and 0xA1 <= cell <= 0xFE):
        raise UnicodeError(code)
    # The first plane is that of cp932, by another arithmetic.
    lead, trail = (row - 0xA1) // 2 + 0x81, cell - 0xA1
    lead += 0x40 if lead > 0x9F else 0
    trail += 0x9F if row % 2 == 0 else 0x40 + (trail >= 0x3F)
    return bytes((lead, trail)).decode("cp932")


_BIG5_ADDED = dict(zip(range(0xD6, 0xDD), "碁銹裏墻恒粧嫺", strict=True))
_BIG5_NONE = frozenset(bytes.fromhex(code) for code in ("a15a", "a1c3", "a1c5", "a1fe", "a240", "a2cc", "a2ce"))


def _big5_added(error: UnicodeError) -> tuple[str, int]:
    """Seven characters behind the last of Python's."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data = error.object[error.start : error.start + 2]
    if len(data) == 2 and data[0] == 0xF9 and data[1] in _BIG5_ADDED:
        return _BIG5_ADDED[data[1]], error.start + 2
    raise error


def _big5(piece: bytes) -> str:
    text = piece.decode("big5", "historian.big5")
    at = 0
    while at < len(piece):
        if piece[at : at + 2] in _BIG5_NONE:
            raise UnicodeError(text)
        at += 1 if piece[at] < 0x80 else 2
    return text


codecs.register_error("historian.ujis", _ujis_user_defined)
codecs.register_error("historian.big5", _big5_added)


MULTI_BYTE: dict[str, Callable[[bytes], str]] = {
    "ucs2": _ucs2,
    "utf16": _codec("utf_16_be"),
    "utf16le": _codec("utf_16_le"),
    "utf32": _codec("utf_32_be"),
    "gb2312": _codec("gb2312"),
    "gbk": _codec("gbk"),
    "gb18030": _gb18030,
    "euckr": _codec("cp949"),
    "sjis": _sjis,
    "cp932": _cp932,
    "ujis": _ujis,
    "eucjpms": _eucjpms,
    "big5": _big5,
}
"""By the server's name of the set: bytes to text; raises UnicodeError for bytes that are no characters."""

DOUBLE_BYTE = frozenset({"gb2312", "gbk", "gb18030", "euckr", "sjis", "cp932", "ujis", "big5"})
"""Sets whose codes are mostly of one byte, then the ASCII one where it is below 128, or of two."""
