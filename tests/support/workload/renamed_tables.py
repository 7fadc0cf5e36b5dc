"""Tables that are renamed, several in a statement, while some of them have stopped, and which rows of each must be delivered."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from connectors.tail.json_lines import ndjson_rows
from connectors.tracking.tracker import Tracker
from historian.ddl import Resolution, StatementContext, resolve
from historian.history.versions import touched_names
from historian.schema.snapshots import Catalog

if TYPE_CHECKING:
    import pytest

__all__ = ["STRANGE", "RenamedTables", "new_rows", "understand_nothing_strange"]

STRANGE = "/* strange */"


def understand_nothing_strange(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on a statement with :data:`STRANGE` in it is not understood when a log is read."""

    def resolve_others(sql: str, context: StatementContext, catalog: Catalog) -> Resolution:
        found = resolve(sql, context, catalog)
        if STRANGE not in sql:
            return found
        tables = tuple(name for edit in found.edits for name in touched_names(edit))
        return Resolution(kind="not_understood", tables=tables, reason="strange words")

    monkeypatch.setattr("connectors.tracking.walk.resolve", resolve_others)


class RenamedTables:
    """A few names and the tables that have them. Each row tells the number of its table.

    Attributes:
        rows: of each table the keys of the rows that must be delivered, in order.
        stopped: numbers of tables that have stopped.
    """

    def __init__(self, names: Sequence[str], numbers: Random | None = None) -> None:
        self._all, self._numbers = names, numbers or Random(0)
        self._tables: dict[str, int] = {}
        self._made = self._last = 0
        self.rows: dict[int, list[int]] = {}
        self.stopped: set[int] = set()

    def make(self, name: str) -> str:
        """Makes a table; every second one has a column more, so that rows do not pass for those of another one."""
        self._made += 1
        self._tables[name] = self._made
        self.rows[self._made] = []
        more = "n BIGINT NOT NULL DEFAULT 7, " if self._made % 2 else ""
        return f"CREATE TABLE {name} (id INT PRIMARY KEY, {more}v VARCHAR(20))"

    def insert(self, name: str) -> str:
        self._last += 1
        table = self._tables[name]
        if table not in self.stopped:
            self.rows[table].append(self._last)
        return f"INSERT INTO {name} (id, v) VALUES ({self._last}, 'table {table}')"

    def stop(self, name: str) -> str:
        """A statement that is not understood."""
        self._last += 1
        self.stopped.add(self._tables[name])
        return f"ALTER TABLE {name} {STRANGE} ADD c{self._last} INT"

    def rename(self, *pairs: tuple[str, str]) -> str:
        for old, new in pairs:
            self._tables[new] = self._tables.pop(old)
        return "RENAME TABLE " + ", ".join(f"{old} TO {new}" for old, new in pairs)

    def drop(self, *names: str) -> str:
        for name in names:
            del self._tables[name]
        return f"DROP TABLE {', '.join(names)}"

    def some(self, count: int) -> Iterator[str]:
        """So many random statements."""
        numbers = self._numbers
        for _ in range(count):
            kind, there = numbers.random(), sorted(self._tables)
            free = sorted(set(self._all) - set(there))
            if len(there) < 2 or (kind < 0.1 and len(free) > 1):
                yield self.make(numbers.choice(free))
            elif kind < 0.17:
                yield self.stop(numbers.choice(there))
            elif kind < 0.4:
                pairs, names = [], set(there)
                for _ in range(numbers.randrange(1, 4)):
                    pairs.append((old := numbers.choice(sorted(names)), new := numbers.choice(free)))
                    names = names - {old} | {new}
                    free = sorted({*free, old} - {new})
                yield self.rename(*pairs)
            elif kind < 0.46:
                yield self.drop(*numbers.sample(there, numbers.randrange(1, 3)))
            else:
                yield self.insert(numbers.choice(there))

    def check(self, delivered: Sequence[tuple[int, dict[str, Any]]]) -> dict[int, int]:
        """Compares rows, each with the id of the table that it was delivered in; gives these ids by number."""
        found: dict[int, list[int]] = {number: [] for number in self.rows}
        ids: dict[int, set[int]] = {}
        for table_id, row in delivered:
            number = int(row["v"].removeprefix("table "))
            assert {"id", "v", *("n" for _ in range(number % 2))} == row.keys()
            assert row.get("n", 7) == 7
            found[number].append(row["id"])
            ids.setdefault(number, set()).add(table_id)
        assert self.rows == found
        assert all(len(each) == 1 for each in ids.values()), ids
        of_tables = {number: min(each) for number, each in ids.items()}
        assert len(of_tables) == len(set(of_tables.values())), ids
        return of_tables


def new_rows(
    tracker: Tracker, after: int, limit_bytes: int | None = None
) -> tuple[int, list[tuple[int, dict[str, Any]]]]:
    """What plans behind *after* deliver, in the order of keys, each row with its table's id; and the last plan's number."""
    found: list[tuple[int, dict[str, Any]]] = []
    while (plan := tracker.plan_after(after, limit_bytes=limit_bytes)) is not None:
        after = plan.number
        snapshots = {(table.table_id, each.version): each.snapshot for table in plan.tables for each in table.versions}
        for planned in plan.ranges:
            for chunk in tracker.reader.read(planned, plan.tables, as_text=True):
                snapshot = snapshots[chunk.table_id, chunk.version]
                assert snapshot is not None
                found += [(chunk.table_id, json.loads(row)["data"]) for row in ndjson_rows(chunk, snapshot)]
    return after, sorted(found, key=lambda row: row[1]["id"])
