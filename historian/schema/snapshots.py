"""Schemas of tables as values: column types, columns, and the snapshot of one table.

Names and texts are the server's own, as ``information_schema`` prints them, so that a snapshot computed from DDL can be
compared with one captured from a server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field

from historian.names import TableName

__all__ = [
    "ANALYZED",
    "BYTE_TYPES",
    "FUNCTION",
    "GEOMETRIES",
    "INTEGER_TYPES",
    "NO_ROWS",
    "NO_TABLES",
    "SEQUENCE",
    "TEXT_TYPES",
    "TRIGGER",
    "VIEW",
    "Catalog",
    "Column",
    "ColumnType",
    "Database",
    "ForeignKey",
    "Snapshot",
    "UniqueKey",
    "set_text",
]

SEQUENCE = "it is a sequence, not a table"
"""The reason by which :attr:`Catalog.unknown` tells MariaDB's sequences, whose row events are no rows."""

VIEW = "it is a view, not a table"
"""The same of views, whose names no table can have."""

TRIGGER = "it is a trigger, not a table"
"""The same of triggers by which pt-online-schema-change keeps its copy up to date; others have one name by database."""

NO_ROWS = "a table of the engine BLACKHOLE holds no rows of its own"
"""The same of tables whose rows are in the log alone."""

FUNCTION = "it is a stored function, not a table"
"""The same of functions, and of packages that have some: each stands under its name with ``()`` behind, as a table of its name may be there."""

ANALYZED = "it is an ANALYZE TABLE, not a table"
"""The same of what tools for online schema changes do when a shadow is filled."""

NO_TABLES = frozenset((SEQUENCE, VIEW, TRIGGER, FUNCTION, ANALYZED))


BYTE_TYPES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
"""Names of types whose values are bytes."""

TEXT_TYPES = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
"""Names of types whose values are any text."""

INTEGER_TYPES = ("tinyint", "smallint", "mediumint", "int", "bigint")
"""Names of types whose values are integers, by size."""

GEOMETRIES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geomcollection",
)
"""Types of shapes in the order of their numbers; MySQL 5.7 and MariaDB call the last one ``geometrycollection``."""

_SHAPES = frozenset(("int64", "boolean", "binary", "text", "variant"))


def set_text(labels: Iterable[str]) -> str:
    """A SET's value of those *labels*: no comma stands before the first label that is not empty, as ``Field_set::val_str`` has it."""
    text = ""
    for label in labels:
        text = f"{text},{label}" if text else label
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnType:
    """A column's type, in the words of ``information_schema.columns``.

    Attributes:
        name: ``data_type`` in lower case: int, bigint, decimal, varchar, datetime, enum, json, geometry, ...
        length: characters of CHAR/VARCHAR, bytes of BINARY/VARBINARY, bits of BIT, display width of integers where the
            server still prints one (``tinyint(1)``), digits of YEAR. None where the type has none.
        precision, scale: of DECIMAL, and of FLOAT/DOUBLE where both were declared.
        fraction: fractional digits of TIME, DATETIME and TIMESTAMP.
        labels: of ENUM and SET, in order.
        charset, collation: of character types (CHAR, VARCHAR, TEXTs, ENUM, SET); None for all others.
        options: how values are carried, in plans alone and where the user chose it (:mod:`historian.plans.type_options`): words of which
            the first may be a shape; others are policies (:mod:`historian.values.policies`). "" by default.
    """

    name: str
    unsigned: bool = False
    zerofill: bool = False
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    fraction: int = 0
    labels: Annotated[tuple[str, ...], Field(alias="members")] = ()
    charset: str | None = None
    collation: str | None = None
    options: Annotated[str, Field(alias="form")] = ""

    @property
    def shape(self) -> str:
        """The shape that values have instead of the default one; "" where they have that.

        >>> ColumnType(name="date", options="text").shape, ColumnType(name="date", options="error").shape
        ('text', '')
        """
        first = self.options.partition(" ")[0]
        return first if first in _SHAPES else ""

    def __str__(self) -> str:
        if self.labels:
            quoted = ",".join("'" + label.replace("'", "''") + "'" for label in self.labels)
            text = f"{self.name}({quoted})"
        elif self.precision is not None and self.scale is not None:
            text = f"{self.name}({self.precision},{self.scale})"
        elif self.length is not None:
            text = f"{self.name}({self.length})"
        elif self.fraction:
            text = f"{self.name}({self.fraction})"
        else:
            text = self.name
        return text + (" unsigned" if self.unsigned else "") + (" zerofill" if self.zerofill else "")


@lru_cache(maxsize=4096)
def _shared(kind: ColumnType) -> ColumnType:
    """One for all columns of that type: of very many tables that are held in memory few have types of their own."""
    return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a snapshot.

    Attributes:
        id: never reused in a connector; a rename keeps it, drop and re-add gives a new one.
        default: the default's text as ``information_schema.column_default`` prints it; None: no default, or NULL.
        default_is_expression: ``default`` is an expression (CURRENT_TIMESTAMP included), not a literal.
        generated: "virtual", "stored", or None for an ordinary column. A virtual column is in the row image too.
        display_width: of an integer type, where it is neither the type's own nor part of the type and the server prints it.
        initial: what rows written before the column was added read, as the server's text; None: NULL. Set by ADD
            COLUMN.
        initial_known: False where the server computed that value (expression default, AUTO_INCREMENT), so that only the
            server knows it.
        sources: of a generated column: ids of the columns that its expression names, which a rename leaves as they are; empty
            where it names none, or nobody looked (:func:`historian.schema.generated_columns.with_sources`).
        compressed: MariaDB stores its values compressed, and may log them so.
        unversioned: WITHOUT SYSTEM VERSIONING: MariaDB keeps no row from before a change of such columns alone.
    """

    id: int
    name: str
    type: Annotated[ColumnType, AfterValidator(_shared)]
    nullable: bool = True
    default: str | None = None
    default_is_expression: bool = False
    on_update: str | None = None
    auto_increment: bool = False
    generated: str | None = None
    generation_expression: str | None = None
    invisible: bool = False
    initial: str | None = None
    initial_known: bool = True
    display_width: int | None = None
    sources: tuple[int, ...] = ()
    compressed: bool = False
    unversioned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueKey:
    """A key: its name and the ids of its columns in key order.

    Attributes:
        columns: 0 stands for a part that is an expression; never in a unique key of a snapshot's ``unique_keys``.
        prefixes: for each column how many characters or bytes of it the key takes, 0 for all; empty where it takes all of each.
        generated: whether a foreign key brought it. It goes when another key begins with its columns.
    """

    name: str
    columns: tuple[int, ...]
    prefixes: tuple[int, ...] = ()
    generated: bool = False

    def without(self, column_id: int) -> UniqueKey | None:
        """The key when that column is dropped; None where nothing is left of it."""
        if column_id not in self.columns:
            return self
        prefixes = self.prefixes or (0,) * len(self.columns)
        kept = [(column, prefix) for column, prefix in zip(self.columns, prefixes, strict=True) if column != column_id]
        if not kept:
            return None
        left = tuple(prefix for _, prefix in kept)
        columns = tuple(column for column, _ in kept)
        return replace(self, columns=columns, prefixes=left if any(left) else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A foreign key with an action: rows of its table change when those of another do, which not every server logs.

    Attributes:
        name: of the constraint; "" where the server made it up.
        parent: the table that it references, as that was called when the key was made.
        columns: ids of its columns; ``referenced``: names of the parent's, in the same order.
        on_delete, on_update: what becomes of its rows: "cascade", "set null", "set default"; "": nothing.
    """

    name: str
    parent: TableName
    columns: tuple[int, ...]
    referenced: tuple[str, ...]
    on_delete: str = ""
    on_update: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The schema of one table between two edits.

    Attributes:
        table_id: ours, never reused; survives RENAME TABLE; a table dropped and created again gets a new one.
        primary_key: column ids in key order; empty where there is none.
        unique_keys: in the order in which they were made, as far as it is known. Without a primary key the first that is
            over whole columns which cannot be NULL stands for it.
        other_keys: keys that are not unique, or not over columns alone. They decide what an unnamed unique key is
            called, and so which key a later DROP INDEX means.
        charset, collation: the table's defaults, inherited by columns added later.
        system_versioned: MariaDB keeps the rows from before each change in the table, and logs them
            (:mod:`historian.schema.system_versioning`).
        foreign_keys: those with an action. One whose name the server made up stays when it is dropped.
    """

    table_id: int
    name: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[int, ...] = ()
    unique_keys: tuple[UniqueKey, ...] = ()
    other_keys: tuple[UniqueKey, ...] = ()
    charset: str
    collation: str
    system_versioned: bool = False
    foreign_keys: tuple[ForeignKey, ...] = ()

    def column(self, name: str) -> Column | None:
        """The column of that name, compared as the server does, without regard to letter case."""
        wanted = name.lower()
        return next((column for column in self.columns if column.name.lower() == wanted), None)

    def column_by_id(self, column_id: int) -> Column | None:
        """The column with that id, or None."""
        return next((column for column in self.columns if column.id == column_id), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A database's defaults for tables created in it."""

    name: str
    charset: str
    collation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All tracked tables and database defaults at one place of the timeline.

    Attributes:
        tables: by exact name. Treat as immutable: ``apply`` returns a new catalog.
        unknown: tables whose schema is not known since a statement that was not understood, with the reason.
        charset, collation: what the server gives to a database created without its own.
        next_table_id, next_column_id: the counters ids are taken from; column ids are unique over all tables.
    """

    tables: Mapping[TableName, Snapshot] = field(default_factory=dict)
    databases: Mapping[str, Database] = field(default_factory=dict)
    unknown: Mapping[TableName, str] = field(default_factory=dict)
    charset: str = "utf8mb4"
    collation: str = "utf8mb4_0900_ai_ci"
    next_table_id: int = 1
    next_column_id: int = 1

    @property
    def unknown_tables(self) -> dict[TableName, str]:
        """What is in ``unknown`` and may hold rows: no views and the like."""
        return {name: reason for name, reason in self.unknown.items() if reason not in (*NO_TABLES, NO_ROWS)}
