"""What a statement says, before it meets a catalog."""

from __future__ import annotations

from dataclasses import dataclass

from historian.ddl.parsing.actions import Action
from historian.ddl.parsing.definitions import CharsetClause, ColumnSpec, KeySpec
from historian.names import TableName

__all__ = [
    "AlterDatabase",
    "AlterTable",
    "CreateDatabase",
    "CreateSequence",
    "CreateTable",
    "DropDatabase",
    "DropTables",
    "NoTable",
    "RenameTables",
    "Statement",
    "TruncateTable",
]

_NO_CLAUSE = CharsetClause()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE. ``like`` or ``columns``; ``select``: columns come from a query that the log does not spell out.

    ``system_versioned``: as a table option or in a column's definition.
    ``merged``: tables whose rows a MERGE table has; None: it has another engine.
    """

    table: TableName
    if_not_exists: bool = False
    or_replace: bool = False
    like: TableName | None = None
    columns: tuple[ColumnSpec, ...] = ()
    keys: tuple[KeySpec, ...] = ()
    charset: CharsetClause = _NO_CLAUSE
    select: bool = False
    refused: str = ""
    merged: tuple[TableName, ...] | None = None
    system_versioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTable:
    """ALTER TABLE, CREATE INDEX and DROP INDEX; actions that change nothing we keep are left out.

    ``ignore``: of rows that have one new key all but one go, without row events.
    """

    table: TableName
    actions: tuple[Action, ...]
    if_exists: bool = False
    ignore: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTables:
    """DROP TABLE."""

    tables: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTables:
    """RENAME TABLE: pairs of old and new, done one after the other."""

    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTable:
    """TRUNCATE [TABLE]."""

    table: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSequence:
    """CREATE SEQUENCE of MariaDB; with ``or_replace`` it takes the place of a table of that name."""

    name: TableName
    or_replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTable:
    """CREATE or DROP of what is no table, but takes a name of one or tells of one.

    Attributes:
        names: those that it makes or drops.
        reason: what it makes, one of :data:`historian.schema.snapshots.NO_TABLES`; "": it drops.
    """

    names: tuple[TableName, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateDatabase:
    """CREATE DATABASE."""

    name: str
    charset: CharsetClause
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterDatabase:
    """ALTER DATABASE."""

    name: str
    charset: CharsetClause


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """DROP DATABASE."""

    name: str
    if_exists: bool = False


Statement = (
    CreateTable
    | AlterTable
    | DropTables
    | RenameTables
    | TruncateTable
    | CreateSequence
    | NoTable
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
)
