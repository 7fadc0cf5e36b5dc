"""One version of a Delta table as Delta Kernel tells it, each thing asked once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from historian.errors import ChainBroken
from sinks.contract.storage import is_local, located
from sinks.delta.log.columns import DeltaSchema
from sinks.delta.log.commits import HeldFile
from sinks.delta.log.kernel_classes import KernelClasses
from sinks.delta.log.plain_facts import TableFacts

if TYPE_CHECKING:
    from sinks.delta.log.commits import Commit

__all__ = ["KEEPS_ROWS", "KernelSnapshot", "TableView", "log_entry", "may_have_log", "optional"]

KEEPS_ROWS = ("delta.enableChangeDataFeed", "delta.enableRowTracking")
"""Properties of tables whose rows must not be moved to another file as if they were new."""

_Known = TypeVar("_Known")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSnapshot:
    """Kernel's objects of one version of a table."""

    snapshot: Any
    engine: Any
    classes: KernelClasses

    def view(self, path: str, known: dict[tuple[str, ...], Any] | None = None) -> TableView:
        """The table at *path*, of which this is told; *known*: what of it need not be asked."""
        version = int(self.snapshot.getVersion())
        return TableView(path, version, lambda: self, log_entry(path, version), None, known or {})


@dataclass(frozen=True, slots=True)
class TableView:
    """One version of a Delta table. What was asked of it once is remembered."""

    path: str
    version: int
    _loaded: Callable[[], KernelSnapshot]
    _entry: tuple[int, ...] | None
    _facts: TableFacts | None = None
    _known: dict[tuple[str, ...], Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def kernel(self) -> KernelSnapshot:
        """The version as Kernel has it, which is loaded where the log's text alone has told of the table so far."""
        return self._once(("kernel",), self._loaded)

    def is_newest(self) -> bool:
        """Whether a look at two files of the log tells that nothing was committed since; False where it cannot tell."""
        if self._entry is None or self._entry != log_entry(self.path, self.version):
            return False
        return log_entry(self.path, self.version + 1) is None

    def is_other_than(self, view: TableView) -> bool:
        """Whether both are of one version of a local log, whose file is not the same any more."""
        both = self._entry is not None and view._entry is not None
        return both and self.version == view.version and self._entry != view._entry

    def schema(self) -> DeltaSchema:
        """The table's schema."""
        return self._once(
            ("schema",),
            lambda: DeltaSchema.parse(
                self._metadata()["schemaString"], int(self.property("delta.columnMapping.maxColumnId") or 0)
            ),
        )

    def property(self, name: str) -> str | None:
        """A table property, or None."""
        value: str | None = self._metadata()["configuration"].get(name)
        return value

    def transaction(self, application: str) -> int:
        """The last transaction version that *application* committed; 0 where it has none."""
        if self._facts is not None:
            return self._facts.transactions.get(application, 0)
        return self._once(("transaction", application), lambda: self._transaction(self.kernel, application))

    def domain(self, name: str) -> str | None:
        """The text of a metadata domain, or None."""
        if self._facts is not None:
            return self._facts.domains.get(name)
        found: str | None = self._once(
            ("domain", name), lambda: optional(self.kernel.snapshot.getDomainMetadata(name), None)
        )
        return found

    def counted(self, name: str, kind: str) -> dict[str, Any]:
        """What a target of that *kind* says of its offsets, as JSON in a domain. Raises :class:`ChainBroken` where it does not."""
        text = self.domain(name)
        if text is None:
            raise ChainBroken(f"a {kind} does not say its next offset", where=self.path, expected=f"domain {name}")
        values: dict[str, Any] = json.loads(text)
        return values

    def clustering(self) -> list[str]:
        """Physical names of the columns by which the table's files are clustered; [] where they are not."""
        text = self.domain("delta.clustering")
        return [] if text is None else [path[0] for path in json.loads(text)["clusteringColumns"]]

    def files(self) -> list[str]:
        """Paths of the files that the table holds."""
        return [file.path for file in self.held_files()]

    def held_files(self) -> list[HeldFile]:
        """The files that the table holds, with what its log says of them."""
        if self._facts is not None:
            return [replace(file, path=f"{self.path}/{file.path}") for file in self._facts.files]
        return [file for file, _ in self._held()]

    def files_from(self, column: str, least: int) -> list[HeldFile]:
        """The same, but files that statistics say have no value of that system column, a long, from *least* on."""
        classes = self.kernel.classes
        wanted = classes.predicate(">=", classes.column(column), classes.long(least))
        return [self._described(row) for row in self._files(wanted, statistics=True)]

    def is_empty(self) -> bool:
        """Whether the table holds no file."""
        if self._facts is not None:
            return not self._facts.files
        if ("files",) in self._known:
            return not self._held()
        return next(self._files(), None) is None

    def has_change_feed(self) -> bool:
        """Whether the table tells which rows each of its commits changes."""
        return self.property("delta.enableChangeDataFeed") == "true"

    def small_files(
        self,
        limit_bytes: int | None,
        *,
        null_in: str | None = None,
        wanted: Callable[[HeldFile], bool] | None = None,
    ) -> list[str] | None:
        """Paths of the files, where they have no more than that, if it is given, and every row of theirs is there; else None.

        None too where a change data feed is on: it would tell of rows that are the same as deleted and inserted. And where
        rows have an identity (row tracking), which a file of ours would not carry on.

        Args:
            null_in: physical name of a column; files that statistics say have no NULL there are left out.
            wanted: says which files are.
        """
        if any(self.property(name) == "true" for name in KEEPS_ROWS):
            return None
        paths, size = [], 0
        predicate = None if null_in is None else self._null_in(null_in)
        for row in self._files(predicate, statistics=wanted is not None):
            file = self._described(row)
            if wanted is not None and not wanted(file):
                continue
            size += file.size_bytes
            if file.has_deletions or (limit_bytes is not None and size > limit_bytes):
                return None
            paths.append(file.path)
        return paths

    def removals(self, paths: Collection[str] | None = None, *, change: bool = True) -> list[Any]:
        """Kernel's actions that take the files of *paths* out of the table; None: every file. *change*: with their rows."""
        classes = self.kernel.classes
        now = classes.optional.of(int(time.time() * 1000))
        wanted = None if paths is None else set(paths)
        rows = (row for file, row in self._held() if wanted is None or file.path in wanted)
        return [
            classes.single_action.createRemoveFileSingleAction(classes.add_file(row).toRemoveFileRow(change, now))
            for row in rows
        ]

    def after(self, snapshot: Any, application: str, transaction: int, commit: Commit) -> TableView:
        """The view of the commit that stands directly on this one: it knows what that has not changed."""
        known: dict[tuple[str, ...], Any] = {("domain", name): text for name, text in commit.domains.items()}
        if commit.schema is None:
            known |= {key: value for key, value in self._known.items() if key[0] in ("schema", "metadata")}
        if application:
            known["transaction", application] = transaction
        return replace(self.kernel, snapshot=snapshot).view(self.path, known)

    def _metadata(self) -> dict[str, Any]:
        if self._facts is not None:
            return self._facts.metadata
        kernel = self.kernel
        return self._once(
            ("metadata",), lambda: json.loads(kernel.classes.row_json(kernel.snapshot.getMetadata().toRow()))
        )

    @staticmethod
    def _transaction(kernel: KernelSnapshot, application: str) -> int:
        return int(optional(kernel.snapshot.getLatestTransactionVersion(kernel.engine, application), 0))

    def _once(self, key: tuple[str, ...], ask: Callable[[], _Known]) -> _Known:
        if key not in self._known:
            self._known[key] = ask()
        known: _Known = self._known[key]
        return known

    def _held(self) -> list[tuple[HeldFile, Any]]:
        return self._once(("files",), lambda: [(self._described(row), row) for row in self._files(statistics=True)])

    def _described(self, row: Any) -> HeldFile:
        values = json.loads(self.kernel.classes.row_json(row))
        return HeldFile(
            path=f"{self.path}/{unquote(values['path'])}",
            size_bytes=values["size"],
            statistics=values.get("stats") or "{}",
            has_deletions=values.get("deletionVector") is not None,
        )

    def _null_in(self, physical: str) -> Any:
        name = next(f.name for f in self.schema().fields if f.physical == physical)
        classes = self.kernel.classes
        return classes.predicate("IS_NULL", classes.column(name))

    def _files(self, predicate: Any = None, *, statistics: bool = False) -> Iterator[Any]:
        """What the log says of each file, as Kernel's rows."""
        kernel = self.kernel
        scan = kernel.snapshot.getScanBuilder()
        if predicate is not None:
            scan = scan.withFilter(predicate)
        for batch in _closing(scan.build().getScanFiles(kernel.engine, statistics)):
            for row in _closing(batch.getRows()):
                yield row.getStruct(0)


def may_have_log(path: str) -> bool:
    """False where there is no Delta log at *path*, as far as this process can tell."""
    if not is_local(path):
        return True
    try:
        Path(located(path)[1], "_delta_log").stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def log_entry(path: str, version: int) -> tuple[int, ...] | None:
    """What tells a version's file of a log on this machine from another one under its name; None where there is none."""
    if not is_local(path):
        return None
    try:
        found = Path(located(path)[1], "_delta_log", f"{version:020d}.json").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def optional(value: Any, default: Any) -> Any:
    """What a Java Optional holds, or *default*."""
    return value.get() if value.isPresent() else default


def _closing(iterator: Any) -> Iterator[Any]:
    try:
        while iterator.hasNext():
            yield iterator.next()
    finally:
        iterator.close()
