"""Partial updates of JSON columns: the diffs of a PARTIAL_UPDATE_ROWS event applied to the document before.

Documents are in MySQL's binary form (sql-common/json_binary.h), diffs in that of ``Json_diff::write_to``
(sql-common/json_diff.cc). A diff is an operation's byte, a path as text, and for all but REMOVE a value. What a diff does is what
``apply_json_diffs`` (sql/json_diff.cc) does. Values that no diff goes through stay the bytes that they are.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from connectors.readers.binlog.events.layout import packed_integer
from connectors.readers.binlog.kernels.text import json_layout as at
from historian.errors import LogCorrupt, ValueUnrepresentable

__all__ = ["patched"]

_REPLACE, _INSERT, _REMOVE = range(3)
_FIXED_BYTES = {at.INT32: 4, at.UINT32: 4, at.INT64: 8, at.UINT64: 8, at.DOUBLE: 8}
_INLINE_SMALL = frozenset((at.LITERAL, at.INT16, at.UINT16))
_INLINE_LARGE = _INLINE_SMALL | {at.INT32, at.UINT32}
_OBJECTS = (at.SMALL_OBJECT, at.LARGE_OBJECT)
_LARGE = (at.LARGE_OBJECT, at.LARGE_ARRAY)
_MOST_LEGS = 100
"""Deeper documents no server makes."""
_LEG = re.compile(r'\.\s*(?:"((?:[^"\\]|\\.)*)"|([^\s."\[\]]+))|\[\s*(?:(last)(?:\s*-\s*(\d+))?|(\d+))\s*\]')


@dataclass(slots=True)
class _Container:
    """An array, or an object with *keys* in the order of the document."""

    keys: list[bytes] | None
    values: list[_Node]


@dataclass(frozen=True, slots=True)
class _Raw:
    """A value as its type and bytes; values that a container holds inline have those bytes."""

    kind: int
    data: bytes


_Node: TypeAlias = "_Container | _Raw"
_Leg: TypeAlias = "bytes | tuple[int, bool]"
"""A member's name, or an array's index and whether it counts from the end."""


def patched(document: bytes, diffs: bytes) -> bytes:
    """*document* with *diffs* applied in order.

    Raises:
        ValueUnrepresentable: a diff's path is not in the document.
        LogCorrupt: bytes that are no diffs, or no document.
    """
    try:
        top = _Container(None, [_raw(document)])
        for operation, path, value in _diffs(diffs):
            _apply(top, operation, path, value)
        kind, data = _packed(top.values[0])
    except (IndexError, struct.error, UnicodeError) as error:
        raise LogCorrupt("a JSON diff does not fit its length", found=f"bytes {diffs[:64].hex()}") from error
    return bytes([kind]) + data


def _diffs(data: bytes) -> Iterator[tuple[int, str, bytes]]:
    place = 0
    while place < len(data):
        operation = data[place]
        length, place = packed_integer(data, place + 1)
        path = data[place : place + length].decode()
        place += length
        value = b""
        if operation > _REMOVE:
            raise IndexError(operation)
        if operation != _REMOVE:
            length, place = packed_integer(data, place)
            value = data[place : place + length]
            place += length
        if place > len(data):
            raise IndexError(place)
        yield operation, path, value


def _legs(path: str) -> list[_Leg]:
    legs: list[_Leg] = []
    place = 1
    if not path.startswith("$"):
        raise _refused(path)
    while place < len(path):
        found = _LEG.match(path, place)
        if found is None:
            raise _refused(path)
        quoted, plain, last, back, index = found.groups()
        if quoted is not None:
            legs.append(_unquoted(quoted).encode())
        elif plain is not None:
            legs.append(plain.encode())
        elif last:
            legs.append((int(back or 0), True))
        else:
            legs.append((int(index), False))
        place = found.end()
    if len(legs) > _MOST_LEGS:
        raise _refused(path)
    return legs


_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def _unquoted(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        code, letter = found.groups()
        return chr(int(code, 16)) if code else _ESCAPES.get(letter, letter)

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", plain, text, flags=re.DOTALL)


def _refused(path: str) -> ValueUnrepresentable:
    return ValueUnrepresentable("a JSON diff that does not fit the document before it", found=f"path {path}")


def _apply(top: _Container, operation: int, path: str, value: bytes) -> None:
    """Applies one diff to the document that stands alone in *top*."""
    legs = _legs(path)
    if operation == _INSERT:
        holder, index = _found(top, legs[:-1], path)
        target = holder.values[index] = _open(holder.values[index])
        if not legs or not isinstance(target, _Container):
            raise _refused(path)
        _insert(target, legs[-1], _raw(value), path)
        return
    holder, index = _found(top, legs, path)
    if operation == _REPLACE:
        holder.values[index] = _raw(value)
        return
    if holder is top:
        raise _refused(path)
    del holder.values[index]
    if holder.keys is not None:
        del holder.keys[index]


def _found(top: _Container, legs: list[_Leg], path: str) -> tuple[_Container, int]:
    """The container that the value at the end of *legs* stands in, and where in it."""
    holder, index = top, 0
    for leg in legs:
        node = holder.values[index] = _open(holder.values[index])
        keys = node.keys if isinstance(node, _Container) else None
        if isinstance(leg, bytes):
            if not isinstance(node, _Container) or keys is None or leg not in keys:
                raise _refused(path)
            holder, index = node, keys.index(leg)
            continue
        cell, from_end = leg
        if not isinstance(node, _Container) or keys is not None:
            # What is no array is its own only cell.
            if cell:
                raise _refused(path)
            continue
        index = len(node.values) - 1 - cell if from_end else cell
        if not 0 <= index < len(node.values):
            raise _refused(path)
        holder = node
    return holder, index


def _insert(holder: _Container, leg: _Leg, value: _Raw, path: str) -> None:
    if isinstance(leg, bytes):
        if holder.keys is None or leg in holder.keys:
            raise _refused(path)
        place = bisect_left([(len(key), key) for key in holder.keys], (len(leg), leg))
        holder.keys.insert(place, leg)
    else:
        if holder.keys is not None:
            raise _refused(path)
        index, from_end = leg
        place = max(len(holder.values) - 1 - index, 0) if from_end else min(index, len(holder.values))
    holder.values.insert(place, value)


# ---- the binary form ------------------------------------------------------------------------------------------------
def _raw(document: bytes) -> _Raw:
    return _Raw(document[0], document[1:])


def _open(node: _Node) -> _Node:
    """A container's own values, each as it stands; anything else as it is."""
    if isinstance(node, _Container) or node.kind > at.LARGE_ARRAY:
        return node
    data, large, with_keys = node.data, node.kind in _LARGE, node.kind in _OBJECTS
    number, width = ("<I", 4) if large else ("<H", 2)
    count = struct.unpack_from(number, data)[0]
    place = 2 * width
    keys: list[bytes] | None = None
    if with_keys:
        keys = []
        for _ in range(count):
            begin = struct.unpack_from(number, data, place)[0]
            length = struct.unpack_from("<H", data, place + width)[0]
            keys.append(data[begin : begin + length])
            place += width + 2
    values: list[_Node] = []
    for _ in range(count):
        kind = data[place]
        inline = data[place + 1 : place + 1 + width]
        if kind in (_INLINE_LARGE if large else _INLINE_SMALL):
            values.append(_Raw(kind, inline))
        else:
            begin = struct.unpack(number, inline)[0]
            values.append(_Raw(kind, data[begin : begin + _size(kind, data, begin)]))
        place += 1 + width
    return _Container(keys, values)


def _size(kind: int, data: bytes, begin: int) -> int:
    """How many bytes a value takes that is not inline."""
    if kind <= at.LARGE_ARRAY:
        number, width = ("<I", 4) if kind in _LARGE else ("<H", 2)
        return int(struct.unpack_from(number, data, begin + width)[0])
    if kind in _FIXED_BYTES:
        return _FIXED_BYTES[kind]
    if kind not in (at.STRING, at.OPAQUE):
        raise IndexError(kind)
    place = begin + (kind == at.OPAQUE)
    length = shift = 0
    while True:
        byte = data[place]
        length |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return place - begin + length


def _packed(node: _Node) -> tuple[int, bytes]:
    """A node's type and bytes; a container that was opened comes in the large form, which holds anything."""
    if isinstance(node, _Raw):
        return node.kind, node.data
    values = [_packed(value) for value in node.values]
    count = len(values)
    keys = node.keys or []
    head = 8 + 6 * len(keys) + 5 * count
    fill = head + sum(map(len, keys))
    names, entries, bodies = [], [], []
    place = head
    for key in keys:
        names.append(struct.pack("<IH", place, len(key)))
        place += len(key)
    for kind, data in values:
        if kind in _INLINE_LARGE:
            # Of numbers that a small container holds inline the sign goes on.
            sign = kind == at.INT16 and len(data) == 2 and data[1] & 0x80
            entries.append(bytes([kind]) + data.ljust(4, b"\xff" if sign else b"\0"))
        else:
            entries.append(struct.pack("<BI", kind, fill))
            bodies.append(data)
            fill += len(data)
    kind = at.LARGE_ARRAY if node.keys is None else at.LARGE_OBJECT
    return kind, b"".join((struct.pack("<II", count, fill), *names, *entries, *keys, *bodies))
