"""Our binlog reader against mysql-replication, on one live MySQL 9 server and the same binlog files, in turn.

Ours is ``BinlogServerReader.read``: dump over the connection, rows as Arrow chunks. Theirs is ``BinLogStreamReader``
with row events only, rows as dictionaries; it reads a shorter part from the start of the same file, and rates are
compared. The rows of that part are compared value by value, and the whole by count and sums with what the server holds.
Both connect without TLS.

``wide_updates``: updates of ten mixed columns, rates in row images (an update is two). ``small_transactions``: one row
each. ``compressed``: the same transactions with ``binlog_transaction_compression``, against ours without.
Run: ``python benchmarks/decode.py [--rounds 3] [--updates 1000000] [--transactions 200000] [--other 40000]``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "tests" / "support")]

import pyarrow.compute as pc

from connectors.readers.binlog.connection import ServerAddress, TlsSettings
from connectors.readers.binlog.reader import BinlogServerReader
from decoder_lab import capture, log_end, planned
from historian.changelog import physical_name
from historian.plans import LogRange
from servers import start_server

if TYPE_CHECKING:
    from historian.chunks import Chunk
    from historian.schema import Snapshot
    from servers import Server

ORDERS = """
CREATE TABLE bench.orders (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, customer INT NOT NULL, status VARCHAR(20) NOT NULL,
    amount DECIMAL(12,2) NOT NULL, created DATETIME(3) NOT NULL, updated TIMESTAMP(6) NOT NULL, note VARCHAR(200),
    quantity SMALLINT NOT NULL, weight DOUBLE NOT NULL, flag TINYINT NOT NULL)
"""
FILL = """
INSERT INTO bench.orders WITH RECURSIVE s (n) AS (SELECT {first} UNION ALL SELECT n + 1 FROM s WHERE n + 1 < {last})
SELECT n, n % 1000, ELT(1 + n % 3, 'new', 'paid', 'shipped'), n / 7, '2020-01-01' + INTERVAL n * 1000 MICROSECOND,
    '2021-01-01 00:00:00.123456' + INTERVAL n SECOND, IF(n % 5 = 0, NULL, CONCAT('note for order number ', n)), n % 100,
    n / 3, n % 2 FROM s
"""
UPDATE = """
UPDATE bench.orders SET status = 'done', amount = amount + 1, quantity = quantity + 1,
    updated = updated + INTERVAL 1 DAY
WHERE id >= {first} AND id < {last}
"""
SMALL = "CREATE TABLE bench.small (id INT NOT NULL PRIMARY KEY, name VARCHAR(30) NOT NULL, amount INT NOT NULL)"
TRANSACTIONS = """
CREATE PROCEDURE bench.fill (count INT) BEGIN
    DECLARE i INT DEFAULT 0;
    WHILE i < count DO INSERT INTO bench.small VALUES (i, CONCAT('name ', i), i * 7); SET i = i + 1; END WHILE;
END
"""
STEP = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A part of the log: rows of one table in one file, and sums over them that the server computed."""

    name: str
    unit: str
    range: LogRange
    snapshot: Snapshot
    rows: int
    sums: tuple[str, ...]


def ours(server: Server, work: Work) -> tuple[float, list[Chunk]]:
    """Seconds to read the work's rows, and the chunks."""
    address = ServerAddress(
        host=server.host, port=server.port, user=server.user, password=server.password, tls=TlsSettings(mode="disabled")
    )
    with contextlib.closing(BinlogServerReader(address, flavor="mysql")) as reader:
        begin = time.perf_counter()
        chunks = list(reader.read(work.range, planned(work.snapshot)))
        return time.perf_counter() - begin, chunks


def theirs(server: Server, work: Work, limit: int) -> tuple[float, list[dict[str, Any]]]:
    """Seconds to read the first *limit* rows or more, and the rows."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import UpdateRowsEvent, WriteRowsEvent

    settings = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "passwd": server.password,
        "ssl_disabled": True,
    }
    found: list[dict[str, Any]] = []
    begin = time.perf_counter()
    stream = BinLogStreamReader(
        connection_settings=settings,
        server_id=4711,
        only_events=[UpdateRowsEvent, WriteRowsEvent],
        log_file=work.range.file,
        log_pos=work.range.start,
        resume_stream=True,
        enable_logging=False,
    )
    with contextlib.closing(stream):
        for event in stream:
            for row in event.rows:
                if "values" in row:
                    found.append(row["values"])
                else:
                    found += (row["before_values"], row["after_values"])
            if len(found) >= limit:
                break
    return time.perf_counter() - begin, found


def values(chunks: list[Chunk], snapshot: Snapshot) -> Iterator[tuple[Any, ...]]:
    """The rows of chunks, as tuples of the data columns."""
    names = [physical_name(column.id) for column in snapshot.columns]
    for chunk in chunks:
        yield from zip(*(chunk.rows.column(name).to_pylist() for name in names), strict=True)


def plain(value: Any) -> Any:
    """A value of either reader: without the zone that only ours says."""
    return value.astimezone(timezone.utc).replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value


def compare(chunks: list[Chunk], other: list[dict[str, Any]], work: Work) -> None:
    """Stops where rows, counts or sums differ."""
    count = sum(chunk.rows.num_rows for chunk in chunks)
    if count != work.rows:
        raise SystemExit(f"{work.name}: expected {work.rows} rows, found {count}")
    for number, (mine, row) in enumerate(zip(values(chunks, work.snapshot), other)):  # noqa: B905 - theirs is shorter
        if tuple(map(plain, mine)) != tuple(map(plain, row.values())):
            raise SystemExit(f"{work.name}: row {number} differs:\n  ours   {mine}\n  theirs {tuple(row.values())}")
    for column, expected in zip(work.snapshot.columns, work.sums, strict=True):
        name = physical_name(column.id)
        # The rows after the change: every second one of an update.
        after = [chunk.rows.filter(pc.is_in(chunk.rows["op"], _codes(0, 3))).column(name) for chunk in chunks]
        found = sum(_checksum(part) for part in after)
        if str(found) != expected:
            raise SystemExit(f"{work.name}: column {column.name} sums to {found}, expected {expected}")


def _codes(*codes: int) -> Any:
    import pyarrow as pa

    return pa.array(codes, pa.uint8())


def _checksum(column: Any) -> int:
    """Of a column: the lengths of texts, whole parts of numbers, microseconds of times, summed."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string(kind):
        column = pc.binary_length(column)
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = pc.floor(column).cast(pa.int64())
    return int(pc.sum(column.cast(pa.int64()).cast(pa.decimal128(38, 0))).as_py() or 0)


def sums(server: Server, snapshot: Snapshot) -> tuple[str, ...]:
    """What :func:`_checksum` must give over the table's rows as they are now, by the server's own arithmetic."""
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


def record(server: Server, updates: int, transactions: int) -> list[Work]:
    """Writes both works, each into a binlog file of its own."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("SET SESSION cte_max_recursion_depth = 4294967295")
        cursor.execute(ORDERS)
        for first in range(0, updates, STEP):
            cursor.execute(FILL.format(first=first, last=min(updates, first + STEP)))
        cursor.execute(SMALL)
        cursor.execute(TRANSACTIONS)
        wide = _in_own_file(
            server, lambda: [cursor.execute(UPDATE.format(first=n, last=n + STEP)) for n in range(0, updates, STEP)]
        )
        small = _in_own_file(server, lambda: [cursor.execute("CALL bench.fill(%s)", (transactions,))])
        cursor.execute("DELETE FROM bench.small")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        compressed = _in_own_file(server, lambda: [cursor.execute("CALL bench.fill(%s)", (transactions,))])
    orders, narrow = capture(server, "bench", "orders"), capture(server, "bench", "small")
    return [
        Work(
            name="wide_updates",
            unit="images/s",
            range=wide,
            snapshot=orders,
            rows=2 * updates,
            sums=sums(server, orders),
        ),
        Work(
            name="small_transactions",
            unit="transactions/s",
            range=small,
            snapshot=narrow,
            rows=transactions,
            sums=sums(server, narrow),
        ),
        Work(
            name="compressed",
            unit="transactions/s",
            range=compressed,
            snapshot=narrow,
            rows=transactions,
            sums=sums(server, narrow),
        ),
    ]


def _in_own_file(server: Server, write: Any) -> LogRange:
    server.sql("FLUSH BINARY LOGS")
    file = log_end(server)[0]
    write()
    return LogRange(file=file, start=4, end=log_end(server)[1])


def measure(server: Server, work: Work, rounds: int, limit: int) -> dict[str, Any]:
    """Medians of *rounds* in turn, after one round that is compared and not counted."""
    _, chunks = ours(server, work)
    _, other = theirs(server, work, limit)
    compare(chunks, other, work)
    del chunks, other
    mine, their = [], []
    for _ in range(rounds):
        seconds, chunks = ours(server, work)
        mine.append(sum(chunk.rows.num_rows for chunk in chunks) / seconds)
        del chunks
        seconds, rows = theirs(server, work, limit)
        their.append(len(rows) / seconds)
        print(f"{work.name}: ours {mine[-1]:,.0f} {work.unit}, mysql-replication {their[-1]:,.0f}", flush=True)
    result = {"name": work.name, "ours": round(statistics.median(mine)), "other": round(statistics.median(their))}
    return {**result, "ratio": round(result["ours"] / result["other"], 1)}


def measure_compressed(server: Server, plain: Work, packed: Work, rounds: int) -> dict[str, Any]:
    """Medians of *rounds* in turn of the same transactions without and with compression."""
    expected, found = (list(values(ours(server, work)[1], work.snapshot)) for work in (plain, packed))
    if expected != found:
        raise SystemExit(f"{packed.name}: rows differ from those of {plain.name}")
    rates: dict[str, list[float]] = {plain.name: [], packed.name: []}
    for _ in range(rounds):
        for work in (plain, packed):
            seconds, chunks = ours(server, work)
            rates[work.name].append(sum(chunk.rows.num_rows for chunk in chunks) / seconds)
            del chunks
        print(
            f"compressed: {rates[packed.name][-1]:,.0f} {packed.unit}, plain {rates[plain.name][-1]:,.0f}", flush=True
        )
    result = {name: round(statistics.median(found)) for name, found in rates.items()}
    ratio = round(result[packed.name] / result[plain.name], 2)
    return {"name": packed.name, "ours": result[packed.name], "other": result[plain.name], "ratio": ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=1_000_000, help="a multiple of 100000")
    parser.add_argument("--transactions", type=int, default=200_000)
    parser.add_argument("--other", type=int, default=40_000, help="rows that mysql-replication reads")
    options = parser.parse_args()
    # mysql-replication logs advice about binlog_row_metadata for each table.
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory() as directory:
        server = start_server("mysql9", Path(directory) / "server")
        try:
            wide, small, packed = record(server, options.updates, options.transactions)
            results = [measure(server, work, options.rounds, options.other) for work in (wide, small)]
            results.append(measure_compressed(server, small, packed, options.rounds))
        finally:
            server.kill()
    for result in results:
        print("{name}: {ours:,} against {other:,}, {ratio} times".format(**result))
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
