"""The store's tables. Values are JSON (:mod:`historian.codec`); columns exist for what is searched or unique."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects import mysql

__all__ = ["counts", "facts", "gaps", "leases", "metadata", "plans", "quarantines", "snapshots", "streams", "timeline"]

SCHEMA_FORMAT = 1
"""Raised when a table's meaning changes; a store of another format is refused."""

metadata = MetaData()

# MySQL's default collation would take names that differ in case for one, and its TEXT ends at 64 KiB.
_name = String(255).with_variant(mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
_body = Text().with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")

facts = Table(
    "historian_facts",
    metadata,
    Column("name", _name, primary_key=True),
    Column("body", _body, nullable=False),
)
"""Single values: schema_format, connector, resolved."""

timeline = Table(
    "historian_timeline",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("place", _name, unique=True, nullable=True),
    Column("body", _body, nullable=False),
)
"""Timeline entries; ``place`` is what makes a statement the same when it is read again."""

gaps = Table(
    "historian_gaps",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", _body, nullable=False),
)

snapshots = Table(
    "historian_snapshots",
    metadata,
    Column("digest", _name, primary_key=True),
    Column("body", _body, nullable=False),
)
"""Snapshots that plans refer to, by the SHA-256 of their JSON, so that each is stored once."""

plans = Table(
    "historian_plans",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("body", _body, nullable=False),
)
"""Plans, with digests in place of snapshots."""

quarantines = Table(
    "historian_quarantines",
    metadata,
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("database_name", _name, primary_key=True),
    Column("table_name", _name, primary_key=True),
    Column("body", _body, nullable=False),
)

streams = Table(
    "historian_streams",
    metadata,
    Column("name", _name, primary_key=True),
    Column("body", _body, nullable=False),
)

counts = Table(
    "historian_zero_dates",
    metadata,
    Column("plan", BigInteger, primary_key=True, autoincrement=False),
    Column("table_id", BigInteger, primary_key=True, autoincrement=False),
    Column("column_id", BigInteger, primary_key=True, autoincrement=False),
    Column("amount", BigInteger, nullable=False),
)
"""Zero dates that became NULL, by plan, so that a plan run again counts once."""

leases = Table(
    "historian_leases",
    metadata,
    Column("name", _name, primary_key=True),
    Column("owner", _body, nullable=False),
    Column("token", _name, nullable=False),
    Column("expires_s", Float(53), nullable=False),
)
