"""Our binlog reader against mysql-replication, on one live MySQL 9 server and the same binlog files, in turn.

mysql-replication reads a shorter part from the start of the same file, and rates are compared. The rows of that part
are compared value by value, and the whole by count and sums with what the server holds.

``wide_updates``: updates of ten mixed columns, rates in row images (an update is two). ``socket_drain``: the same
against taking the same bytes from the connection and doing nothing. ``cpu_s_per_m``: the same, seconds of CPU of this
process a million images. ``small_transactions``: one row each. ``compressed``: the same transactions with
``binlog_transaction_compression``, against ours without.
Run: ``python benchmarks/decode.py [--rounds 3] [--updates 1000000] [--transactions 200000] [--other 40000]``.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow as pa
import pyarrow.compute as pc
from binlog_work import Work, check_count, in_own_file, in_turn, ours, plain, rate, report, theirs, values
from drain import CpuMeter, Drain
from orders import create_orders, fill_orders, updated_orders

from databases.servers import start_server
from historian.changelog.operations import physical_name
from logs.decoder_lab import capture

if TYPE_CHECKING:
    from databases.servers import Server
    from historian.changelog.chunks import Chunk
    from historian.schema.snapshots import Snapshot

SMALL = "CREATE TABLE bench.small (id INT NOT NULL PRIMARY KEY, name VARCHAR(30) NOT NULL, amount INT NOT NULL)"
TRANSACTIONS = """
CREATE PROCEDURE bench.fill (count INT) BEGIN
    DECLARE i INT DEFAULT 0;
    WHILE i < count DO INSERT INTO bench.small VALUES (i, CONCAT('name ', i), i * 7); SET i = i + 1; END WHILE;
END
"""


def compare(chunks: list[Chunk], other: list[dict[str, Any]], work: Work) -> None:
    """Stops where rows, counts or sums differ."""
    check_count(chunks, work)
    for number, (mine, row) in enumerate(zip(values(chunks, work.snapshot), other)):  # noqa: B905 - theirs is shorter
        if tuple(map(plain, mine)) != tuple(map(plain, row.values())):
            raise SystemExit(f"{work.name}: row {number} differs:\n  ours   {mine}\n  theirs {tuple(row.values())}")
    for column, expected in zip(work.snapshot.columns, work.sums, strict=True):
        name = physical_name(column.id)
        # The rows after the change: every second one of an update.
        after = [
            chunk.rows.filter(pc.is_in(chunk.rows["op"], pa.array([0, 3], pa.uint8()))).column(name) for chunk in chunks
        ]
        found = sum(checksum(part) for part in after)
        if str(found) != expected:
            raise SystemExit(f"{work.name}: column {column.name} sums to {found}, expected {expected}")


def checksum(column: Any) -> int:
    """Of a column: the lengths of texts, whole parts of numbers, microseconds of times, summed."""
    kind = column.type
    if pa.types.is_string(kind):
        column = pc.binary_length(column)
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = pc.floor(column).cast(pa.int64())
    return int(pc.sum(column.cast(pa.int64()).cast(pa.decimal128(38, 0))).as_py() or 0)


def sums(server: Server, snapshot: Snapshot) -> tuple[str, ...]:
    """What :func:`checksum` must give over the table's rows as they are now, by the server's own arithmetic."""
    forms = {
        "varchar": "LENGTH({})",
        "datetime": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})",
        "timestamp": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {})",
        "decimal": "FLOOR({})",
        "double": "FLOOR({})",
    }
    parts = [f"CAST(SUM({forms.get(c.type.name, '{}').format(c.name)}) AS DECIMAL(65,0))" for c in snapshot.columns]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"SELECT {', '.join(parts)} FROM {snapshot.name}")
        return tuple(str(value) for value in cursor.fetchone())


def record(server: Server, updates: int, transactions: int) -> tuple[Work, Work, Work]:
    """Writes the works, each into a binlog file of its own: wide updates, small transactions, these compressed."""
    with server.connect() as connection, connection.cursor() as cursor:
        create_orders(cursor)
        fill_orders(cursor, updates)
        cursor.execute(SMALL)
        cursor.execute(TRANSACTIONS)
        wide = updated_orders(server, cursor, updates)
        ranges = [in_own_file(server, lambda: cursor.execute("CALL bench.fill(%s)", (transactions,)))]
        cursor.execute("DELETE FROM bench.small")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        ranges.append(in_own_file(server, lambda: cursor.execute("CALL bench.fill(%s)", (transactions,))))
    narrow = capture(server, "bench", "small")
    small, packed = (
        Work(
            name=name,
            unit="transactions/s",
            range=part,
            snapshot=narrow,
            rows=transactions,
            sums=sums(server, narrow),
        )
        for name, part in zip(("small_transactions", "compressed"), ranges, strict=True)
    )
    return replace(wide, sums=sums(server, wide.snapshot)), small, packed


def measure(server: Server, work: Work, rounds: int, limit: int) -> dict[str, Any]:
    """Against mysql-replication, after one round that is compared and not counted."""

    def their_rate() -> float:
        seconds, rows = theirs(server, work, limit)
        return len(rows) / seconds

    compare(ours(server, work)[1], theirs(server, work, limit)[1], work)
    return in_turn(work.name, work.unit, rounds, lambda: rate(server, work), their_rate)


def measure_drain(server: Server, work: Work, rounds: int) -> dict[str, Any]:
    """Against taking the same bytes from the connection; prints what CPU each takes, which bounds the ratio."""
    drain = Drain(server, work.range)
    ours_cpu, drain_cpu = CpuMeter(server), CpuMeter(server)
    result = in_turn(
        "socket_drain",
        work.unit,
        rounds,
        lambda: ours_cpu.measured(lambda: rate(server, work)),
        lambda: drain_cpu.measured(lambda: work.rows / drain.seconds()),
    )
    million = rounds * work.rows / 1e6
    for name, meter in (("ours", ours_cpu), ("the drain", drain_cpu)):
        print(
            f"socket_drain: CPU seconds a million images of {name}: "
            f"{meter.own_s / million:.3f}, of the server meanwhile: {meter.server_s / million:.3f}"
        )
    cores = len(os.sched_getaffinity(0))
    least_s = (ours_cpu.own_s + ours_cpu.server_s) / million / cores
    bound = 1e6 / result["other"] / least_s
    print(f"socket_drain: {cores} cores that are never idle would give a ratio of {bound:.2f}")
    return result


def measure_compressed(server: Server, small: Work, packed: Work, rounds: int) -> dict[str, Any]:
    """The same transactions with and without compression."""
    expected, found = (list(values(ours(server, work)[1], work.snapshot)) for work in (small, packed))
    if expected != found:
        raise SystemExit(f"{packed.name}: rows differ from those of {small.name}")
    return in_turn(packed.name, packed.unit, rounds, lambda: rate(server, packed), lambda: rate(server, small))


def measure_cpu(server: Server, work: Work, rounds: int) -> dict[str, Any]:
    """CPU seconds of this process a million rows."""
    found = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_SELF)
        rate(server, work)
        after = resource.getrusage(resource.RUSAGE_SELF)
        spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append(spent_s / work.rows * 1e6)
    return {"name": "cpu_s_per_m", "value": round(statistics.median(found), 3), "unit": "s of CPU a million images"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--transactions", type=int, default=200_000)
    parser.add_argument("--other", type=int, default=40_000, help="rows that mysql-replication reads")
    options = parser.parse_args()
    # mysql-replication logs advice about binlog_row_metadata for each table.
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server")
        try:
            wide, small, packed = record(server, options.updates, options.transactions)
            results = [
                measure(server, wide, options.rounds, options.other),
                measure_drain(server, wide, options.rounds),
                measure_cpu(server, wide, options.rounds),
                measure(server, small, options.rounds, options.other),
                measure_compressed(server, small, packed, options.rounds),
            ]
        finally:
            server.kill()
    report(results)


if __name__ == "__main__":
    main()
