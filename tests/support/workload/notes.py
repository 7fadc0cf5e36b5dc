"""What a random workload notes: every transaction's GTID and its rows, with the column names they were written under.

Values are the server's own, as Python: integers, YEAR and BIT as int, DECIMAL as Decimal, FLOAT as the double of its
32-bit value, DATE as date, DATETIME and TIMESTAMP (in UTC) as datetime without zone, TIME as microseconds, binary as
bytes, all else as str.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from historian.changelog.operations import Op
from historian.names import TableName

__all__ = [
    "Effect",
    "ExpectedRow",
    "FinalTable",
    "Look",
    "NotedChange",
    "NotedDdl",
    "NotedTransaction",
    "Recorded",
    "Row",
    "expected_rows",
    "key_values",
]

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedChange:
    """One changed row. ``key``: names of the primary key's columns then; empty where the table has none."""

    table: TableName
    before: Row | None
    after: Row | None
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a DDL does to a table's name: created (old is None), dropped (new is None), renamed (both)."""

    old: TableName | None
    new: TableName | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedDdl:
    """A DDL statement. ``vanished``: the rows that a TRUNCATE or DROP took with it, in no order."""

    kind: str
    sql: str
    effects: tuple[Effect, ...] = ()
    vanished: tuple[NotedChange, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedTransaction:
    """A committed transaction: its row changes in the order they were made, or the DDL that it is."""

    gtid: str
    changes: tuple[NotedChange, ...] = ()
    ddl: NotedDdl | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalTable:
    """A table at the end: its lineage, primary key's columns and rows."""

    lineage: int
    key: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All tables as the server held them at one moment on the way, when it had committed *gtids*."""

    gtids: str
    tables: Mapping[TableName, tuple[Row, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A whole workload. ``transactions`` stand in the order of the log, as the server itself lists it."""

    seed: int
    flavor: Literal["mysql", "mariadb"]
    transactions: tuple[NotedTransaction, ...]
    final: Mapping[TableName, FinalTable]
    discarded: Mapping[str, int]
    looks: tuple[Look, ...] = ()

    @property
    def change_count(self) -> int:
        """Committed row changes; an update is one."""
        return sum(len(transaction.changes) for transaction in self.transactions)

    @property
    def ddl_count(self) -> int:
        """DDL statements."""
        return sum(transaction.ddl is not None for transaction in self.transactions)

    def lineages(self) -> dict[int, tuple[TableName, ...]]:
        """Every table that there was, by a number that survives renames: its names, oldest first."""
        names: dict[int, tuple[TableName, ...]] = {}
        for _, lineage_of in walk_lineages(self.transactions):
            for name, lineage in lineage_of.items():
                if names.get(lineage, ())[-1:] != (name,):
                    names[lineage] = (*names.get(lineage, ()), name)
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRow:
    """A changelog row as it must come: of which table, under which name, in which transaction.

    ``key``: the values of its key, in an order that survives DDL; empty where the table has none.
    """

    gtid: str
    lineage: int
    table: TableName
    op: Op
    values: Row
    key: tuple[Any, ...]


def walk_lineages(
    transactions: tuple[NotedTransaction, ...],
) -> list[tuple[NotedTransaction, dict[TableName, int]]]:
    """Each transaction with the tables after its DDL, as a number that survives renames."""
    walked: list[tuple[NotedTransaction, dict[TableName, int]]] = []
    lineage_of: dict[TableName, int] = {}
    fresh = 0
    for transaction in transactions:
        if transaction.ddl is not None and transaction.ddl.effects:
            lineage_of = dict(lineage_of)
            for effect in transaction.ddl.effects:
                if effect.old is None and effect.new is not None:
                    fresh += 1
                    lineage_of[effect.new] = fresh
                elif effect.old is not None:
                    lineage = lineage_of.pop(effect.old)
                    if effect.new is not None:
                        lineage_of[effect.new] = lineage
        walked.append((transaction, lineage_of))
    return walked


def key_values(row: Row, names: tuple[str, ...]) -> tuple[Any, ...]:
    """The values of a row's key, in an order that survives DDL.

    A DDL may change the order of a key's columns, and their names; their types here it leaves alone.
    """
    return tuple(sorted((row[name] for name in names), key=lambda value: type(value).__name__))


def expected_rows(recorded: Recorded, *, vanished: bool = False) -> list[ExpectedRow]:
    """The changelog of a workload in the log's order: an update is -C, +C, and one that changes the key -R, +A.

    With *vanished* the rows that TRUNCATE and DROP took stand as -R at their transaction, in no order among themselves.
    """
    rows: list[ExpectedRow] = []
    before: dict[TableName, int] = {}
    for transaction, after in walk_lineages(recorded.transactions):
        gone = transaction.ddl.vanished if transaction.ddl is not None and vanished else ()
        for change in gone:
            rows.extend(_rows_of(change, transaction.gtid, before[change.table]))
        for change in transaction.changes:
            rows.extend(_rows_of(change, transaction.gtid, after[change.table]))
        before = after
    return rows


def _rows_of(change: NotedChange, gtid: str, lineage: int) -> list[ExpectedRow]:
    ops: tuple[Op, ...]
    if change.before is None:
        ops = (Op.APPEND,)
    elif change.after is None:
        ops = (Op.RETRACT,)
    elif any(change.before[name] != change.after[name] for name in change.key):
        ops = (Op.RETRACT, Op.APPEND)
    else:
        ops = (Op.CORRECT_FROM, Op.CORRECT_TO)
    images = [image for image in (change.before, change.after) if image is not None]
    return [
        ExpectedRow(
            gtid=gtid, lineage=lineage, table=change.table, op=op, values=image, key=key_values(image, change.key)
        )
        for op, image in zip(ops, images, strict=True)
    ]
