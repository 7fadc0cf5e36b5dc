"""MERGE tables: further names of the rows of MyISAM tables, which change through them without row events of their own.

The history does not follow the schema of one. It keeps in :attr:`Catalog.unknown` which tables it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from historian.names import TableName, quoted

__all__ = ["is_merge", "merge_reason", "merged_tables"]

_BEGIN = "it is a MERGE table, whose rows are those of "
_NAME = re.compile(r"`((?:[^`]|``)*)`\.`((?:[^`]|``)*)`")


def merge_reason(tables: Iterable[TableName]) -> str:
    """The reason by which :attr:`Catalog.unknown` tells a MERGE table of *tables*.

    >>> merge_reason([TableName("shop", "orders_2025")])
    'it is a MERGE table, whose rows are those of `shop`.`orders_2025`'
    """
    return _BEGIN + (", ".join(f"{quoted(table.database)}.{quoted(table.table)}" for table in tables) or "no table")


def is_merge(reason: str | None) -> bool:
    """Whether a reason of :attr:`Catalog.unknown` tells a MERGE table."""
    return reason is not None and reason.startswith(_BEGIN)


def merged_tables(reason: str | None) -> tuple[TableName, ...]:
    """The tables whose rows a MERGE table has, by the reason that tells it; () of others."""
    found = _NAME.findall(reason) if reason is not None and is_merge(reason) else ()
    return tuple(TableName(*(name.replace("``", "`") for name in names)) for names in found)
