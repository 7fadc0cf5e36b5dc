"""The key by whose order a table is gone through, chunk by chunk."""

from __future__ import annotations

import re
from dataclasses import dataclass

from historian.names import TableName, quoted
from historian.schema.snapshots import INTEGER_TYPES, Column, ColumnType, Snapshot

__all__ = ["SplitKey", "obstacle"]

_TEXTS = frozenset(("char", "varchar"))
_BYTES = frozenset(("binary", "varbinary"))
_ORDERED = frozenset(
    (*INTEGER_TYPES, *_TEXTS, *_BYTES, "bit", "year", "decimal", "date", "datetime", "timestamp", "time", "enum")
) | {"uuid", "inet4", "inet6"}
_OBSTACLES = {
    **dict.fromkeys(("float", "double"), "no literal is surely the number that the server holds"),
    **dict.fromkeys(
        ("tinytext", "text", "mediumtext", "longtext", "tinyblob", "blob", "mediumblob", "longblob"),
        "an index holds only the beginning of its values",
    ),
    "set": "no server searches an index by the order of its numbers",
}
_SEVERAL_CODES = frozenset(("armscii8", "cp932", "eucjpms", "sjis", "ujis"))
"""Sets with characters of several codes, which are at different places of the order: in ``sjis`` the backslash is 5C and 815F.

Of all other sets each code comes back from its text when servers convert it, as compared over all codes.
"""

_UNPADDED = re.compile("nopad|_0900_")
"""MariaDB's collations that tell ``'a'`` from ``'a '``; it has MySQL's under their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitKey:
    """Columns in whose order a table's rows are copied, and the index that has them in that order.

    Attributes:
        table: the table's name in the snapshot that the key is of.
        index: the index's name.
        columns: in key order, as in that snapshot.
    """

    table: TableName
    index: str
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, snapshot: Snapshot, flavor: str) -> SplitKey | None:
        """The primary key, else the first unique key over whole columns which cannot be NULL; None: the table is one chunk.

        A key with a column that :func:`obstacle` names is passed over.

        Args:
            flavor: mysql or mariadb: the source's.
        """
        candidates = [("PRIMARY", snapshot.primary_key)] if snapshot.primary_key else []
        candidates += [(key.name, key.columns) for key in snapshot.unique_keys if not any(key.prefixes)]
        by_id = {column.id: column for column in snapshot.columns}
        for index, ids in candidates:
            columns = tuple(by_id[column_id] for column_id in ids)
            if all(_serves(column, index, flavor) for column in columns):
                return cls(table=snapshot.name, index=index, columns=columns)
        return None

    @property
    def name(self) -> str:
        """The table for FROM; its alias is ``t``."""
        return f"{quoted(self.table.database)}.{quoted(self.table.table)} AS t"

    @property
    def source(self) -> str:
        """The same, to be read by the key's index."""
        return f"{self.name} FORCE INDEX ({quoted(self.index)})"

    def order(self, *, descending: bool = False) -> str:
        """What stands behind ORDER BY."""
        direction = " DESC" if descending else ""
        return ", ".join(f"t.{quoted(column.name)}{direction}" for column in self.columns)

    def keeps_order(self, earlier: SplitKey) -> bool:
        """Whether ranges of *earlier*, a key of the same table before some statements, mean the same under this one.

        True where it is over the same columns, and their types are the same or hold more of the same order. Such are wider
        integers, decimals and VARCHARs, and labels added at an ENUM's end. What a statement did to values is not looked at.
        """
        pairs = list(zip(earlier.columns, self.columns, strict=False))
        same = len(earlier.columns) == len(self.columns) and all(old.id == new.id for old, new in pairs)
        return same and all(_keeps_order(old.type, new.type) for old, new in pairs)


def obstacle(kind: ColumnType, flavor: str) -> str | None:
    """Why a table of such a server cannot be gone through in the order of a column of that type; None where it can."""
    if kind.name not in _ORDERED:
        return _OBSTACLES.get(kind.name, "its values have no order")
    if kind.charset in _SEVERAL_CODES and kind.name != "enum":
        return f"{kind.charset} has characters of several codes, and a row of the log does not say which it was"
    if kind.name == "char" and flavor == "mariadb" and _UNPADDED.search(kind.collation or ""):
        return "MariaDB's indexes order CHAR with blanks at the end, its comparisons without"
    if kind.name == "enum" and ("" in kind.labels or len(set(kind.labels)) < len(kind.labels)):
        return "two of its numbers read as the same label"
    return None


def _serves(column: Column, index: str, flavor: str) -> bool:
    return (index == "PRIMARY" or not column.nullable) and obstacle(column.type, flavor) is None


def _keeps_order(old: ColumnType, new: ColumnType) -> bool:
    if old.name in INTEGER_TYPES:
        return new.name in INTEGER_TYPES
    if old.name == "enum":
        return new.name == "enum" and new.labels[: len(old.labels)] == old.labels
    if old.name in _TEXTS:
        return (old.name, old.charset, old.collation) == (new.name, new.charset, new.collation)
    if old.name == "binary":
        return (old.name, old.length) == (new.name, new.length)
    return old.name == new.name
