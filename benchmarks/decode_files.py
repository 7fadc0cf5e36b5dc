"""Two binlog files read by two processes against the same two read one after the other, in turn.

``two_files``: rates of row images; each process reads a file as an executor does, with kernels loaded before.
Run: ``python benchmarks/decode_files.py [--rounds 5] [--updates 500000]``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

from binlog_work import Work, in_turn, report
from orders import create_orders, fill_orders, updated_orders

from connectors.readers.binlog.files_reader import BinlogFilesReader
from databases.servers import start_server
from logs.decoder_lab import planned

if TYPE_CHECKING:
    from databases.servers import Server


def record(server: Server, updates: int) -> list[Work]:
    """The same updates twice, each time in a file of their own."""
    with server.connect() as connection, connection.cursor() as cursor:
        create_orders(cursor)
        fill_orders(cursor, updates)
        return [updated_orders(server, cursor, updates) for _ in range(2)]


def read(paths: tuple[Path, ...], work: Work) -> int:
    """Rows of one file, decoded and dropped chunk by chunk."""
    reader = BinlogFilesReader(paths)
    return sum(chunk.rows.num_rows for chunk in reader.read(work.range, planned(work.snapshot)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=500_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server")
        works = record(server, options.updates)
        paths = server.binlog_files()
        server.stop()
        # Files are looked up by their numbers alone, whatever has been written before them.
        works = [replace(work, range=replace(work.range, server="")) for work in works]
        # A process of its own for each, as Spark's workers are.
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:

            def rate(*, together: bool) -> float:
                begin = time.perf_counter()
                if together:
                    counts = list(pool.map(read, [paths] * 2, works))
                else:
                    counts = [pool.submit(read, paths, work).result() for work in works]
                if counts != [work.rows for work in works]:
                    raise SystemExit(f"two_files: expected {[work.rows for work in works]} rows, found {counts}")
                return sum(counts) / (time.perf_counter() - begin)

            rate(together=True)
            result = in_turn(
                "two_files", "images/s", options.rounds, lambda: rate(together=True), lambda: rate(together=False)
            )
    report([result])


if __name__ == "__main__":
    main()
