"""Repairs and copies that go range by range: what the statements of a plan's log make of one that is under way."""

from __future__ import annotations

from dataclasses import replace

from connectors.backfill.keys.split_key import SplitKey
from historian.plans.plans import PlannedTable, Quarantine, TableCopy
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Snapshot

__all__ = ["repaired_behind"]

_KEY_CHANGED = "the key by whose ranges the table is repaired has changed before it was repaired whole"
_COPIED_KEY_CHANGED = "the key in whose order its rows are copied has changed before all of them were"


def repaired_behind(table: PlannedTable, copy: TableCopy, flavor: str) -> tuple[PlannedTable, TableCopy]:
    """*table* and its *copy* as they are with the plan, before anything of it is read.

    Where rows were lost sight of, the repair begins anew: those up to its frontier may have changed meanwhile. Where the key changes, the
    table stops until another repair. That one has the statement in its own plan, so that targets are emptied by it.

    Args:
        table: its part of the plan.
        copy: of a repair, or a first one, with how far it is before the plan.
        flavor: mysql or mariadb: the source's.
    """
    if copy.repairs and any(isinstance(edit, ResumeTable) for version in table.versions for edit in version.edits):
        copy = replace(copy, key=(), behind=None, upto=None)
    at = _new_key(table, copy, flavor) if copy.behind is not None else None
    if at is None:
        return table, copy
    changed = table.versions[at]
    assert changed.place is not None  # noqa: S101 - the first version has none at most
    why = _KEY_CHANGED if copy.repairs else _COPIED_KEY_CHANGED
    reason = f"{why}: {changed.statement}\n  at: {changed.place}"
    stop = Quarantine(place=changed.place, reason=reason, repairable=True)
    stopped = replace(table, versions=table.versions[:at], quarantine=stop)
    return stopped, replace(copy, upto=copy.behind, is_done=False, clears=None)


def _new_key(table: PlannedTable, copy: TableCopy, flavor: str) -> int | None:
    """Which version of the table is the first one by whose key the frontier means nothing, before all rows go."""
    before = _key(table.versions[0].snapshot, flavor)
    for at, version in enumerate(table.versions):
        if version.snapshot is None or (copy.clears is not None and version.segment >= copy.clears):
            return None
        after = _key(version.snapshot, flavor)
        if at and (before is None or after is None or not after.keeps_order(before)):
            return at
    return None


def _key(snapshot: Snapshot | None, flavor: str) -> SplitKey | None:
    return None if snapshot is None else SplitKey.of(snapshot, flavor)
