"""Which tables a foreign key may have changed in a plan's log: its server changes their rows, and does not log that."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from connectors.tracking.copier import CascadingKey, ParentLog
from historian.changelog.operations import Op, physical_name
from historian.plans.plans import version_in

if TYPE_CHECKING:
    import pyarrow as pa

    from connectors.readers.base import Reader
    from historian.schema.snapshots import Snapshot

__all__ = ["ChangedChild", "changed_by_foreign_keys"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedChild:
    """A table whose rows a foreign key may have changed.

    Attributes:
        parent: name of the table whose rows it was.
        is_chained: whether a foreign key may have changed rows of one of its parents too, so that the log does not tell which.
    """

    parent: str
    is_chained: bool


@dataclass(slots=True)
class _Changes:
    """What happened to a parent's rows: whether some went, and names of columns with other values; all of them: ``is_unread``."""

    has_deletes: bool = False
    columns: set[str] = field(default_factory=set)
    is_unread: bool = False


def changed_by_foreign_keys(reader: Reader, log: ParentLog) -> dict[int, ChangedChild]:
    """Tables that *log* may have changed without row events, by id.

    A session without foreign key checks counts as one with them: who lacks no row loses none by a look.

    Raises:
        LogPurged: the log is gone.
    """
    changes = _read(reader, log) if log.tables else {}
    found: dict[int, str] = {}
    while fired := [key for key in log.keys if key.child not in found and _fires(key, changes, log, found)]:
        found |= {key.child: str(key.key.parent) for key in fired}
    chained = {key.child for key in log.keys if not key.parents.isdisjoint(found)}
    return {child: ChangedChild(parent=parent, is_chained=child in chained) for child, parent in found.items()}


def _fires(key: CascadingKey, changes: Mapping[int, _Changes], log: ParentLog, found: Mapping[int, str]) -> bool:
    # What a foreign key did to the parent's own rows is not in the log.
    if not key.names.isdisjoint(log.unread) or not key.parents.isdisjoint(found):
        return True
    for parent in key.parents & changes.keys():
        of_parent = changes[parent]
        # Without names the key references the parent's primary one; any of its columns may be of that.
        changed = of_parent.columns & key.referenced if key.referenced else of_parent.columns
        if of_parent.is_unread or of_parent.has_deletes or (key.key.on_update and changed):
            return True
    return False


def _read(reader: Reader, log: ParentLog) -> dict[int, _Changes]:
    changes = {table.table_id: _Changes() for table in log.tables}
    # A reader of its own: the tracker's keeps the log that it scanned last, which a plan is about to be decoded from.
    with closing(copy.copy(reader)) as own:
        for planned in log.ranges:
            for chunk in own.read(planned, log.tables, stops=True, log=reader.cached(planned)):
                of_table = changes[chunk.table_id]
                if chunk.stopped:
                    of_table.is_unread = True
                    continue
                snapshot = version_in(log.tables, chunk.table_id, chunk.version).snapshot
                ops = chunk.rows.column("op").to_numpy()
                # A change of the primary key is a row that goes, and another that comes.
                of_table.has_deletes |= bool((ops == Op.RETRACT).any())
                of_table.columns |= _changed_columns(chunk.rows, ops, snapshot) if snapshot is not None else set()
    return changes


def _changed_columns(rows: pa.RecordBatch, ops: np.ndarray, snapshot: Snapshot) -> set[str]:
    """Names, in lower case, of the columns that an UPDATE gave another value."""
    before = np.flatnonzero(ops == Op.CORRECT_FROM)
    if not len(before):
        return set()
    found = set()
    for column in snapshot.columns:
        cells = rows.column(physical_name(column.id))
        same = pc.equal(cells.take(before), cells.take(before + 1))
        if not pc.all(pc.fill_null(same, False)).as_py():
            found.add(column.name.lower())
    return found
