"""The members of Debezium's envelope, in the order in which connectors write them."""

from __future__ import annotations

__all__ = ["MEMBERS", "SERVER", "SOURCES"]

_SOURCE = (
    "version", "connector", "name", "ts_ms", "snapshot", "db", "sequence", "ts_us", "ts_ns", "table", "server_id", "gtid", "file",
    "pos", "row", "thread", "query",
)  # fmt: skip

MEMBERS = (
    "before",
    "after",
    "source",
    *(f"source.{name}" for name in _SOURCE),
    "transaction",
    "op",
    "ts_ms",
    "ts_us",
    "ts_ns",
)
"""Paths, a dot leading into an object."""

SERVER = "source.server_id"
"""The path of the id of the server that executed a change."""

SOURCES = ("source.gtid", "source.file", "source.pos", "source.row", SERVER)
"""Paths of what says where a change stands in MySQL's log, or MariaDB's."""
