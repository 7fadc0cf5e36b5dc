"""Reads a lake's tables for comparison, and writes a lab's plans into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from historian.changelog.operations import physical_name
from historian.plans.plans import Plan
from lakes.sink_lab import Lab, Written
from models.plain_history import PlainHistory, PlainInterval
from sinks.contract.locations import TableLocations
from sinks.delta import DeltaSettings, DeltaSink
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.kernel import Kernel
from sinks.delta.log.table_view import TableView

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Lake"]


class Lake:
    """A lake in a directory, its sink opened for the lab's connector."""

    def __init__(self, spark: SparkSession, path: Path, lab: Lab, **settings: Any) -> None:
        self.spark = spark
        self.path = path
        self.lab = lab
        self.kernel = Kernel(spark, "tests")
        self.settings = DeltaSettings(path="" if "catalog" in settings else str(path), **settings)
        self.sink = self.reopen()

    def reopen(self) -> DeltaSink:
        """A new sink, as a new process has it."""
        self.sink = DeltaSink(self.spark, self.settings)
        self.held = self.sink.open(self.lab.connector)
        return self.sink

    def cut(self, *, on_executors: bool = False) -> Plan:
        """Ends the lab's plan and writes it."""
        plan = self.lab.cut()
        self.write(plan, on_executors=on_executors)
        return plan

    def write(self, plan: Plan, *, on_executors: bool = False) -> None:
        """Writes a plan of the lab, or writes it again."""
        with self.lab.delivered(plan, self.spark if on_executors else None) as chunks:
            self.sink.write(plan, self.lab.timeline, chunks)

    def catch_up(self) -> None:
        """Reopens the lake and writes what it does not hold, as a restarted connector does."""
        self.reopen()
        for plan in self.lab.plans[self.held :]:
            self.write(plan)

    def mirror(self, directory: str) -> list[dict[str, Any]]:
        """A mirror's rows as Spark reads them, columns in order."""
        return self._rows(self._read(directory))

    def history(self, directory: str) -> list[PlainInterval]:
        """A history's rows by where they begin."""
        fields = self.schema(directory).fields
        rows = [dict(zip([f.physical for f in fields], row.values(), strict=True)) for row in self.mirror(directory)]
        found = [
            PlainInterval(
                from_offset=row["from_offset"],
                to_offset=row["to_offset"],
                valid_from=row["valid_from"],
                valid_to=row["valid_to"],
                values={f.column_id: row[f.physical] for f in fields if f.column_id and row[f.physical] is not None},
            )
            for row in rows
        ]
        return sorted(found, key=lambda interval: interval.from_offset)

    def columns(self, directory: str) -> list[str]:
        """Names and types of a table's columns, as Spark reads them."""
        return [f"{name} {kind}" for name, kind in self._read(directory).dtypes]

    def raw_log(self, directory: str) -> list[dict[str, Any]]:
        """A changelog's rows by offset, all columns."""
        return self._rows(self._read(directory).orderBy("offset"))

    def log(self, directory: str) -> list[Written]:
        """A changelog's rows by offset, which has no gap, each with the columns of its version."""
        rows = self.raw_log(directory)
        assert [row["offset"] for row in rows] == list(range(len(rows)))
        names = {physical_name(f.column_id): f.name for f in self.schema(directory).fields if f.column_id}
        return [self.lab.written(row, names) for row in rows]

    def view(self, directory: str) -> TableView:
        """The newest version of a table, as Kernel reads it."""
        view = self.kernel.view(str(self.path / directory))
        assert view is not None
        return view

    def schema(self, directory: str) -> DeltaSchema:
        """The schema in Delta's log."""
        return self.view(directory).schema()

    def versions(self, directory: str) -> int:
        """The newest Delta version of a table."""
        return self.view(directory).version

    def stopped(self) -> dict[str, str]:
        """Table to why it was stopped."""
        return {s.table: s.stopped for s in self.sink.status() if s.stopped is not None}

    def check(self, *tables: str) -> None:
        """The mirror and the changelog of each table are what the lab says."""
        for name in tables:
            base = name.replace(".", "_")
            key = self.lab.key_columns(name)
            found, expected = (_ordered(rows, key) for rows in (self.mirror(base), self.lab.rows(name)))
            assert found == expected
            assert self.log(f"{base}_changes") == self.lab.log(self.lab.table_id(name))

    def check_all(self) -> None:
        """Every target of every table is what the lab says, and none was stopped; deleted rows of soft mirrors are not looked at."""
        lab, plain = self.lab, PlainHistory()
        for plan in lab.plans:
            plain.apply(plan, lab.chunks[plan.number])
        logs: dict[str, list[Written]] = {}
        for table_id, location in sorted(self.locations().items()):
            logs.setdefault(location.changelog, []).extend(lab.log(table_id))
            if location.history:
                assert self.history(location.history) == plain.rows(str(location.came_as))
            if location.mirror and not location.dropped:
                key = lab.key_columns(location.name)
                found = [row for row in self.mirror(location.mirror) if not row.pop("_deleted", False)]
                found = [{name: value for name, value in row.items() if name != "_deleted_at"} for row in found]
                assert _ordered(found, key) == _ordered(lab.rows(location.name), key)
        for directory, expected in logs.items():
            assert self.log(directory) == expected
        assert self.stopped() == {}

    def locations(self) -> TableLocations:
        """Where the tables' rows go, by table id."""
        state = self.sink._state
        assert state is not None
        return state.locations

    def check_history(self, *names: str) -> None:
        """The history of each table, named by where it is in the lake, is what the lab's plans make of it."""
        plain = PlainHistory()
        for plan in self.lab.plans:
            plain.apply(plan, self.lab.chunks[plan.number])
        for name in names:
            assert self.history(f"{name.replace('.', '_')}_history") == plain.rows(name)

    def _rows(self, frame: DataFrame) -> list[dict[str, Any]]:
        """Rows through Arrow, which keeps time zones apart from their absence."""
        return frame.toArrow().to_pylist()

    def _read(self, directory: str) -> Any:
        return self.spark.read.format("delta").load(str(self.path / directory))


def _ordered(rows: list[dict[str, Any]], key: list[str]) -> list[list[tuple[str, Any]]]:
    return [list(row.items()) for row in sorted(rows, key=lambda row: repr([row[name] for name in key]))]
