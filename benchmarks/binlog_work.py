"""What the benchmarks of the binlog reader share: a part of a live server's log, read by us and by mysql-replication.

Ours is ``BinlogServerReader.read``: dump over the connection, rows as Arrow chunks. Theirs is ``BinLogStreamReader``
with row events only, rows as dictionaries. Both connect without TLS.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timezone
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport.connection import ServerAddress, TlsSettings
from historian.changelog.operations import physical_name
from historian.plans.plans import LogRange
from logs.decoder_lab import log_end, planned

if TYPE_CHECKING:
    from databases.servers import Server
    from historian.changelog.chunks import Chunk
    from historian.schema.snapshots import Snapshot

__all__ = [
    "Work",
    "address",
    "check_count",
    "in_own_file",
    "in_turn",
    "ours",
    "plain",
    "rate",
    "report",
    "row_count",
    "theirs",
    "values",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A part of the log: rows of one table in one file, and sums over them that the server computed."""

    name: str
    unit: str
    range: LogRange
    snapshot: Snapshot
    rows: int
    sums: tuple[str, ...] = ()


def address(server: Server) -> ServerAddress:
    """Of the server, for connections without TLS."""
    return ServerAddress(
        host=server.host, port=server.port, user=server.user, password=server.password, tls=TlsSettings(mode="disabled")
    )


def in_own_file(server: Server, write: Callable[[], Any]) -> LogRange:
    """The file of the log that holds what *write* does, and nothing else."""
    server.sql("FLUSH BINARY LOGS")
    file = log_end(server)[0]
    write()
    return LogRange(file=file, start=4, end=log_end(server)[1])


def ours(server: Server, work: Work) -> tuple[float, list[Chunk]]:
    """Seconds to read the work's rows, and the chunks."""
    with contextlib.closing(BinlogServerReader(address(server), flavor="mysql")) as reader:
        begin = time.perf_counter()
        chunks = list(reader.read(work.range, planned(work.snapshot)))
        return time.perf_counter() - begin, chunks


def rate(server: Server, work: Work) -> float:
    """Rows a second of ours where each chunk is counted and dropped, as a pipeline does: nobody keeps a log in memory.

    Chunks that are kept are in memory that is new to the process, and the kernel's clearing of it would be measured.
    """
    with contextlib.closing(BinlogServerReader(address(server), flavor="mysql")) as reader:
        begin, rows = time.perf_counter(), 0
        for chunk in reader.read(work.range, planned(work.snapshot)):
            rows += chunk.rows.num_rows
        seconds = time.perf_counter() - begin
    if rows != work.rows:
        raise SystemExit(f"{work.name}: expected {work.rows} rows, found {rows}")
    return rows / seconds


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


def row_count(chunks: Sequence[Chunk]) -> int:
    """Rows in *chunks*."""
    return sum(chunk.rows.num_rows for chunk in chunks)


def check_count(chunks: Sequence[Chunk], work: Work) -> None:
    """Stops where the number of rows is not the work's."""
    found = row_count(chunks)
    if found != work.rows:
        raise SystemExit(f"{work.name}: expected {work.rows} rows, found {found}")


def values(chunks: Sequence[Chunk], snapshot: Snapshot) -> Iterator[tuple[Any, ...]]:
    """The rows of chunks, as tuples of the data columns."""
    names = [physical_name(column.id) for column in snapshot.columns]
    for chunk in chunks:
        yield from zip(*(chunk.rows.column(name).to_pylist() for name in names), strict=True)


def plain(value: Any) -> Any:
    """A value of either reader: without the zone that only ours says."""
    return value.astimezone(timezone.utc).replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value


def in_turn(
    name: str, unit: str, rounds: int, first: Callable[[], float], second: Callable[[], float]
) -> dict[str, Any]:
    """Medians of *rounds* of two measures in turn, each a rate, and the median of the rounds' ratios."""
    pairs = []
    for _ in range(rounds):
        pairs.append((first(), second()))
        print(f"{name}: {pairs[-1][0]:,.0f} {unit} against {pairs[-1][1]:,.0f}", flush=True)
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / two for one, two in pairs)
    return {"name": name, "ours": round(mine), "other": round(other), "ratio": round(ratio, 2)}


def report(results: Sequence[dict[str, Any]]) -> None:
    """Prints each result, and all of them as one JSON object on the last line."""
    for result in results:
        if "ratio" in result:
            print("{name}: {ours:,} against {other:,}, {ratio} times".format(**result))
        else:
            print("{name}: {value} {unit}".format(**result))
    print(json.dumps({"results": list(results)}))
