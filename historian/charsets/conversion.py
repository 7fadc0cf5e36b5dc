"""Text of bytes and bytes of text in any character set of the servers: exact or an error, and with question marks as servers do it."""

from __future__ import annotations

from functools import cache

from historian.charsets.multi_byte import MULTI_BYTE
from historian.charsets.single_byte import NONE, SINGLE_BYTE, characters

__all__ = ["can_encode", "decoded", "encoded", "fitted"]

_UTF8 = frozenset(("", "utf8", "utf8mb3", "utf8mb4", "binary"))
_BASIC_PLANE = frozenset(("utf8", "utf8mb3", "ucs2"))
_ENCODERS = {
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "gb18030": "gb18030",
    "euckr": "cp949",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "big5": "big5",
}


def decoded(raw: bytes, charset: str) -> str:
    """The text of *raw*; bytes of the set ``binary`` are taken for UTF-8.

    Raises:
        UnicodeError: bytes that are no characters.
    """
    if charset in SINGLE_BYTE:
        text = raw.decode("latin-1").translate(_table(charset))
        if NONE in text:
            raise UnicodeError(f"bytes that are no characters of {charset}: {raw[:64].hex()}")
        return text
    if charset in MULTI_BYTE:
        return MULTI_BYTE[charset](raw)
    text = raw.decode("utf-8" if charset in _UTF8 else "ascii")
    if charset in _BASIC_PLANE and not text.isascii() and max(text) > "\uffff":
        raise UnicodeError(f"{charset} has no characters beyond U+FFFF")
    return text


def encoded(text: str, charset: str) -> bytes:
    """The bytes of *text*.

    Raises:
        UnicodeError: characters that the set does not have.
    """
    if charset in SINGLE_BYTE:
        codes = _codes(charset)
        try:
            return bytes(map(codes.__getitem__, text))
        except KeyError as error:
            raise UnicodeError(f"{charset} does not have {error}") from None
    if charset in _BASIC_PLANE and text and max(text) > "\uffff":
        raise UnicodeError(f"{charset} has no characters beyond U+FFFF")
    if charset in _ENCODERS:
        raw = text.encode(_ENCODERS[charset])
        # Python's codec may have characters that the server's set has not, or at other places.
        if decoded(raw, charset) != text:
            raise UnicodeError(f"{charset} does not have all of the characters")
        return raw
    return text.encode("utf-8" if charset in _UTF8 else "ascii")


def can_encode(text: str, charset: str) -> bool:
    """Whether the character set has all characters of *text*."""
    try:
        encoded(text, charset)
    except UnicodeError:
        return False
    return True


def fitted(text: str, charset: str) -> str:
    """*text* as a column in that set keeps it: a question mark stands for each character that the set does not have."""
    if can_encode(text, charset):
        return text
    return "".join(char if can_encode(char, charset) else "?" for char in text)


@cache
def _table(charset: str) -> str:
    return characters(charset)


@cache
def _codes(charset: str) -> dict[str, int]:
    # Where two bytes are one character, the first one is what servers write.
    return {char: byte for byte, char in reversed([*enumerate(characters(charset))]) if char != NONE}
