"""Random statements and rows for a lab: every kind of edit that a lake follows, on tables of every kind of target."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from historian.plans.plans import Plan
from historian.schema.snapshots import ColumnType
from historian.values.policies import DEAD_LETTER
from lakes.sink_lab import INT, Lab, decimal, text

__all__ = ["RandomLab"]

_BIG = ColumnType(name="bigint")
_WIDER = (_BIG, decimal(12, 2), ColumnType(name="double"))
_DATE = ColumnType(name="date", options=DEAD_LETTER)
_COLUMNS = {"id": INT, "a": text(), "n": INT}


class RandomLab:
    """A lab with two tables with a key, and one without, whose dates may be dead letters.

    Args:
        seed: of all choices.
    """

    def __init__(self, seed: int) -> None:
        self.lab = Lab()
        self._rng = Random(seed)
        self._last_id = 0
        self._last_name = 0
        for name in ("shop.t", "shop.soft"):
            self.lab.create(name, _COLUMNS)
        self.lab.create("shop.bag", {"n": INT, "d": _DATE}, key=())
        self._names = ["shop.t", "shop.soft"]

    @property
    def tables(self) -> list[str]:
        """The present names of all tables."""
        return [*self._names, "shop.bag"]

    def plan(self, statements: int = 6) -> Plan:
        """The next plan: that many random changes of each table, and always rows, edits and a statement that clears one."""
        for at, name in enumerate(self._names):
            self._insert(name)
            for _ in range(statements):
                self._rng.choice(_CHANGES)(self, self._names[at])
            if self._rng.random() < 0.6:
                self._rng.choice((RandomLab._truncate, RandomLab._create_again))(self, self._names[at])
            self._insert(self._names[at])
        self._bag()
        plan = self.lab.cut()
        self._write_letters(plan)
        return plan

    def _insert(self, name: str) -> None:
        for _ in range(self._rng.randrange(1, 5)):
            self._last_id += 1
            values = {c: self._value(c, name) for c in self._columns(name)}
            self.lab.insert(name, {**values, "id": self._last_id})

    def _update(self, name: str) -> None:
        for row in self._some(name):
            column = self._rng.choice(self._columns(name))
            if column != "id":
                self.lab.update(name, row, **{column: self._value(column, name)})

    def _delete(self, name: str) -> None:
        self.lab.delete(name, *self._some(name))

    def _move_key(self, name: str) -> None:
        for row in self._some(name)[:1]:
            self._last_id += 1
            self.lab.update(name, row, id=self._last_id)

    def _come_again(self, name: str) -> None:
        for row in self._some(name)[:1]:
            self.lab.delete(name, row)
            self.lab.insert(name, {**row, "n": 9} if "n" in row else row)

    def _add(self, name: str) -> None:
        after = self._rng.choice((None, "", "id"))
        self.lab.add(name, self._new("c"), INT, after=after, initial=self._rng.choice((None, "7", "8")))

    def _drop(self, name: str) -> None:
        others = [column for column in self._columns(name) if column not in self.lab.key_columns(name)]
        if len(others) > 1:
            self.lab.drop_column(name, self._rng.choice(others))

    def _rename_column(self, name: str) -> None:
        old, new = self._rng.choice(self._columns(name)[1:] or ["id"]), self._new("r")
        self.lab.rename_column(name, old, new)
        if old == "id":
            self.lab.rename_column(name, new, old)

    def _change_key(self, name: str) -> None:
        """To one of two columns and back; a mirror with deleted rows would stop at it."""
        others = [column for column in self._columns(name) if column != "id"]
        if name == self._names[0]:
            self.lab.set_key(name, "id", *([self._rng.choice(others)] if len(self.lab.key_columns(name)) == 1 else []))

    def _move(self, name: str) -> None:
        column, after = self._rng.choice(self._columns(name)), self._rng.choice(["", *self._columns(name)])
        if column != after:
            self.lab.move(name, column, after)

    def _widen(self, name: str) -> None:
        columns = self.lab.catalog.tables[_table(self.lab, name)].columns
        narrow = [column.name for column in columns if column.type == INT and column.name != "id"]
        if narrow:
            self.lab.retype(name, self._rng.choice(narrow), self._rng.choice(_WIDER))

    def _rename(self, name: str) -> None:
        new = self._new("shop.t")
        self.lab.rename((name, new))
        self._names[self._names.index(name)] = new

    def _truncate(self, name: str) -> None:
        self.lab.truncate(name)

    def _create_again(self, name: str) -> None:
        """Only under the name that it came by: its targets are called after that."""
        if name not in ("shop.t", "shop.soft"):
            self._truncate(name)
            return
        self.lab.drop(name)
        self.lab.create(name, _COLUMNS)

    def _bag(self) -> None:
        held = self.lab.rows("shop.bag")
        self.lab.delete("shop.bag", *held[: self._rng.randrange(3)])
        for _ in range(3):
            self.lab.insert("shop.bag", {"n": self._rng.randrange(3), "d": None})

    def _write_letters(self, plan: Plan) -> None:
        """The first row of the table without a key had a date that is none."""
        bag = self.lab.catalog.tables[_table(self.lab, "shop.bag")]
        told = json.dumps([[0, f"h{bag.columns[1].id}", "0000", "0000-00-00", "zero_dates"]])
        chunks = self.lab.chunks[plan.number]
        for at, chunk in enumerate(chunks):
            if chunk.table_id == bag.table_id:
                chunks[at] = replace(chunk, rows=chunk.rows.replace_schema_metadata({"dead_letters": told}))

    def _columns(self, name: str) -> list[str]:
        return [column.name for column in self.lab.catalog.tables[_table(self.lab, name)].columns]

    def _some(self, name: str) -> list[dict[str, Any]]:
        rows = self.lab.rows(name)
        return self._rng.sample(rows, min(len(rows), self._rng.randrange(1, 4)))

    def _value(self, column: str, name: str) -> Any:
        found = self.lab.catalog.tables[_table(self.lab, name)].column(column)
        assert found is not None
        if found.type.name == "varchar":
            return self._rng.choice(("", "x", "ä", None))
        return self._rng.choice((None, 0, 1, -5, 1 << 40 if found.type.name == "bigint" else 1 << 20))

    def _new(self, prefix: str) -> str:
        self._last_name += 1
        return f"{prefix}{self._last_name}"


_CHANGES: tuple[Callable[[RandomLab, str], None], ...] = (
    RandomLab._insert,
    RandomLab._update,
    RandomLab._update,
    RandomLab._delete,
    RandomLab._move_key,
    RandomLab._come_again,
    RandomLab._add,
    RandomLab._add,
    RandomLab._drop,
    RandomLab._rename_column,
    RandomLab._move,
    RandomLab._widen,
    RandomLab._change_key,
    RandomLab._rename,
)


def _table(lab: Lab, name: str) -> Any:
    return next(table for table in lab.catalog.tables if str(table) == name)
