"""What the targets of a table that was repaired must be, by its rows and by its changelog alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from historian.changelog.chunks import Chunk
from historian.changelog.operations import CHUNK_COLUMNS, Op, data_columns, physical_name
from historian.changelog.validation import check
from historian.plans.plans import Plan
from historian.schema.snapshots import Snapshot
from historian.values.texts import initial_value
from lakes.held_rows import HeldLake, held_table
from lakes.random_edits import NAME, RandomEdits
from models.plain_history import PlainHistory
from sinks.contract.decisions import Decisions
from sinks.delta.repairs.new_keys import with_new_keys

__all__ = ["RandomRepairs", "check_repaired"]


class RandomRepairs(RandomEdits):
    """The same with rows that change without a word in the log, and plans that repair the table."""

    def cut(self, *, wrong: bool) -> Plan:
        """The next plan; where it repairs, *wrong*: rows have come, gone and changed unlogged.

        It repairs where one of its statements has rewritten values, and else now and then.
        """
        if not wrong and not self.rewrote:
            return self.lab.cut()
        for row in list(self.rows.values()) if wrong else ():
            if self._rng.random() < 0.2:
                del self.rows[row["id"]]
            elif self._others() and self._rng.random() < 0.3:
                column = self._rng.choice(self._others())
                row[column] = self._rng.choice((None, self._value(column)))
        for _ in range(self._rng.randrange(3) if wrong else 0):
            self._serial += 1
            row = {column: self._value(column) for column in self._kinds}
            self.rows[self._serial] = row | {"id": self._serial, "k": self._rng.randrange(6)}
        self.lab.unlogged(NAME, *self.rows.values())
        self.rewrote = False
        return self.lab.cut({NAME: "a test"})

    def step(self) -> None:
        """Now and then the key is another one, too."""
        before = len(self.lab.entries)
        if self.keys and self._keyed and self._rng.random() < 0.05:
            key = self.lab.key_columns(NAME)
            self.lab.unlogged(NAME, *self.rows.values())
            self.lab.set_key(NAME, *(("id", "k") if key == ["id"] else ("id",)))
            self.rewrote = True
        else:
            super().step()
        cuts = any("MODIFY" in entry.statement or "ADD" in entry.statement for entry in self.lab.entries[before:])
        self.rewrote = self.rewrote or cuts

    rewrote = False
    keys = True
    """Whether the key changes."""


def check_repaired(lake: HeldLake, name: str = NAME, *, only_log: bool = False, gap: bool = False) -> None:
    """The mirror is the table; the changelog is strict and amounts to it; the history is what the changelog says.

    *only_log*: the other targets wait. *gap*: the changelog has one, behind which rows go that never came.
    """
    lab = lake.lab
    assert not lake.stopped(), lake.stopped()
    location = next(h for h in lake.locations().values() if h.name == name)
    rows, key = lab.rows(name), lab.key_columns(name)
    if location.mirror and not only_log:
        found = [row for row in lake.mirror(location.mirror) if not row.pop("_deleted", False)]
        found = [{name: value for name, value in row.items() if name != "_deleted_at"} for row in found]
        assert _sorted(found) == _sorted(rows)
    log = held_table(lake.kernel, str(lake.path / location.changelog)).sort_by("offset")
    snapshot = next(s for s in lab.catalog.tables.values() if str(s.name) == name)
    shown = Decisions.parse(location.evolved).shown(snapshot, len(lab.entries))
    fields = {f.column_id: f for f in lake.schema(location.changelog).fields}
    initials = {c.name: (fields[c.id].since, initial_value(c)) for c in shown.columns if c.initial is not None}
    empty = log.select(data_columns(log.schema.names)).slice(0, 0)
    # A bag's row that is taken back under another schema is not told by its values alone.
    findings = check(log, key, former=empty if key else None)
    assert gap or not findings, findings
    assert _sorted(_folded(log, rows, key, initials)) == _sorted(rows)
    if location.history and not only_log:
        plain = PlainHistory()
        for plan in lab.plans:
            plain.apply(*_as_seen(lake, plan, log))
        found, expected = lake.history(location.history), plain.rows(NAME)
        wrong = [pair for pair in zip(found, expected, strict=False) if pair[0] != pair[1]]
        assert not wrong, wrong[0]
        assert len(found) == len(expected)


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, ([*row.items()] for row in rows)))


def _folded(
    log: pa.Table, rows: list[dict[str, Any]], key: list[str], initials: Mapping[str, tuple[int, Any]]
) -> list[dict[str, Any]]:
    """The rows that a changelog amounts to, in the present columns, by key or as a bag.

    *initials*: by column the version that added it, and what rows from before read in it.
    """
    names = [*rows[0]] if rows else key
    live: dict[Any, dict[str, Any]] = {}
    bag: list[dict[str, Any]] = []
    for row in log.to_pylist():
        row |= {name: value for name, (since, value) in initials.items() if row["schema_version"] < since}
        told = {name: row[name] for name in names}
        adds = row["op"] in (Op.APPEND, Op.CORRECT_TO)
        if not key:
            bag.append(told) if adds else bag.remove(told)
        elif adds:
            live[tuple(told[name] for name in key)] = told
        else:
            live.pop(tuple(told[name] for name in key), None)
    return [*live.values()] if key else bag


def _as_seen(lake: HeldLake, plan: Plan, log: pa.Table) -> tuple[Plan, list[Chunk]]:
    """A plan under the columns that targets have, with its rows; of a repair those that the changelog has of it."""
    locations = lake.locations()
    plan = with_new_keys(plan, locations)
    chunks: list[Chunk] = []
    tables = []
    for table in plan.tables:
        made = Decisions.parse(locations[table.table_id].evolved)
        shown = {v.version: None if v.snapshot is None else made.shown(v.snapshot, v.version) for v in table.versions}
        tables.append(replace(table, versions=tuple(replace(v, snapshot=shown[v.version]) for v in table.versions)))
        own = [chunk for chunk in lake.lab.chunks[plan.number] if chunk.table_id == table.table_id]
        last = table.versions[-1]
        if table.repairs and shown[last.version] is not None:
            own = _repair_chunks(lake, plan, log, table.table_id, last.version, shown[last.version])
        else:
            pairs = {v.version: v.snapshot for v in table.versions if v.snapshot is not None}
            own = [_renamed(chunk, pairs[chunk.version], made) for chunk in own]
        chunks += own
    return replace(plan, tables=tuple(tables)), chunks


def _renamed(chunk: Chunk, snapshot: Snapshot, made: Decisions) -> Chunk:
    shown = made.shown(snapshot, chunk.version, whole=True)
    names = {physical_name(a.id): physical_name(b.id) for a, b in zip(snapshot.columns, shown.columns, strict=True)}
    return replace(chunk, rows=chunk.rows.rename_columns([names.get(n, n) for n in chunk.rows.schema.names]))


def _repair_chunks(
    lake: HeldLake, plan: Plan, log: pa.Table, table_id: int, version: int, shown: Snapshot | None
) -> list[Chunk]:
    assert shown is not None
    location = lake.locations()[table_id]
    names = {f.physical: f.name for f in lake.schema(location.changelog).fields}
    mine = [
        row
        for row in log.to_pylist()
        if row["system_time"].timestamp() * 1_000_000 == plan.system_time_us and row["schema_version"] == version
    ]
    data = {physical_name(c.id): [row[names[physical_name(c.id)]] for row in mine] for c in shown.columns}
    system = {f.name: [row.get(f.name, 0) for row in mine] for f in CHUNK_COLUMNS}
    if not mine:
        return []
    return [
        Chunk(
            table_id=table_id,
            version=version,
            segment=0,
            sequence=0,
            file="",
            first_position="",
            last_position="",
            sources=(),
            rows=pa.RecordBatch.from_pydict({**system, **data}),
        )
    ]
