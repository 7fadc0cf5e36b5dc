"""The servers' own readers of binlogs, ``mysqlbinlog -vv`` and ``mariadb-binlog -vv``: row images as they print them."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

from databases.server_builds import BUILDS, Build
from historian.changelog.chunks import Chunk
from historian.changelog.operations import Op, physical_name
from historian.names import TableName
from historian.plans.plans import PlannedTable
from historian.schema.snapshots import Column

__all__ = ["Image", "printed_images", "spelled_images"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ESCAPES = {ord("'"): b"\\'", ord("\\"): b"\\\\", 8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r"}
BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
CODECS = {"utf8mb4": "utf-8", "utf8mb3": "utf-8", "latin1": "cp1252", "ascii": "ascii"}


class Image(NamedTuple):
    """A row before ("-") or after ("+") a change, its values as the readers print them."""

    table: TableName
    side: str
    values: tuple[bytes, ...]


# ---- what the readers print ------------------------------------------------------------------------------------------
def _command(server: Build) -> list[str]:
    """MySQL's older servers come without a reader; that of the newest reads their files."""
    if server.flavor == "mysql":
        return BUILDS["mysql9"].command("usr/bin/mysqlbinlog")
    return server.command("usr/bin/mariadb-binlog")


def printed_images(server: Build, files: Iterable[Path], databases: Iterable[str]) -> Counter[Image]:
    """The images in *files* of tables of those databases."""
    command = [*_command(server), "--no-defaults", "-vv", "--base64-output=DECODE-ROWS", *map(str, files)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = set(databases)
    return Counter(image for image in _images(done.stdout.split(b"\n")) if image.table.database in wanted)


def _images(lines: Iterable[bytes]) -> Iterator[Image]:
    table: TableName | None = None
    side, values = "", list[bytes]()
    for line in [*lines, b"### END"]:
        if not line.startswith(b"### "):
            continue
        if line.startswith(b"###   @"):
            value, _, kind = line.partition(b"=")[2].rpartition(b" /* ")
            value = value.rstrip(b" ")
            values.append(_without_points(value) if kind.startswith(b"JSON ") else value)
            continue
        if values and table is not None:
            yield Image(table, side, tuple(values))
            values = []
        if line in (b"### SET", b"### WHERE"):
            side = "+" if line == b"### SET" else "-"
        elif line != b"### END":
            database, name = line.decode().partition("`")[2].rstrip("`").split("`.`")
            table = TableName(database, name)


# ---- the same of ours ------------------------------------------------------------------------------------------------
def spelled_images(chunks: Iterable[Chunk], tables: Iterable[PlannedTable], flavor: str) -> Counter[Image]:
    """Our rows in the readers' spelling."""
    snapshots = {(table.table_id, version.version): version.snapshot for table in tables for version in table.versions}
    found: Counter[Image] = Counter()
    for chunk in chunks:
        snapshot = snapshots[chunk.table_id, chunk.version]
        assert snapshot is not None
        columns = [
            [b"NULL" if value is None else _spelled(column, value, flavor) for value in values.to_pylist()]
            for column, values in ((each, chunk.rows.column(physical_name(each.id))) for each in snapshot.columns)
        ]
        sides = [Op(op).sign[0] for op in chunk.rows.column("op").to_pylist()]
        found.update(
            Image(snapshot.name, side, row) for side, row in zip(sides, zip(*columns, strict=True), strict=True)
        )
    return found


def _spelled(column: Column, value: Any, flavor: str) -> bytes:
    kind = column.type
    if kind.name in BITS:
        return _integer(int(value), BITS[kind.name]).encode()
    if kind.name in SPELLINGS:
        return SPELLINGS[kind.name](value, kind.fraction or 0).encode()
    if kind.name == "bit":
        number = int(value) if isinstance(value, bool) else int.from_bytes(value, "big")
        return f"b'{number:0{kind.length}b}'".encode()
    if kind.name == "enum":
        return str(kind.labels.index(value) + 1 if value in kind.labels else 0).encode()
    if kind.name == "set":
        chosen = value.split(",") if value else []
        number = sum(1 << kind.labels.index(label) for label in chosen)
        width = next(width for width in (1, 2, 3, 4, 8) if 8 * width >= len(kind.labels))
        return f"b'{number:0{8 * width}b}'".encode()
    if kind.name == "json" and flavor == "mysql":
        # A document that is a text comes without its quotes.
        text = json.loads(value) if value.startswith('"') else value
        return _without_points(_quoted(text.encode(), flavor))
    if isinstance(value, str):
        return _quoted(value.encode(CODECS[kind.charset or "utf8mb4"]), flavor)
    return _quoted(value.rstrip(b"\0") if kind.name == "binary" else value, flavor)


def _without_points(document: bytes) -> bytes:
    """MySQL 5.7 prints whole doubles without a point, the newest reader all of them with one."""
    return re.sub(rb"(\d)\.0(?!\d)", rb"\1", document)


def _integer(value: int, bits: int) -> str:
    """As a signed number; where that is negative the unsigned one stands behind it."""
    unsigned = value % (1 << bits)
    return f"{unsigned - (1 << bits)} ({unsigned})" if unsigned >> (bits - 1) else str(unsigned)


def _quoted(data: bytes, flavor: str) -> bytes:
    """MySQL's reader escapes as its SQL does, MariaDB's bytes below 32 alone."""
    named = ESCAPES if flavor == "mysql" else {}
    escaped = {byte: named.get(byte, b"\\x%02x" % byte) for byte in (*named, *range(32))}
    return b"'" + b"".join(escaped.get(byte, bytes([byte])) for byte in data) + b"'"


def _fraction(us: int, digits: int) -> str:
    return f".{us:06}"[: digits + 1] if digits else ""


def _date(value: date, _: int) -> str:
    return f"'{value.year:04}:{value.month:02}:{value.day:02}'"


def _datetime(value: datetime, digits: int) -> str:
    return f"'{value.replace(microsecond=0).isoformat(' ')}{_fraction(value.microsecond, digits)}'"


def _timestamp(value: datetime, digits: int) -> str:
    return f"{(value - EPOCH) // timedelta(seconds=1)}{_fraction(value.microsecond, digits)}"


def _time(value: int, digits: int) -> str:
    seconds, us = divmod(abs(value), 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"'{'-' if value < 0 else ''}{clock}{_fraction(us, digits)}'"


SPELLINGS: dict[str, Callable[[Any, int], str]] = {
    "year": lambda value, _: str(value or 1900),
    "decimal": lambda value, _: value if isinstance(value, str) else f"{value:f}",
    "float": lambda value, _: f"{value:g}",
    "double": lambda value, _: f"{value:.20g}",
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time,
}
