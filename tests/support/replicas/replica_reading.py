"""A replica's lake as Spark and its files have it, columns found by the ids that they have there."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from historian import codec
from historian.changelog.operations import SYSTEM_COLUMNS, Op, position_column
from historian.changelog.state import up_to
from historian.history.history import History
from historian.history.versions import Version
from historian.names import TableName
from historian.plans.plans import Plan
from historian.positions import LogPosition
from historian.schema.snapshots import Snapshot
from lakes.held_rows import held_table, spark_table
from replicas.replica_history import Interval
from sinks.contract.decisions import Decisions
from sinks.delta.log.kernel import Kernel
from workload.checks import noted_values
from workload.notes import Recorded, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LakeRow", "Reading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRow:
    """A changelog row as the lake holds it, under the column names of its schema version; ``raw`` by column id."""

    offset: int
    time: dt.datetime
    table_id: int
    version: int
    op: Op
    values: Row
    by_id: dict[int, Any]
    raw: dict[int, Any]
    key: tuple[Any, ...]
    transaction: str | None


class Reading:
    """One look at a lake: Spark reads mirrors and projects changelogs, the rest is read from files.

    Column ids are those that the lake has, which is not the history's for one that was set aside.
    """

    def __init__(self, lake: Path, history: History, spark: SparkSession) -> None:
        self._lake = lake
        self._spark = spark
        self._kernel = Kernel(spark, "tests")
        self._history = history
        locations = spark.read.format("delta").load(str(lake / "historian_tables")).collect()
        self.locations = {row.table_id: row for row in locations}
        self._decisions = {row.table_id: Decisions.parse(row.evolved) for row in locations}
        self._tables: dict[str, pa.Table] = {}
        self._logs: dict[str, list[LakeRow]] = {}
        self._times: dict[str, list[int]] = {}
        self._histories: dict[str, list[Interval]] = {}

    def assert_no_table_stopped(self) -> None:
        stopped = {
            location.name: location.stopped or location.quarantined
            for location in self.locations.values()
            if location.stopped or location.quarantined
        }
        assert not stopped, stopped

    def lineages(self, recorded: Recorded) -> dict[int, int]:
        """The workload's number of each table id: they were created by the same transaction under the same name."""
        created: dict[tuple[str, TableName], int] = {}
        fresh = 0
        for transaction in recorded.transactions:
            for effect in transaction.ddl.effects if transaction.ddl is not None else ():
                if effect.old is None and effect.new is not None:
                    fresh += 1
                    created[transaction.gtid, effect.new] = fresh
        found = {}
        for table_id in self.locations:
            first = self.versions(table_id)[0]
            assert first.entry.place is not None
            found[table_id] = created[first.entry.place.gtid, first.name]
        return found

    def versions(self, table_id: int) -> tuple[Version, ...]:
        return self._history.versions_of(table_id)

    def shown(self, version: Version) -> Snapshot | None:
        """A version of a table as the lake has it."""
        decisions = self._decisions[version.table_id]
        return None if version.snapshot is None else decisions.shown(version.snapshot, version.number)

    def known_since(self, table_id: int) -> dict[int, int]:
        """The version that brought a column whose values in earlier rows the log does not tell: the lake has NULL there."""
        decisions = self._decisions[table_id]
        replaced = [made for made in decisions.made if made.action == "new_column"]
        return {decisions.shown_id(made.column_id, made.version): made.version for made in replaced}

    def keeps_rows(self, table_id: int) -> bool:
        """Whether the mirror has rows that a TRUNCATE took from its table."""
        return self._decisions[table_id].is_one_of("truncate", "keep")

    def changelog(self, table_id: int) -> list[LakeRow]:
        directory = self.locations[table_id].changelog
        if directory not in self._logs:
            self._logs[directory] = self._read(directory)
        return [row for row in self._logs[directory] if row.table_id == table_id]

    def mirror(self, table_id: int, snapshot: Snapshot) -> list[Row]:
        """The mirror's rows; columns that are gone from the table stand behind the others, where they are kept."""
        table = self.by_spark(self.locations[table_id].mirror)
        names = [column.name for column in snapshot.columns]
        kept = self._decisions[table_id].kept(self.versions(table_id)[-1].number)
        assert table.column_names[: len(names)] == names, f"{table.column_names}, of the source: {names}"
        assert len(table.column_names) <= len(names) + len(kept), f"{table.column_names}, kept: {kept}"
        return _rows(table, names, snapshot)

    def intervals(self, directory: str) -> list[Interval]:
        """The rows of a history."""
        if directory not in self._histories:
            names, table = self.names(directory), self.table(directory)
            own = table.select(["from_offset", "to_offset", "valid_from", "valid_to"]).to_pylist()
            columns = [table.column(name).to_pylist() for name in names.values()]
            data = zip(*columns, strict=True)
            self._histories[directory] = [
                Interval(**row, by_id=dict(zip(names, values, strict=True)))
                for row, values in zip(own, data, strict=True)
            ]
        return self._histories[directory]

    def as_of(self, directory: str, offset: int, snapshot: Snapshot) -> list[Row]:
        """A table as its history shows it as of an offset."""
        there = [
            at
            for at, row in enumerate(self.intervals(directory))
            if row.from_offset <= offset and (row.to_offset is None or row.to_offset > offset)
        ]
        names = self.names(directory)
        return _rows(
            self.table(directory).take(pa.array(there, pa.int64())),
            [names[column.id] for column in snapshot.columns],
            snapshot,
        )

    def projected(self, directory: str, offset: int, snapshot: Snapshot) -> list[Row]:
        """The same of its changelog, projected by what the lake says of its columns."""
        from pyspark_historian.state import project_changelog
        from sinks.delta.lake.recorded import recorded_changelog

        path = str(self._lake / directory)
        recorded, found = recorded_changelog(self._spark, path), self.names(directory)
        assert recorded is not None
        names = [found[column.id] for column in snapshot.columns]
        rows = self._spark.read.format("delta").load(path)
        rows = rows.select(*SYSTEM_COLUMNS, *(rows[f"`{name}`"] for name in dict.fromkeys((*names, *recorded.key))))
        added = {name: column for name, column in recorded.added.items() if name in rows.columns}
        state = project_changelog(rows, recorded.key, until=offset, added=added)
        return _rows(state.toArrow(), names, snapshot)

    def offsets_until(self, directory: str, position: LogPosition) -> set[int] | None:
        """Offsets of a changelog's rows up to a position, as the changelog says it; None where it does not."""
        table = self.table(directory)
        if position_column(table.column_names) is None:
            return None
        return set(up_to(table.select(["offset", "_position"]), position).column("offset").to_pylist())

    def microseconds(self, directory: str) -> list[int]:
        """When each row of a changelog was written, by offset: its plan's ``system_time``, UTC."""
        if directory not in self._times:
            times = self.table(directory).sort_by("offset").column("system_time")
            self._times[directory] = times.cast(pa.int64()).to_pylist()
        return self._times[directory]

    def plans(self) -> list[Plan]:
        """The plans that the lake holds, in order."""
        rows = self.table("historian_plans").select(["plan", "plan_json"]).sort_by("plan")
        return [codec.load(Plan, text) for text in rows.column("plan_json").to_pylist()]

    def table(self, directory: str) -> pa.Table:
        """All rows of a table of the lake."""
        if directory not in self._tables:
            self._tables[directory] = held_table(self._kernel, str(self._lake / directory))
        return self._tables[directory]

    def by_spark(self, directory: str) -> pa.Table:
        """The same as Spark reads it."""
        return spark_table(self._spark, str(self._lake / directory))

    def targets(self) -> list[str]:
        """The directories of all changelogs, mirrors and histories."""
        locations = self.locations.values()
        return sorted(
            {name for location in locations for name in (location.changelog, location.mirror, location.history) if name}
        )

    def assert_spark_reads_the_same(self, directory: str) -> None:
        """Fails unless Spark reads what the files of a table of the lake hold."""
        _assert_same(directory, self.by_spark(directory), self.table(directory))

    def assert_delta_rs_reads_the_same(self, directory: str) -> None:
        """Fails unless delta-rs reads what Spark does in a table of the lake."""
        import pyarrow as pa
        from deltalake import DeltaTable, QueryBuilder

        # Its to_pyarrow_table looks for columns by their names in the schema, and gives NULLs for all that files call otherwise.
        query = QueryBuilder().register("t", DeltaTable(str(self._lake / directory))).execute("SELECT * FROM t")
        _assert_same(directory, pa.table(query.read_all()), self.by_spark(directory))

    def names(self, directory: str) -> dict[int, str]:
        """Column ids and names of a table of the lake."""
        view = self._kernel.view(str(self._lake / directory))
        assert view is not None
        return {field.column_id: field.name for field in view.schema().fields if field.column_id}

    def _read(self, directory: str) -> list[LakeRow]:
        table = self.table(directory).sort_by("offset")
        assert table.column("offset").to_pylist() == list(range(table.num_rows)), f"offsets of {directory}"
        names = self.names(directory)
        owners: dict[int, tuple[int, Snapshot]] = {}
        for table_id, location in self.locations.items():
            for version in self.versions(table_id) if location.changelog == directory else ():
                if (shown := self.shown(version)) is not None:
                    owners[version.number] = table_id, shown
        versions, ops = table.column("schema_version").to_pylist(), table.column("op").to_pylist()
        times = table.column("event_time").to_pylist()
        told = "_transaction" in table.column_names
        transactions = table.column("_transaction").to_pylist() if told else [None] * table.num_rows
        cells: dict[tuple[int, Any], list[Any]] = {}
        raw = {column_id: table.column(name).to_pylist() for column_id, name in names.items()}
        rows = []
        for at, (number, op) in enumerate(zip(versions, ops, strict=True)):
            table_id, snapshot = owners[number]
            by_id: dict[int, Any] = {}
            values = {}
            for column in snapshot.columns:
                key = (column.id, column.type)
                if key not in cells:
                    cells[key] = noted_values(table.column(names[column.id]), column.type)
                by_id[column.id] = values[column.name] = cells[key][at]
            rows.append(
                LakeRow(
                    offset=at,
                    time=times[at],
                    table_id=table_id,
                    version=number,
                    op=Op(op),
                    values=values,
                    by_id=by_id,
                    raw={column_id: raw[column_id][at] for column_id in by_id},
                    key=tuple(by_id[column_id] for column_id in snapshot.primary_key),
                    transaction=transactions[at],
                )
            )
        return rows


def _assert_same(directory: str, found: pa.Table, wanted: pa.Table) -> None:
    assert found.column_names == wanted.column_names, directory
    different = Counter(map(repr, found.to_pylist()))
    different.subtract(map(repr, wanted.to_pylist()))
    assert not any(different.values()), f"{directory}: {[row for row, count in different.items() if count][:2]}"


def _rows(table: pa.Table, names: Sequence[str], snapshot: Snapshot) -> list[Row]:
    """Columns of *table* as the notes hold values, under the names that they have in *snapshot*."""
    columns = [noted_values(table.column(name), c.type) for name, c in zip(names, snapshot.columns, strict=True)]
    called = [column.name for column in snapshot.columns]
    found: list[Mapping[str, Any]] = [dict(zip(called, values, strict=True)) for values in zip(*columns, strict=True)]
    return found
