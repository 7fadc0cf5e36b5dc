"""Rows of a table that values tell, as of the end of a plan: SELECTed by those values, and brought back to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from connectors.backfill.foreign_keys.child_keys import Unbounded
from connectors.backfill.keys.coverage import within
from connectors.backfill.keys.predicates import where, with_values
from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.rewind import rewound
from connectors.backfill.selecting import read_piece
from connectors.backfill.selection import copied_chunk
from connectors.backfill.splits import Piece, repaired_by_ranges
from connectors.backfill.spool import Spool
from connectors.readers.binlog.selected.failures import SelectInterrupted, TableChanged
from connectors.tracking.ranges import SEQUENCE_BITS
from historian.changelog.operations import physical_name
from historian.plans.key_ranges import Key, KeyRange
from historian.plans.row_values import RowValues, has_plain_values, rows_with

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.backfill.changes import TableChanges
    from connectors.backfill.snapshots import SourceSnapshot
    from historian.changelog.row_images import Mask
    from historian.plans.plans import Plan, PlannedTable
    from historian.schema.snapshots import ColumnType, Snapshot

__all__ = ["MOST_CHARACTERS", "CopiedRows", "ToldRows", "of_copied", "plain_key", "read_told"]

MOST_CHARACTERS = 1_000_000
"""Of the conditions of a SELECT: a server takes statements of 4 MB by default (MySQL 5.7), and one has the conditions of those before it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRows:
    """Rows of a table that one of *only* tells, with keys up to *upto* where the table is copied up to there; None: with any key."""

    only: Collection[RowValues]
    upto: Key | None = None


def read_told(
    source: SourceSnapshot,
    flavor: str,
    plan: Plan,
    table: PlannedTable,
    told: ToldRows,
    changes: TableChanges,
    spool: Spool,
    number: int,
) -> tuple[int, int]:
    """Reads the rows of *table* that are *told*, as of the plan's end, into *spool*; how many there are, and their bytes as Arrow.

    Args:
        source: a snapshot that holds the plan's log, in a session of :func:`~connectors.backfill.keys.literals.prepare_session`.
        table: with a primary key; its last version is in force at the plan's end.
        changes: its changes behind the plan, up to the snapshot at least.
        number: of the chunks among all that the plan reads.

    Raises:
        Unbounded: the rows cannot be told so. The spool has none then.
        SourceError: the server refuses a SELECT.
    """
    version, snapshot = table.versions[-1], table.versions[-1].snapshot
    assert snapshot is not None  # noqa: S101 the table is there
    if changes.void:
        raise Unbounded(changes.void)
    types = {column.id: column.type for column in snapshot.columns}
    whole = Piece(table_id=table.table_id, version=version, key=None, range=KeyRange())
    copied = of_copied(snapshot, flavor, told.upto)
    conditions: list[str] = []
    with closing(Spool()) as selected:
        try:
            for at, each in enumerate(told.only):
                columns = [column for i in each.columns if (column := snapshot.column_by_id(i)) is not None]
                condition = with_values(columns, each)
                if len(condition) + sum(map(len, conditions)) > MOST_CHARACTERS:
                    raise Unbounded("long values")
                others = "".join(f" AND ({other}) IS NOT TRUE" for other in conditions)
                piece = replace(whole, condition=f"({condition}){others} AND {copied.where}")
                read_piece(source, flavor, plan, piece, at, selected.add)
                conditions.append(condition)
        except (TableChanged, SelectInterrupted) as error:
            raise Unbounded(str(error).splitlines()[0]) from error
        if any(chunk.stopped for chunk in selected.chunks()):
            raise Unbounded("a value cannot be represented")

        def is_wanted(rows: pa.RecordBatch) -> Mask:
            return rows_with(rows, told.only, types) & copied.has(rows)

        key = tuple(map(physical_name, snapshot.primary_key))

        def batches() -> Iterator[pa.RecordBatch]:
            return (chunk.rows for chunk in selected.chunks())

        sequence, count, size_bytes = number << SEQUENCE_BITS, 0, 0
        for rows in rewound(batches, changes, key, is_wanted, parts=changes.parts):
            if rows.num_rows:
                spool.add(copied_chunk(rows, whole, plan, sequence, count))
                sequence += 1
                count += rows.num_rows
                size_bytes += rows.nbytes
    return count, size_bytes


@dataclass(frozen=True, slots=True)
class CopiedRows:
    """Rows of a table whose keys lie in the range that is copied; key None: all of them."""

    key: SplitKey | None
    range: KeyRange

    @property
    def where(self) -> str:
        """The condition of a SELECT."""
        return "1" if self.key is None else where(self.key, self.range)

    def has(self, rows: pa.RecordBatch) -> Mask:
        """Which of *rows* are of them."""
        return np.ones(rows.num_rows, np.bool_) if self.key is None else within(rows, self.key, self.range, _unasked)


def of_copied(snapshot: Snapshot, flavor: str, upto: Key | None) -> CopiedRows:
    """The rows up to a key of a table that is copied so far; None: all rows.

    Raises:
        Unbounded: the table is copied by another key than its primary one, or in an order that is the server's alone.
    """
    if upto is None:
        return CopiedRows(None, KeyRange())
    if not repaired_by_ranges(snapshot, flavor):
        raise Unbounded("it is being copied, and not in the order of its primary key as targets have it")
    return CopiedRows(SplitKey.of(snapshot, flavor), KeyRange(upto=upto))


def _unasked(question: str) -> NoReturn:
    raise AssertionError(f"keys in a plain order are compared without {question}")


def plain_key(snapshot: Snapshot) -> list[tuple[int, ColumnType]]:
    """Ids and types of the columns of the primary key.

    Raises:
        Unbounded: only the server knows which of its values are equal.
    """
    found = [(column.id, column.type) for i in snapshot.primary_key if (column := snapshot.column_by_id(i)) is not None]
    if not all(has_plain_values(kind) for _, kind in found):
        raise Unbounded("its key's values are compared by the server alone")
    return found
