"""A tiny database for sinks: statements and rows go in, plans and chunks come out, and what must be in the targets."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from historian.changelog.chunks import CHUNK_STREAM, Chunk, chunk_row
from historian.changelog.missing_columns import ABSENT, UNSEEN, pack
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.history.timeline import TimelineEntry
from historian.names import TableName
from historian.plans.key_ranges import KeyRange
from historian.plans.plans import Plan, PlannedTable, PlannedVersion, TableCopy
from historian.plans.row_values import RowValues
from historian.positions import LogPosition
from historian.positions.places import Place
from historian.schema.applying import apply_all
from historian.schema.edits import (
    AddColumn,
    ChangeAttributes,
    ChangeType,
    CreateTable,
    DropColumn,
    DropTable,
    Edit,
    MoveColumn,
    RenameColumn,
    RenameTable,
    SetPrimaryKey,
    TruncateTable,
)
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Catalog, Column, ColumnType, Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.spark_chunks import SparkChunks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sinks.contract.chunks import Chunks

__all__ = ["INT", "START_US", "Lab", "Written", "decimal", "text"]

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
INT = ColumnType(name="int")
EVERY_KEY = KeyRange()
START_US = 1_700_000_000_000_000

Row = Mapping[str, Any]


def text(length: int = 20) -> ColumnType:
    return ColumnType(name="varchar", length=length, charset="utf8mb4", collation="utf8mb4_0900_ai_ci")


def decimal(precision: int, scale: int) -> ColumnType:
    return ColumnType(name="decimal", precision=precision, scale=scale)


@dataclass(frozen=True)
class Written:
    """A changelog row that must be there: names as the row's own schema has them."""

    op: str
    version: int
    data: tuple[tuple[str, Any], ...]
    absent: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pending:
    """A row that no chunk has yet; its event tells which rows are one change."""

    op: Op
    row: dict[str, Any]
    event: int
    absent: Collection[str] = ()
    unseen: Collection[str] = ()


@dataclass
class Table:
    table_id: int
    versions: list[PlannedVersion] = field(default_factory=list)
    segment: int = 0
    chunks: list[Chunk] = field(default_factory=list)
    live: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)
    bag: list[dict[str, Any]] = field(default_factory=list)
    log: list[Written] = field(default_factory=list)
    planned_log: int = 0
    pending: list[Pending] = field(default_factory=list)


class Lab:
    """Takes statements and row changes in order; :meth:`cut` ends a plan."""

    def __init__(self, connector: str = "shop") -> None:
        self.connector = connector
        self.catalog = Catalog()
        self.entries: list[TimelineEntry] = []
        self.tables: dict[int, Table] = {}
        self.plans: list[Plan] = []
        self.chunks: dict[int, list[Chunk]] = {}
        self.clock = 0
        self._sequence = 0
        self._start = self._position()
        self._snapshots: dict[int, list[Snapshot]] = {}

    # ---- statements -------------------------------------------------------------------------------------------------

    def create(self, name: str, columns: Mapping[str, ColumnType], key: Sequence[str] = ("id",)) -> None:
        first = self.catalog.next_column_id
        made = tuple(Column(id=first + i, name=n, type=t) for i, (n, t) in enumerate(columns.items()))
        snapshot = Snapshot(
            table_id=self.catalog.next_table_id,
            name=_name(name),
            columns=made,
            primary_key=tuple(c.id for n in key for c in made if c.name == n),
            charset="utf8mb4",
            collation="utf8mb4_0900_ai_ci",
        )
        self._statement(f"CREATE TABLE {name}", CreateTable(snapshot=snapshot))

    def add(
        self,
        name: str,
        column: str,
        kind: ColumnType,
        *,
        after: str | None = None,
        initial: str | None = None,
        known: bool = True,
        cut: bool = False,
    ) -> None:
        """ALTER TABLE ... ADD, at the end; behind column *after*; or first, where that is empty."""
        made = Column(id=self.catalog.next_column_id, name=column, type=kind, initial=initial, initial_known=known)
        others = self.catalog.tables[_name(name)].columns
        behind = others[-1].id if after is None else self._column(name, after).id if after else 0
        edit = AddColumn(table=_name(name), column=made, after=behind)
        for row in self._rows(name):
            row[column] = None if initial is None else _parsed(kind, initial)
        self._statement(f"ALTER TABLE {name} ADD {column}", edit, cut=cut)

    def drop_column(self, name: str, column: str) -> None:
        edit = DropColumn(table=_name(name), column_id=self._column(name, column).id, name=column)
        self._statement(f"ALTER TABLE {name} DROP {column}", edit)
        for row in self._rows(name):
            del row[column]

    def rename_column(self, name: str, old: str, new: str) -> None:
        edit = RenameColumn(table=_name(name), column_id=self._column(name, old).id, old=old, new=new)
        self._statement(f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}", edit)
        for row in self._rows(name):
            row[new] = row.pop(old)

    def move(self, name: str, column: str, after: str = "") -> None:
        behind = self._column(name, after).id if after else 0
        edit = MoveColumn(table=_name(name), column_id=self._column(name, column).id, after=behind)
        self._statement(f"ALTER TABLE {name} MODIFY {column}", edit)

    def retype(self, name: str, column: str, kind: ColumnType, *, cut: bool = False) -> None:
        found = self._column(name, column)
        edit = ChangeType(table=_name(name), column_id=found.id, old=found.type, new=kind)
        self._statement(f"ALTER TABLE {name} MODIFY {column} {kind}", edit, cut=cut)

    def set_key(self, name: str, *columns: str) -> None:
        ids = tuple(self._column(name, column).id for column in columns)
        self._statement(f"ALTER TABLE {name} ADD PRIMARY KEY", SetPrimaryKey(table=_name(name), columns=ids), cut=True)
        table = self._table(name)
        if columns:
            table.live, table.bag = {self._key(name, row): row for row in self._rows(name)}, []
        else:
            table.live, table.bag = {}, self._rows(name)

    def make_auto_increment(self, name: str, column: str) -> None:
        held = self._column(name, column)
        edit = ChangeAttributes(table=_name(name), column=replace(held, auto_increment=True))
        self._statement(f"ALTER TABLE {name} MODIFY {column} INT AUTO_INCREMENT", edit, cut=True)

    def rename(self, *pairs: tuple[str, str]) -> None:
        edits = []
        catalog = self.catalog
        for old, new in pairs:
            table_id = catalog.tables[_name(old)].table_id
            edits.append(RenameTable(table=_name(old), table_id=table_id, new=_name(new)))
            catalog = apply_all((edits[-1],), catalog)
        self._statement("RENAME TABLE " + ", ".join(f"{a} TO {b}" for a, b in pairs), *edits)

    def truncate(self, name: str) -> None:
        table = self._table(name)
        self._flush(table)
        self._take_back(name, table)
        edit = TruncateTable(table=_name(name), table_id=table.table_id)
        self._statement(f"TRUNCATE {name}", edit, cut=True)

    def drop(self, name: str) -> None:
        table = self._table(name)
        self._flush(table)
        self._take_back(name, table)
        edit = DropTable(table=_name(name), table_id=table.table_id)
        self._statement(f"DROP TABLE {name}", edit, cut=True)

    def resume(self, name: str) -> None:
        """The table is captured anew behind rows that nobody read."""
        snapshot = self.catalog.tables[_name(name)]
        edit = ResumeTable(table=snapshot.name, snapshot=snapshot, unknown_since=self._start, reason="lost")
        self._statement("", edit, cut=True)

    # ---- rows -------------------------------------------------------------------------------------------------------

    def insert(self, name: str, *rows: Row) -> None:
        for row in rows:
            self._change(name, (Op.APPEND, row))

    def delete(self, name: str, *rows: Row) -> None:
        for row in rows:
            self._change(name, (Op.RETRACT, row))

    def update_part(self, name: str, key: Row, *, unseen: Collection[str] = (), **new: Any) -> None:
        """An update whose images have the key before, and after what is *new*; columns *unseen* change as well."""
        table = self._table(name)
        held = table.live[self._key(name, key)]
        old = {column.name: held[column.name] for column in self.catalog.tables[_name(name)].columns}
        same = self._key(name, {**old, **new}) == self._key(name, old)
        lacks = set(old) - set(key)
        ops = (Op.CORRECT_FROM, Op.CORRECT_TO) if same else (Op.RETRACT, Op.APPEND)
        self.clock += 1
        version = table.versions[-1].version
        for op, told, absent, hidden in ((ops[0], key, lacks, ()), (ops[1], {**key, **new}, lacks - set(new), unseen)):
            row = {column: None if column in absent else told[column] for column in old}
            table.pending.append(Pending(op, row, self.clock, absent, hidden))
            lists = (tuple(column for column in old if column in names) for names in (absent, hidden))
            table.log.append(Written(op.sign, version, tuple(row.items()), *lists))
        if not same:
            del table.live[self._key(name, old)]
        table.live[self._key(name, {**old, **new})] = {**old, **new}

    def update(self, name: str, old: Row, **new: Any) -> None:
        after = {**old, **new}
        if self._key(name, old) == self._key(name, after):
            self._change(name, (Op.CORRECT_FROM, old), (Op.CORRECT_TO, after))
        else:
            self._change(name, (Op.RETRACT, old), (Op.APPEND, after))

    # ---- plans ------------------------------------------------------------------------------------------------------

    def unlogged(self, name: str, *rows: Row) -> None:
        """From here on the table has those rows, of which the log tells nothing."""
        table, columns = self._table(name), self.catalog.tables[_name(name)].columns
        whole = [{c.name: row.get(c.name) for c in columns} for row in rows]
        keyed = bool(self.catalog.tables[_name(name)].primary_key)
        table.live = {self._key(name, row): row for row in whole} if keyed else {}
        table.bag = [] if keyed else whole

    def cut(
        self,
        repairs: Mapping[str, str] | None = None,
        keys: KeyRange = EVERY_KEY,
        only: tuple[RowValues, ...] = (),
        **planned: Any,
    ) -> Plan:
        """Ends a plan at this point.

        Args:
            repairs: tables that it repairs, and why: it has all rows that they hold now in place of their log.
            keys: of those rows; the key is of one integer column then.
            only: which of those rows, by integers; (): all.
            planned: what else is said of those.
        """
        for table in self.tables.values():
            self._flush(table)
        reasons = {self.table_id(name): reason for name, reason in (repairs or {}).items()}
        for name in repairs or {}:
            self._repair(name, keys, only)
        number = len(self.plans) + 1

        def planned_table(table: Table) -> PlannedTable:
            found = PlannedTable(table_id=table.table_id, versions=tuple(table.versions))
            if table.table_id not in reasons:
                return found
            snapshot = table.versions[-1].snapshot
            copied = TableCopy(
                key=() if snapshot is None else snapshot.primary_key,
                behind=keys.after,
                upto=keys.upto,
                is_done=keys.upto is None,
                repairs=reasons[table.table_id],
                only=only,
            )
            return replace(found, copy=copied, **planned)

        tables = tuple(planned_table(table) for table in self.tables.values() if table.versions)
        self.chunks[number] = [chunk for t in self.tables.values() for chunk in t.chunks]
        end = self._position()
        plan = Plan(
            number=number,
            previous=number - 1,
            connector=self.connector,
            start=self._start,
            end=end,
            ranges=(),
            tables=tables,
            version=len(self.entries),
            system_time_us=START_US + number,
            revision="r",
        )
        self.plans.append(plan)
        self._start = end
        for table in (table for table in self.tables.values() if table.versions):
            last = table.versions[-1]
            table.chunks, table.segment, table.versions, table.planned_log = [], 0, [], len(table.log)
            if last.snapshot is not None:
                table.versions = [
                    PlannedVersion(version=last.version, place=None, edits=(), snapshot=last.snapshot, segment=0)
                ]
        return plan

    def timeline(self, behind: int) -> list[TimelineEntry]:
        return self.entries[behind:]

    @contextmanager
    def delivered(self, plan: Plan, spark: SparkSession | None = None) -> Iterator[Chunks]:
        """The chunks of *plan*: in this process, or with *spark* on executors, in three partitions."""
        if spark is None:
            with closing(LocalChunks(threads=2)) as chunks:
                chunks.fill([lambda: self.chunks[plan.number]])
                yield chunks
            return
        batches = [chunk_row(chunk) for chunk in self.chunks[plan.number]]
        table = pa.Table.from_batches(batches, CHUNK_STREAM)
        frame = spark.createDataFrame(table) if batches else spark.createDataFrame([], _spark_schema())
        frame = frame.repartition(3).persist()
        try:
            yield SparkChunks(frame)
        finally:
            frame.unpersist()

    # ---- what must be there -----------------------------------------------------------------------------------------

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The rows of a table, by its columns in order."""
        columns = [c.name for c in self.catalog.tables[_name(name)].columns]
        return [{c: row[c] for c in columns} for row in self._rows(name)]

    def log(self, table_id: int) -> list[Written]:
        """The changelog rows of a table so far."""
        return self.tables[table_id].log

    def table_id(self, name: str) -> int:
        return self.catalog.tables[_name(name)].table_id

    def key_columns(self, name: str) -> list[str]:
        """The names of a table's key columns, in the table's order."""
        snapshot = self.catalog.tables[_name(name)]
        return [c.name for c in snapshot.columns if c.id in snapshot.primary_key]

    def columns_at(self, version: int, physical: Collection[str]) -> dict[str, str]:
        """Physical name to the name that a column had at a version of the table whose columns are all in *physical*."""
        for snapshot in self._snapshots[version]:
            columns = {physical_name(c.id): c.name for c in snapshot.columns}
            if set(columns) <= set(physical):
                return columns
        raise AssertionError(f"no table of version {version} has its columns there")

    def written(self, row: dict[str, Any], names: dict[str, str]) -> Written:
        """A changelog row under the names of its own version; what that version does not have must be NULL.

        *names*: physical name to the name that the row has it under.
        """
        columns = self.columns_at(row["schema_version"], names)
        assert all(row[name] is None for physical, name in names.items() if physical not in columns)
        data = tuple((then, row[names[physical]]) for physical, then in columns.items())
        absence = (tuple(found) if isinstance(found := row.get(name), list) else () for name in ("absent", "unseen"))
        return Written(Op(row["op"]).sign, row["schema_version"], data, *absence)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _statement(self, statement: str, *edits: Edit, cut: bool = False) -> None:
        before = {s.table_id: s for s in self.catalog.tables.values()}
        for table_id in before:
            self._flush(self.tables[table_id])
        self.catalog = apply_all(tuple(edits), self.catalog)
        after = {s.table_id: s for s in self.catalog.tables.values()}
        self.clock += 1
        number = len(self.entries) + 1
        place = Place(gtid=f"{UUID}:{self.clock}", file="b.000001", offset=self.clock * 100, ordinal=1)
        time = START_US + self.clock * 1_000_000
        self.entries.append(
            TimelineEntry(
                number=number,
                place=place,
                position=self._position(),
                edits=tuple(edits),
                statement=statement,
                database="shop",
                event_time_us=time,
                server="",
            )
        )
        # A statement of a lab may make thousands of tables.
        creates = {edit.snapshot.table_id: edit for edit in edits if isinstance(edit, CreateTable)}
        others = [edit for edit in edits if not isinstance(edit, CreateTable)]
        for table_id in [*before, *(i for i in after if i not in before)]:
            if before.get(table_id) == after.get(table_id) and not cut:
                continue
            made = [creates[table_id]] if table_id in creates else []
            mine = (*made, *(e for e in others if _concerns(e, table_id, before, after)))
            if not mine:
                continue
            table = self.tables.setdefault(table_id, Table(table_id))
            table.segment += cut
            self._snapshots.setdefault(number, []).extend(s for s in (after.get(table_id),) if s is not None)
            table.versions.append(
                PlannedVersion(
                    version=number,
                    place=place,
                    edits=mine,
                    snapshot=after.get(table_id),
                    segment=table.segment,
                    statement=statement,
                    event_time_us=time,
                )
            )

    def _change(self, name: str, *rows: tuple[Op, Row]) -> None:
        table = self._table(name)
        self.clock += 1
        snapshot = self.catalog.tables[_name(name)]
        for op, row in rows:
            whole = {c.name: row.get(c.name) for c in snapshot.columns}
            table.pending.append(Pending(op, whole, self.clock))
            table.log.append(Written(op.sign, table.versions[-1].version, tuple(whole.items())))
            if not snapshot.primary_key:
                table.bag.append(whole) if op in (Op.APPEND, Op.CORRECT_TO) else table.bag.remove(whole)
            elif op in (Op.APPEND, Op.CORRECT_TO):
                table.live[self._key(name, row)] = whole
            else:
                table.live.pop(self._key(name, row), None)

    def flush(self) -> None:
        """Ends the chunks at this point."""
        for table in self.tables.values():
            self._flush(table)

    def _flush(self, table: Table) -> None:
        if not table.pending:
            return
        version = table.versions[-1]
        assert version.snapshot is not None
        count = len(table.pending)
        system = [
            pa.array([int(pending.op) for pending in table.pending], pa.uint8()),
            pa.array([START_US + self.clock * 1_000_000] * count, pa.timestamp("us", tz="UTC")),
            pa.array([0] * count, pa.int16()),
            pa.array([self.clock] * count, pa.int64()),
            pa.array([pending.event for pending in table.pending], pa.int32()),
        ]
        data = [
            pa.array([pending.row[c.name] for pending in table.pending], arrow_type(c.type))
            for c in version.snapshot.columns
        ]
        fields = [pa.field(physical_name(c.id), arrow_type(c.type)) for c in version.snapshot.columns]
        for column, lists in ((ABSENT, [p.absent for p in table.pending]), (UNSEEN, [p.unseen for p in table.pending])):
            bits = np.array([[c.name in names for c in version.snapshot.columns] for names in lists], np.bool_)
            if bits.any():
                data.append(pack(bits))
                fields.append(pa.field(column, pa.binary()))
        self._sequence += 1
        table.chunks.append(
            Chunk(
                table_id=table.table_id,
                version=version.version,
                segment=table.segment,
                sequence=self._sequence,
                file="b.000001",
                first_position=f"{UUID}:{self.clock}",
                last_position=f"{UUID}:{self.clock}",
                sources=(UUID,),
                rows=pa.RecordBatch.from_arrays([*system, *data], schema=pa.schema([*CHUNK_COLUMNS, *fields])),
            )
        )
        table.pending = []

    def _repair(self, name: str, keys: KeyRange, only: tuple[RowValues, ...]) -> None:
        """All rows of a table, or those of some keys, in place of what the plan has of its log."""
        low = -math.inf if keys.after is None else int(keys.after[0])
        high = math.inf if keys.upto is None else int(keys.upto[0])
        table = self._table(name)
        table.chunks = []
        del table.log[table.planned_log :]
        rows = self.rows(name)
        if keys != EVERY_KEY:
            rows = [row for row in rows if low < self._key(name, row)[0] <= high]
        names = {column.id: column.name for column in self.catalog.tables[_name(name)].columns}
        told = [([names[i] for i in each.columns], {*each.values, (None,) * each.nulls}) for each in only]
        if told:
            rows = [row for row in rows if any(tuple(row[c] for c in columns) in values for columns, values in told)]
        table.pending = [Pending(Op.APPEND, row, self.clock) for row in rows]
        self._flush(table)

    def _take_back(self, name: str, table: Table) -> None:
        version = table.versions[-1].version
        table.live = dict(sorted(table.live.items()))
        for row in self.rows(name):
            table.log.append(Written("-R", version, tuple(row.items())))
        table.live, table.bag = {}, []

    def _table(self, name: str) -> Table:
        return self.tables[self.catalog.tables[_name(name)].table_id]

    def _rows(self, name: str) -> list[dict[str, Any]]:
        table = self._table(name)
        return [*table.live.values(), *table.bag]

    def _key(self, name: str, row: Row) -> tuple[Any, ...]:
        snapshot = self.catalog.tables[_name(name)]
        return tuple(row[c.name] for i in snapshot.primary_key if (c := snapshot.column_by_id(i)))

    def _column(self, name: str, column: str) -> Column:
        found = self.catalog.tables[_name(name)].column(column)
        assert found is not None
        return found

    def _position(self) -> LogPosition:
        gtids = f"{UUID}:1-{self.clock}" if self.clock else ""
        return LogPosition(flavor="mysql", gtids=gtids, file="b.000001", offset=4 + self.clock * 100)


def _concerns(edit: Edit, table_id: int, before: Mapping[int, Snapshot], after: Mapping[int, Snapshot]) -> bool:
    mine = {s.name for s in (before.get(table_id), after.get(table_id)) if s is not None}
    found = getattr(edit, "table_id", None)
    return found == table_id if found is not None else getattr(edit, "table", None) in mine


def _parsed(kind: ColumnType, initial: str) -> Any:
    from historian.values.texts import initial_value

    return pa.scalar(initial_value(Column(id=1, name="x", type=kind, initial=initial)), arrow_type(kind)).as_py()


def _name(name: str) -> TableName:
    database, _, table = name.partition(".")
    return TableName(database, table)


def _spark_schema() -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(CHUNK_STREAM)
