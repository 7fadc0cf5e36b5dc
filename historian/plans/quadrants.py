"""Rows whose data precede or follow the schema in force: reconciled by column id, skipped, or waited for.

A database that changes schemas online (TiDB) emits rows of the new schema before the statement and rows of the old one after
it. So there are four cases: old or new data under the old or the new schema. TiCDC handles them alike, by column id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import physical_name
from historian.changelog.projection import project
from historian.errors import PositionUnknown, TableStopped, UnknownTable, ValueUnrepresentable
from historian.history.versions import Version
from historian.plans.segments import cuts, retracts
from historian.schema.edits import Edit
from historian.schema.snapshots import Snapshot
from historian.values.texts import initial_scalar

__all__ = ["ReconciledRows", "RowFate", "following", "reconcile"]


class RowFate(Enum):
    """What becomes of rows: they go on, are gone already, or come back when the schema in force has moved on."""

    KEEP = "keep"
    SKIP = "skip"
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconciledRows:
    """``rows`` under the schema in force where they go on, else None; ``reason`` says why they do not, else ""."""

    fate: RowFate
    rows: pa.RecordBatch | None = None
    reason: str = ""


def reconcile(rows: pa.RecordBatch, versions: Sequence[Version], *, written: int, in_force: int) -> ReconciledRows:
    """What rows of version *written* are under version *in_force*.

    Data and schema of one version: the rows as they are. Data that follow: the rows by column id, with the defaults of added
    columns; skipped where the table was truncated or dropped in between. Data that precede: the rows by column id, without
    columns to come and with what dropped ones read when they were added. They wait where that would lose a value, or where
    a truncation, another key or another meaning of values lies ahead. All rows have one fate, so -C and +C stay together.

    Args:
        rows: a chunk's rows, in the columns of their version.
        versions: all of the table, oldest first (:meth:`historian.history.history.History.versions_of`).
        written: number of the timeline entry up to which the rows' writer knew the schema.
        in_force: number of the one up to which the schema has been brought.

    Raises:
        UnknownTable: the table was not there when the rows were written.
        PositionUnknown: the schema is not known at one of the two.
        TableStopped: rows follow a change of the key.
        ValueUnrepresentable: rows that follow a change of a type hold values that the new one cannot.
    """
    held, now = _at(versions, written), _at(versions, in_force)
    if held is None or held.snapshot is None:
        raise UnknownTable("rows of a table that was not there", where=f"version {written}", found=held and held.name)
    if now is None:
        return ReconciledRows(fate=RowFate.WAIT, reason=f"{held.name} is yet to be created")
    crossed = _crossed(versions, held, now)
    gone = any(retracts(edit) for _, edit in crossed)
    if held.number <= now.number:
        if gone or now.snapshot is None:
            return ReconciledRows(fate=RowFate.SKIP, reason=f"the rows went with a statement on {held.name}")
        return ReconciledRows(fate=RowFate.KEEP, rows=following(rows, held.snapshot, now.snapshot))
    if gone or now.snapshot is None:
        return ReconciledRows(fate=RowFate.WAIT, reason=f"{held.name} is yet to be emptied")
    return _preceding(rows, held.snapshot, now.snapshot, crossed)


_Crossed = list[tuple[Snapshot, Edit]]


def _at(versions: Sequence[Version], number: int) -> Version | None:
    """The version that holds at the timeline entry *number*."""
    found = next((version for version in reversed(versions) if version.number <= number), None)
    if found is not None and found.unknown is not None:
        raise PositionUnknown(
            "the table's schema is not known there", where=f"{found.name} at version {number}", found=found.unknown
        )
    return found


def _crossed(versions: Sequence[Version], one: Version, other: Version) -> _Crossed:
    """The edits between two versions, each with the table's schema before its statement."""
    first, last = sorted((one.number, other.number))
    crossed: _Crossed = []
    before: Snapshot | None = None
    for version in versions:
        if first < version.number <= last and before is not None:
            crossed += [(before, edit) for edit in version.edits]
        before = version.snapshot or before
    return crossed


def following(rows: pa.RecordBatch, written: Snapshot, now: Snapshot) -> pa.RecordBatch:
    """*rows* of the schema *written* under a later one: by column id, with the defaults of added columns.

    Raises:
        TableStopped: the later one has another key. Rows that differ by the former key may be one by this one.
        ValueUnrepresentable: a type changed, and cannot hold a value.
    """
    if now.primary_key and {*written.primary_key} != {*now.primary_key}:
        raise TableStopped(
            "rows of another key follow its change",
            where=str(now.name),
            expected=f"the key ({_key(now)})",
            found=f"the key ({_key(written)})",
            next_step="`historian replay` reads the log again, `historian heal` goes on from its end",
        )
    return project(rows, written, now)


def _key(snapshot: Snapshot) -> str:
    held = {column.id: column.name for column in snapshot.columns}
    return ", ".join(held.get(number, "?") for number in snapshot.primary_key)


def _preceding(rows: pa.RecordBatch, written: Snapshot, now: Snapshot, crossed: _Crossed) -> ReconciledRows:
    if written.primary_key != now.primary_key:
        return ReconciledRows(fate=RowFate.WAIT, reason=f"the key of {now.name} is yet to change")
    if any(cuts(edit, before) for before, edit in crossed):
        return ReconciledRows(fate=RowFate.WAIT, reason=f"values of {now.name} are yet to change their meaning")
    for column in written.columns:
        if now.column_by_id(column.id) is None:
            values, first = rows.column(physical_name(column.id)), initial_scalar(column)
            same = pc.equal(values, first) if first.is_valid else pc.is_null(values)
            if not pc.all(pc.fill_null(same, False), min_count=0).as_py():
                return ReconciledRows(
                    fate=RowFate.WAIT, reason=f"{now.name}.{column.name} is yet to be added, and has values"
                )
    try:
        return ReconciledRows(fate=RowFate.KEEP, rows=project(rows, written, now))
    except ValueUnrepresentable as error:
        return ReconciledRows(fate=RowFate.WAIT, reason=str(error))
