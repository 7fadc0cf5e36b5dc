"""The core: positions, table schemas, their edits and history, and the changelog. No Spark, no server, no lake.

Opening a store needs SQLAlchemy, so it is imported from :mod:`historian.store`; DDL from :mod:`historian.ddl`.
"""

from historian.changelog import Op
from historian.chunks import Chunk
from historian.edits import Edit, apply, apply_all
from historian.errors import HistorianError
from historian.fold import fold_bag, net_changes
from historian.history import History
from historian.plans import Place, Plan, Quarantine
from historian.positions import FilePosition, GtidSet, LogPosition, MariadbGtids
from historian.projection import project
from historian.schema import Catalog, Column, ColumnType, Database, Snapshot, TableName, UniqueKey
from historian.timeline import Gap, TimelineEntry
from historian.versions import Version

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
