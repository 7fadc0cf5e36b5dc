"""The source's side of `historian verify`, by checksums that the server computes and by values that are read, on one live MySQL 9 server in turn.

Each half of an integer key goes over a connection of its own, without TLS. By values: rows are read into Arrow as a copy reads them, and
fingerprinted as verify does. By checksums: the server makes one text of each row and sums numbers of it, so that a half is one row of the result.
CRC32 gives 32 bits of a row, a part of SHA-256 gives 64 as the fingerprints have. What verify does with the targets is the same for
both, at least: they would have to be printed just as the server prints them, too.

``checksum_vs_values``: seconds of CRC32 through those by values; ``checksum_64_vs_values``: of SHA-256. CPU seconds of this process and of the
server are printed.
Run: ``python benchmarks/verify_checksums.py [--rounds 3] [--rows 2000000]``.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow as pa
from backfill_rows import COLUMNS, CONNECTIONS, on_both
from binlog_work import address, report
from drain import CpuMeter
from orders import create_orders, fill_orders

from databases.servers import start_server
from historian.changelog.fingerprints import Fingerprints
from historian.changelog.operations import physical_name
from logs.decoder_lab import capture

if TYPE_CHECKING:
    from databases.servers import Server
    from historian.changelog.chunks import Chunk
    from historian.schema.snapshots import Snapshot

ROW = f"CONCAT_WS('|', {', '.join(f'IFNULL({name}, _binary 0x00)' for name in COLUMNS.split(', '))})"
CHECKSUMS = {
    "checksum_vs_values": f"SUM(CRC32({ROW}))",
    "checksum_64_vs_values": f"BIT_XOR(CAST(CONV(LEFT(SHA2({ROW}, 256), 16), 16, 10) AS UNSIGNED))",
}


def by_values(server: Server, snapshot: Snapshot, rows: int) -> float:
    """Seconds."""
    names = [physical_name(column.id) for column in snapshot.columns]

    def taken(chunks: Iterator[Chunk]) -> int:
        found, count = Fingerprints(7, names[:1]), 0
        for chunk in chunks:
            found.add(pa.Table.from_batches([chunk.rows]).select(names))
            count += chunk.rows.num_rows
        return count

    begin = time.perf_counter()
    return _seconds(sum(on_both(address(server), snapshot, rows, taken)), rows, begin)


def by_checksums(server: Server, expression: str, rows: int) -> float:
    """Seconds."""

    def taken(condition: str) -> int:
        with closing(server.connect(ssl_disabled=True, database="bench")) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*), {expression} FROM bench.orders WHERE {condition}")
            ((count, _),) = cursor.fetchall()
            return int(count)

    begin = time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        count = sum(threads.map(taken, (f"id < {rows // 2}", f"id >= {rows // 2}")))
    return _seconds(count, rows, begin)


def _seconds(count: int, rows: int, begin: float) -> float:
    seconds = time.perf_counter() - begin
    if count != rows:
        raise SystemExit(f"expected {rows} rows, found {count}")
    return seconds


def measure(server: Server, snapshot: Snapshot, rows: int, rounds: int) -> list[dict[str, Any]]:
    """In turn, after a round of each that is not counted."""
    ways: dict[str, Callable[[], float]] = {"values": lambda: by_values(server, snapshot, rows)}
    for name, expression in CHECKSUMS.items():
        ways[name] = lambda expression=expression: by_checksums(server, expression, rows)  # type: ignore[misc]
    for way in ways.values():
        way()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            meter = CpuMeter(server)
            found[name].append(meter.measured(way))
            print(
                f"{name}: {found[name][-1]:.2f} s, CPU {meter.own_s:.2f} s here, {meter.server_s:.2f} s there",
                flush=True,
            )
    values = statistics.median(found["values"])
    return [
        {"name": name, "ours": round(values, 2), "other": round(seconds, 2), "ratio": round(seconds / values, 2)}
        for name in CHECKSUMS
        for seconds in (statistics.median(found[name]),)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server", "innodb_buffer_pool_size=2G", "skip_log_bin")
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                create_orders(cursor)
                fill_orders(cursor, options.rows)
            results = measure(server, capture(server, "bench", "orders"), options.rows, options.rounds)
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
