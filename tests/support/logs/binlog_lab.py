"""Readers on test servers, and what tests of them do again and again."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from connectors.readers.base import Bound, Reader, Scanned
from connectors.readers.binlog.files_reader import BinlogFilesReader
from connectors.readers.binlog.log_reader import BinlogReader
from connectors.readers.binlog.server_reader import BinlogServerReader
from connectors.readers.binlog.transport.connection import ServerAddress
from connectors.tracking.capture.catalog import capture_catalog
from databases.servers import Server
from historian.names import TableName
from historian.plans.plans import LogRange, PlannedTable, PlannedVersion
from historian.positions import LogPosition

__all__ = [
    "address",
    "events",
    "files_reader",
    "live_reader",
    "only_gtids",
    "only_place",
    "planned_tables",
    "range_of",
    "run",
    "scanned",
]


def address(server: Server, **settings: Any) -> ServerAddress:
    """How our readers reach *server*."""
    usual = {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "timeout_s": 20,
    }
    return ServerAddress(**{**usual, **settings})


def live_reader(server: Server, **settings: Any) -> BinlogServerReader:
    return BinlogServerReader(address(server, **settings), flavor=server.flavor)


def files_reader(server: Server) -> BinlogFilesReader:
    return BinlogFilesReader(server.binlog_files())


def run(server: Server, *statements: str, **connection: Any) -> None:
    """Runs *statements* on one connection."""
    with contextlib.closing(server.connect(**connection)) as opened, opened.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def scanned(reader: Reader, start: LogPosition, **options: Any) -> list[Scanned]:
    return list(reader.scan(start, **options))


def only_place(position: LogPosition) -> LogPosition:
    return replace(position, gtids="", server="")


def only_gtids(position: LogPosition) -> LogPosition:
    return replace(position, file="", offset=0, server="")


def events(reader: BinlogReader, start: LogPosition) -> list[tuple[str, int, bytes]]:
    """File, offset and bytes of each event behind *start*."""
    with contextlib.closing(reader._stream(start.file, start.offset)) as stream:
        return [
            (window.file, int(offset), window.buffer[begin:end].tobytes())
            for window in stream.windows()
            for begin, end, offset in zip(window.starts, window.ends, window.offsets, strict=True)
        ]


def range_of(start: LogPosition, end: LogPosition) -> LogRange:
    """The log from *start* to *end*, which are in one file."""
    assert start.file == end.file
    return LogRange(
        file=start.file, start=start.offset, end=end.offset, server=start.server, after=start.gtids, upto=end.gtids
    )


def bounds_of(items: list[Scanned]) -> list[LogPosition]:
    return [item.position for item in items if isinstance(item, Bound)]


def planned_tables(server: Server, *names: str) -> tuple[PlannedTable, ...]:
    """The tables of these names, like ``db.table``, as they are now."""
    with contextlib.closing(server.connect()) as connection:
        catalog = capture_catalog(connection, 1, 1)
    snapshots = [catalog.tables[TableName(*name.split("."))] for name in names]
    return tuple(
        PlannedTable(
            table_id=snapshot.table_id,
            versions=(PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=0),),
        )
        for snapshot in snapshots
    )
