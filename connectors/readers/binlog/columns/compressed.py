"""Columns that MariaDB keeps compressed: what their values say once they are unpacked.

Format: ``Field_longstr::compress`` in MariaDB's sql/field.cc. The empty value is no bytes. Else a first byte of 0 stands
before plain data, and one from 0x81 on before deflated data. Its lowest three bits are how many bytes the plain length has,
which follows with the highest byte first, and 8 says that the deflated data have no zlib header.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pyarrow as pa

from connectors.readers.binlog.columns.arrays import Cells, Finish
from historian.errors import ValueUnrepresentable

__all__ = ["unpacked"]

_PLAIN, _ZLIB, _RAW, _LENGTH_BYTES = 0, 0x80, 8, 7
_KIND = 0xF0
_MAX_BYTES = 2**31 - 1
"""Of one column's values in a chunk, as Arrow's texts have them."""


def unpacked(finish: Finish) -> Finish:
    """What *finish* makes of the unpacked values.

    It raises :class:`ValueUnrepresentable` where a value cannot be unpacked.
    """

    def finish_unpacked(cells: Cells) -> pa.Array:
        pieces: list[bytes] = []
        for row, piece in enumerate(cells.pieces()):
            try:
                pieces.append(_plain(piece or b""))
            except (ValueError, zlib.error) as error:
                raise ValueUnrepresentable(
                    "a compressed value that cannot be unpacked",
                    where=cells.place(row),
                    expected="a method and length that MariaDB writes, and deflated data of that length",
                    found=f"{error}; bytes {(piece or b'')[:64].hex()}",
                    next_step="choose null_and_count or dead_letter as types.invalid_compressed",
                ).because("invalid_compressed") from None
        offsets = np.zeros(cells.rows + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
        if offsets[-1] > _MAX_BYTES:
            raise ValueUnrepresentable(
                "compressed values that are too long together once they are unpacked",
                where=cells.place(0),
                expected=f"at most {_MAX_BYTES} bytes in {cells.rows} rows",
                found=int(offsets[-1]),
                next_step="ALTER TABLE ... MODIFY the column without COMPRESSED",
            )
        plain = replace(cells, values=pa.py_buffer(offsets.astype(np.int32)), data=pa.py_buffer(b"".join(pieces)))
        return finish(plain)

    return finish_unpacked


def _plain(piece: bytes) -> bytes:
    if not piece or piece[0] == _PLAIN:
        return piece[1:]
    first = 1 + (piece[0] & _LENGTH_BYTES)
    if piece[0] & _KIND != _ZLIB or first == 1:
        raise ValueError(f"method {piece[0]:#x}")
    length = int.from_bytes(piece[1:first], "big")
    wbits = -zlib.MAX_WBITS if piece[0] & _RAW else zlib.MAX_WBITS
    # One byte more than there should be, so that data of another length are seen without being unpacked.
    found = zlib.decompressobj(wbits).decompress(piece[first:], length + 1)
    if len(found) != length:
        raise ValueError(f"expected {length} bytes, unpacked {len(found)} or more")
    return found
