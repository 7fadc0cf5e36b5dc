"""What the decoder's tests share: a table's snapshot from a server, and what of its log becomes which rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from connectors.readers.binlog.rows.decoder import RangeDecoder
from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op, physical_name
from historian.ddl.types.captured_types import parse_column_type
from historian.names import TableName
from historian.plans.plans import PlannedTable, PlannedVersion
from historian.schema.snapshots import Column, ColumnType, Snapshot
from logs.log_windows import file_windows, window_of

if TYPE_CHECKING:
    from databases.servers import Server

__all__ = ["capture", "changes", "decode", "decode_events", "log_end", "planned"]

VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
MEMBER = re.compile(r"'((?:[^']|'')*)'")
COLUMNS = """
    SELECT column_name, data_type, column_type, character_maximum_length, numeric_precision, numeric_scale,
           datetime_precision, character_set_name, collation_name, is_nullable
    FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
KEY = """
    SELECT column_name FROM information_schema.key_column_usage
    WHERE table_schema = %s AND table_name = %s AND constraint_name = 'PRIMARY' ORDER BY ordinal_position
"""


def _type(row: Sequence[Any]) -> ColumnType:
    name, text, length, precision, scale, fraction, charset, collation = row[1:9]
    name = name.lower()
    if name == "vector":
        return parse_column_type(text)
    if name == "bit":
        length = precision
    elif name in {"enum", "set"}:
        length = None
    return ColumnType(
        name=name,
        unsigned="unsigned" in text,
        length=length,
        precision=precision if name == "decimal" else None,
        scale=scale if name == "decimal" else None,
        fraction=fraction or 0,
        labels=tuple(m.replace("''", "'") for m in MEMBER.findall(text)) if name in {"enum", "set"} else (),
        charset=charset,
        collation=collation,
    )


def capture(server: Server, database: str, table: str) -> Snapshot:
    """The table as ``information_schema`` shows it; column ids from 1 in order."""
    rows = server.sql(COLUMNS, database, table)
    columns = tuple(
        Column(id=index, name=row[0], type=_type(row), nullable=row[9] == "YES") for index, row in enumerate(rows, 1)
    )
    ids = {column.name: column.id for column in columns}
    key = tuple(ids[name] for (name,) in server.sql(KEY, database, table))
    return Snapshot(
        table_id=1,
        name=TableName(database, table),
        columns=columns,
        primary_key=key,
        charset="utf8mb4",
        collation="utf8mb4_bin",
    )


def planned(*snapshots: Snapshot) -> tuple[PlannedTable, ...]:
    """Plans in which each snapshot is in force from the start; table ids from 1."""
    return tuple(
        PlannedTable(
            table_id=number,
            versions=(PlannedVersion(version=1, place=None, edits=(), snapshot=snapshot, segment=0),),
        )
        for number, snapshot in enumerate(snapshots, 1)
    )


def log_end(server: Server) -> tuple[str, int]:
    """File and offset of the log's end."""
    new = server.flavor == "mysql" and server.name == "mysql9"
    row = server.sql("SHOW BINARY LOG STATUS" if new else "SHOW MASTER STATUS")[0]
    return row[0], int(row[1])


def decode(
    server: Server, tables: Sequence[PlannedTable], since: tuple[str, int], *, events: int | None = None, **options: Any
) -> list[Chunk]:
    """The chunks of what the server has logged since that place, in one file; *events* a window."""
    file, start = since
    (path,) = (path for path in server.binlog_files() if path.name == file)
    numbers = VERSION.match(server.version)
    assert numbers is not None
    version = (int(numbers[1]) * 100 + int(numbers[2])) * 100 + int(numbers[3])
    decoder = RangeDecoder(tables, flavor=server.flavor, **options)
    chunks: list[Chunk] = []
    for window in file_windows(path, start=start, events=events, version=version):
        chunks += decoder.feed(window)
    return [*chunks, *decoder.finish()]


def decode_events(
    events: list[bytes], *snapshots: Snapshot, per_window: int | None = None, **options: Any
) -> list[Chunk]:
    """The chunks of made-up events of one MySQL file, *per_window* events a window."""
    decoder = RangeDecoder(planned(*snapshots), flavor="mysql", **options)
    chunks: list[Chunk] = []
    step = per_window or len(events)
    offset = 4
    for first in range(0, len(events), step):
        some = events[first : first + step]
        chunks += decoder.feed(window_of(some, offset=offset))
        offset += sum(map(len, some))
    return [*chunks, *decoder.finish()]


def changes(chunks: Iterable[Chunk], snapshot: Snapshot, table_id: int = 1) -> Iterator[tuple[Any, ...]]:
    """The rows of one table in order: the operation's sign, then the values in column order."""
    for chunk in sorted(chunks, key=lambda chunk: chunk.sequence):
        if chunk.table_id == table_id:
            columns = [chunk.rows.column(physical_name(column.id)).to_pylist() for column in snapshot.columns]
            signs = [Op(op).sign for op in chunk.rows.column("op").to_pylist()]
            yield from zip(signs, *columns, strict=True)
