"""Where the chunks of a table of 50 million rows end, on a live MySQL 9 server: all of them, as plans ask for them one after the other.

The key is sparse and skewed, so that its numbers alone do not tell. Each chunk's rows are counted afterwards. ``plan_s``: seconds for all
bounds. Run: ``python benchmarks/backfill_planning.py [--rows 50000000]``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import address, report

from connectors.backfill.keys.boundaries import boundaries
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.split_key import SplitKey
from connectors.config import CopyLimits
from databases.servers import start_server
from logs.decoder_lab import capture

if TYPE_CHECKING:
    from databases.servers import Server
    from historian.plans.key_ranges import Key

STEP = 1_000_000
FILL = """
INSERT INTO bench.huge WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n + 1 < {last})
SELECT FLOOR(POW(n, 1.2)) FROM s
"""


def fill(server: Server, rows: int) -> None:
    """Makes the table."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
        cursor.execute("CREATE TABLE bench.huge (id BIGINT UNSIGNED PRIMARY KEY)")
        for first in range(0, rows, STEP):
            cursor.execute(FILL.format(first=first, last=min(rows, first + STEP)))
            connection.commit()
        cursor.execute("ANALYZE TABLE bench.huge")


def planned(server: Server) -> tuple[float, list[Key]]:
    """Seconds, and all bounds."""
    limits = CopyLimits()
    key = SplitKey.of(capture(server, "bench", "huge"), "mysql")
    if key is None:
        raise SystemExit("expected a key to split by")
    found: list[Key] = []
    begin = time.perf_counter()
    after: Key | None = None
    while True:
        with closing(address(server).connect()) as connection:
            prepare_session(connection)
            bounds = boundaries(connection, key, after, rows=limits.chunk_rows, count=limits.connections)
        found += [bound for bound in bounds if bound is not None]
        if bounds[-1] is None:
            return time.perf_counter() - begin, found
        after = bounds[-1]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=50_000_000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        settings = ("innodb_buffer_pool_size=3G", "skip_log_bin", "innodb_flush_log_at_trx_commit=0")
        server = start_server("mysql9", Path(directory) / "server", *settings)
        try:
            fill(server, chosen.rows)
            seconds, bounds = planned(server)
            counts = [
                server.sql(f"SELECT COUNT(*) FROM bench.huge WHERE id > {low} AND id <= {high}")[0][0]
                for (low,), (high,) in zip([(-1,), *bounds], bounds, strict=False)
            ]
        finally:
            server.kill()
    print(f"{len(bounds) + 1} chunks; rows of all but the last: {min(counts):,} to {max(counts):,}")
    report([{"name": "plan_s", "value": round(seconds, 2), "unit": "s"}])


if __name__ == "__main__":
    main()
