"""Names of tables, and names as statements write them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TableName", "quoted"]


class TableName(NamedTuple):
    """A table's database and name; prints as ``database.table``."""

    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def quoted(self) -> str:
        """Both parts in backticks, with a dot between."""
        return f"{quoted(self.database)}.{quoted(self.table)}"


def quoted(name: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
