"""What Debezium calls a table, as a table's name here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from historian.names import TableName

__all__ = ["former_name", "is_by_schema", "is_of_mysql", "schema_name", "table_name"]


def schema_name(connector: Any, database: Any, schema: str) -> str:
    """What stands for the database of a table in *schema*. A connector of SQL Server reads several databases, each with schemas of its own."""
    return f"{database}.{schema}" if connector == "sqlserver" and isinstance(database, str) else schema


def table_name(source: Mapping[str, Any]) -> TableName:
    """The table of an envelope's ``source``: PostgreSQL's and Oracle's by its schema, SQL Server's by both, MongoDB's collection."""
    database, schema = source.get("db"), source.get("schema")
    if isinstance(schema, str):
        database = schema_name(source.get("connector"), database, schema)
    return TableName(str(database or ""), str(source.get("table") or source.get("collection") or ""))


def former_name(source: Mapping[str, Any]) -> TableName | None:
    """What releases before this one called the table, by its database alone; None where that is no other name."""
    found = TableName(str(source.get("db") or ""), str(source.get("table") or source.get("collection") or ""))
    return None if is_of_mysql(source) or found == table_name(source) else found


def is_of_mysql(source: Mapping[str, Any]) -> bool:
    """Whether tables are named by database and table alone, which compiled code compares."""
    return not isinstance(source.get("schema"), str) and source.get("collection") is None


def is_by_schema(source: Mapping[str, Any]) -> bool:
    """Whether tables are named by schema and table alone, as PostgreSQL's and Oracle's are."""
    is_named_so = isinstance(source.get("schema"), str) and source.get("connector") != "sqlserver"
    return is_named_so and source.get("collection") is None
