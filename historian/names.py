"""Names of tables."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TableName"]


class TableName(NamedTuple):
    """A table's database and name; prints as ``database.table``."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"
