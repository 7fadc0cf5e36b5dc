"""Text of bytes and back, exact or an error."""

from __future__ import annotations

import pytest

from historian.charsets.conversion import can_encode, decoded, encoded, fitted
from historian.charsets.multi_byte import MULTI_BYTE
from historian.charsets.single_byte import NONE, SINGLE_BYTE, characters


@pytest.mark.parametrize("charset", sorted(SINGLE_BYTE))
def test_every_character_of_a_set_of_single_bytes_comes_back(charset: str) -> None:
    for char in set(characters(charset)) - {NONE}:
        assert char == decoded(encoded(char, charset), charset)


@pytest.mark.parametrize("charset", sorted({*MULTI_BYTE, "utf8mb3", "utf8mb4"}))
def test_what_a_set_of_several_bytes_encodes_comes_back(charset: str) -> None:
    chars = [chr(code) for code in range(0x20, 0x11000, 7) if not 0xD800 <= code < 0xE000]
    kept = [char for char in chars if can_encode(char, charset)]

    assert len(kept) > 100
    assert kept == [decoded(encoded(char, charset), charset) for char in kept]


@pytest.mark.parametrize(
    "text,charset,held",
    [
        ("aй€", "latin1", "a?€"),
        ("aй€", "sjis", "aй?"),
        ("😀", "utf8mb3", "?"),
        ("😀", "utf8mb4", "😀"),
        ("é", "ascii", "?"),
        ("Ä", "swe7", "Ä"),
        ("[", "swe7", "?"),
    ],
)
def test_a_question_mark_stands_for_what_a_set_does_not_have(text: str, charset: str, held: str) -> None:
    assert held == fitted(text, charset)


@pytest.mark.parametrize(
    "raw,charset", [(b"\x81", "cp1250"), (b"\xa4", "dec8"), (b"\xff", "utf8mb4"), (b"\x90", "big5")]
)
def test_bytes_that_are_no_characters_are_an_error(raw: bytes, charset: str) -> None:
    with pytest.raises(UnicodeError):
        decoded(raw, charset)
