"""What the text of a Delta table's log on this machine tells of its newest version, without Java.

For tables as this package makes them. Whatever else stands in a log, such as a feature or a file that is not known here, is Delta Kernel's to read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sinks.contract.storage import located
from sinks.delta.log.commits import HeldFile
from sinks.delta.log.plain_log import LOG, actions, checkpoint_in, commits_in

__all__ = ["TableFacts", "plain_facts"]

_READER_VERSION = 3
_FEATURES = frozenset({"columnMapping", "deletionVectors", "timestampNtz", "typeWidening"})
"""Of readers. Those of writers change nothing of what is told here."""
_EXPIRY = "delta.setTransactionRetentionDuration"
_CHECKPOINTED = ("protocol", "metaData", "txn", "domainMetadata", "add")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A version of a table.

    Attributes:
        entry: what tells the version's file of the log from another one under its name.
        metadata: as the log has it, ``schemaString`` and ``configuration`` among it.
        transactions: application to its last transaction version.
        domains: name to text.
        files: by paths below the table's.
    """

    version: int
    entry: tuple[int, ...] | None
    metadata: dict[str, Any]
    transactions: Mapping[str, int]
    domains: Mapping[str, str]
    files: tuple[HeldFile, ...]


def plain_facts(path: str) -> TableFacts | None:
    """The newest version of the table at *path*, which is on this machine; None where its log is not told of here, or there is none."""
    try:
        return _read(Path(located(path)[1], LOG))
    # A log that is damaged, or written to at this moment: Kernel says what is to be said of it.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException):
        return None


@dataclass(slots=True)
class _Replay:
    """The actions of a log, taken in order."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    files: dict[str, HeldFile] = field(default_factory=dict)

    def take(self, commit: list[Mapping[str, Any]]) -> None:
        # A file whose deleted rows are marked anew is removed and added in one commit, in whatever order.
        for action in commit:
            if (gone := action.get("remove")) is not None:
                self.files.pop(gone["path"], None)
        for action in commit:
            for kind, value in action.items():
                if value is not None:
                    self._take(kind, value)

    def _take(self, kind: str, value: Mapping[str, Any]) -> None:
        match kind:
            case "protocol":
                self.protocol = value
            case "metaData":
                self.metadata = {**value, "configuration": dict(value["configuration"])}
            case "txn":
                self.transactions[value["appId"]] = int(value["version"])
            case "domainMetadata":
                self.domains.pop(value["domain"], None)
                if not value["removed"]:
                    self.domains[value["domain"]] = value["configuration"]
            case "add":
                self.files[value["path"]] = HeldFile(
                    path=value["path"],
                    size_bytes=int(value["size"]),
                    statistics=value.get("stats") or "{}",
                    has_deletions=value.get("deletionVector") is not None,
                )

    def is_known(self) -> bool:
        """Whether nothing asks for more of a reader than is done here."""
        features = self.protocol.get("readerFeatures") or ()
        return (
            bool(self.metadata)
            and 0 < self.protocol["minReaderVersion"] <= _READER_VERSION
            and _FEATURES.issuperset(features)
            and _EXPIRY not in self.metadata["configuration"]
            and not self.metadata["partitionColumns"]
            # Those of another place than the table's.
            and not any("%" in path or ":" in path or path.startswith("/") for path in self.files)
        )


def _read(log: Path) -> TableFacts | None:
    names = [path.name for path in log.iterdir()]
    commits, replay, version = commits_in(names), _Replay(), -1
    found = checkpoint_in(names)
    if found is not None:
        version, parts = found
        for part in parts:
            replay.take(list(_checkpointed(log / part)))
    for number in sorted(number for number in commits if number > version):
        if number != version + 1:
            return None
        replay.take(list(actions((log / commits[number]).read_bytes())))
        version = number
    if version < 0 or not replay.is_known():
        return None
    last = log / f"{version:020d}.json"
    entry = last.stat() if version in commits else None
    return TableFacts(
        version=version,
        entry=None if entry is None else (entry.st_ino, entry.st_mtime_ns, entry.st_size),
        metadata=replay.metadata,
        transactions=replay.transactions,
        domains=replay.domains,
        files=tuple(replay.files.values()),
    )


def _checkpointed(path: Path) -> Iterator[Mapping[str, Any]]:
    with pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        if "sidecar" in names:
            raise ValueError("a checkpoint whose files stand elsewhere")
        rows = file.read([name for name in _CHECKPOINTED if name in names])
    for name in rows.column_names:
        for value in rows.column(name).drop_null().to_pylist():
            yield {name: value}
