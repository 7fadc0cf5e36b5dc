"""What one commit to a Delta table adds, takes away and changes, and the files that a table holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sinks.delta.log.columns import DeltaSchema

__all__ = ["Commit", "DataFile", "HeldFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file that lies in a table's directory: absolute path, size, row count, Delta's statistics as JSON."""

    path: str
    size_bytes: int
    rows: int
    statistics: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldFile:
    """A file that a table holds: its path, which a view has absolute, Delta's statistics as JSON, and whether rows of it are marked as deleted."""

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
