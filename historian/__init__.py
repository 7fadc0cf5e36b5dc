"""The core: positions, schemas, their history, plans and the changelog. No Spark, no server, no lake.

Readers, sinks and whatever opens a connection but a store's do not belong here. Opening a store needs SQLAlchemy, so
it is imported from :mod:`historian.store`; DDL from :mod:`historian.ddl`.

Open to other rooms: ``codec``, ``globs``, ``jit``, ``secret``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from historian.changelog.chunks import Chunk
    from historian.changelog.folding import fold_bag, net_changes
    from historian.changelog.operations import Op
    from historian.changelog.projection import project
    from historian.errors import HistorianError
    from historian.history.history import History
    from historian.history.timeline import Gap, TimelineEntry
    from historian.history.versions import Version
    from historian.names import TableName
    from historian.plans.plans import Plan, Quarantine
    from historian.positions import FilePosition, GtidSet, LogPosition, MariadbGtids
    from historian.positions.places import Place
    from historian.schema.applying import apply, apply_all
    from historian.schema.edits import Edit
    from historian.schema.snapshots import Catalog, Column, ColumnType, Database, Snapshot, UniqueKey

__all__ = [
    "Catalog",
    "Chunk",
    "Column",
    "ColumnType",
    "Database",
    "Edit",
    "FilePosition",
    "Gap",
    "GtidSet",
    "HistorianError",
    "History",
    "LogPosition",
    "MariadbGtids",
    "Op",
    "Place",
    "Plan",
    "Quarantine",
    "Snapshot",
    "TableName",
    "TimelineEntry",
    "UniqueKey",
    "Version",
    "apply",
    "apply_all",
    "fold_bag",
    "net_changes",
    "project",
]

_WHERE = {
    "Catalog": "historian.schema.snapshots",
    "Chunk": "historian.changelog.chunks",
    "Column": "historian.schema.snapshots",
    "ColumnType": "historian.schema.snapshots",
    "Database": "historian.schema.snapshots",
    "Edit": "historian.schema.edits",
    "FilePosition": "historian.positions",
    "Gap": "historian.history.timeline",
    "GtidSet": "historian.positions",
    "HistorianError": "historian.errors",
    "History": "historian.history.history",
    "LogPosition": "historian.positions",
    "MariadbGtids": "historian.positions",
    "Op": "historian.changelog.operations",
    "Place": "historian.positions.places",
    "Plan": "historian.plans.plans",
    "Quarantine": "historian.plans.plans",
    "Snapshot": "historian.schema.snapshots",
    "TableName": "historian.names",
    "TimelineEntry": "historian.history.timeline",
    "UniqueKey": "historian.schema.snapshots",
    "Version": "historian.history.versions",
    "apply": "historian.schema.applying",
    "apply_all": "historian.schema.applying",
    "fold_bag": "historian.changelog.folding",
    "net_changes": "historian.changelog.folding",
    "project": "historian.changelog.projection",
}


def __getattr__(name: str) -> Any:
    """A name is imported once it is asked for: Spark starts a process for each step of a read, and few of them need all of the core."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
