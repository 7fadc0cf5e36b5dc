"""Which schema was in force at which position: the timeline, its versions, and lookups in them.

Storing it (:mod:`historian.store`) and planning by it (:mod:`historian.plans`) do not belong here.
"""

from historian.history.explain import Explanation, explained
from historian.history.export import HistoryFile, read_history, write_history
from historian.history.history import History
from historian.history.lineage import LineageStep, column_named
from historian.history.online_schema_changes import NO_TOOLS, TOOLS, OnlineChanges
from historian.history.prefix import Prefix, covers, holds
from historian.history.stored_timeline import FULL_EVERY, EditRow, StoredTimeline, digest_of, edit_rows, folded, head_of
from historian.history.timeline import Gap, Horizon, TimelineEntry
from historian.history.versions import Version, touched_names

__all__ = [
    "FULL_EVERY",
    "NO_TOOLS",
    "TOOLS",
    "EditRow",
    "Explanation",
    "Gap",
    "History",
    "HistoryFile",
    "Horizon",
    "LineageStep",
    "OnlineChanges",
    "Prefix",
    "StoredTimeline",
    "TimelineEntry",
    "Version",
    "column_named",
    "covers",
    "digest_of",
    "edit_rows",
    "explained",
    "folded",
    "head_of",
    "holds",
    "read_history",
    "touched_names",
    "write_history",
]
