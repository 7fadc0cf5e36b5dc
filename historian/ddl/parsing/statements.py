"""What a statement says, before it meets a catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from historian.names import TableName

__all__ = [
    "Action",
    "AddColumn",
    "AddKey",
    "AlterColumn",
    "AlterDatabase",
    "AlterTable",
    "ChangeColumn",
    "ChangesRows",
    "CharsetClause",
    "ColumnSpec",
    "ConvertCharset",
    "CreateDatabase",
    "CreateSequence",
    "CreateTable",
    "DefaultSpec",
    "DropColumn",
    "DropDatabase",
    "DropKey",
    "DropTables",
    "KeyKind",
    "KeySpec",
    "NoTable",
    "Position",
    "RenameColumn",
    "RenameKey",
    "RenameTables",
    "RenameTo",
    "Statement",
    "TableOptions",
    "TruncateTable",
    "TypeSpec",
    "Unsupported",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CharsetClause:
    """CHARACTER SET and COLLATE as written, in normal form.

    Attributes:
        charset: "" for ``CHARACTER SET DEFAULT``, None where not said.
        binary: the BINARY attribute of a character type: the byte-wise collation of the charset.
    """

    charset: str | None = None
    collation: str | None = None
    binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeSpec:
    """A type as written, aliases resolved; the charset may still turn it into another.

    Attributes:
        name: the server's ``data_type``.
        length: the first number in parentheses; ``scale`` the second.
        members: labels of ENUM and SET as the client sent them, or the bytes of binary literals
            (:func:`historian.charsets.client_text.declared_label`).
    """

    name: str
    length: int | None = None
    scale: int | None = None
    members: tuple[str | bytes, ...] = ()
    unsigned: bool = False
    zerofill: bool = False
    charset: CharsetClause = CharsetClause()


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultSpec:
    """A DEFAULT clause.

    Attributes:
        kind: "now" stands for CURRENT_TIMESTAMP and its synonyms outside of parentheses.
        text: what a string says, a number or boolean as digits, bytes as ``0x41`` or ``0b1``, the text of an expression.
        fraction: digits of "now".
        literal: for an expression that is nothing but a literal in parentheses: that literal.
        introduced: whether a character set stood before it, so that its bytes count and not its characters; ``raw``: these bytes.
    """

    kind: Literal["null", "string", "number", "bytes", "now", "expression"]
    text: str = ""
    fraction: int = 0
    literal: DefaultSpec | None = None
    introduced: bool = False
    raw: bytes = b""


KeyKind = Literal["primary", "unique", "index", "foreign"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySpec:
    """A key of a table; a column is None where the key part is an expression. ``inline``: said in a column definition.

    ``prefixes``: see :class:`historian.schema.snapshots.UniqueKey`, as written. ``without_overlaps``: the period whose end and start are the
    key's last columns. ``cascades``: of a foreign key, whether it changes rows of its table when others change.
    """

    kind: KeyKind
    columns: tuple[str | None, ...]
    prefixes: tuple[int, ...] = ()
    name: str | None = None
    if_not_exists: bool = False
    inline: bool = False
    without_overlaps: str = ""
    cascades: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSpec:
    """A column definition; what is not said is None or False."""

    name: str
    type: TypeSpec
    nullable: bool | None = None
    default: DefaultSpec | None = None
    on_update: int | None = None
    auto_increment: bool = False
    generated: Literal["virtual", "stored"] | None = None
    generation_expression: str | None = None
    invisible: bool = False
    primary: bool = False
    unique: bool = False
    references: bool = False
    cascades: bool = False

    def keys(self) -> tuple[KeySpec, ...]:
        """The keys that the definition brings with it."""
        if not (self.primary or self.unique or self.references):
            return ()
        flags: tuple[tuple[KeyKind, bool], ...] = (
            ("primary", self.primary),
            ("unique", self.unique),
            ("foreign", self.references),
        )
        return tuple(
            KeySpec(kind=kind, columns=(self.name,), inline=True, cascades=self.cascades and kind == "foreign")
            for kind, is_so in flags
            if is_so
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """CREATE TABLE. ``like`` or ``columns``; ``select``: columns come from a query that the log does not spell out."""

    table: TableName
    if_not_exists: bool = False
    or_replace: bool = False
    like: TableName | None = None
    columns: tuple[ColumnSpec, ...] = ()
    keys: tuple[KeySpec, ...] = ()
    charset: CharsetClause = CharsetClause()
    select: bool = False
    refused: str = ""


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
class AddKey:
    """ADD PRIMARY KEY, UNIQUE, INDEX, FOREIGN KEY."""

    key: KeySpec


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
class Unsupported:
    """An action whose effect on the schema is not followed; ``reason`` is a clause for people."""

    reason: str


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
    | DropKey
    | RenameKey
    | RenameTo
    | ConvertCharset
    | TableOptions
    | ChangesRows
    | Unsupported
)


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
