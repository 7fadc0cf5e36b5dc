"""Text of kernels against a value at a time: characters of all widths at all places of a word, and wrong bytes among them."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from connectors.readers.binlog.columns.arrays import Cells
from connectors.readers.binlog.columns.charsets import text_finish
from historian.charsets.multi_byte import DOUBLE_BYTE, MULTI_BYTE
from historian.charsets.single_byte import NONE, SINGLE_BYTE, characters
from historian.errors import ValueUnrepresentable

VALUES = 300
MAX_CHARS = 70


def cells(pieces: list[bytes]) -> Cells:
    offsets = np.cumsum([0, *map(len, pieces)]).astype(np.int32)
    return Cells(
        arrow=pa.string(),
        rows=len(pieces),
        validity=None,
        nulls=0,
        values=pa.py_buffer(offsets),
        data=pa.py_buffer(b"".join(pieces)),
        place=lambda row: f"row {row}",
    )


def codes(charset: str) -> dict[bytes, str]:
    """Each code of one or two bytes, and its character."""
    if charset in SINGLE_BYTE:
        return {bytes([byte]): char for byte, char in enumerate(characters(charset)) if char != NONE}
    found = {bytes([byte]): chr(byte) for byte in range(0x80)}
    for lead in range(0x80, 256):
        for code in (bytes([lead]), *(bytes([lead, trail]) for trail in range(0x30, 256))):
            try:
                text = MULTI_BYTE[charset](code)
            except UnicodeError:
                continue
            if len(text) == 1:
                found[code] = text
    return found


@pytest.mark.parametrize("charset", sorted({*SINGLE_BYTE, *DOUBLE_BYTE}))
@pytest.mark.parametrize("ascii_share", [0.0, 0.5, 0.97, 1.0])
def test_text_of_mixed_characters_is_that_of_each_one(charset: str, ascii_share: float) -> None:
    chosen = random.Random(f"{charset} {ascii_share}")
    known = codes(charset)
    low, high = ([code for code in known if (code[0] < 0x80) is is_low] for is_low in (True, False))
    values = [
        [
            chosen.choice(low if not high or chosen.random() < ascii_share else high)
            for _ in range(chosen.randrange(MAX_CHARS))
        ]
        for _ in range(VALUES)
    ]
    found = text_finish(charset)(cells([b"".join(value) for value in values]))
    found.validate(full=True)
    assert found.to_pylist() == ["".join(known[code] for code in value) for value in values]


@pytest.mark.parametrize(
    "charset, wrong", [("gbk", b"\xff\xff"), ("greek", b"\xa4"), ("sjis", b"\x85\x40"), ("ascii", b"\xc3\xa9")]
)
def test_bytes_without_a_character_are_refused_at_every_place(charset: str, wrong: bytes) -> None:
    char = {"gbk": b"\xce\xd2", "greek": b"\xe1", "sjis": b"\xb1", "ascii": b"a"}[charset]
    for before in range(20):
        pieces = [char * 20, char * before + wrong + char * 20]
        with pytest.raises(ValueUnrepresentable, match="row 1"):
            text_finish(charset)(cells(pieces))


@pytest.mark.parametrize("charset", ["gbk", "sjis"])
def test_a_lead_byte_at_the_end_of_a_value_takes_nothing_of_the_next_one(charset: str) -> None:
    with pytest.raises(ValueUnrepresentable, match="row 0"):
        text_finish(charset)(cells([b"plain text\x81", b"\x81\x81"]))


def test_latin1_letters_stand_in_every_place_of_a_word() -> None:
    """All sets of letters above 127 among eight, with a character that Latin-1 does not have behind and between them."""
    words = [
        "".join("\u00c0\u00e9\u00ff\u00a0"[at % 4] if high >> at & 1 else "az09"[at % 4] for at in range(8))
        for high in range(256)
    ]
    texts = [*words, *(f"{word}{word[::-1]}\u20ac{word}abc" for word in words), "".join(words)]
    found = text_finish("latin1")(cells([text.encode("cp1252") for text in texts]))
    found.validate(full=True)
    assert found.to_pylist() == texts
