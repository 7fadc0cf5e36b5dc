"""A connector of the tests: a server into a lake in a directory, and the lake compared with a workload's notes."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.config import PipelineConfig, load_config
from connectors.pipeline import run
from historian.changelog import Op
from historian.history import History
from historian.schema import Snapshot, TableName
from historian.store import Store
from historian.values import initial_value
from replica_history import Interval, LoggedRow, assert_history, begun_by
from servers import Server
from sinks.decisions import Decisions
from sinks.delta.kernel import Kernel
from workload.checks import noted_values
from workload.notes import ExpectedRow, Recorded, Row, expected_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["LakeRow", "Replica"]

AS_OF = 25
"""Transactions of each table at which its history is compared with the notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRow:
    """A changelog row as Spark reads it, under the column names of its schema version; ``raw`` by column id."""

    offset: int
    time: dt.datetime
    table_id: int
    version: int
    op: Op
    values: Row
    by_id: dict[int, Any]
    raw: dict[int, Any]


class Replica:
    """Configuration, state and lake in one directory.

    Args:
        server: the source.
        directory: for everything.
        databases: captured ones, as globs.
        history: the pattern of histories' names; None: there are none.
        max_batch: of log in one plan.
        evolution: the preset that the lake's tables have.
    """

    def __init__(
        self,
        server: Server,
        directory: Path,
        databases: Iterable[str] = ("shop", "archive", "brief*"),
        history: str | None = None,
        max_batch: str = "256 MB",
        evolution: str = "evolve",
    ) -> None:
        self.directory = directory
        self.evolution = evolution
        self.lake = directory / "lake"
        self.path = directory / "replica.yaml"
        tables = ", ".join(f'"{database}.*"' for database in databases)
        directory.mkdir(parents=True, exist_ok=True)
        self.path.write_text(
            f"""
name: replica
source:
  type: {server.flavor}
  host: {server.host}
  port: {server.port}
  user: {server.user}
  password: {server.password}
  server_id: 900000-900099
  tables: [{tables}]
  start: earliest
history:
  store: sqlite:///{directory}/store.db
sinks:
  - type: delta
    path: "{self.lake}"
    changelog: "changes_{{database}}_{{table}}"
    mirror: "{{database}}_{{table}}"
    history: {f'"{history}"' if history else "null"}
    evolution: {evolution}
run:
  trigger: once
  max_batch_bytes: {max_batch}
"""
        )

    @property
    def config(self) -> PipelineConfig:
        """The configuration, loaded."""
        return load_config(self.path)

    def evolve_by(self, preset: str) -> None:
        """Runs from now on have another preset."""
        text = self.path.read_text()
        self.path.write_text(text.replace(f"evolution: {self.evolution}", f"evolution: {preset}"))
        self.evolution = preset

    def run(
        self, spark: SparkSession, *, until: str | None = None, report: Callable[[Any], None] = lambda _: None
    ) -> Mapping[str, str]:
        """Runs the connector up to what the log holds now, or to *until*; a start and a stop."""
        return run(self.config, once=True, until=until, report=lambda plan, _: report(plan), spark=spark)

    def history(self) -> History:
        """What the store holds."""
        store = Store.open(self.config.history.store)
        try:
            assert store.stopped() == (), "\n".join(f"{name}: {q.reason}" for _, name, q in store.stopped())
            return store.history()
        finally:
            store.close()

    def assert_equals(self, recorded: Recorded, spark: SparkSession) -> None:
        """Fails unless changelogs, folded changelogs and mirrors are what the workload's notes and the server say."""
        reading = _Reading(self, spark)
        reading.assert_no_table_stopped()
        lineage_of = reading.lineages(recorded)
        expected: dict[int, list[ExpectedRow]] = {}
        for row in expected_rows(recorded, vanished=True):
            expected.setdefault(row.lineage, []).append(row)
        finals = {final.lineage: final for final in recorded.final.values()}
        for table_id, lineage in lineage_of.items():
            came = reading.changelog(table_id)
            _assert_rows(recorded, lineage, expected.get(lineage, []), came)
            final = finals.get(lineage)
            snapshot = reading.final_snapshot(table_id)
            folded = _folded(came, snapshot)
            held = Counter(_frozen(row) for row in (final.rows if final else ()))
            assert folded == held, (
                f"{lineage}: folded only {list(folded - held)[:2]}, held only {list(held - folded)[:2]}"
            )
            reading.assert_history(table_id, came, expected.get(lineage, []))
            if final is not None and final.key and snapshot is not None:
                mirror = Counter(_frozen(row) for row in reading.mirror(table_id, snapshot))
                more = mirror - held
                said = f"{snapshot.name}: mirror only {list(more)[:2]}, held only {list(held - mirror)[:2]}"
                assert not held - mirror, said
                assert not more or reading.keeps_rows(table_id), said
        assert set(lineage_of.values()) >= set(expected), "tables are missing in the lake"

    def folded(self, table_id: int, spark: SparkSession) -> list[Row]:
        """What a table's changelog amounts to, under its last schema."""
        reading = _Reading(self, spark)
        folded = _folded(reading.changelog(table_id), reading.final_snapshot(table_id))
        return [dict(row) for row in folded.elements()]

    def raw_changelogs(self, spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
        """Every changelog by directory, whole rows by offset, without ``system_time``."""
        return {
            path.name: [
                tuple(row)
                for row in spark.read.format("delta").load(str(path)).orderBy("offset").drop("system_time").collect()
            ]
            for path in sorted(self.lake.glob("changes_*"))
        }


class _Reading:
    """One look at a replica's lake."""

    def __init__(self, replica: Replica, spark: SparkSession) -> None:
        self._lake = replica.lake
        self._evolution = replica.evolution
        self._spark = spark
        self._kernel = Kernel(spark, "tests")
        self._history = replica.history()
        homes = spark.read.format("delta").load(str(replica.lake / "historian_tables")).collect()
        self._homes = {row.table_id: row for row in homes}
        self._logs: dict[str, list[LakeRow]] = {}
        self._histories: dict[str, list[Interval]] = {}

    def assert_no_table_stopped(self) -> None:
        stopped = {
            home.name: home.stopped or home.quarantined
            for home in self._homes.values()
            if home.stopped or home.quarantined
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
        for table_id in self._homes:
            first = self._history.versions_of(table_id)[0]
            assert first.entry.place is not None
            found[table_id] = created[first.entry.place.gtid, first.name]
        return found

    def final_snapshot(self, table_id: int) -> Snapshot | None:
        return self._history.versions_of(table_id)[-1].snapshot

    def changelog(self, table_id: int) -> list[LakeRow]:
        directory = self._homes[table_id].changelog
        if directory not in self._logs:
            self._logs[directory] = self._read(directory)
        return [row for row in self._logs[directory] if row.table_id == table_id]

    def mirror(self, table_id: int, snapshot: Snapshot) -> list[Row]:
        table = self._table(self._homes[table_id].mirror)
        names = [column.name for column in snapshot.columns]
        found = table.column_names if self._evolution != "lenient" else table.column_names[: len(names)]
        assert found == names, f"columns of the mirror: {table.column_names}, of the source: {names}"
        columns = [noted_values(table.column(column.name), column.type) for column in snapshot.columns]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]

    def keeps_rows(self, table_id: int) -> bool:
        """Whether the mirror has rows that a TRUNCATE took from its table."""
        return Decisions.parse(self._homes[table_id].evolved).says("truncate", "keep")

    def assert_history(self, table_id: int, came: list[LakeRow], noted: list[ExpectedRow]) -> None:
        """The table's history, if it has one, is its changelog's; at noted transactions it has the rows noted as there."""
        directory = self._homes[table_id].history
        if not directory:
            return
        offsets = {row.offset for row in came}
        history = [interval for interval in self._intervals(directory) if interval.from_offset in offsets]
        keys = {v.number: v.snapshot.primary_key for v in self._history.versions_of(table_id) if v.snapshot}
        log = [
            LoggedRow(
                offset=row.offset,
                op=row.op,
                time=row.time,
                by_id=row.raw,
                key=tuple(row.raw[column_id] for column_id in keys[row.version]),
            )
            for row in came
        ]
        where = self._homes[table_id].name
        assert_history(log, history, where)
        by_offset = {row.offset: row for row in came}
        there: dict[tuple[Any, ...], Row] = {}
        ends = [at for at in range(len(noted)) if at + 1 == len(noted) or noted[at].gtid != noted[at + 1].gtid]
        sampled = set(ends[:: max(1, len(ends) // AS_OF)])
        for at, row in enumerate(noted):
            if row.op in (Op.APPEND, Op.CORRECT_TO):
                there[row.key] = row.values
            else:
                del there[row.key]
            if at in sampled:
                found = Counter(_frozen(by_offset[o].values) for o in begun_by(history, came[at].offset))
                wanted = Counter(_frozen(values) for values in there.values())
                assert found == wanted, f"{where} as of {row.gtid}: {list((found - wanted) + (wanted - found))[:2]}"

    def _intervals(self, directory: str) -> list[Interval]:
        if directory not in self._histories:
            view = self._kernel.view(str(self._lake / directory))
            assert view is not None
            names = {field.column_id: field.name for field in view.schema().fields if field.column_id}
            table = self._table(directory)
            own = table.select(["from_offset", "to_offset", "valid_from", "valid_to"]).to_pylist()
            columns = [table.column(name).to_pylist() for name in names.values()]
            data = zip(*columns, strict=True)
            self._histories[directory] = [
                Interval(**row, by_id=dict(zip(names, values, strict=True)))
                for row, values in zip(own, data, strict=True)
            ]
        return self._histories[directory]

    def _table(self, directory: str) -> pa.Table:
        return self._spark.read.format("delta").load(str(self._lake / directory)).toArrow()

    def _read(self, directory: str) -> list[LakeRow]:
        table = self._table(directory).sort_by("offset")
        assert table.column("offset").to_pylist() == list(range(table.num_rows)), f"offsets of {directory}"
        view = self._kernel.view(str(self._lake / directory))
        assert view is not None
        names = {field.column_id: field.name for field in view.schema().fields if field.column_id}
        owners = {
            version.number: version
            for table_id, home in self._homes.items()
            if home.changelog == directory
            for version in self._history.versions_of(table_id)
            if version.snapshot is not None
        }
        versions, ops = table.column("schema_version").to_pylist(), table.column("op").to_pylist()
        times = table.column("event_time").to_pylist()
        cells: dict[tuple[int, Any], list[Any]] = {}
        raw = {column_id: table.column(name).to_pylist() for column_id, name in names.items()}
        rows = []
        for at, (number, op) in enumerate(zip(versions, ops, strict=True)):
            version = owners[number]
            assert version.snapshot is not None
            by_id: dict[int, Any] = {}
            values = {}
            for column in version.snapshot.columns:
                key = (column.id, column.type)
                if key not in cells:
                    cells[key] = noted_values(table.column(names[column.id]), column.type)
                by_id[column.id] = values[column.name] = cells[key][at]
            rows.append(
                LakeRow(
                    offset=at,
                    time=times[at],
                    table_id=version.table_id,
                    version=number,
                    op=Op(op),
                    values=values,
                    by_id=by_id,
                    raw={column_id: raw[column_id][at] for column_id in by_id},
                )
            )
        return rows


def _assert_rows(recorded: Recorded, lineage: int, expected: list[ExpectedRow], came: list[LakeRow]) -> None:
    vanishing = {t.gtid for t in recorded.transactions if t.ddl is not None and t.ddl.vanished}
    at = 0
    for gtid, rows in _by_transaction(expected):
        part = came[at : at + len(rows)]
        at += len(rows)
        found = [(row.op, _frozen(row.values)) for row in part]
        wanted = [(row.op, _frozen(row.values)) for row in rows]
        if gtid in vanishing:
            only_noted, only_lake = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
            where = f"seed {recorded.seed}, table {lineage}, {len(wanted)} rows that {gtid} took"
            said = f"{where}:\nnoted {list(only_noted)[:2]}\nlake  {list(only_lake)[:2]}"
            assert (only_noted, only_lake) == (Counter(), Counter()), said
        for number, (got, want) in enumerate(zip(found, wanted, strict=False)):
            same = gtid in vanishing or got == want
            assert same, f"seed {recorded.seed}, table {lineage}, {gtid}, row {number}:\nnoted {want}\nlake  {got}"
        assert len(found) == len(wanted), (
            f"seed {recorded.seed}, table {lineage}, {gtid}: {len(wanted)} noted, {len(found)} in the lake"
        )
    assert at == len(came), f"seed {recorded.seed}, table {lineage}: {len(came) - at} rows more than noted: {came[at]}"


def _by_transaction(rows: list[ExpectedRow]) -> Iterator[tuple[str, list[ExpectedRow]]]:
    part: list[ExpectedRow] = []
    for row in rows:
        if part and row.gtid != part[0].gtid:
            yield part[0].gtid, part
            part = []
        part.append(row)
    if part:
        yield part[0].gtid, part


def _folded(rows: list[LakeRow], snapshot: Snapshot | None) -> Counter[Any]:
    """What the changelog leaves, under the last schema: a bag, which a table with a key must make a set."""
    bag: Counter[Any] = Counter()
    columns = () if snapshot is None else snapshot.columns
    initial = {column.id: _initial(column) for column in columns}
    for row in rows:
        values = {column.name: row.by_id.get(column.id, initial[column.id]) for column in columns}
        bag[_frozen(values)] += 1 if row.op in (Op.APPEND, Op.CORRECT_TO) else -1
    if snapshot is None:
        assert sum(bag.values()) == 0, "a dropped table's changelog leaves rows"
        return Counter()
    assert all(count >= 0 for count in bag.values()), [row for row, count in bag.items() if count < 0][:2]
    return +bag


def _initial(column: Any) -> Any:
    import pyarrow as pa

    from historian.types import arrow_type

    return noted_values(pa.array([initial_value(column)], arrow_type(column.type)), column.type)[0]


def _frozen(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple((name, _same(value)) for name, value in row.items())


def _same(value: Any) -> Any:
    """A DATE that became a DATETIME is midnight of that day."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 a DATETIME has no zone
    return value
