"""The store's tables. Values are JSON (:mod:`historian.codec`); columns exist for what is searched or unique.

Long values are squeezed (:mod:`historian.store.contents`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.dialects import mysql

__all__ = [
    "NEXT_STEP",
    "SCHEMA_FORMAT",
    "body_type",
    "copied_rows",
    "copies",
    "counts",
    "edits",
    "edits_of_kind",
    "entries",
    "facts",
    "gaps",
    "leases",
    "metadata",
    "name_type",
    "open_copies",
    "passages",
    "plans",
    "progress",
    "quarantines",
    "snapshots",
    "streams",
]

NEXT_STEP = "start the run again; if this comes back, put the store away: `historian run` makes it again from the lake"
"""Of errors that tell of a store which contradicts itself."""

SCHEMA_FORMAT = 5
"""Raised when a table's meaning changes, with a step of :mod:`historian.store.migration` that leads there."""

metadata = MetaData()

# MySQL's default collation would take names that differ in case for one, and its TEXT ends at 64 KiB.
name_type = String(255).with_variant(mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
body_type = Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")

facts = Table(
    "historian_facts",
    metadata,
    Column("name", name_type, primary_key=True),
    Column("body", body_type, nullable=False),
)
"""Single values: schema_format, generation, connector, start, resolved, horizon, log, retry, copy_orders, copies_wait, copies_reading, targets, targets_apart, notifications, messages, and of
each partition a source_mark."""

entries = Table(
    "historian_entries",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("place", name_type, unique=True, nullable=True),
    Column("body", body_type, nullable=False),
    sqlite_with_rowid=False,
)
"""Heads of timeline entries; ``place`` is what makes a statement the same when it is read again."""

edits_of_kind = Index("historian_edits_of_kind", "kind", "number")

edits = Table(
    "historian_edits",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("part", Integer, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, nullable=False),
    Column("database_name", name_type, nullable=False),
    Column("table_name", name_type, nullable=False),
    Column("kind", name_type, nullable=False),
    Column("column_id", BigInteger, nullable=False),
    Column("body", body_type, nullable=False),
    Column("snapshot", name_type, nullable=True),
    Index("historian_edits_of_table", "table_id", "number"),
    Index("historian_edits_of_name", "database_name", "table_name"),
    edits_of_kind,
    sqlite_with_rowid=False,
)
"""What each entry changes, an edit a row, as :class:`historian.history.stored_timeline.EditRow` says."""

gaps = Table(
    "historian_gaps",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", body_type, nullable=False),
)

snapshots = Table(
    "historian_snapshots",
    metadata,
    Column("digest", name_type, primary_key=True),
    Column("body", body_type, nullable=False),
)
"""Full schemas that edits and plans refer to, by the SHA-256 of their JSON, so that each is stored once."""

plans = Table(
    "historian_plans",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("body", body_type, nullable=False),
)
"""Plans, with digests in place of snapshots."""

quarantines = Table(
    "historian_quarantines",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("database_name", name_type, primary_key=True),
    Column("table_name", name_type, primary_key=True),
    Column("body", body_type, nullable=False),
)

streams = Table(
    "historian_streams",
    metadata,
    Column("name", name_type, primary_key=True),
    Column("body", body_type, nullable=False),
)

progress = Table(
    "historian_progress",
    metadata,
    Column("name", name_type, primary_key=True),
    Column("plan", BigInteger, nullable=False),
)
"""The last plan that each stream has behind it for good; the name of a stream of many tables is empty."""

counts = Table(
    "historian_zero_dates",
    metadata,
    Column("plan", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("column_id", BigInteger, primary_key=True, autoincrement=False),
    Column("amount", BigInteger, nullable=False),
)
"""Values that became NULL, zero dates and others, by plan, so that a plan run again counts once."""

copies = Table(
    "historian_copies",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("body", body_type, nullable=False),
)
"""How far each table is copied from the source (:class:`historian.store.copies.CopyProgress`)."""

open_copies = Table(
    "historian_open_copies",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
)
"""The tables among these whose copy is not done, so that nobody need read the others to find them."""

copied_rows = Table(
    "historian_copied_rows",
    metadata,
    Column("plan", BigInteger, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb"), nullable=False),
)
"""The rows that plans copy which are not written yet: a chunk each, as Arrow IPC."""

passages = Table(
    "historian_passages",
    metadata,
    Column("part", name_type, primary_key=True),
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("first_offset", BigInteger, primary_key=True, autoincrement=False),
    Column("version", BigInteger, nullable=False),
)
"""Of topics: from which offset on rows of a table in a partition are of which version, as plans have it."""

leases = Table(
    "historian_leases",
    metadata,
    Column("name", name_type, primary_key=True),
    Column("owner", body_type, nullable=False),
    Column("token", name_type, nullable=False),
    Column("expires_s", Float(53), nullable=False),
)
