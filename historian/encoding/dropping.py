"""Columns cut out of encoded rows that a schema no longer has, without knowing a type."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass

from historian.encoding.kernels.containers import CHECKSUM, MAGIC, POSITIONAL
from historian.encoding.risingwave_values import slices, write_row
from historian.errors import RowCorrupt

__all__ = ["drop_columns"]

_WIDTHS = {1: 1, 2: 2, 3: 4}
_CONTAINER = 0


def drop_columns(row: bytes, valid_ids: Collection[int]) -> bytes:
    """*row* without the columns, and fields of structs within, that have other ids than *valid_ids*.

    Values that stay are copied as they are; the result is what writing the row without those columns gives. Rows of
    RisingWave's form do not say which values are structs, so only their columns go.

    Returns:
        *row* itself, the same object, where there is nothing to drop.

    Raises:
        RowCorrupt: it is no valid row.
    """
    if row[:1] and row[0] & MAGIC == MAGIC:
        if row[0] & CHECKSUM == 0 or zlib.crc32(row[:-4]) != int.from_bytes(row[-4:], "little"):
            raise RowCorrupt("an encoded row has a wrong checksum, or none", found=row[:8].hex())
        trimmed = _drop(row, frozenset(valid_ids))
        return row if trimmed is row else trimmed + zlib.crc32(trimmed).to_bytes(4, "little")
    columns = slices(row, "row")
    kept = {number: data for number, data in columns.items() if number in valid_ids}
    return row if len(kept) == len(columns) else write_row(list(kept), list(kept.values()))


@dataclass(slots=True)
class _Value:
    id: int | None
    is_null: bool
    kind: int
    data: bytes


def _drop(container: bytes, valid_ids: frozenset[int]) -> bytes:
    """A container without what is not valid; the same object where that is nothing; else still to be given its checksum."""
    flags, values = _values(container)
    kept = [value for value in values if value.id is None or value.id in valid_ids]
    changed = len(kept) < len(values)
    for value in kept:
        if value.kind == _CONTAINER and not value.is_null:
            data = _drop(value.data, valid_ids)
            changed |= data is not value.data
            value.data = data
    return _container(flags, kept) if changed else container


def _values(container: bytes) -> tuple[int, list[_Value]]:
    flag = container[0] if container else 0
    wide, far = _WIDTHS.get(flag >> 2 & 3, 0), _WIDTHS.get(flag & 3, 0)
    if flag & MAGIC != MAGIC or not wide or not far:
        raise RowCorrupt("bytes are no encoded row, struct, list or map", found=container[:8].hex())
    limit = len(container) - (4 if flag & CHECKSUM else 0)
    count = int.from_bytes(container[1 : 1 + wide], "little")
    ids_at = 1 + wide
    nulls_at = ids_at if flag & POSITIONAL else ids_at + count * wide
    kinds_at = nulls_at + (count + 7) // 8
    ends_at = kinds_at + (count + 1) // 2
    begin = ends_at + count * far
    ends = _numbers(container[ends_at:begin], far)
    if begin > limit or begin + (ends[-1] if ends else 0) != limit or ends != sorted(ends):
        raise RowCorrupt("bytes are no encoded row, struct, list or map", found=container[:8].hex())
    ids: list[int | None] = [None] * count if flag & POSITIONAL else list(_numbers(container[ids_at:nulls_at], wide))
    values = [
        _Value(
            id=ids[j],
            is_null=bool(container[nulls_at + j // 8] >> j % 8 & 1),
            kind=container[kinds_at + j // 2] >> 4 * (j % 2) & 15,
            data=container[begin + start : begin + end],
        )
        for j, (start, end) in enumerate(zip([0, *ends], ends, strict=False))
    ]
    return flag & (POSITIONAL | CHECKSUM), values


def _numbers(data: bytes, width: int) -> list[int]:
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def _container(flags: int, values: list[_Value]) -> bytes:
    count, nulls, kinds, end = len(values), 0, 0, 0
    ids, ends = [value.id for value in values if value.id is not None], []
    for j, value in enumerate(values):
        nulls |= value.is_null << j
        kinds |= value.kind << 4 * j
        end += len(value.data)
        ends.append(end)
    wide, far = _code(max([count, *ids])), _code(end)
    return b"".join(
        [
            bytes([MAGIC | flags | wide << 2 | far]),
            *(number.to_bytes(_WIDTHS[wide], "little") for number in (count, *ids)),
            nulls.to_bytes((count + 7) // 8, "little"),
            kinds.to_bytes((count + 1) // 2, "little"),
            *(each.to_bytes(_WIDTHS[far], "little") for each in ends),
            *(value.data for value in values),
        ]
    )


def _code(number: int) -> int:
    return 1 if number < 1 << 8 else 2 if number < 1 << 16 else 3
