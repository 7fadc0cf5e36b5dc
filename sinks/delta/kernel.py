"""Delta Kernel, called in Spark's JVM: tables are created and committed to without a Spark job.

One commit can carry a new schema, removed and added files, domain metadata and a transaction identifier, or nothing.
Kernel is public but young API, so nothing outside this module touches a Java object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote

from historian.errors import SinkError
from sinks.delta import faults
from sinks.delta.schema import DeltaSchema
from sinks.storage import share_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["KEEPS_ROWS", "REARRANGED", "Commit", "CommitConflict", "DataFile", "HeldFile", "Kernel", "TableView"]

_NOT_FOUND = "io.delta.kernel.exceptions.TableNotFoundException"
_NOT_KEPT = ("io.delta.kernel.exceptions.KernelException", "io.delta.kernel.exceptions.InvalidTableException")
"""What Kernel raises for a version whose log is cleaned away, in part or whole."""
KEEPS_ROWS = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""Properties of tables whose rows must not be moved to another file as if they were new."""

REARRANGED = "compaction/"
"""Stands before the signature of a commit that changed no row."""

_CONFLICTS = (
    "ConcurrentWriteException",
    "ConcurrentTransactionException",
    "MaxCommitRetryLimitReachedException",
    "FileAlreadyExistsException",
    "TableAlreadyExistsException",
)


class CommitConflict(SinkError):
    """Another commit took the version that this one was made for; nothing was written."""

    retryable: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file that lies in a table's directory: absolute path, size, row count, Delta's statistics as JSON."""

    path: str
    size_bytes: int
    rows: int
    statistics: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFile:
    """A file that a table holds: absolute path, Delta's statistics as JSON, and whether rows of it are marked as deleted."""

    path: str
    size_bytes: int
    statistics: str
    has_deletions: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What one commit does, besides its transaction identifier.

    Attributes:
        schema: the whole new schema; None leaves it.
        clear: whether all files that the table holds go.
        removed: paths of those that go, where not all do; a commit is refused where one of them is gone already.
        files: that are added.
        domains: domain metadata, name to text, that is set.
        same_rows: whether *files* hold the rows of *removed* and no others: for readers of changes nothing happened.
    """

    schema: DeltaSchema | None = None
    clear: bool = False
    removed: Sequence[str] = ()
    files: Sequence[DataFile] = ()
    domains: Mapping[str, str] = field(default_factory=dict)
    same_rows: bool = False


@dataclass(frozen=True, slots=True)
class TableView:
    """One version of a Delta table."""

    path: str
    version: int
    _snapshot: Any
    _engine: Any
    _jvm: Any

    def schema(self) -> DeltaSchema:
        """The table's schema."""
        return DeltaSchema.parse(
            self._snapshot.getMetadata().getSchemaString(), int(self.property("delta.columnMapping.maxColumnId") or 0)
        )

    def property(self, name: str) -> str | None:
        """A table property, or None."""
        value: str | None = self._snapshot.getMetadata().getConfiguration().get(name)
        return value

    def transaction(self, application: str) -> int:
        """The last transaction version that *application* committed; 0 where it has none."""
        return int(_or(self._snapshot.getLatestTransactionVersion(self._engine, application), 0))

    def domain(self, name: str) -> str | None:
        """The text of a metadata domain, or None."""
        value: str | None = _or(self._snapshot.getDomainMetadata(name), None)
        return value

    def clustering(self) -> list[str]:
        """Physical names of the columns by which the table's files are clustered; [] where they are not."""
        text = self.domain("delta.clustering")
        return [] if text is None else [path[0] for path in json.loads(text)["clusteringColumns"]]

    def files(self) -> list[str]:
        """Paths of the files that the table holds."""
        return [self._path(file) for file in self._files()]

    def held_files(self) -> list[HeldFile]:
        """The files that the table holds, with what its log says of them."""
        return [
            HeldFile(
                path=self._path(file),
                size_bytes=file.getSize(),
                statistics=_or(file.getStatsJson(), "{}"),
                has_deletions=file.getDeletionVector().isPresent(),
            )
            for file in self._files(statistics=True)
        ]

    def is_empty(self) -> bool:
        """Whether the table holds no file."""
        return next(self._files(), None) is None

    def has_change_feed(self) -> bool:
        """Whether the table tells which rows each of its commits changes."""
        return self.property("delta.enableChangeDataFeed") == "true"

    def small_files(self, limit_bytes: int, *, null_in: str | None = None) -> list[str] | None:
        """Paths of the files, where they have no more than that and every row of theirs is there; else None.

        None too where a change data feed is on: it would tell of rows that are the same as deleted and inserted; and where
        rows have an identity (row tracking), which a file of ours would not carry on.

        Args:
            null_in: physical name of a column; files that statistics say have no NULL there are left out.
        """
        if any(self.property(name) == "true" for name in KEEPS_ROWS):
            return None
        paths, size = [], 0
        for file in self._files(null_in):
            size += file.getSize()
            if size > limit_bytes or file.getDeletionVector().isPresent():
                return None
            paths.append(self._path(file))
        return paths

    def removals(self, paths: Collection[str] | None = None, *, change: bool = True) -> list[Any]:
        """Kernel's actions that take the files of *paths* out of the table; None: every file. *change*: with their rows."""
        single = self._jvm.io.delta.kernel.internal.actions.SingleAction
        now = self._jvm.java.util.Optional.of(int(time.time() * 1000))
        wanted = None if paths is None else set(paths)
        files = (f for f in self._files() if wanted is None or self._path(f) in wanted)
        return [single.createRemoveFileSingleAction(f.toRemoveFileRow(change, now)) for f in files]

    def _path(self, file: Any) -> str:
        return f"{self.path}/{unquote(file.getPath())}"

    def _files(self, null_in: str | None = None, *, statistics: bool = False) -> Iterator[Any]:
        add = self._jvm.io.delta.kernel.internal.actions.AddFile
        scan = self._snapshot.getScanBuilder()
        if null_in is not None:
            name = next(f.name for f in self.schema().fields if f.physical == null_in)
            expressions = self._jvm.io.delta.kernel.expressions
            scan = scan.withFilter(expressions.Predicate("IS_NULL", expressions.Column(name)))
        for batch in _closing(scan.build().getScanFiles(self._engine, statistics)):
            for row in _closing(batch.getRows()):
                yield add(row.getStruct(0))


class Kernel:
    """Reads and commits to Delta tables by path. *signature* stands in every commit as the engine that made it."""

    def __init__(self, spark: SparkSession, signature: str) -> None:
        jvm: Any = spark._jvm  # noqa: SLF001 there is no public way to a class of the JVM
        context: Any = spark._jsc  # noqa: SLF001 same
        self._jvm = jvm
        self._kernel = jvm.io.delta.kernel
        self._hadoop = context.hadoopConfiguration()
        self._engine = self._kernel.defaults.engine.DefaultEngine.create(self._hadoop)
        self._signature = signature
        self._spark = spark

    def view(self, path: str) -> TableView | None:
        """The newest version of the table at *path*; None where there is no Delta table."""
        from py4j.protocol import Py4JJavaError

        share_settings(self._spark, path)
        try:
            snapshot = self._kernel.TableManager.loadSnapshot(path).build(self._engine)
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() == _NOT_FOUND:
                return None
            raise _failed("a Delta table cannot be read", path, error) from error
        return self._view(path, snapshot)

    def view_at(self, path: str, version: int) -> TableView | None:
        """The table at *path* as it was; None where the log of that version is not kept any more."""
        from py4j.protocol import Py4JJavaError

        try:
            return self._view(path, self._kernel.TableManager.loadSnapshot(path).atVersion(version).build(self._engine))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() in _NOT_KEPT:
                return None
            raise _failed("a version of a Delta table cannot be read", path, error) from error

    def is_vacant(self, path: str) -> bool:
        """Whether nothing is at *path*, or a directory with no more than a log that holds no table yet."""
        name = self._jvm.org.apache.hadoop.fs.Path(path)
        system = name.getFileSystem(self._hadoop)
        if not system.exists(name):
            return True
        found = system.listStatus(name) if system.getFileStatus(name).isDirectory() else None
        return found is not None and all(entry.getPath().getName() == "_delta_log" for entry in found)

    def create(
        self,
        path: str,
        schema: DeltaSchema,
        properties: Mapping[str, str],
        domains: Mapping[str, str],
        cluster: Sequence[str] = (),
    ) -> TableView:
        """A new, empty table, clustered by those columns. Raises :class:`CommitConflict` where there is one."""
        from py4j.protocol import Py4JJavaError

        try:
            builder = self._kernel.TableManager.buildCreateTableTransaction(
                path, self._struct(schema.json()), self._signature
            )
            if cluster:
                columns = [self._kernel.expressions.Column(name) for name in cluster]
                builder = builder.withDataLayoutSpec(self._kernel.transaction.DataLayoutSpec.clustered(columns))
            transaction = builder.withTableProperties(dict(properties)).build(self._engine)
            return self._finish(path, 0, transaction, [], domains)
        except Py4JJavaError as error:
            raise _failed("a Delta table cannot be created", path, error) from error

    def commit(self, view: TableView, application: str, version: int, commit: Commit) -> TableView:
        """The table after *commit*, which stands directly on *view* and carries the transaction identifier; "": none.

        Raises:
            CommitConflict: the table has a newer version than *view*, or holds that identifier already, or lacks a file
                that the commit removes.
        """
        from py4j.protocol import Py4JJavaError

        operation = self._kernel.Operation
        rows = commit.files or commit.clear or commit.removed
        kind = operation.WRITE if rows else operation.MANUAL_UPDATE
        try:
            engine = f"{REARRANGED}{self._signature}" if commit.same_rows else self._signature
            builder = view._snapshot.buildUpdateTableTransaction(engine, kind)  # noqa: SLF001 our own class
            builder = builder.withMaxRetries(0)
            if application:
                builder = builder.withTransactionId(application, version)
            if commit.schema is not None:
                builder = builder.withUpdatedSchema(self._struct(commit.schema.json()))
                clustering = view.clustering()
                left = [f.name for physical in clustering for f in commit.schema.fields if f.physical == physical]
                if len(left) < len(clustering):
                    columns = [self._kernel.expressions.Column(name) for name in left]
                    builder = builder.withClusteringColumns(columns)
            transaction = builder.build(self._engine)
            actions: list[Any] = []
            if commit.clear or commit.removed:
                actions = view.removals(None if commit.clear else commit.removed, change=not commit.same_rows)
            if not commit.clear and len(actions) < len(commit.removed):
                raise CommitConflict("files that a commit replaces are gone", where=view.path)
            schema = commit.schema or (view.schema() if commit.files else None)
            if schema is not None:
                actions += self._additions(view, transaction, schema, commit.files, change=not commit.same_rows)
            return self._finish(view.path, view.version + 1, transaction, actions, commit.domains)
        except Py4JJavaError as error:
            raise _failed("a Delta table cannot be committed to", view.path, error) from error

    def commit_info(self, path: str, version: int) -> dict[str, Any] | None:
        """What the log says of the commit that made *version*; None where that entry is gone."""
        name = self._jvm.org.apache.hadoop.fs.Path(f"{path}/_delta_log/{version:020d}.json")
        system = name.getFileSystem(self._hadoop)
        if not system.exists(name):
            return None
        reader = self._jvm.java.io.BufferedReader(self._jvm.java.io.InputStreamReader(system.open(name), "UTF-8"))
        try:
            while (line := reader.readLine()) is not None:
                if line.startswith('{"commitInfo"'):
                    info: dict[str, Any] = json.loads(line)["commitInfo"]
                    return info
        finally:
            reader.close()
        return {}

    def delete_files(self, paths: Sequence[str]) -> None:
        """Deletes files that no table knows."""
        for path in paths:
            name = self._jvm.org.apache.hadoop.fs.Path(path)
            name.getFileSystem(self._hadoop).delete(name, False)
            faults.reached("file_deleted", path.rpartition("/")[0])

    def _finish(
        self, path: str, version: int, transaction: Any, actions: list[Any], domains: Mapping[str, str]
    ) -> TableView:
        for name, text in domains.items():
            transaction.addDomainMetadata(name, text)
        iterable = self._kernel.utils.CloseableIterable
        rows = iterable.emptyIterable()
        if actions:
            rows = iterable.inMemoryIterable(self._iterator(actions))
        at = f"{path} {version}"
        faults.reached("commit_begun", at)
        result = transaction.commit(self._engine, rows)
        faults.reached("commit_done", at)
        for hook in result.getPostCommitHooks():
            checkpoint = hook.getType().toString() == "CHECKPOINT"
            if checkpoint:
                faults.reached("checkpoint_begun", at)
            hook.threadSafeInvoke(self._engine)
            if checkpoint:
                faults.reached("checkpoint_done", at)
        after = _or(result.getPostCommitSnapshot(), None)
        if after is None:
            after = self._kernel.TableManager.loadSnapshot(path).build(self._engine)
        return self._view(path, after)

    def _additions(
        self, view: TableView, transaction: Any, schema: DeltaSchema, files: Sequence[DataFile], *, change: bool
    ) -> list[Any]:
        if not files:
            return []
        physical = self._struct(json.dumps(schema.physical()))
        utils, statistics = self._kernel.utils, self._kernel.statistics.DataFileStatistics
        now = int(time.time() * 1000)
        # Kernel knows a file as the table's own only under the root as it writes it itself: with a scheme.
        root = view._snapshot.getDataPath().toString()  # noqa: SLF001 our own class
        written = []
        for file in files:
            parsed = statistics.deserializeFromJson(file.statistics, physical)
            path = root + file.path.removeprefix(view.path)
            written.append(utils.DataFileStatus(path, file.size_bytes, now, parsed))
        if not change:
            return self._moved(view, physical, written)
        state = transaction.getTransactionState(self._engine)
        api = self._kernel.Transaction
        context = api.getWriteContext(self._engine, state, {})
        return list(_closing(api.generateAppendActions(self._engine, state, self._iterator(written), context)))

    def _moved(self, view: TableView, physical: Any, written: Sequence[Any]) -> list[Any]:
        """Actions that add files without a change of rows, for which Kernel's public door has none."""
        actions = self._kernel.internal.actions
        root = view._snapshot.getDataPath().toUri()  # noqa: SLF001 our own class
        none, of_none = self._jvm.java.util.Optional.empty(), self._jvm.java.util.HashMap()
        added = (
            actions.AddFile.convertDataFileStatus(physical, root, file, of_none, False, of_none, none, none, none)
            for file in written
        )
        return [actions.SingleAction.createAddFileSingleAction(file.toRow()) for file in added]

    def _iterator(self, rows: Any) -> Any:
        listed = self._jvm.java.util.ArrayList()
        for row in rows:
            listed.add(row)
        return self._kernel.internal.util.Utils.toCloseableIterator(listed.iterator())

    def _struct(self, text: str) -> Any:
        return self._kernel.internal.types.DataTypeJsonSerDe.deserializeStructType(text)

    def _view(self, path: str, snapshot: Any) -> TableView:
        return TableView(path, int(snapshot.getVersion()), snapshot, self._engine, self._jvm)


def _or(optional: Any, default: Any) -> Any:
    return optional.get() if optional.isPresent() else default


def _closing(iterator: Any) -> Iterator[Any]:
    try:
        while iterator.hasNext():
            yield iterator.next()
    finally:
        iterator.close()


def _failed(what: str, path: str, error: Any) -> SinkError:
    cause = error.java_exception
    kind = cause.getClass().getName()
    found = f"{kind}: {cause.getMessage()}"
    if kind.rpartition(".")[2] in _CONFLICTS:
        return CommitConflict("another commit came in between", where=path, found=found)
    root = cause
    while root.getCause() is not None:
        root = root.getCause()
    if not _is_about_files(root):
        return SinkError(what, where=path, found=found)
    return SinkError(
        what,
        where=path,
        expected="a path that Spark may read and write",
        found=f"{root.getClass().getName()}: {root.getMessage()}",
        next_step="mend the path, its rights or its space; the next run goes on where this one ended",
    )


def _is_about_files(error: Any) -> bool:
    kind = error.getClass()
    while kind is not None and kind.getName() != "java.io.IOException":
        kind = kind.getSuperclass()
    return kind is not None
