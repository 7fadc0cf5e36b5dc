"""Text columns by character set: what their bytes become. A byte without a character is an error, never replaced."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.charset_tables import NONE, SINGLE_BYTE, characters
from connectors.readers.binlog.kernels.single_byte import MAX_UTF8_BYTES, single_byte_text
from connectors.readers.binlog.multi_byte import MULTI_BYTE
from connectors.readers.binlog.rows_arrow import Cells, Finish, is_ascii, plain, text_array, utf8
from historian.errors import ValueUnrepresentable

__all__ = ["text_finish"]

_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "ascii"})
_SLACK_BYTES = 8


def text_finish(charset: str) -> Finish:
    """What makes UTF-8 of a column in that *charset*.

    Raises:
        ValueUnrepresentable: a charset that is not read yet.
    """
    if charset in _UTF8:
        return utf8
    if charset == "binary":
        return plain
    if charset in SINGLE_BYTE:
        return _single_byte(charset)
    if charset in MULTI_BYTE:
        return _by_codec(charset, MULTI_BYTE[charset])
    raise ValueUnrepresentable(
        "a character set that is not read yet",
        where=charset,
        expected=sorted({*_UTF8, *SINGLE_BYTE, *MULTI_BYTE}),
        next_step="leave the table out, or convert the column to utf8mb4",
    )


@functools.cache
def _single_byte(charset: str) -> Finish:
    chars = characters(charset)
    words = np.zeros(256, np.int32)
    for byte, char in enumerate(chars):
        if char != NONE:
            encoded = char.encode()
            words[byte] = int.from_bytes(encoded, "little") | len(encoded) << 24
    keeps_ascii = chars.isascii() or chars[:128] == bytes(range(128)).decode("ascii")

    def finish(cells: Cells) -> pa.Array:
        offsets, data = cells.offsets, cells.data
        assert data is not None  # noqa: S101 - a column of varying width
        if keeps_ascii and is_ascii(data):
            return plain(cells)
        results = np.zeros(cells.rows + 1, np.int32)
        text = pa.allocate_buffer(MAX_UTF8_BYTES * data.size + _SLACK_BYTES, resizable=True)
        wrong = single_byte_text(
            words.ctypes.data,
            1 if keeps_ascii else 0,
            offsets.ctypes.data,
            cells.rows,
            data.address,
            results.ctypes.data,
            text.address,
        )
        if wrong >= 0:
            raise _unrepresentable(cells, wrong, bytes(data[offsets[wrong] : offsets[wrong + 1]]), charset)
        text.resize(int(results[-1]))
        buffers = [cells.validity, pa.py_buffer(results), text]
        return pa.Array.from_buffers(pa.string(), cells.rows, buffers, cells.nulls)

    return finish


def _by_codec(charset: str, decode: Callable[[bytes], str]) -> Finish:
    def finish(cells: Cells) -> pa.Array:
        texts: list[str | None] = []
        for row, piece in enumerate(cells.pieces()):
            try:
                texts.append(None if piece is None else decode(piece))
            except UnicodeError:
                raise _unrepresentable(cells, row, piece or b"", charset) from None
        return text_array(texts)

    return finish


def _unrepresentable(cells: Cells, row: int, piece: bytes, charset: str) -> ValueUnrepresentable:
    return ValueUnrepresentable(
        "text with bytes that are no characters of its character set",
        where=cells.place(row),
        expected=charset,
        found=f"bytes {piece[:64].hex()}",
        next_step="mend the value at the source, or declare the column as VARBINARY or BLOB",
    )
