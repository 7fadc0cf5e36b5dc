"""A random log of one table: rows come, change and go between edits of every kind, under random words for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from historian.plans.evolution import RULES, STOPS
from historian.schema.snapshots import ColumnType
from lakes.sink_lab import INT, Lab, text

__all__ = ["RandomEdits", "random_words"]

NAME = "shop.t"
BIGINT = ColumnType(name="bigint")


def random_words(rng: random.Random) -> tuple[tuple[str, str], ...]:
    """A preset, with other words for some kinds of edits."""
    said = [("preset", rng.choice(("evolve", "lenient")))]
    for rule in RULES.values():
        actions = [word for word in rule.actions if word not in STOPS]
        if actions and rng.random() < 0.4:
            said.append((rule.edit, rng.choice(actions)))
    return tuple(said)


class RandomEdits:
    """Statements and rows for a lab.

    Attributes:
        rows: that the table has, by their ``id``.
    """

    def __init__(self, rng: random.Random, *, keyed: bool, distinct: str = "id") -> None:
        """*keyed*: the table has a primary key; *distinct*: the column that no two rows have the same value of."""
        self.lab = Lab()
        self.rows: dict[int, dict[str, Any]] = {}
        self._rng = rng
        self._distinct = distinct
        self._keyed = keyed
        self._kinds = {"id": "int", "k": "int", "b": "int"}
        self._serial = 0
        self.lab.create(NAME, dict.fromkeys(self._kinds, INT), ("id",) if keyed else ())

    def step(self) -> None:
        """A statement, or a change of a row."""
        often = [self._insert] * 4 + [self._update] * 3
        rarely = [
            self._delete,
            self._add,
            self._add,
            self._drop,
            self._rename,
            self._move,
            self._retype,
            self._truncate,
        ]
        self._rng.choice([*often, *rarely])()

    def _insert(self) -> None:
        self._serial += 1
        row = {column: self._value(column) for column in self._kinds}
        row |= {"id": self._serial, "k": self._rng.randrange(6)}
        gone = [number for number in range(1, self._serial) if number not in self.rows]
        if gone and self._rng.random() < 0.3:
            row["id"] = self._rng.choice(gone)
        if row[self._distinct] not in [held[self._distinct] for held in self.rows.values()]:
            self.rows[row["id"]] = row
            self.lab.insert(NAME, dict(row))

    def _update(self) -> None:
        if self.rows and self._others():
            row, column = self._rng.choice([*self.rows.values()]), self._rng.choice(self._others())
            new = self._value(column)
            self.lab.update(NAME, dict(row), **{column: new})
            row[column] = new

    def _delete(self) -> None:
        if self.rows:
            self.lab.delete(NAME, self.rows.pop(self._rng.choice(sorted(self.rows))))

    def _add(self) -> None:
        name, initial = self._new_name(), self._rng.choice((None, "7"))
        if name in self._kinds:
            return
        if self._rng.random() < 0.85:
            self.lab.add(NAME, name, INT, initial=initial, after=self._rng.choice((None, "", "id")))
            self._set(name, lambda _: None if initial is None else 7)
        else:
            self.lab.add(NAME, name, INT, known=False, cut=True)
            self._set(name, lambda row: row["id"])
        self._kinds[name] = "int"

    def _drop(self) -> None:
        if self._others():
            column = self._rng.choice(self._others())
            self.lab.drop_column(NAME, column)
            del self._kinds[column]
            for row in self.rows.values():
                del row[column]

    def _rename(self) -> None:
        new = self._new_name()
        if self._others() and new not in self._kinds:
            old = self._rng.choice(self._others())
            self.lab.rename_column(NAME, old, new)
            self._kinds = {new if name == old else name: kind for name, kind in self._kinds.items()}
            for row in self.rows.values():
                row[new] = row.pop(old)

    def _move(self) -> None:
        if self._others():
            self.lab.move(NAME, self._rng.choice(self._others()), self._rng.choice(("", "id")))

    def _retype(self) -> None:
        if not self._others():
            return
        column = self._rng.choice(self._others())
        if self._kinds[column] == "int" and self._rng.random() < 0.5:
            self._kinds[column] = "bigint"
            self.lab.retype(NAME, column, BIGINT)
        elif self._kinds[column] == "text":
            self._kinds[column] = "int"
            self.lab.retype(NAME, column, INT, cut=True)
            self._set(column, lambda row: None if row[column] is None else int(row[column]))
        else:
            self._kinds[column] = "text"
            self.lab.retype(NAME, column, text(), cut=True)
            self._set(column, lambda row: None if row[column] is None else str(row[column]))

    def _truncate(self) -> None:
        if self._rng.random() < 0.5:
            self.lab.truncate(NAME)
            self.rows.clear()

    def _others(self) -> list[str]:
        return [column for column in self._kinds if column not in ("id", "k")]

    def _new_name(self) -> str:
        self._serial += 1
        name = self._rng.choice((f"c{self._serial}", f"c{self._serial}", "b", "B"))
        return next((held for held in self._kinds if held.lower() == name.lower()), name)

    def _value(self, column: str) -> object:
        number = self._rng.randrange(1000)
        return str(number) if self._kinds[column] == "text" else number

    def _set(self, column: str, value: Callable[[dict[str, Any]], object]) -> None:
        """What the server makes of a column in all rows, without a word in the log."""
        for row in (*self.rows.values(), *(() if self._keyed else self.lab.tables[1].bag)):
            row[column] = value(row)
