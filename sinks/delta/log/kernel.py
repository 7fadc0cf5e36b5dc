"""Delta Kernel, called in Spark's JVM: tables are created and committed to without a Spark job.

One commit can carry a new schema, removed and added files, domain metadata and a transaction identifier, or nothing.
Kernel is public but young API, so nothing outside this module and :mod:`sinks.delta.log.table_view` touches an object of it.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from historian.errors import ChainBroken, SinkError
from sinks.contract.late_java import has_java
from sinks.contract.refusals import next_step_for
from sinks.contract.storage import is_local, refusal, share_settings
from sinks.delta import faults
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import Commit
from sinks.delta.log.kernel_classes import KernelClasses, kernel_classes
from sinks.delta.log.local_files import with_local_files
from sinks.delta.log.plain_facts import plain_facts
from sinks.delta.log.table_view import KernelSnapshot, TableView, may_have_log, optional

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["REARRANGED", "CommitConflict", "Kernel"]

_NOT_FOUND = "io.delta.kernel.exceptions.TableNotFoundException"
_REFUSED = "io.delta.kernel.exceptions.KernelException"
"""What Kernel raises for a table that it does not write, or read, as that is."""
_NOT_KEPT = ("io.delta.kernel.exceptions.KernelException", "io.delta.kernel.exceptions.InvalidTableException")
"""What Kernel raises for a version whose log is cleaned away, in part or whole."""
REARRANGED = "compaction/"
"""Stands before the signature of a commit that changed no row."""

_COMMITS = 100_000
"""Of so many the time is kept, where nobody asks for it."""

_LOCAL_LOGS = "io.delta.kernel.logStore.file.impl"
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


class Kernel:
    """Reads and commits to Delta tables by path. *signature* stands in every commit as the engine that made it."""

    def __init__(self, spark: SparkSession, signature: str) -> None:
        self._signature = signature
        self._spark = spark
        self._commit_s: deque[float] = deque(maxlen=_COMMITS)

    @cached_property
    def _classes(self) -> KernelClasses:
        jvm: Any = self._spark._jvm  # noqa: SLF001 there is no public way to a class of the JVM
        return kernel_classes(jvm)

    @cached_property
    def _hadoop(self) -> Any:
        context: Any = self._spark._jsc  # noqa: SLF001 there is no public way to Hadoop's settings
        hadoop = self._classes.configuration(context.hadoopConfiguration())
        # HDFS's, which is the default for local paths too, starts some ten processes to write a file of the log.
        hadoop.setIfUnset(_LOCAL_LOGS, "io.delta.storage.LocalLogStore")
        return hadoop

    @cached_property
    def _engine(self) -> Any:
        return self._classes.engine(self._hadoop)

    def view(self, path: str) -> TableView | None:
        """The newest version of the table at *path*; None where there is no Delta table.

        Raises:
            ChainBroken: it has a feature that Kernel does not read.
        """
        from py4j.protocol import Py4JJavaError

        share_settings(self._spark, path)
        # Kernel says it by an exception, which PySpark takes some 40 ms to look at.
        if not may_have_log(path):
            return None
        facts = plain_facts(path) if is_local(path) and not has_java(self._spark) else None
        if facts is not None:
            return TableView(path, facts.version, partial(self._load, path, facts.version), facts.entry, facts)
        try:
            snapshot = self._classes.load_snapshot(path).build(self._engine_of(path))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() == _NOT_FOUND:
                return None
            raise _refused(path, error) or _failed("a Delta table cannot be read", path, error) from error
        return self._view(path, snapshot)

    def view_at(self, path: str, version: int) -> TableView | None:
        """The table at *path* as it was; None where the log of that version is not kept any more."""
        from py4j.protocol import Py4JJavaError

        try:
            return self._view(path, self._classes.load_snapshot(path).atVersion(version).build(self._engine_of(path)))
        except Py4JJavaError as error:
            if error.java_exception.getClass().getName() in _NOT_KEPT:
                return None
            raise _failed("a version of a Delta table cannot be read", path, error) from error

    def is_vacant(self, path: str) -> bool:
        """Whether nothing is at *path*, or a directory with no more than a log that holds no table yet.

        A link is something, wherever it leads: who may write to the lake alone is not to choose where tables are made.
        """
        if is_local(path) and Path(path.removeprefix("file:")).is_symlink():
            return False
        with _told("a target's place cannot be looked at", path):
            name = self._classes.hadoop_path(path)
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

        classes = self._classes
        try:
            builder = classes.create_table(path, classes.struct(schema.json()), self._signature)
            if cluster:
                builder = builder.withDataLayoutSpec(classes.clustered([classes.column(name) for name in cluster]))
            transaction = builder.withTableProperties(dict(properties)).build(self._engine_of(path))
            return self._view(path, self._finish(path, 0, transaction, classes.no_actions(), domains))
        except Py4JJavaError as error:
            raise _failed("a Delta table cannot be created", path, error) from error

    def commit(self, view: TableView, application: str, version: int, commit: Commit) -> TableView:
        """The table after *commit*, which stands directly on *view* and carries the transaction identifier; "": none.

        Raises:
            CommitConflict: the table has a newer version than *view*, or holds that identifier already, or lacks a file
                that the commit removes.
            ChainBroken: the table has a feature or property with which Kernel does not write it so.
        """
        from py4j.protocol import Py4JJavaError

        classes = self._classes
        rows = commit.files or commit.clear or commit.removed
        try:
            engine = f"{REARRANGED}{self._signature}" if commit.same_rows else self._signature
            kind = classes.write if rows else classes.manual_update
            builder = view.kernel.snapshot.buildUpdateTableTransaction(engine, kind)
            builder = builder.withMaxRetries(0)
            if application:
                builder = builder.withTransactionId(application, version)
            if commit.schema is not None:
                builder = builder.withUpdatedSchema(classes.struct(commit.schema.json()))
                clustering = view.clustering()
                left = [f.name for physical in clustering for f in commit.schema.fields if f.physical == physical]
                if len(left) < len(clustering):
                    builder = builder.withClusteringColumns([classes.column(name) for name in left])
            transaction = builder.build(view.kernel.engine)
            removals: list[Any] = []
            if commit.clear or commit.removed:
                removals = view.removals(None if commit.clear else commit.removed, change=not commit.same_rows)
            if not commit.clear and len(removals) < len(commit.removed):
                raise CommitConflict("files that a commit replaces are gone", where=view.path)
            actions = self._actions(view, transaction, commit, removals)
            after = self._finish(view.path, view.version + 1, transaction, actions, commit.domains)
        except Py4JJavaError as error:
            failed = _failed("a Delta table cannot be committed to", view.path, error)
            raise (failed if isinstance(failed, CommitConflict) else _refused(view.path, error) or failed) from error
        return view.after(after, application, version, commit)

    def commit_s(self) -> Sequence[float]:
        """How long each commit took since this was last asked, seconds; other threads may commit meanwhile."""
        return [self._commit_s.popleft() for _ in range(len(self._commit_s))]

    def commit_info(self, path: str, version: int) -> dict[str, Any] | None:
        """What the log says of the commit that made *version*; None where that entry is gone."""
        with _told("a version of a Delta table cannot be read", path):
            name = self._classes.hadoop_path(f"{path}/_delta_log/{version:020d}.json")
            system = name.getFileSystem(self._hadoop)
            if not system.exists(name):
                return None
            reader = self._classes.buffered_reader(self._classes.stream_reader(system.open(name), "UTF-8"))
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
            with _told("a file cannot be deleted", path):
                name = self._classes.hadoop_path(path)
                name.getFileSystem(self._hadoop).delete(name, False)
            faults.reached("file_deleted", path.rpartition("/")[0])

    def _finish(self, path: str, version: int, transaction: Any, actions: Any, domains: Mapping[str, str]) -> Any:
        """Kernel's snapshot behind the commit."""
        for name, text in domains.items():
            transaction.addDomainMetadata(name, text)
        at, engine = f"{path} {version}", self._engine_of(path)
        faults.reached("commit_begun", at)
        begun_s = time.monotonic()
        result = transaction.commit(engine, actions)
        self._commit_s.append(time.monotonic() - begun_s)
        faults.reached("commit_done", at)
        hooks = result.getPostCommitHooks()
        # By number: the end of an iteration is an exception in Java, which takes its time to come here.
        for hook in [hooks.get(number) for number in range(hooks.size())]:
            checkpoint = hook.getType().toString() == "CHECKPOINT"
            if checkpoint:
                faults.reached("checkpoint_begun", at)
            hook.threadSafeInvoke(engine)
            if checkpoint:
                faults.reached("checkpoint_done", at)
        after = optional(result.getPostCommitSnapshot(), None)
        return self._classes.load_snapshot(path).build(engine) if after is None else after

    def _actions(self, view: TableView, transaction: Any, commit: Commit, removals: Sequence[Any]) -> Any:
        """Kernel's rows that take files out of the table, and that add *commit*'s."""
        classes = self._classes
        if not commit.files and not removals:
            return classes.no_actions()
        iterator = classes.iterator(self._listed(removals).iterator())
        if commit.files:
            iterator = iterator.combine(self._additions(view, transaction, commit))
        return classes.in_memory(iterator)

    def _additions(self, view: TableView, transaction: Any, commit: Commit) -> Any:
        classes = self._classes
        physical = classes.struct(json.dumps((commit.schema or view.schema()).physical()))
        now = int(time.time() * 1000)
        # Kernel knows a file as the table's own only under the root as it writes it itself: with a scheme.
        root = view.kernel.snapshot.getDataPath().toString()
        written = [
            classes.file_status(
                root + file.path.removeprefix(view.path),
                file.size_bytes,
                now,
                classes.statistics(file.statistics, physical),
            )
            for file in commit.files
        ]
        if commit.same_rows:
            return classes.iterator(self._listed(self._moved(view, physical, written)).iterator())
        engine = view.kernel.engine
        state = transaction.getTransactionState(engine)
        context = classes.write_context(engine, state, {})
        files = classes.iterator(self._listed(written).iterator())
        return classes.append_actions(engine, state, files, context)

    def _moved(self, view: TableView, physical: Any, written: Sequence[Any]) -> list[Any]:
        """Actions that add files without a change of rows, for which Kernel's public door has none."""
        classes = self._classes
        root = view.kernel.snapshot.getDataPath().toUri()
        none, of_none = classes.optional.empty(), classes.hash_map()
        added = (
            classes.add_file.convertDataFileStatus(physical, root, file, of_none, False, of_none, none, none, none)
            for file in written
        )
        return [classes.single_action.createAddFileSingleAction(file.toRow()) for file in added]

    def _listed(self, values: Iterable[Any]) -> Any:
        listed = self._classes.array_list()
        for value in values:
            listed.add(value)
        return listed

    def _engine_of(self, path: str) -> Any:
        return self._local_engine if is_local(path) else self._engine

    @cached_property
    def _local_engine(self) -> Any:
        """One of its own: S3A looks for the file system of its buffers with a class loader that does not find our class."""
        if not is_local(str(self._hadoop.get("fs.defaultFS"))):
            return self._engine
        return self._classes.engine(with_local_files(self._spark._jvm, self._hadoop))  # noqa: SLF001 see above

    def _view(self, path: str, snapshot: Any) -> TableView:
        return self._snapshot(path, snapshot).view(path)

    def _snapshot(self, path: str, snapshot: Any) -> KernelSnapshot:
        return KernelSnapshot(snapshot=snapshot, engine=self._engine_of(path), classes=self._classes)

    def _load(self, path: str, version: int) -> KernelSnapshot:
        """Kernel's own of what the log's text told of first."""
        from py4j.protocol import Py4JJavaError

        try:
            found = self._classes.load_snapshot(path).build(self._engine_of(path))
            if int(found.getVersion()) != version:  # A commit that stands on the older one is refused, as it must be.
                found = self._classes.load_snapshot(path).atVersion(version).build(self._engine_of(path))
        except Py4JJavaError as error:
            raise _refused(path, error) or _failed("a Delta table cannot be read", path, error) from error
        return self._snapshot(path, found)


def _refused(path: str, error: Any) -> ChainBroken | None:
    """What is about one table, and not about where it lies."""
    cause = error.java_exception
    if not _is_a(cause, _REFUSED):
        return None
    return ChainBroken(
        "Delta Kernel does not go on with a target as it is",
        where=path,
        expected="features and properties of Delta that it follows",
        found=str(cause.getMessage()),
        next_step="take back what was set on the table (ALTER TABLE ... UNSET TBLPROPERTIES, DROP FEATURE) and run "
        "`historian replay`, or replicate the table into another lake, from the start",
    )


@contextmanager
def _told(what: str, path: str) -> Iterator[None]:
    """Raises :class:`SinkError` for what Java's file system raises inside."""
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        raise _failed(what, path, error) from error


def _failed(what: str, path: str, error: Any) -> SinkError:
    cause = error.java_exception
    kind = cause.getClass().getName()
    found = f"{kind}: {cause.getMessage()}"
    if kind.rpartition(".")[2] in _CONFLICTS:
        return CommitConflict("another commit came in between", where=path, found=found)
    about = None
    while cause is not None:
        # The innermost says it best; where a directory cannot be made, there is another error inside that says less.
        about = cause if _is_a(cause, "java.io.IOException") else about
        cause = cause.getCause()
    if about is None:
        return SinkError(what, where=path, found=found)
    said = refusal(path, f"{about.getClass().getName()}: {about.getMessage()}")
    return SinkError(
        what,
        where=path,
        expected="a path that Spark may read and write",
        found=said,
        next_step=next_step_for(said),
    )


def _is_a(error: Any, name: str) -> bool:
    kind = error.getClass()
    while kind is not None and kind.getName() != name:
        kind = kind.getSuperclass()
    return kind is not None
