"""Row images of every kind: random statements on a real server, and what its rows must then be, by SELECT."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from connectors.tracking.capture.catalog import capture_catalog
from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import ABSENT, UNSEEN, marked
from historian.changelog.operations import Op, physical_name
from historian.names import TableName
from historian.schema.snapshots import Snapshot

if TYPE_CHECKING:
    from databases.servers import Server

__all__ = ["DATABASE", "UNKNOWN", "Change", "ImageLab", "changes_of", "has_whole_images", "lacking", "replayed"]

DATABASE = "images"

COLUMNS = """
    id INT PRIMARY KEY, v VARCHAR(20), n INT NOT NULL DEFAULT 5, d DECIMAL(12,3) DEFAULT 1.250,
    ts DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), b BLOB, t TEXT NOT NULL, j JSON, k JSON,
    e ENUM('a','b') NOT NULL, s SET('x','y') DEFAULT 'x,y', gv INT GENERATED ALWAYS AS (n + 1) VIRTUAL,
    gs INT GENERATED ALWAYS AS (n + 2) STORED, bi BIT(9) DEFAULT b'101', f DOUBLE DEFAULT 0.1,
    gw INT GENERATED ALWAYS AS (gv * 2) VIRTUAL
"""


@dataclass(frozen=True, slots=True)
class Change:
    """A decoded row: operation, the event that it is of, values by name, and the names that are absent and unseen."""

    op: Op
    event: tuple[int, int]
    values: dict[str, Any]
    absent: frozenset[str]
    unseen: frozenset[str]


UNKNOWN = object()
"""Stands in a replayed row where the log does not tell the value."""


def changes_of(chunks: Sequence[Chunk], snapshot: Snapshot) -> Iterator[Change]:
    """The rows of one table's chunks."""
    names = [column.name for column in snapshot.columns]
    for chunk in sorted(chunks, key=lambda chunk: chunk.sequence):
        columns = [chunk.rows.column(physical_name(column.id)).to_pylist() for column in snapshot.columns]
        system = [chunk.rows.column(name).to_pylist() for name in ("op", "sequence", "ordinal")]
        absent, unseen = (marked(chunk.rows, name, len(names)) for name in (ABSENT, UNSEEN))
        for row, (op, sequence, ordinal, *values) in enumerate(zip(*system, *columns, strict=True)):
            of = [
                frozenset(name for name, bit in zip(names, bits[row], strict=True) if bit) for bits in (absent, unseen)
            ]
            yield Change(Op(op), (sequence, ordinal), dict(zip(names, values, strict=True)), *of)


def replayed(table: dict[Any, dict[str, Any]], changes: Sequence[Change], key: str = "id") -> None:
    """Applies *changes* to *table*: absent columns keep what they had, unseen ones become :data:`UNKNOWN`."""
    former: dict[str, Any] = {}
    for change in changes:
        if change.op in (Op.RETRACT, Op.CORRECT_FROM):
            assert not change.unseen, change
            former = table.pop(change.values[key])
            for name, value in change.values.items():
                assert name in change.absent or former[name] in (value, UNKNOWN), (name, former[name], change)
        else:
            row = {
                name: former.get(name, UNKNOWN) if name in change.absent else value
                for name, value in change.values.items()
            }
            table[change.values[key]] = row | dict.fromkeys(change.unseen, UNKNOWN)
            former = {}


def lacking(data: bytes, names: Sequence[str]) -> Iterator[tuple[int, list[frozenset[str]]]]:
    """Of each row event in a file's bytes: its kind, and the columns that its images lack. Checksums are assumed."""
    place = 4
    while place < len(data):
        size, kind = int.from_bytes(data[place + 9 : place + 13], "little"), data[place + 4]
        body = data[place + 19 : place + size - 4]
        place += size
        if kind not in (23, 24, 25, 30, 31, 32, 39):
            continue
        at = 8 + (int.from_bytes(body[8:10], "little") if kind >= 30 else 0)
        at += 1 if body[at] < 251 else 3
        width = (len(names) + 7) // 8
        maps = [
            body[at + width * image : at + width * (image + 1)] for image in range(2 if kind in (24, 31, 39) else 1)
        ]
        yield (
            kind,
            [frozenset(n for bit, n in enumerate(names) if not bits[bit >> 3] >> (bit & 7) & 1) for bits in maps],
        )


def has_whole_images(server: Server) -> bool:
    """Whether images of FULL have generated columns, too: those of UPDATE and DELETE on MariaDB 11.8.9 have none."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE whole_images")
        cursor.execute("CREATE TABLE whole_images.t (a INT PRIMARY KEY, b INT, s INT AS (b + 1) STORED)")
        cursor.execute("INSERT INTO whole_images.t (a, b) VALUES (1, 2)")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("UPDATE whole_images.t SET b = 3")
        cursor.execute("DROP DATABASE whole_images")
    ((_, images),) = lacking(server.binlog_files()[-1].read_bytes(), ["a", "b", "s"])
    return not any(images)


@dataclass
class ImageLab:
    """A table on a server that takes random statements under images that change, each its own transaction."""

    server: Server
    table: str
    images: Sequence[str]
    seed: int
    partial_json: bool = False
    columns: str = COLUMNS
    statements: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._connection = self.server.connect(autocommit=True)
        self.run(f"CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4")
        self.run(f"USE {DATABASE}")
        self.run(f"CREATE TABLE {self.table} ({self.columns})")
        catalog = capture_catalog(self._connection, 1, 1)
        self.snapshot = catalog.tables[TableName(DATABASE, self.table)]

    def run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
        self.statements.append(statement)

    def rows(self) -> dict[Any, dict[str, Any]]:
        """What the table holds now, by id."""
        names = [column.name for column in self.snapshot.columns]
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(f'`{name}`' for name in names)} FROM {self.table}")
            found = cursor.fetchall()
        kinds = [column.type.name for column in self.snapshot.columns]
        rows = [
            {name: _plain(kind, value) for name, kind, value in zip(names, kinds, row, strict=True)} for row in found
        ]
        return {row["id"]: row for row in rows}

    def step(self) -> None:
        """One random statement under a random image."""
        roll = self._random
        self.run(f"SET SESSION binlog_row_image = {roll.choice(self.images)}")
        if self.partial_json:
            self.run(f"SET SESSION binlog_row_value_options = '{roll.choice(('', 'PARTIAL_JSON', 'PARTIAL_JSON'))}'")
        what = roll.choice(
            ("insert", "insert", "update", "update", "update", "key", "delete", "json", "json", "replace")
        )
        if what == "replace" and self.server.flavor == "mariadb":
            what = "insert"  # MariaDB's MINIMAL and NOBLOB images of REPLACE lack what goes back to its default
        getattr(self, f"_{what}")()

    def _insert(self, verb: str = "INSERT IGNORE") -> None:
        given = {"id": str(self._random.randrange(12)), "t": self._value("t")}
        for name in self._random.sample(
            ("v", "n", "d", "ts", "b", "j", "k", "e", "s", "bi", "f"), self._random.randrange(8)
        ):
            given[name] = self._value(name)
        self.run(f"{verb} INTO {self.table} ({', '.join(given)}) VALUES ({', '.join(given.values())})")

    def _replace(self) -> None:
        self._insert("REPLACE")

    def _update(self) -> None:
        names = self._random.sample(
            ("v", "n", "d", "b", "t", "j", "k", "e", "s", "bi", "f"), self._random.randrange(1, 4)
        )
        sets = ", ".join(f"{name} = {self._value(name)}" for name in names)
        self.run(f"UPDATE {self.table} SET {sets} WHERE id {self._random.choice('<>=')} {self._random.randrange(12)}")

    def _key(self) -> None:
        extra = self._random.choice(("", f", v = {self._value('v')}", f", b = {self._value('b')}"))
        old, new = self._random.sample(range(12), 2)
        self.run(f"UPDATE IGNORE {self.table} SET id = {new}{extra} WHERE id = {old}")

    def _delete(self) -> None:
        self.run(
            f"DELETE FROM {self.table} WHERE id {self._random.choice(('=', '=', '>'))} {self._random.randrange(12)}"
        )

    def _json(self) -> None:
        name = self._random.choice("jk")
        where = f"WHERE id {self._random.choice('<>=')} {self._random.randrange(12)}"
        self.run(
            f"UPDATE {self.table} SET {name} = {self._json_change(name)}{self._random.choice(('', ', v = 7'))} {where}"
        )

    def _json_change(self, name: str) -> str:
        roll = self._random
        changed = name
        for _ in range(roll.randrange(1, 4)):
            path = _literal(
                roll.choice([path for path in PATHS if self.server.name != "mysql57" or "last" not in path])
            )
            value = roll.choice(("1", "-70000", "'text'", "CAST('[1, {\"x\": null}]' AS JSON)", "2.5", "true", "NULL"))
            if self.server.flavor == "mariadb":
                value = value.replace("CAST('[1, {\"x\": null}]' AS JSON)", "JSON_ARRAY(1, 2)")
            kind = roll.choice(("SET", "REPLACE", "REMOVE"))
            changed = f"JSON_{kind}({changed}, {path}" + ("" if kind == "REMOVE" else f", {value}") + ")"
        return changed

    def _value(self, name: str) -> str:
        roll = self._random
        if name in "jk":
            return "NULL" if roll.random() < 0.2 else _literal(json.dumps(_document(roll)))
        if name == "n":
            return roll.choice((str(roll.randrange(100)), "n"))
        if name in "bt":
            return f"'{roll.choice(('blob', 'x' * roll.randrange(300), ''))}'"
        fixed = {
            "v": ("'x'", "'y z'", "NULL", "v"),
            "d": ("1.5", "NULL", "-999999999.999"),
            "e": ("'a'", "'b'"),
            "s": ("'x'", "''", "NULL"),
            "ts": ("'2020-01-02 03:04:05.678'", "NULL"),
            "bi": ("b'111'", "NULL", "300"),
            "f": ("0.5", "NULL", "1e100"),
        }
        return roll.choice(fixed[name])


PATHS = (
    "$.a",
    "$.b",
    "$.b[0]",
    "$.b[1]",
    "$.b[9]",
    "$.c.d",
    '$.c."key with space"',
    "$.c.new",
    "$.fill",
    "$.long.deep[2].z",
    '$.c."q\\"uote"',
    "$.c.ä",
    "$.a[0]",
    "$.b[last]",
    "$.b[last-1]",
    "$.x[0]",
)


def _document(roll: random.Random) -> Any:
    return {
        "a": roll.randrange(-40000, 40000),
        "b": [roll.randrange(9) for _ in range(roll.randrange(4))],
        "c": {"d": roll.choice((None, True, "s", 1.5)), "key with space": "v", 'q"uote': 1, "ä": "ö"},
        "fill": "f" * roll.choice((10, 60, 200, 70000)),
        "long": {"deep": [{"z": 1}, {"z": 2}, {"z": [3]}]},
    }


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _plain(kind: str, value: Any) -> Any:
    if isinstance(value, set):
        return ",".join(sorted(value))
    return value
