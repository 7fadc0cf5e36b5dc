"""The core: positions, schemas, their history, plans and the changelog. No Spark, no server, no lake.

Readers, sinks and whatever opens a connection but a store's do not belong here. Opening a store needs SQLAlchemy, so
it is imported from :mod:`historian.store`; DDL from :mod:`historian.ddl`.

Open to other rooms: ``codec``, ``globs``, ``jit``, ``secret``.
"""

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
