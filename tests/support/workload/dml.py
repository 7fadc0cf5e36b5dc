"""Statements that change rows, and what each did to every row, read from the server inside the same transaction.

Writers do not disturb each other's rows: in tables with a key each row belongs to the writer that its number names, in
those without one to the writer in its owner column. So what a statement is about to change can be read before it runs,
in the order it will run.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

from workload.notes import NotedChange, Row
from workload.session import Session
from workload.shapes import ColumnShape, Shape, quoted
from workload.values import BITS, literal, random_value

__all__ = ["Writer"]

SHIFT = 1_000_000
ENOUGH_ROWS = 60


class Writer:
    """One connection's statements. ``number`` is its own among ``writers``."""

    def __init__(self, session: Session, rng: random.Random, number: int, writers: int) -> None:
        self.session = session
        self.rng = rng
        self.number = number
        self.writers = writers
        self._fresh = itertools.count(10)

    def change(self, shape: Shape) -> list[NotedChange]:
        """Runs a random statement, or a few, on the table; returns what it did to each row, in the log's order."""
        return self._change_keyed(shape) if shape.key else self._change_keyless(shape)

    # -- tables with a primary key -----------------------------------------------------------------------------------

    def _change_keyed(self, shape: Shape) -> list[NotedChange]:
        mine = self._own_keys(shape)
        if len(mine) < 8:
            return self._insert(shape)
        kinds: list[tuple[int, Callable[[], list[NotedChange]]]] = [
            (2 if len(mine) > ENOUGH_ROWS else 10, lambda: self._insert(shape)),
            (8, lambda: self._update(shape, self._some(mine))),
            (1, lambda: self._update_one_by_one(shape, self._some(mine)[:5])),
            (6 if len(mine) > ENOUGH_ROWS else 2, lambda: self._delete(shape, self._some(mine))),
        ]
        if not shape.auto_increment:
            kinds += [
                (1, lambda: self._upsert(shape, self._some(mine)[:10])),
                (1, lambda: self._change_keys(shape, self._some(mine)[:6])),
            ]
        weights, makers = zip(*kinds, strict=True)
        (maker,) = self.rng.choices(makers, weights)
        made: list[NotedChange] = maker()
        return made

    def _own_keys(self, shape: Shape) -> list[tuple[Any, ...]]:
        names = ", ".join(map(quoted, shape.key))
        rows = self.session.rows(f"SELECT {names} FROM {shape.sql} ORDER BY {names} LIMIT 600")
        keys = [tuple(row.values()) for row in rows]
        return [key for key in keys if _number(key) % self.writers == self.number]

    def _some(self, items: Sequence[Any]) -> list[Any]:
        return self.rng.sample(items, min(len(items), self.rng.choice((1, 3, 10, 30))))

    def _insert(self, shape: Shape) -> list[NotedChange]:
        columns = self._columns_to_write(shape)
        count = self.rng.choice((1, 2, 3, 10, 25, 60))
        rows = [self._new_row(columns) for _ in range(count)]
        self.session.run(f"INSERT INTO {shape.sql} {_values(columns, rows)}")
        if shape.auto_increment:
            first = self.session.one("SELECT LAST_INSERT_ID()")
            keys = [(first + at,) for at in range(count)]
        else:
            keys = [tuple(row[name] for name in shape.key) for row in rows]
        stored = self._read(shape, keys)
        return [self._changed(shape, None, stored[key]) for key in keys]

    def _upsert(self, shape: Shape, keys: list[tuple[Any, ...]]) -> list[NotedChange]:
        columns = self._columns_to_write(shape)
        rows = [self._new_row(columns) for _ in range(self.rng.randint(1, 10))]
        rows += [{**self._new_row(columns), **dict(zip(shape.key, key, strict=True))} for key in keys]
        self.rng.shuffle(rows)
        written = [column for column in columns if column.free]
        if not written:
            return self._insert(shape)
        before = self._read(shape, keys)
        sets = ", ".join(f"{quoted(c.name)} = VALUES({quoted(c.name)})" for c in written)
        self.session.run(f"INSERT INTO {shape.sql} {_values(columns, rows)} ON DUPLICATE KEY UPDATE {sets}")
        wanted = [tuple(row[name] for name in shape.key) for row in rows]
        after = self._read(shape, wanted)
        return [self._changed(shape, before.get(key), after[key]) for key in wanted if before.get(key) != after[key]]

    def _update(self, shape: Shape, keys: list[tuple[Any, ...]]) -> list[NotedChange]:
        sets = self._assignments(shape)
        if not sets:
            return self._delete(shape, keys[:3])
        before = self._read(shape, keys)
        order = ", ".join(map(quoted, shape.key))
        self.session.run(f"UPDATE {shape.sql} SET {sets} WHERE {_where(shape, keys)} ORDER BY {order}")
        after = self._read(shape, keys)
        return [self._changed(shape, before[key], after[key]) for key in before if before[key] != after[key]]

    def _update_one_by_one(self, shape: Shape, keys: list[tuple[Any, ...]]) -> list[NotedChange]:
        return [change for key in keys for change in self._update(shape, [key])]

    def _delete(self, shape: Shape, keys: list[tuple[Any, ...]]) -> list[NotedChange]:
        before = self._read(shape, keys)
        order = ", ".join(map(quoted, shape.key))
        self.session.run(f"DELETE FROM {shape.sql} WHERE {_where(shape, keys)} ORDER BY {order}")
        return [self._changed(shape, row, None) for row in before.values()]

    def _change_keys(self, shape: Shape, keys: list[tuple[Any, ...]]) -> list[NotedChange]:
        """New key values: numbers move on by a million at once, texts change letter case or get another word."""
        column = next((c for c in shape.key_columns if c.type == "varchar"), shape.key_columns[0])
        at = shape.key.index(column.name)
        before = self._read(shape, keys)
        order = ", ".join(map(quoted, shape.key))
        if column.type != "varchar":
            self.session.run(
                f"UPDATE {shape.sql} SET {quoted(column.name)} = {quoted(column.name)} + {SHIFT} "
                f"WHERE {_where(shape, keys)} ORDER BY {order}"
            )
            moved = {key: (*key[:at], key[at] + SHIFT, *key[at + 1 :]) for key in before}
        else:
            moved = {}
            for key in before:
                text = key[at].swapcase() if self.rng.random() < 0.5 else f"neu-{key[at].rpartition('-')[2]}"
                sets = f"{quoted(column.name)} = {literal(column, text)}"
                self.session.run(f"UPDATE {shape.sql} SET {sets} WHERE {_where(shape, [key])}")
                moved[key] = (*key[:at], text, *key[at + 1 :])
        after = self._read(shape, list(moved.values()))
        return [
            self._changed(shape, before[key], after[new]) for key, new in moved.items() if before[key] != after[new]
        ]

    def _read(self, shape: Shape, keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], Row]:
        """The rows of these keys, locked, in the order of the key."""
        if not keys:
            return {}
        order = ", ".join(map(quoted, shape.key))
        rows = self.session.rows(f"SELECT * FROM {shape.sql} WHERE {_where(shape, keys)} ORDER BY {order} FOR UPDATE")
        return {tuple(row[name] for name in shape.key): row for row in rows}

    # -- tables without a key ----------------------------------------------------------------------------------------

    def _change_keyless(self, shape: Shape) -> list[NotedChange]:
        mine = self._own_rows(shape)
        if len(mine) < 10 or (len(mine) < ENOUGH_ROWS and self.rng.random() < 0.4):
            return self._insert_keyless(shape)
        where = self._condition(shape, mine)
        if self.rng.random() < 0.6:
            sets = self._assignments(shape)
            if sets:
                self.session.run(f"UPDATE {shape.sql} SET {sets} {where}")
                after = self._own_rows(shape)
                pairs = zip(mine, after, strict=True)
                return [self._changed(shape, old, new) for old, new in pairs if old != new]
        gone = self.session.rows(f"SELECT * FROM {shape.sql} {where} FOR UPDATE")
        self.session.run(f"DELETE FROM {shape.sql} {where}")
        return [self._changed(shape, row, None) for row in gone]

    def _insert_keyless(self, shape: Shape) -> list[NotedChange]:
        columns = self._columns_to_write(shape)
        different = [self._new_row(columns) for _ in range(self.rng.randint(1, 8))]
        rows = [self.rng.choice(different) for _ in range(self.rng.choice((1, 12, 40)))]
        self.session.run(f"INSERT INTO {shape.sql} {_values(columns, rows)}")
        return [self._changed(shape, None, row) for row in self._own_rows(shape)[-len(rows) :]]

    def _own_rows(self, shape: Shape) -> list[Row]:
        """Rows of this writer in the order they were inserted, which is the order any statement finds them in."""
        return self.session.rows(
            f"SELECT * FROM {shape.sql} WHERE {quoted(shape.owner.name)} = {self.number} FOR UPDATE"
        )

    def _condition(self, shape: Shape, mine: list[Row]) -> str:
        where = f"WHERE {quoted(shape.owner.name)} = {self.number}"
        exact = [c for c in shape.free if c.type in {*BITS, "date", "varchar"}]
        if exact and self.rng.random() < 0.6:
            column = self.rng.choice(exact)
            where += f" AND {quoted(column.name)} <=> {literal(column, self.rng.choice(mine)[column.name])}"
        return f"{where} LIMIT {self.rng.randint(1, 40)}"

    # -- both --------------------------------------------------------------------------------------------------------

    def _columns_to_write(self, shape: Shape) -> list[ColumnShape]:
        """All columns, or at times without some that the server fills in."""
        columns = [column for column in shape.columns if not column.auto_increment and not column.generated]
        if self.rng.random() < 0.6:
            return columns
        fills = [c.name for c in columns if c.free and (c.nullable or c.default is not None)]
        left_out = {name for name in fills if self.rng.random() < 0.4}
        return [column for column in columns if column.name not in left_out]

    def _new_row(self, columns: Sequence[ColumnShape]) -> dict[str, Any]:
        number = next(self._fresh) * self.writers + self.number
        row: dict[str, Any] = {}
        for column in columns:
            if column.indexed:
                row[column.name] = self.number
            elif not column.primary:
                row[column.name] = random_value(column, self.rng)
            elif column.type == "varchar":
                row[column.name] = f"{self.rng.choice(('Tee', 'кофе', 'x'))}-{number}"
            else:
                row[column.name] = number
        return row

    def _assignments(self, shape: Shape) -> str:
        if not shape.free:
            return ""
        chosen = self.rng.sample(shape.free, min(len(shape.free), self.rng.randint(1, 3)))
        return ", ".join(f"{quoted(c.name)} = {literal(c, random_value(c, self.rng))}" for c in chosen)

    def _changed(self, shape: Shape, before: Row | None, after: Row | None) -> NotedChange:
        return NotedChange(table=shape.table, before=before, after=after, key=shape.key)


def _number(key: tuple[Any, ...]) -> int:
    """What says whose row it is: the number in the key's text, else the largest of its numbers."""
    texts = [part for part in key if isinstance(part, str)]
    return int(texts[0].rpartition("-")[2]) if texts else max(key) % SHIFT


def _where(shape: Shape, keys: Sequence[tuple[Any, ...]]) -> str:
    if len(shape.key) == 1:
        (column,) = shape.key_columns
        return f"{quoted(column.name)} IN ({', '.join(literal(column, key[0]) for key in keys)})"
    names = ", ".join(map(quoted, shape.key))
    tuples = (", ".join(literal(c, v) for c, v in zip(shape.key_columns, key, strict=True)) for key in keys)
    return f"({names}) IN ({', '.join(f'({one})' for one in tuples)})"


def _values(columns: Sequence[ColumnShape], rows: Sequence[dict[str, Any]]) -> str:
    names = ", ".join(quoted(column.name) for column in columns)
    tuples = ("(" + ", ".join(literal(c, row[c.name]) for c in columns) + ")" for row in rows)
    return f"({names}) VALUES {', '.join(tuples)}"
