"""Where rows from before cannot be found by what they are told apart by from then on: a repair writes the table anew there."""

from __future__ import annotations

from dataclasses import replace

from historian.plans.plans import Plan, PlannedTable
from historian.schema.edits import TruncateTable
from historian.schema.snapshots import Snapshot
from sinks.contract.decisions import Decisions
from sinks.contract.locations import TableLocation, TableLocations

__all__ = ["with_new_keys"]


def with_new_keys(plan: Plan, locations: TableLocations) -> Plan:
    """*plan*, as the lake sees it, with its repaired tables emptied by the versions that bring another key.

    So are those without a key by a version that changes values in all rows. A server may have changed or taken away any
    row by such a statement, and only the rows behind it are known.
    """
    tables = tuple(
        _emptied(table, locations[table.table_id]) if table.repairs and table.table_id in locations else table
        for table in plan.tables
    )
    return plan if tables == plan.tables else replace(plan, tables=tables)


def _emptied(table: PlannedTable, location: TableLocation) -> PlannedTable:
    made = Decisions.parse(location.evolved)
    before: Snapshot | None = None
    versions = []
    for version in table.versions:
        after = location.keyed(version.snapshot)
        shown = None if after is None else made.shown(after, version.version)
        edits = version.edits
        if before is not None and shown is not None and _is_other(before, shown, made, version.version):
            edits = (*edits, TruncateTable(table=shown.name, table_id=table.table_id))
        versions.append(replace(version, edits=edits))
        before = shown
    return replace(table, versions=tuple(versions))


def _is_other(before: Snapshot, after: Snapshot, made: Decisions, version: int) -> bool:
    if before.primary_key or after.primary_key:
        return before.primary_key != after.primary_key
    return any(d.version == version and d.action in ("new_column", "repair") for d in made.made)
