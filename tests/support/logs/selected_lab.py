"""Rows read by SELECT beside the same rows read from the log of the INSERTs that brought them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from connectors.readers.binlog.selected.reading import select_rows
from connectors.readers.binlog.selected.sessions import selecting_connection
from connectors.readers.binlog.transport.connection import ServerAddress, TlsSettings
from historian.changelog.chunks import Chunk, dead_letters
from historian.changelog.operations import CHUNK_COLUMNS
from historian.plans.plans import PlannedVersion
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot
from logs.decoder_lab import decode, planned

if TYPE_CHECKING:
    from databases.servers import Server
    from logs.decoder_values import Case

__all__ = ["POSITION_OFFSET", "address", "filled", "same_rows", "select", "told", "typed_rows"]

POSITION_OFFSET = 5_000_000_000


def address(server: Server, tls: str = "preferred") -> ServerAddress:
    """Where the server is."""
    return ServerAddress(
        host=server.host, port=server.port, user=server.user, password=server.password, tls=TlsSettings(mode=tls)
    )


def select(server: Server, snapshot: Snapshot, **options: Any) -> list[Chunk]:
    """The chunks of all rows of a table."""
    version = PlannedVersion(version=7, place=None, edits=(), snapshot=snapshot, segment=3)
    position = LogPosition(flavor=server.flavor, gtids="", file="bin.000009", offset=POSITION_OFFSET)
    with contextlib.closing(selecting_connection(address(server), server.flavor)) as connection:
        options = {"table_id": 11, "flavor": server.flavor, "position": position, "event_time_us": 5, **options}
        return list(select_rows(connection, version, **options))


def typed_rows(chunks: Iterable[Chunk]) -> pa.Table | None:
    """The data of chunks, with their types; None where there are no rows."""
    batches = [chunk.rows for chunk in chunks if not chunk.stopped]
    parts = [batch.select(batch.schema.names[len(CHUNK_COLUMNS) :]) for batch in batches]
    parts = [part.replace_schema_metadata(None) for part in parts]
    return pa.Table.from_batches(parts).combine_chunks() if parts else None


def told(chunks: Iterable[Chunk]) -> tuple[dict[str, int], list[tuple[Any, ...]]]:
    """What became NULL, by column, and the dead letters."""
    nulled: dict[str, int] = {}
    letters = []
    for chunk in chunks:
        for name, count in json.loads((chunk.rows.schema.metadata or {}).get(b"nulled", b"{}")).items():
            nulled[name] = nulled.get(name, 0) + count
        letters += [
            tuple(letter[name] for name in ("column", "raw", "text", "reason", "op"))
            for letter in json.loads(dead_letters(chunk) or "[]")
        ]
    return nulled, letters


def same_rows(server: Server, snapshots: Sequence[Snapshot], since: tuple[str, int]) -> None:
    """Stops where a value or type, or what became of a value, differs between log and SELECT."""
    logged = decode(server, planned(*snapshots), since, stops=True)
    for number, snapshot in enumerate(snapshots, 1):
        mine = [chunk for chunk in logged if chunk.table_id == number]
        found = select(server, snapshot)
        reasons = [[chunk.stopped.partition(" (")[0] for chunk in chunks if chunk.stopped] for chunks in (mine, found)]
        assert reasons[0] == reasons[1]
        expected, actual = typed_rows(mine), typed_rows(found)
        if expected is None or actual is None:
            assert expected is actual, f"{snapshot.name} on {server.version}"
            continue
        assert expected.schema == actual.schema
        for column, name in zip(snapshot.columns, expected.schema.names, strict=True):
            one, other = expected.column(name), actual.column(name)
            if _bits(one) != _bits(other):
                rows = [
                    pair
                    for pair in zip(one.to_pylist(), other.to_pylist(), strict=False)
                    if repr(pair[0]) != repr(pair[1])
                ]
                raise AssertionError(f"{column.name} {column.type} on {server.version}: logged, selected {rows[:5]}")
        assert told(mine) == told(found)


def _bits(column: pa.ChunkedArray) -> Any:
    """What tells -0.0 from 0.0."""
    if pa.types.is_floating(column.type):
        return [None if value is None else value.hex() for value in column.to_pylist()]
    return column


def filled(cursor: Any, wanted: Sequence[Case], table: str) -> None:
    """Writes the cases' values, one case a column, NULL where one has no more."""
    columns = ", ".join(f"v{n} {case.type}" for n, case in enumerate(wanted))
    cursor.execute(f"CREATE TABLE {table} (k INT PRIMARY KEY, {columns}, w INT NOT NULL)")
    rows, values = [], []
    for k in range(1 + max(len(case.values) for case in wanted)):
        cells = [case.values[k] if k < len(case.values) else None for case in wanted]
        sql = [cell[4:].decode() if isinstance(cell, bytes) and cell.startswith(b"sql:") else "%s" for cell in cells]
        values += [cell for cell, expression in zip(cells, sql, strict=True) if expression == "%s"]
        rows.append(f"({k}, {', '.join(sql)}, 0)")
    cursor.execute(f"INSERT INTO {table} VALUES {', '.join(rows)}", values)
