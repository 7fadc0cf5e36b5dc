"""Schema edits as data; :mod:`historian.schema.applying` applies them.

A DDL statement resolves to a sequence of edits (see ``historian.ddl``). Edits carry ids and whole values, so replaying
them never needs the statement or a parser. JSON: :func:`historian.codec.dump` writes each with its ``kind``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from historian.names import TableName
from historian.schema.gaps import ResumeTable, SkipLog
from historian.schema.snapshots import Column, ColumnType, Database, ForeignKey, Snapshot, UniqueKey

__all__ = [
    "AddColumn",
    "AddUniqueKey",
    "ChangeAttributes",
    "ChangeType",
    "CreateTable",
    "DropColumn",
    "DropDatabase",
    "DropTable",
    "DropUniqueKey",
    "Edit",
    "ForgetTable",
    "MoveColumn",
    "RenameColumn",
    "RenameTable",
    "SetDatabase",
    "SetForeignKeys",
    "SetOtherKeys",
    "SetPrimaryKey",
    "SetSystemVersioning",
    "SetTableCharset",
    "TruncateTable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetDatabase:
    """A database is created, or its defaults change."""

    database: Database
    kind: Literal["set_database"] = "set_database"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDatabase:
    """A database goes. Its tables go by :class:`DropTable` edits before it."""

    name: str
    kind: Literal["drop_database"] = "drop_database"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """A table comes into being, with ids already given to it and its columns."""

    snapshot: Snapshot
    kind: Literal["create_table"] = "create_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropTable:
    """A table goes, with its rows."""

    table: TableName
    table_id: int
    kind: Literal["drop_table"] = "drop_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class TruncateTable:
    """All rows of a table go; the schema stays."""

    table: TableName
    table_id: int
    kind: Literal["truncate_table"] = "truncate_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTable:
    """A table gets another name and keeps its id. Swaps are sequences of these, by a third name."""

    table: TableName
    table_id: int
    new: TableName
    kind: Literal["rename_table"] = "rename_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetTable:
    """A table's schema is not known from here on: a statement on it was not understood."""

    table: TableName
    reason: str
    kind: Literal["forget_table"] = "forget_table"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """A column is added: first where ``after`` is 0, else behind the column with that id."""

    table: TableName
    column: Column
    after: int
    kind: Literal["add_column"] = "add_column"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """A column goes, and leaves the keys it was part of; a key without columns goes too."""

    table: TableName
    column_id: int
    name: str
    kind: Literal["drop_column"] = "drop_column"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """A column gets another name and keeps its id."""

    table: TableName
    column_id: int
    old: str
    new: str
    kind: Literal["rename_column"] = "rename_column"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeType:
    """A column gets another type; the server converts the values that it holds."""

    table: TableName
    column_id: int
    old: ColumnType
    new: ColumnType
    kind: Literal["change_type"] = "change_type"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAttributes:
    """A column changes in what touches no stored value: ``column`` is the whole new one, same id, name and type."""

    table: TableName
    column: Column
    kind: Literal["change_attributes"] = "change_attributes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveColumn:
    """A column moves: first where ``after`` is 0, else behind the column with that id."""

    table: TableName
    column_id: int
    after: int
    kind: Literal["move_column"] = "move_column"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPrimaryKey:
    """The primary key becomes these columns; none: there is no primary key any more."""

    table: TableName
    columns: tuple[int, ...]
    kind: Literal["set_primary_key"] = "set_primary_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddUniqueKey:
    """A unique key is added."""

    table: TableName
    key: UniqueKey
    kind: Literal["add_unique_key"] = "add_unique_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUniqueKey:
    """A unique key goes."""

    table: TableName
    name: str
    kind: Literal["drop_unique_key"] = "drop_unique_key"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetOtherKeys:
    """The keys that are not unique become these."""

    table: TableName
    keys: tuple[UniqueKey, ...]
    kind: Literal["set_other_keys"] = "set_other_keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTableCharset:
    """A table's default charset and collation change; its columns change by :class:`ChangeType`, if at all."""

    table: TableName
    charset: str
    collation: str
    kind: Literal["set_table_charset"] = "set_table_charset"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSystemVersioning:
    """A table of MariaDB's begins or ceases to keep the rows from before each change."""

    table: TableName
    system_versioned: bool
    kind: Literal["set_system_versioning"] = "set_system_versioning"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetForeignKeys:
    """The foreign keys with an action become these."""

    table: TableName
    keys: tuple[ForeignKey, ...]
    kind: Literal["set_foreign_keys"] = "set_foreign_keys"


Edit = Annotated[
    SetDatabase
    | DropDatabase
    | CreateTable
    | DropTable
    | TruncateTable
    | RenameTable
    | ForgetTable
    | ResumeTable
    | SkipLog
    | AddColumn
    | DropColumn
    | RenameColumn
    | ChangeType
    | ChangeAttributes
    | MoveColumn
    | SetPrimaryKey
    | AddUniqueKey
    | DropUniqueKey
    | SetOtherKeys
    | SetTableCharset
    | SetSystemVersioning
    | SetForeignKeys,
    Field(discriminator="kind"),
]
