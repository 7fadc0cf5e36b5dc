"""Rows of a file that a Delta table marks as deleted, by its deletion vector, read in plain Python.

Sources: https://github.com/delta-io/delta/blob/master/PROTOCOL.md#deletion-vector-format,
https://github.com/RoaringBitmap/RoaringFormatSpec
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["deleted_rows"]

_MAGIC = 1681511377
_NO_RUNS, _RUNS = 12346, 12347
_OFFSETS_FROM = 4
"""So many containers, where there are runs, have a list of offsets before them."""
_MOST_IN_LIST = 4096
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = str.maketrans(_Z85, _B85)
_OF_UUID = 20
"""Characters of a UUID in Z85."""


def deleted_rows(table: Path, vector: Mapping[str, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions in the file, from 0, of the rows that are deleted, ascending; *vector* is ``deletionVector`` in the table's log."""
    text = vector["pathOrInlineDv"]
    if vector["storageType"] == "i":
        data = base64.b85decode(text.translate(_FROM_Z85))[: vector["sizeInBytes"]]
    else:
        assert vector["storageType"] == "u", vector
        name = uuid.UUID(bytes=base64.b85decode(text[-_OF_UUID:].translate(_FROM_Z85)))
        file = (table / text[:-_OF_UUID] / f"deletion_vector_{name}.bin").read_bytes()
        at, size = vector.get("offset") or 1, vector["sizeInBytes"]
        data = file[at + 4 : at + 4 + size]
        assert struct.unpack_from(">i", file, at) == (size,)
        assert struct.unpack_from(">I", file, at + 4 + size) == (zlib.crc32(data),)
    magic, maps = struct.unpack_from("<iq", data)
    assert magic == _MAGIC
    reader, found = _Reader(data, 12), [np.empty(0, np.int64)]
    for _ in range(maps):
        high = reader.number("<I") << 32
        found += [low + high for low in _bitmap(reader)]
    rows = np.concatenate(found)
    assert len(rows) == vector["cardinality"]
    return rows


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(form, self._data, self.at)
        self.at += struct.calcsize(form)
        return int(value)

    def array(self, kind: str, count: int) -> np.ndarray[Any, Any]:
        found = np.frombuffer(self._data, kind, count, self.at)
        self.at += found.nbytes
        return found


def _bitmap(reader: _Reader) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """The values of each container of a 32-bit Roaring bitmap."""
    cookie = reader.number("<I")
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        has_runs = np.unpackbits(reader.array("u1", (count + 7) // 8), bitorder="little")[:count].astype(bool)
    else:
        assert cookie == _NO_RUNS, cookie
        count = reader.number("<I")
        has_runs = np.zeros(count, bool)
    keys = reader.array("<u2", 2 * count).reshape(count, 2).astype(np.int64)
    if cookie == _NO_RUNS or count >= _OFFSETS_FROM:
        reader.array("<u4", count)
    for (key, less), is_runs in zip(keys.tolist(), has_runs, strict=True):
        if is_runs:
            runs = reader.array("<u2", 2 * reader.number("<H")).reshape(-1, 2).tolist()
            low = np.concatenate([np.arange(first, first + more + 1) for first, more in runs])
        elif less + 1 <= _MOST_IN_LIST:
            low = reader.array("<u2", less + 1).astype(np.int64)
        else:
            low = np.flatnonzero(np.unpackbits(reader.array("u1", 8192), bitorder="little"))
        yield low + (key << 16)
