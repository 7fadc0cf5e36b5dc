"""The most memory that a process takes to read a live MySQL 9 server's log, whatever the size of its transactions.

``peak_mb``: resident megabytes (10^6) at most of a process that decodes, chunk by chunk, one transaction of wide rows and
one of 100 MB blobs; rows are counted, and the blobs' bytes. The parts are printed, the larger one is the result.
Run: ``python benchmarks/decode_memory.py [--rows 10000000] [--blobs 5] [--blob-mb 100]``.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import Work, address, in_own_file, report
from orders import create_orders, fill_orders

from connectors.readers.binlog.server_reader import BinlogServerReader
from databases.servers import start_server
from logs.decoder_lab import capture, planned

if TYPE_CHECKING:
    from databases.servers import Server


def peak_mb(work: Work, server: Server) -> float:
    """Of a process of its own that reads the work."""
    settings = pickle.dumps((address(server), work))
    command = [sys.executable, __file__, "--read"]
    result = subprocess.run(command, input=settings, stdout=subprocess.PIPE, check=True)
    rows, data_bytes, kilobytes = map(int, result.stdout.split())
    if rows != work.rows or (work.sums and str(data_bytes) != work.sums[0]):
        raise SystemExit(f"{work.name}: expected {work.rows} rows and {work.sums} bytes, found {rows} and {data_bytes}")
    return kilobytes * 1024 / 1e6


def read() -> None:
    """Reads the work that the standard input holds; prints rows, bytes of the last column, and the peak in KiB."""
    where, work = pickle.load(sys.stdin.buffer)
    rows = data_bytes = 0
    for chunk in BinlogServerReader(where, flavor="mysql").read(work.range, planned(work.snapshot)):
        rows += chunk.rows.num_rows
        if work.sums:
            data_bytes += sum(len(cell.as_buffer()) for cell in chunk.rows.column(chunk.rows.num_columns - 1))
    print(rows, data_bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def record(server: Server, rows: int, blobs: int, blob_bytes: int) -> tuple[Work, Work]:
    """One transaction of *rows* wide rows, made of several statements, and one of *blobs* blobs."""
    with server.connect() as connection, connection.cursor() as cursor:
        create_orders(cursor)

        def insert() -> None:
            cursor.execute("BEGIN")
            fill_orders(cursor, rows)
            cursor.execute("COMMIT")

        many = in_own_file(server, insert)
        cursor.execute("CREATE TABLE bench.blobs (id INT NOT NULL PRIMARY KEY, body LONGBLOB NOT NULL)")

        def write() -> None:
            cursor.execute("BEGIN")
            for number in range(blobs):
                cursor.execute("INSERT INTO bench.blobs VALUES (%s, REPEAT(%s, %s))", (number, "b", blob_bytes))
            cursor.execute("COMMIT")

        large = in_own_file(server, write)
    orders, bodies = capture(server, "bench", "orders"), capture(server, "bench", "blobs")
    return (
        Work(name="large_transaction", unit="rows", range=many, snapshot=orders, rows=rows),
        Work(
            name="large_blobs", unit="rows", range=large, snapshot=bodies, rows=blobs, sums=(str(blobs * blob_bytes),)
        ),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--blobs", type=int, default=5)
    parser.add_argument("--blob-mb", type=int, default=100)
    parser.add_argument("--read", action="store_true", help="only read what the standard input says")
    options = parser.parse_args()
    if options.read:
        read()
        return
    with tempfile.TemporaryDirectory() as directory:
        # The transaction waits in the server's binlog cache, on disk, until its commit.
        server = start_server("mysql9", Path(directory) / "server", "max_allowed_packet=1G", "binlog_cache_size=64K")
        try:
            found = []
            for work in record(server, options.rows, options.blobs, options.blob_mb * 1_000_000):
                found.append(peak_mb(work, server))
                print(f"{work.name}: {found[-1]:.0f} MB", flush=True)
        finally:
            server.kill()
    report([{"name": "peak_mb", "value": round(max(found)), "unit": "MB at most"}])


if __name__ == "__main__":
    main()
