"""How much there is to copy, and which tables take longer to read in one go than the log is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from connectors.backfill.estimates import estimated_rows
from connectors.backfill.keys.split_key import SplitKey
from connectors.backfill.splits import repaired_by_ranges
from connectors.check.result import CheckResult, ok, shortened, warning
from connectors.check.server import ServerView
from connectors.check.settings import retention_s
from connectors.tracking.sources import server_address
from historian.names import TableName
from historian.schema.snapshots import Snapshot

__all__ = ["ROWS_PER_S", "size_checks"]

_ENGINES = """
    SELECT table_schema AS db, table_name AS name, engine AS engine FROM information_schema.tables
    WHERE table_type = 'BASE TABLE' AND engine NOT IN ('InnoDB', 'ROCKSDB', 'TokuDB') ORDER BY 1, 2
"""
ROWS_PER_S = 20_000
"""What a SELECT gives at least, as far as can be said beforehand: wide rows come slower, narrow ones several times as fast."""

_LONG_S = 360
"""A copy that takes less is not worth a word."""


def size_checks(server: ServerView, tables: Sequence[Snapshot]) -> Iterator[CheckResult]:
    """About how many rows *tables* hold. While a SELECT reads a table in one go, the log behind its plan waits unread."""
    rows = estimated_rows(server_address(server.source), [snapshot.name for snapshot in tables])
    kept_s = retention_s(server)
    kept = f"binlogs are kept for {kept_s / 3600:g} hours" if kept_s else "binlogs are kept"
    largest = sorted(rows.items(), key=lambda item: (-item[1], item[0]))
    listed = shortened([f"{name} {count:,}" for name, count in largest])
    total, rate = sum(rows.values()), min(ROWS_PER_S, server.source.backfill.rows_per_s or ROWS_PER_S)
    takes = f", {total / rate / 3600:.1f} hours at {rate:,} a second" if total / rate >= _LONG_S else ""
    yield ok("rows to copy", f"about {total:,}{takes}; {kept}" + (f": {listed}" if listed else ""))
    yield from _without_snapshots(server, {snapshot.name for snapshot in tables})
    for snapshot in tables:
        count = rows.get(snapshot.name, 0)
        if kept_s and count / ROWS_PER_S > kept_s and not repaired_by_ranges(snapshot, server.flavor):
            has_key = snapshot.primary_key or SplitKey.of(snapshot, server.flavor) is not None
            what = "a repair reads all of them" if has_key else "it has no key, so its copy reads all of them"
            found = f"about {count:,} rows; {what} in one SELECT, {count / ROWS_PER_S / 3600:.1f} hours at {ROWS_PER_S:,} a second"
            expected = f"less than the retention: {kept}, and those behind the plan are not read meanwhile"
            mend = "keep binlogs longer" if has_key else "keep binlogs longer, or give the table a key"
            yield warning(f"time to read {snapshot.name}", found, expected, mend)


def _without_snapshots(server: ServerView, names: Collection[TableName]) -> Iterator[CheckResult]:
    """A SELECT of such a table sees changes that are made while it reads."""
    found = [row for row in server.rows(_ENGINES) if TableName(str(row["db"]), str(row["name"])) in names]
    if found:
        listed = shortened([f"{row['db']}.{row['name']} {row['engine']}" for row in found])
        mend = "ALTER TABLE … ENGINE=InnoDB, or let nobody write to these tables while they are copied"
        yield warning("engines", listed, "InnoDB: rows of others that change while they are copied are not exact", mend)
