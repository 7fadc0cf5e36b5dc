"""Why a table looks as it does at a position: the statement behind it, and what that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from historian.schema.diff import Difference, diff

if TYPE_CHECKING:
    from historian.history.history import History
    from historian.history.versions import Version
    from historian.names import TableName
    from historian.positions import LogPosition
    from historian.schema.snapshots import Snapshot

__all__ = ["Explanation", "explain", "explained"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What made a version, and from what.

    Attributes:
        version: the version; its ``entry`` has statement, database, time, server and place.
        before: the table's schema until then; None where there was none, or none that was known.
        changes: what led from there to the version's schema, see :class:`historian.schema.diff.Difference`; "captured" for a
            table that was read from a database, "unknown" where a statement was not understood. Empty where only rows
            changed, as with TRUNCATE.
    """

    version: Version
    before: Snapshot | None
    changes: tuple[Difference, ...]


def explain(
    history: History, table: TableName, position: LogPosition, ordinal: int | None = None, gtid: str | None = None
) -> Explanation:
    """What made the schema that *table* has at *position*; arguments and errors as :meth:`History.at`."""
    return explained(history, history.at(table, position, ordinal, gtid))


def explained(history: History, version: Version) -> Explanation:
    """What made that version of the history."""
    earlier = [known for known in history.versions_of(version.table_id) if known.number < version.number]
    before = earlier[-1].snapshot if earlier else None
    return Explanation(version=version, before=before, changes=_changes(before, version))


def _changes(before: Snapshot | None, version: Version) -> tuple[Difference, ...]:
    if version.unknown is not None:
        return (Difference(change="unknown", before=str(version.name), after=version.unknown),)
    if before is None and version.entry.place is None:
        return (Difference(change="captured", after=str(version.name)),)
    return diff(before, version.snapshot)
