"""Text columns by character set: what their bytes become. A byte without a character is an error, never replaced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish, is_ascii, plain, text_array, utf8
from connectors.readers.binlog.kernels.text.double_byte import LEAD, double_byte_text
from connectors.readers.binlog.kernels.text.latin1 import CAN_SHUFFLE, STORED_BYTES, shuffles
from connectors.readers.binlog.kernels.text.single_byte import MAX_UTF8_BYTES, high_bytes, single_byte_text
from historian.charsets.multi_byte import DOUBLE_BYTE, MULTI_BYTE
from historian.charsets.single_byte import NONE, SINGLE_BYTE, characters
from historian.errors import ValueUnrepresentable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["text_finish"]

_SLACK_BYTES = STORED_BYTES
_UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8"})


def text_finish(charset: str) -> Finish:
    """What makes UTF-8 of a column in that *charset*.

    Raises:
        ValueUnrepresentable: a charset that is not read yet.
    """
    if charset in _UTF8:
        return utf8
    if charset == "binary":
        return plain
    if charset == "ascii":
        return _ascii
    if charset in SINGLE_BYTE:
        return _single_byte(charset)
    if charset in DOUBLE_BYTE:
        return _double_byte(charset)
    if charset in MULTI_BYTE:
        return _by_codec(charset, MULTI_BYTE[charset])
    raise ValueUnrepresentable(
        "a character set that is not read yet",
        where=charset,
        expected=sorted({*_UTF8, "ascii", *SINGLE_BYTE, *MULTI_BYTE}),
        next_step="leave the table out, or convert the column to utf8mb4",
    )


def _ascii(cells: Cells) -> pa.Array:
    """A column of this set takes any bytes that come as ``binary``; a server shows those from 128 on as question marks."""
    if not is_ascii(cells.data):
        row, piece = next((row, piece) for row, piece in enumerate(cells.pieces()) if piece and not piece.isascii())
        raise _unrepresentable(cells, row, piece, "ascii")
    return plain(cells)


@functools.cache
def _single_byte(charset: str) -> Finish:
    chars = characters(charset)
    words = np.zeros(256, np.int32)
    for byte, char in enumerate(chars):
        if char != NONE:
            encoded = char.encode()
            words[byte] = int.from_bytes(encoded, "little") | len(encoded) << 24
    # Two at a time: the second one's bytes behind the first one's, their numbers added.
    lengths, letters = (words >> 24).astype(np.int64), (words & 0xFFFFFF).astype(np.int64)
    both = letters[None, :] | letters[:, None] << 8 * lengths[None, :] | (lengths[:, None] + lengths[None, :]) << 56
    pairs = np.where((words[:, None] != 0) & (words[None, :] != 0), both, 0)
    is_latin1 = CAN_SHUFFLE and chars[:128] + chars[0xA0:] == bytes((*range(128), *range(0xA0, 256))).decode("latin-1")
    runs = shuffles() if is_latin1 else None
    keeps_ascii = chars.isascii() or chars[:128] == bytes(range(128)).decode("ascii")

    def finish(cells: Cells) -> pa.Array:
        offsets, data = cells.offsets, cells.data
        assert data is not None  # noqa: S101 - a column of varying width
        longer = high_bytes(data.address, data.size) if keeps_ascii else data.size
        if longer == 0:
            return plain(cells)
        results = np.zeros(cells.rows + 1, np.int32)
        # Memory far above what is used would be copied when it is given back.
        text = pa.allocate_buffer(data.size + (MAX_UTF8_BYTES - 1) * longer + _SLACK_BYTES, resizable=True)
        wrong = single_byte_text(
            words.ctypes.data,
            pairs.ctypes.data,
            0 if runs is None else runs.ctypes.data,
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


@functools.cache
def _pair_tables(charset: str) -> tuple[NDArray[np.int32], NDArray[np.int32], bool]:
    """The tables of :mod:`kernels.double_byte`, of what the codec makes of each byte and each pair.

    The last says whether no byte from 128 on stands alone.
    """
    decode = MULTI_BYTE[charset]
    singles, pairs = np.zeros(256, np.int32), np.zeros(65536, np.int32)
    for byte in range(256):
        singles[byte] = _utf8_word(decode, bytes([byte])) or LEAD
    for lead in np.flatnonzero(singles == LEAD).tolist():
        for trail in range(256):
            pairs[trail << 8 | lead] = _utf8_word(decode, bytes([lead, trail]))
    return singles, pairs, bool((singles[128:] == LEAD).all())


def _utf8_word(decode: Callable[[bytes], str], code: bytes) -> int:
    """UTF-8 bytes of one character and, in the top byte, their number; 0 where the code is none."""
    try:
        encoded = decode(code).encode()
    except UnicodeError:
        return 0
    return int.from_bytes(encoded, "little") | len(encoded) << 24 if len(encoded) <= MAX_UTF8_BYTES else 0


@functools.cache
def _double_byte(charset: str) -> Finish:
    by_codec = _by_codec(charset, MULTI_BYTE[charset])

    def finish(cells: Cells) -> pa.Array:
        data = cells.data
        assert data is not None  # noqa: S101 - a column of varying width
        if is_ascii(data):
            return plain(cells)
        singles, pairs, all_lead = _pair_tables(charset)
        results = np.zeros(cells.rows + 1, np.int32)
        # Three bytes of two, where only a pair makes as many.
        longest = (3 * data.size + 1) // 2 if all_lead else MAX_UTF8_BYTES * data.size
        text = pa.allocate_buffer(longest + _SLACK_BYTES, resizable=True)
        tables, offsets = (singles.ctypes.data, pairs.ctypes.data, int(all_lead)), cells.offsets.ctypes.data
        if double_byte_text(*tables, offsets, cells.rows, data.address, results.ctypes.data, text.address) >= 0:
            # Codes of more than two bytes, and those that are none.
            return by_codec(cells)
        text.resize(int(results[-1]))
        return pa.Array.from_buffers(
            pa.string(), cells.rows, [cells.validity, pa.py_buffer(results), text], cells.nulls
        )

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
    ).because("invalid_text")
