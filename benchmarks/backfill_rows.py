"""Rows of a table read by SELECT over two connections into Arrow, against ConnectorX, on one live MySQL 9 server in turn.

Each half of an integer key is read over a connection of its own. Batches are counted and dropped, as a pipeline does: memory that
is new to a process would be the kernel's work. ConnectorX, which gives a stream of batches too, comes with ``uv sync --group bench``.
PyMySQL reads a shorter part with a cursor that does not buffer, and so does mysqlclient where it is installed, which takes a compiler
and the client's library; their rates are printed. All connect without TLS. Of each column of ours a sum is compared with the server's
own.

``rows_vs_connectorx``: rates in rows a second. ``cpu_vs_connectorx``: the same, seconds of CPU of this process, ours through
theirs. ``rows_none``, ``rows_zlib``, ``rows_zstd``: rates in rows a second with each compression of connections, once; CPU and bytes
that the server sends are printed beside them. ``peak_mb``: resident megabytes (10^6) at most of a process that reads all rows over
both connections and drops each chunk.
Run: ``python benchmarks/backfill_rows.py [--rounds 3] [--rows 5000000] [--other 200000]``.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import address, report
from decode import checksum, sums
from drain import CpuMeter
from orders import create_orders, fill_orders

from connectors.readers.binlog.selected.reading import select_rows
from connectors.readers.binlog.selected.sessions import selecting_connection
from databases.servers import start_server
from historian.changelog.operations import physical_name
from historian.plans.plans import PlannedVersion
from historian.positions import LogPosition
from logs.decoder_lab import capture

if TYPE_CHECKING:
    from connectors.readers.binlog.transport.connection import ServerAddress
    from databases.servers import Server
    from historian.changelog.chunks import Chunk
    from historian.schema.snapshots import Snapshot

CONNECTIONS = 2
COLUMNS = "id, customer, status, amount, created, updated, note, quantity, weight, flag"


def split(where: ServerAddress, snapshot: Snapshot, condition: str) -> Iterator[Chunk]:
    """The rows of one half."""
    with contextlib.closing(selecting_connection(where, "mysql")) as connection:
        yield from select_rows(
            connection,
            PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=0),
            table_id=1,
            where=condition,
            flavor="mysql",
            position=LogPosition(flavor="mysql", gtids="", file="binlog.000001", offset=4),
            event_time_us=0,
        )


def on_both(where: ServerAddress, snapshot: Snapshot, rows: int, take: Callable[[Iterator[Chunk]], Any]) -> list[Any]:
    """What *take* makes of the chunks of each half."""
    conditions = [f"id < {rows // 2}", f"id >= {rows // 2}"]
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        return list(threads.map(lambda condition: take(split(where, snapshot, condition)), conditions))


def counted(batches: Iterable[Any]) -> int:
    """How many rows there are; chunks are dropped one by one."""
    return sum(getattr(batch, "rows", batch).num_rows for batch in batches)


def ours(server: Server, snapshot: Snapshot, rows: int, compression: Any = "none") -> float:
    """Rows a second of ours."""
    where = replace(address(server), compression=compression)
    begin = time.perf_counter()
    count = sum(on_both(where, snapshot, rows, counted))
    return _rate("ours", count, rows, begin)


def theirs(server: Server, rows: int) -> float:
    """Rows a second of ConnectorX."""
    import connectorx

    url = f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/bench"
    begin = time.perf_counter()
    batches: Any = connectorx.read_sql(
        url,
        f"SELECT {COLUMNS} FROM orders",
        return_type="arrow_stream",
        partition_on="id",
        partition_range=(0, rows - 1),
        partition_num=CONNECTIONS,
    )
    return _rate("ConnectorX", counted(batches), rows, begin)


def _rate(name: str, count: int, rows: int, begin: float) -> float:
    seconds = time.perf_counter() - begin
    if count != rows:
        raise SystemExit(f"{name}: expected {rows} rows, found {count}")
    return rows / seconds


def row_by_row(server: Server, module: str, limit: int) -> float:
    """Rows a second of a driver that gives tuples, over one connection."""
    driver: Any = importlib.import_module(module)
    cursors: Any = importlib.import_module(f"{module}.cursors")
    arguments: dict[str, Any] = {"host": server.host, "port": server.port, "user": server.user}
    no_tls = {"ssl_disabled": True} if module == "pymysql" else {"ssl_mode": "DISABLED"}
    connection = driver.connect(**arguments, password=server.password, **no_tls)
    with contextlib.closing(connection), connection.cursor(cursors.SSCursor) as cursor:
        begin = time.perf_counter()
        cursor.execute(f"SELECT {COLUMNS} FROM bench.orders LIMIT {limit}")
        count = 0
        while some := cursor.fetchmany(10_000):
            count += len(some)
        return count / (time.perf_counter() - begin)


def check(chunks: list[Chunk], snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    """Stops where a column's sum is not the server's."""
    for column, wanted in zip(snapshot.columns, expected, strict=True):
        found = sum(checksum(chunk.rows.column(physical_name(column.id))) for chunk in chunks)
        if str(found) != wanted:
            raise SystemExit(f"column {column.name} sums to {found}, expected {wanted}")


def measure(server: Server, snapshot: Snapshot, rows: int, rounds: int) -> list[dict[str, Any]]:
    """In turn, after a round of each that is compared and not counted."""
    halves = on_both(address(server), snapshot, rows, list)
    check([chunk for half in halves for chunk in half], snapshot, sums(server, snapshot))
    del halves
    theirs(server, rows)
    found: list[tuple[float, ...]] = []
    for _ in range(rounds):
        meters = CpuMeter(server), CpuMeter(server)
        mine = meters[0].measured(lambda: ours(server, snapshot, rows))
        other = meters[1].measured(lambda: theirs(server, rows))
        spent = [1e6 / rows * seconds for meter in meters for seconds in (meter.own_s, meter.server_s)]
        found.append((mine, other, spent[0], spent[2], mine / other, spent[0] / spent[2]))
        print(
            f"rows/s: {mine:,.0f} against {other:,.0f}; CPU seconds a million rows: {spent[0]:.3f} against {spent[2]:.3f}, "
            f"of the server meanwhile {spent[1]:.3f} and {spent[3]:.3f}",
            flush=True,
        )
    mine, other, own_s, their_s, ratio, cpu = (statistics.median(column) for column in zip(*found, strict=True))
    return [
        {"name": "rows_vs_connectorx", "ours": round(mine), "other": round(other), "ratio": round(ratio, 2)},
        {"name": "cpu_vs_connectorx", "ours": round(own_s, 3), "other": round(their_s, 3), "ratio": round(cpu, 2)},
    ]


def compressed(server: Server, snapshot: Snapshot, rows: int, compression: str) -> dict[str, Any]:
    """Of connections that are compressed so."""
    meter, before = CpuMeter(server), _sent_bytes(server)
    speed = meter.measured(lambda: ours(server, snapshot, rows, compression))
    spent = [1e6 / rows * seconds for seconds in (meter.own_s, meter.server_s)]
    print(
        f"{compression}: {(_sent_bytes(server) - before) / rows:.1f} bytes a row; CPU seconds a million rows: {spent[0]:.3f}, "
        f"of the server meanwhile {spent[1]:.3f}",
        flush=True,
    )
    return {"name": f"rows_{compression}", "value": round(speed), "unit": "rows/s"}


def _sent_bytes(server: Server) -> int:
    return int(server.sql("SHOW GLOBAL STATUS LIKE 'Bytes_sent'")[0][1])


def peak_mb(server: Server, snapshot: Snapshot, rows: int) -> dict[str, Any]:
    """Of a process of its own."""
    settings = pickle.dumps((address(server), snapshot, rows))
    result = subprocess.run([sys.executable, __file__, "--read"], input=settings, stdout=subprocess.PIPE, check=True)
    count, kilobytes = map(int, result.stdout.split())
    if count != rows:
        raise SystemExit(f"peak_mb: expected {rows} rows, found {count}")
    return {"name": "peak_mb", "value": round(kilobytes * 1024 / 1e6), "unit": "MB at most"}


def read() -> None:
    """Reads what the standard input says; prints the number of rows and the peak in KiB."""
    where, snapshot, rows = pickle.load(sys.stdin.buffer)
    counts = on_both(where, snapshot, rows, counted)
    # The kernel's other count has that of the process which started this one.
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    print(sum(counts), peak)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--other", type=int, default=200_000, help="rows that drivers of tuples read")
    parser.add_argument("--read", action="store_true", help="only read what the standard input says")
    options = parser.parse_args()
    if options.read:
        read()
        return
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server", "innodb_buffer_pool_size=2G", "skip_log_bin")
        try:
            with server.connect() as connection, connection.cursor() as cursor:
                create_orders(cursor)
                fill_orders(cursor, options.rows)
            snapshot = capture(server, "bench", "orders")
            results = measure(server, snapshot, options.rows, options.rounds)
            results += [compressed(server, snapshot, options.rows, how) for how in ("none", "zlib", "zstd")]
            results.append(peak_mb(server, snapshot, options.rows))
            for module, name in (("pymysql", "PyMySQL"), ("MySQLdb", "mysqlclient")):
                if importlib.util.find_spec(module) is None:
                    print(f"{name} is not installed")
                else:
                    print(f"{name}: {row_by_row(server, module, options.other):,.0f} rows/s over one connection")
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
