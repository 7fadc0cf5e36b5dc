"""A connector of the tests: a server into a lake in a directory, and the lake compared with a workload's notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from connectors.config import PipelineConfig, load_config
from connectors.monitoring.observer import on_written
from connectors.pipeline.run import run
from databases.servers import Server
from historian.history.history import History
from historian.store import Store
from lakes.held_rows import held_table
from replicas.replica_checks import assert_lake_equals, folded
from replicas.replica_reading import Reading
from sinks.delta.log.kernel import Kernel
from workload.notes import Recorded, Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Replica"]


class Replica:
    """Configuration, state and lake in one directory.

    Args:
        server: the source.
        directory: for everything.
        databases: captured ones, as globs.
        history: the pattern of histories' names; None: there are none.
        max_batch: of log in one plan.
        evolution: the preset that the lake's tables have.
        plain: whether the lake does without what delta-rs refuses to read.
        positions: whether changelogs say where in the source's log their rows come from.
        start: where the connector begins; ``backfill``: how it copies rows, as YAML has it.
    """

    def __init__(
        self,
        server: Server,
        directory: Path,
        databases: Iterable[str] = ("shop", "archive", "brief*"),
        history: str | None = None,
        max_batch: str = "256 MB",
        evolution: str = "evolve",
        *,
        plain: bool = False,
        positions: bool = False,
        start: str = "earliest",
        backfill: str = "{}",
    ) -> None:
        self.directory = directory
        self.evolution = evolution
        self.lake = directory / "lake"
        self.path = directory / "replica.yaml"
        tables = ", ".join(f'"{database}.*"' for database in databases)
        off = "{delta.enableTypeWidening: null, delta.feature.timestampNtz: null}" if plain else "{}"
        own = "widen_type: new_column" if plain else ""
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
  start: {start}
  backfill: {backfill}
history:
  store: sqlite:///{directory}/store.db
sinks:
  - type: delta
    path: "{self.lake}"
    changelog: "changes_{{database}}_{{table}}"
    changelog_columns: {"[position, ordinal, transaction]" if positions else "[]"}
    mirror: "{{database}}_{{table}}"
    history: {f'"{history}"' if history else "null"}
    evolution: {{preset: {evolution}, {own}}}
    table_properties: {off}
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
        self.path.write_text(text.replace(f"preset: {self.evolution}", f"preset: {preset}"))
        self.evolution = preset

    def run(
        self, spark: SparkSession, *, until: str | None = None, report: Callable[[Any], None] = lambda _: None
    ) -> Mapping[str, str]:
        """Runs the connector up to what the log holds now, or to *until*; a start and a stop."""
        return run(self.config, once=True, until=until, observer=on_written(lambda plan, _: report(plan)), spark=spark)

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
        assert_lake_equals(recorded, self.reading(spark))

    def assert_spark_reads_the_same(self, spark: SparkSession) -> None:
        """Fails unless Spark reads in every target what its files hold."""
        reading = self.reading(spark)
        for directory in reading.targets():
            reading.assert_spark_reads_the_same(directory)

    def assert_delta_rs_reads_the_same(self, spark: SparkSession) -> None:
        """Fails unless an engine that shares no code with Spark reads the same rows in all targets."""
        reading = self.reading(spark)
        for directory in reading.targets():
            reading.assert_delta_rs_reads_the_same(directory)

    def folded(self, table_id: int, spark: SparkSession) -> list[Row]:
        """What a table's changelog amounts to, under its last schema."""
        reading = self.reading(spark)
        last = reading.shown(reading.versions(table_id)[-1])
        return [dict(row) for row in folded(reading.changelog(table_id), last).elements()]

    def reading(self, spark: SparkSession) -> Reading:
        """A look at the lake as it is now."""
        return Reading(self.lake, self.history(), spark)

    def raw_changelogs(self, spark: SparkSession) -> dict[str, list[tuple[Any, ...]]]:
        """Every changelog by directory, whole rows by offset, without ``system_time``."""
        kernel = Kernel(spark, "tests")
        found = {}
        for path in sorted(self.lake.glob("changes_*")):
            rows = held_table(kernel, str(path)).sort_by("offset").drop_columns("system_time")
            found[path.name] = [tuple(row.values()) for row in rows.to_pylist()]
        return found
