"""A table's columns as the server shows them, inside the transaction that is about to use them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from historian.names import TableName
from workload.notes import Row
from workload.session import Session

__all__ = ["ColumnShape", "Shape", "quoted", "shape_of"]

_TYPE = re.compile(r"(\w+)(?:\((.*)\))?(.*)", re.DOTALL)
_MEMBER = re.compile(r"'((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShape:
    """One column. ``sql_type`` is the type as a DDL can state it again, its charset included."""

    name: str
    type: str
    arguments: str
    unsigned: bool
    charset: str | None
    sql_type: str
    nullable: bool
    default: str | None
    primary: bool
    indexed: bool
    extra: str

    @property
    def stem(self) -> str:
        """The name without its number: what kind of values the column holds. Renames keep it."""
        return self.name.rpartition("_")[0]

    @property
    def auto_increment(self) -> bool:
        return "auto_increment" in self.extra

    @property
    def generated(self) -> bool:
        """Whether the server computes its values, which no statement may write."""
        return "virtual generated" in self.extra or "stored generated" in self.extra

    @property
    def labels(self) -> tuple[str, ...]:
        """Of ENUM and SET."""
        return tuple(label.replace("''", "'") for label in _MEMBER.findall(self.arguments))

    @property
    def numbers(self) -> tuple[int, ...]:
        """Length, or precision and scale."""
        return tuple(int(part) for part in self.arguments.split(",")) if self.arguments else ()

    @property
    def free(self) -> bool:
        """Not part of what rows are found by, so that DDL may drop it and DML change it."""
        return not self.primary and not self.indexed and not self.generated


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A table's columns in order."""

    table: TableName
    columns: tuple[ColumnShape, ...]

    @property
    def sql(self) -> str:
        return f"{quoted(self.table.database)}.{quoted(self.table.table)}"

    @property
    def key(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns if column.primary)

    @property
    def key_columns(self) -> tuple[ColumnShape, ...]:
        return tuple(column for column in self.columns if column.primary)

    @property
    def free(self) -> tuple[ColumnShape, ...]:
        return tuple(column for column in self.columns if column.free)

    @property
    def auto_increment(self) -> bool:
        """Whether the server gives rows their key."""
        return any(column.auto_increment and column.primary for column in self.columns)

    @property
    def owner(self) -> ColumnShape:
        """In a table without a key: the column that says which writer a row belongs to."""
        return next(column for column in self.columns if column.indexed)


def quoted(name: str) -> str:
    """A name as SQL."""
    return "`" + name.replace("`", "``") + "`"


def shape_of(session: Session, table: TableName) -> Shape:
    """The table's columns. Inside a transaction they stay so until its end: the first query takes the metadata lock."""
    sql = f"{quoted(table.database)}.{quoted(table.table)}"
    session.rows(f"SELECT * FROM {sql} LIMIT 0")
    columns = tuple(_column(row) for row in session.rows(f"SHOW FULL COLUMNS FROM {sql}"))
    return Shape(table=table, columns=columns)


def _column(row: Row) -> ColumnShape:
    text = row["Type"]
    match = _TYPE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a column type: {text!r}")
    collation = row["Collation"]
    charset = None if collation is None else collation.partition("_")[0]
    # The server's own default charset need not be told.
    sql_type = text if collation is None else _with_charset(text, collation)
    return ColumnShape(
        name=row["Field"],
        type=match[1],
        arguments=match[2] or "",
        unsigned="unsigned" in match[3],
        charset=charset,
        sql_type=sql_type,
        nullable=row["Null"] == "YES",
        default=row["Default"],
        primary=row["Key"] == "PRI",
        indexed=row["Key"] == "MUL",
        extra=row["Extra"].lower(),
    )


def _with_charset(text: str, collation: str) -> str:
    return f"{text} CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}"
