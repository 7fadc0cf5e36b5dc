"""Columns that MariaDB logs and no statement made: the hashes by which it keeps UNIQUE keys that are too long for an index.

They stand behind the table's own columns, one a key, as BIGINT; with all metadata they are called ``DB_ROW_HASH_1`` and so on.
"""

from __future__ import annotations

from collections.abc import Iterator

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.events.table_maps import ColumnCode
from historian.ddl.parsing.charsets import maximum_bytes
from historian.ddl.types.column_types import most_bytes
from historian.schema.snapshots import GEOMETRIES, Snapshot, UniqueKey

__all__ = ["hidden_columns", "named_hidden"]

_PREFIX = "DB_ROW_HASH_"
_SHORTEST_LIMIT_BYTES = 767
"""The least that an engine takes into an index; what of a longer key is hashed depends on engine and row format."""
_UNBOUNDED = ("text", "blob", *GEOMETRIES, "geometrycollection")


def hidden_columns(snapshot: Snapshot, columns: tuple[MappedColumn, ...], flavor: str) -> int:
    """How many of a TABLE_MAP's *columns*, at their end, are hashes of keys of *snapshot*; 0 where what is there can be none."""
    shown = len(snapshot.columns)
    count = len(columns) - shown
    if flavor != "mariadb" or count <= 0:
        return 0
    for column in columns[shown:]:
        if column.type != ColumnCode.LONGLONG or (column.name is not None and not column.name.startswith(_PREFIX)):
            return 0
    surely = sum(_is_hashed(key, snapshot) for key in snapshot.unique_keys)
    perhaps = sum(_is_long(key, snapshot) for key in snapshot.unique_keys)
    return count if surely <= count <= surely + perhaps else 0


def named_hidden(columns: tuple[MappedColumn, ...], flavor: str) -> int:
    """How many of *columns*, at their end, have the names of such hashes."""
    count = 0
    for column in reversed(columns if flavor == "mariadb" else ()):
        if column.name is None or not column.name.startswith(_PREFIX):
            break
        count += 1
    return count


def _is_hashed(key: UniqueKey, snapshot: Snapshot) -> bool:
    """Whether it is over a whole value of a type without a length."""
    kinds = {column.id: column.type.name for column in snapshot.columns}
    return any(not prefix and kinds[column].endswith(_UNBOUNDED) for column, prefix in _parts(key))


def _is_long(key: UniqueKey, snapshot: Snapshot) -> bool:
    kinds = {column.id: column.type for column in snapshot.columns}
    size_bytes = sum(
        prefix * maximum_bytes(kinds[column].charset or "") if prefix else most_bytes(kinds[column])
        for column, prefix in _parts(key)
    )
    return size_bytes > _SHORTEST_LIMIT_BYTES and not _is_hashed(key, snapshot)


def _parts(key: UniqueKey) -> Iterator[tuple[int, int]]:
    return zip(key.columns, key.prefixes or (0,) * len(key.columns), strict=True)
