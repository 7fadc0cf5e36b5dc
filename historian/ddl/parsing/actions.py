"""What an ALTER TABLE says, an action each, before it meets a table."""

from __future__ import annotations

from dataclasses import dataclass

from historian.ddl.parsing.definitions import CharsetClause, ColumnSpec, DefaultSpec, KeySpec
from historian.names import TableName

__all__ = [
    "Action",
    "AddColumn",
    "AddKey",
    "AddPeriod",
    "AlterColumn",
    "ChangeColumn",
    "ChangesRows",
    "ConvertCharset",
    "DropColumn",
    "DropForeignKey",
    "DropKey",
    "MergeEngine",
    "MergedTables",
    "Position",
    "RenameColumn",
    "RenameKey",
    "RenameTo",
    "SetSystemVersioning",
    "TableOptions",
    "Unsupported",
    "tells_merge_table",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """FIRST, or AFTER a column."""

    after: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddColumn:
    """ADD [COLUMN]."""

    column: ColumnSpec
    position: Position | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeColumn:
    """CHANGE [COLUMN] old new …, or MODIFY, where both names are the same."""

    old: str
    column: ColumnSpec
    position: Position | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropColumn:
    """DROP [COLUMN]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameColumn:
    """RENAME COLUMN old TO new."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterColumn:
    """ALTER [COLUMN] name: a default (None: DROP DEFAULT) or visibility."""

    name: str
    sets_default: bool = False
    default: DefaultSpec | None = None
    invisible: bool | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPeriod:
    """ADD PERIOD FOR name (start, end): the two columns are never NULL behind it."""

    name: str
    start: str
    end: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddKey:
    """ADD PRIMARY KEY, UNIQUE, INDEX, FOREIGN KEY."""

    key: KeySpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DropForeignKey:
    """DROP FOREIGN KEY."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DropKey:
    """DROP PRIMARY KEY (``name`` is PRIMARY), INDEX, KEY, or CONSTRAINT."""

    name: str
    if_exists: bool = False
    constraint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameKey:
    """RENAME INDEX old TO new."""

    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RenameTo:
    """RENAME [TO|AS] inside ALTER TABLE."""

    table: TableName


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET."""

    charset: CharsetClause


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """[DEFAULT] CHARACTER SET and COLLATE of the table; other options change no schema."""

    charset: CharsetClause


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSystemVersioning:
    """ADD and DROP SYSTEM VERSIONING, and WITH SYSTEM VERSIONING as a table option."""

    system_versioned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """An action whose effect on the schema is not followed; ``reason`` is a clause for people."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeEngine:
    """ENGINE = MERGE: the table has the rows of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTables:
    """UNION: the tables whose rows a MERGE table has. It means nothing to other engines."""

    tables: tuple[TableName, ...]


def tells_merge_table(action: object) -> bool:
    """Whether an option is such as MERGE tables have.

    UNION by itself is: an engine that a session's ``default_storage_engine`` gave a table is not in the log.
    """
    return isinstance(action, MergeEngine) or (isinstance(action, MergedTables) and bool(action.tables))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesRows:
    """An action that keeps the schema and changes rows without row events, some that only the server knows.

    Attributes:
        reason: a clause for people.
        others: further tables whose rows it changes.
        creates: a table with the same columns that it makes of some of the rows.
        drops: a table whose rows it takes over.
        truncates: all rows go.
    """

    reason: str
    others: tuple[TableName, ...] = ()
    creates: TableName | None = None
    drops: TableName | None = None
    truncates: bool = False


Action = (
    AddColumn
    | ChangeColumn
    | DropColumn
    | RenameColumn
    | AlterColumn
    | AddKey
    | AddPeriod
    | DropForeignKey
    | DropKey
    | RenameKey
    | RenameTo
    | ConvertCharset
    | TableOptions
    | ChangesRows
    | MergeEngine
    | MergedTables
    | SetSystemVersioning
    | Unsupported
)
