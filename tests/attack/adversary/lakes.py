"""Two lakes of one connector: mirrors in files, without Spark, and the whole pipeline into Delta."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from adversary.script import Follow, Script
from connectors.config import (
    BinlogFilesSource,
    HistoryConfig,
    PipelineConfig,
    RunConfig,
    ServerSource,
    SinkConfig,
    TableFilter,
)
from connectors.config.settings import ServerIds
from connectors.pipeline.run import run
from connectors.tracking.sources import make_tracker
from databases.servers import Server
from historian.changelog.chunks import Chunk
from historian.errors import LogCorrupt, ValueUnrepresentable
from historian.history.online_schema_changes import TOOLS, OnlineChanges
from historian.plans.plans import Plan
from historian.schema.edits import ForgetTable
from historian.schema.snapshots import Catalog, Snapshot
from historian.store import Store
from lakes.file_mirrors import FileMirrors
from models.plain_mirror import PlainMirror
from sinks.contract.chunks import Chunks
from sinks.contract.decisions import GENERATION
from sinks.contract.local_chunks import LocalChunks
from sinks.contract.locations import TableLocation, ended
from sinks.delta import DeltaSettings
from sinks.delta.rewrite.held_rows import read
from sinks.shaping.rules import COMPUTED_IDS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from connectors.tracking.tracker import Tracker

__all__ = ["DeltaLake", "FileLake", "Known", "Mirror", "configuration"]

_SEQUENCE_BITS = 32
_DELTA_ALONE = ("writer", "mirror_every_us", "compact")
"""Settings that mirrors in files know nothing of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A mirror: names of its columns by their ids, and its rows by those names."""

    names: Mapping[int, str]
    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a connector knows and holds behind its last run.

    Attributes:
        catalog: at the log's end.
        stopped: table id, name and why, of tables that stopped anywhere.
        mirrors: by table id.
        gone: mirrors of tables that are dropped, by directory, and how many rows they have.
        ended: what the lake says of mirrors that are not written any more, by directory.
        folded: the rows that a table's changelog amounts to, by table id; None where that is not known.
    """

    catalog: Catalog
    stopped: tuple[tuple[int, str, str], ...]
    mirrors: Mapping[int, Mirror]
    gone: Mapping[str, int]
    ended: Mapping[str, str]
    folded: Mapping[int, tuple[Snapshot, pa.Table]]


def configuration(server: Server, directory: Path, script: Script) -> PipelineConfig:
    """A connector of *server*, all of whose files are in *directory*."""
    source = ServerSource(
        flavor=server.flavor,
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        server_ids=ServerIds(first=900000, last=900099),
        start=script.start,
        tables=TableFilter(script.tables, online_changes=OnlineChanges(TOOLS)),
    )
    said: dict[str, Any] = {"path": str(directory / "lake"), **script.said}
    return PipelineConfig(
        path=directory / "attack.yaml",
        name="attack",
        source=source,
        history=HistoryConfig(store=f"sqlite:///{directory}/store.db"),
        sinks=(SinkConfig(type="delta", settings=said),),
        run=RunConfig(once=True),
    )


def _with_tables(config: PipelineConfig, tables: tuple[str, ...]) -> PipelineConfig:
    found = TableFilter(tables, online_changes=OnlineChanges(TOOLS))
    return replace(config, source=replace(config.source, tables=found))  # type: ignore[arg-type, call-arg]


class _Delivered:
    """A plan with its chunks, in the place of a :class:`sink_lab.Lab`."""

    def __init__(self, plan: Plan, chunks: list[Chunk]) -> None:
        self._plan, self._chunks = plan, chunks

    def cut(self) -> Plan:
        return self._plan

    @contextmanager
    def delivered(self, _plan: Plan) -> Iterator[Chunks]:
        with closing(LocalChunks(threads=1)) as chunks:
            chunks.fill([lambda: self._chunks])
            yield chunks


class _Folded(PlainMirror):
    """What changelogs amount to; tables that stop leave it."""

    def __init__(self) -> None:
        super().__init__()
        self.left: set[int] = set()

    def apply(self, plan: Plan, chunks: list[Chunk]) -> None:
        self.left |= {t.table_id for t in plan.tables if t.quarantine is not None or t.behind is not None}
        self.left |= {t.table_id for t in plan.tables if any(_forgets(v.edits) for v in t.versions)}
        self.left |= {chunk.table_id for chunk in chunks if chunk.stopped}
        for table in plan.tables:
            if table.table_id in self.left:
                continue
            try:
                super().apply(replace(plan, tables=(table,)), [c for c in chunks if c.table_id == table.table_id])
            except ValueUnrepresentable:  # a default that only the server knows: a mirror stops there
                self.left.add(table.table_id)

    def held(self) -> dict[int, tuple[Snapshot, pa.Table]]:
        ids = {t.snapshot.name: i for i, t in self._tables.items() if i not in self.left}
        held = {}
        for name, table_id in ids.items():
            # Values of a type that a column had before: plain rows do not follow that.
            with contextlib.suppress(pa.ArrowTypeError, pa.ArrowInvalid):
                held[table_id] = (self._tables[table_id].snapshot, self.rows(name))
        return held


def _forgets(edits: tuple[Any, ...]) -> bool:
    return any(isinstance(edit, ForgetTable) or type(edit).__name__ == "ResumeTable" for edit in edits)


class FileLake:
    """A connector whose mirrors are files alone: a run takes no Spark, and costs milliseconds."""

    def __init__(self, server: Server, directory: Path, script: Script) -> None:
        self.config = configuration(server, directory, script)
        self._directory = directory
        self._number = 0
        said: dict[str, Any] = {name: what for name, what in script.said.items() if name not in _DELTA_ALONE}
        feed = "table_properties" in said
        self._mirrors = FileMirrors(DeltaSettings(path="lake", **said), directory / "mirrors", feed=feed)
        self._folded = None if script.partial else _Folded()
        self._values: dict[int, str] = {}
        self.plans: list[Plan] = []

    @contextmanager
    def tracker(self) -> Iterator[Tracker]:
        tracker = make_tracker(self.config)
        try:
            yield tracker
        finally:
            tracker.close()

    def follow(self, step: Follow) -> None:
        """A run: a new tracker, all plans to the log's end."""
        with self.tracker() as tracker:
            tracker.stop_at_present_end()
            while (plan := tracker.plan_after(self._number, limit_bytes=step.limit_bytes)) is not None:
                chunks = [
                    chunk
                    for index, planned in enumerate(plan.ranges)
                    for chunk in tracker.reader.read(
                        planned,
                        plan.tables,
                        sequence=index << _SEQUENCE_BITS,
                        stops=True,
                        log=tracker.reader.cached(planned),
                    )
                ]
                self._values |= {chunk.table_id: chunk.stopped for chunk in chunks if chunk.stopped}
                if plan.tables:
                    self._mirrors.take(_Delivered(plan, chunks))  # type: ignore[arg-type]
                if self._folded is not None:
                    self._folded.apply(plan, chunks)
                self._number = plan.number
                self.plans.append(plan)
                tracker.done_with("", plan.number)
            tracker.confirm_head()

    def look(self, tables: tuple[str, ...]) -> None:
        """The configuration names other tables from now on."""
        self.config = _with_tables(self.config, tables)

    def go_to(self, server: Server) -> None:
        """The connector reads another server's log from now on."""
        source = self.config.source
        self.config = replace(self.config, source=replace(source, host=server.host, port=server.port))  # type: ignore[arg-type, call-arg]

    def follow_copy(self, server: Server, share: float) -> None:
        """A run on a copy of the server's log, whose last file ends early."""
        copies = self._directory / "log"
        copies.mkdir(exist_ok=True)
        files = server.binlog_files()
        for path in files:
            data = path.read_bytes()
            (copies / path.name).write_bytes(data if path != files[-1] else data[: max(4, int(len(data) * share))])
        source = BinlogFilesSource(flavor=server.flavor, directory=copies, tables=self.config.source.tables)
        self.config = replace(self.config, source=source)
        try:
            self.follow(Follow())
        except LogCorrupt:
            if share == 1:
                raise

    def forget(self) -> None:
        """What lies before the newest plan is forgotten."""
        store = Store.open(self.config.history.store)
        try:
            plan = store.last_plan()
            if plan is not None:
                store.forget(plan.start, (plan.number,))
        finally:
            store.close()

    def known(self) -> Known:
        """See :class:`Known`."""
        store = Store.open(self.config.history.store)
        try:
            history, stopped = store.history(), [(i, str(n), q.reason) for i, n, q in store.stopped()]
        finally:
            store.close()
        locations = self._mirrors.locations
        stopped += [(i, h.name, self._values[i]) for i, h in locations.items() if i in self._values]
        stopped += [(i, h.name, why) for i, h in locations.items() if (why := h.stopped or h.quarantined)]
        stopped += [
            (i, h.name, self._mirrors.stopped[h.name]) for i, h in locations.items() if h.name in self._mirrors.stopped
        ]
        stopped += [(i, h.name, h.former_why) for i, h in locations.items() if h.former_why]
        mirrors, gone, over = {}, {}, ended(locations)
        stands = {
            table_id for table_id, _, _ in stopped
        }  # a table that stops leaves its rows as they were, whatever is dropped then
        for table_id, location in locations.items():
            table = self._mirrors.tables.get(location.mirror)
            if table is None or not table.exists:
                continue
            if location.dropped:
                if table_id not in stands and not any(
                    other.mirror == location.mirror and not other.dropped for other in locations.values()
                ):
                    gone[location.mirror] = len(_alive(table.rows(), table.schema().names()))
                continue
            schema = table.schema()
            shape = schema.arrow()
            rows = pa.concat_tables([shape.empty_table(), *(read(path, shape) for path in table._files)])
            names = {f.column_id: f.name for f in schema.fields if f.column_id}
            mirrors[table_id] = Mirror(names=names, rows=rows.rename_columns([f.name for f in schema.fields]))
        folded = {} if self._folded is None else self._folded.held()
        return Known(
            catalog=history.catalog, stopped=tuple(stopped), mirrors=mirrors, gone=gone, ended=over, folded=folded
        )


class DeltaLake:
    """A connector as its users have it: the pipeline, into tables of Delta."""

    def __init__(self, server: Server, directory: Path, script: Script, spark: SparkSession) -> None:
        self.config = configuration(server, directory, script)
        self._lake = directory / "lake"
        self._spark = spark

    def look(self, tables: tuple[str, ...]) -> None:
        """The configuration names other tables from now on."""
        self.config = _with_tables(self.config, tables)

    def go_to(self, server: Server) -> None:
        """The connector reads another server's log from now on."""
        source = self.config.source
        self.config = replace(self.config, source=replace(source, host=server.host, port=server.port))  # type: ignore[arg-type, call-arg]

    def follow(self, step: Follow) -> None:
        """``historian run --once``."""
        limit = step.limit_bytes or self.config.run.max_batch_bytes
        config = replace(self.config, run=replace(self.config.run, max_batch_bytes=limit))
        run(config, once=True, spark=self._spark)

    def forget(self) -> None:
        """What lies before the newest plan is forgotten, as far as targets hold it."""
        from connectors.pipeline.opening import make_sinks

        held = [found for sink in make_sinks(self.config, self._spark) if (found := sink.held()) is not None]
        store = Store.open(self.config.history.store)
        try:
            plan = store.last_plan()
            if plan is not None:
                store.forget(plan.start, held)
        finally:
            store.close()

    def known(self) -> Known:
        """See :class:`Known`; changelogs are folded by their rows in the lake, where they have no edits of columns."""
        from lakes.held_rows import held_table, spark_table
        from sinks.delta.log.kernel import Kernel

        store = Store.open(self.config.history.store)
        try:
            history, stopped = store.history(), [(i, str(n), q.reason) for i, n, q in store.stopped()]
        finally:
            store.close()
        mirrors, gone = {}, {}
        if not (self._lake / "historian_tables").exists():
            return Known(catalog=history.catalog, stopped=tuple(stopped), mirrors={}, gone={}, ended={}, folded={})
        kernel = Kernel(self._spark, "attack")
        locations = spark_table(self._spark, str(self._lake / "historian_tables")).to_pylist()
        stopped += [(h["table_id"], h["name"], why) for h in locations if (why := h["stopped"] or h["quarantined"])]
        stopped += [(h["table_id"], h["name"], h["former_why"]) for h in locations if h.get("former_why")]
        stands = {table_id for table_id, _, _ in stopped}
        over = ended({location["table_id"]: TableLocation(**location) for location in locations})
        for location in locations:
            path = str(self._lake / location["mirror"])
            view = kernel.view(path) if location["mirror"] else None
            if view is None:
                continue
            rows = held_table(kernel, path)
            if location["dropped"]:
                if location["table_id"] not in stands and not any(
                    o["mirror"] == location["mirror"] and not o["dropped"] for o in locations
                ):
                    gone[location["mirror"]] = len(_alive(rows.to_pylist(), rows.column_names))
                continue
            # What stands in the place of another column has its id and a generation.
            fields = sorted((f.column_id, f.name) for f in view.schema().fields if f.column_id)
            names = {i % GENERATION if i < COMPUTED_IDS else i: name for i, name in fields}
            mirrors[location["table_id"]] = Mirror(names=names, rows=rows)
        return Known(catalog=history.catalog, stopped=tuple(stopped), mirrors=mirrors, gone=gone, ended=over, folded={})


def _alive(rows: list[Any], names: list[str]) -> list[Any]:
    """Rows that are not marked as deleted."""
    if "_deleted" not in names:
        return rows
    at = names.index("_deleted")
    return [row for row in rows if not (row["_deleted"] if isinstance(row, dict) else row[at])]
