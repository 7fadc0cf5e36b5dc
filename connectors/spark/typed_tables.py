"""One table as ordinary columns: rows of every schema version projected by column id to one schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from historian import codec
from historian.changelog.chunks import Chunk, positions
from historian.changelog.missing_columns import ABSENT, MISSING_COLUMNS, NAMES_TYPE, WHOLE_IMAGES, name_lists
from historian.changelog.operations import physical_name
from historian.changelog.projection import project
from historian.errors import ConfigError, TableStopped, UnknownTable
from historian.names import TableName
from historian.plans.plans import PlannedTable, PlannedVersion, version_in
from historian.schema.edits import DropTable, TruncateTable
from historian.schema.gaps import ResumeTable
from historian.schema.snapshots import Snapshot
from historian.schema.type_compatibility import is_compatible
from historian.values.arrow_types import arrow_type

if TYPE_CHECKING:
    from connectors.tracking.tracker import Tracker

__all__ = ["TYPED_COLUMNS", "TypedTable"]

TYPED_COLUMNS = (
    pa.field("op", pa.int32(), nullable=False),
    pa.field("event_time", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("schema_version", pa.int64(), nullable=False),
    pa.field("position", pa.string(), nullable=False),
    pa.field("ordinal", pa.int32(), nullable=False),
)
"""Columns of a typed row before its data."""

_MISSING_FIELDS = tuple(pa.field(name, NAMES_TYPE) for name in MISSING_COLUMNS)


@dataclass(frozen=True, slots=True)
class TypedTable:
    """A table and the snapshot that its rows are projected to.

    *missing*: whether rows have columns that name their absent ones (:mod:`historian.changelog.missing_columns`), behind
    :data:`TYPED_COLUMNS`.
    """

    snapshot: Snapshot
    missing: bool = False

    @classmethod
    def find(
        cls,
        tracker: Tracker,
        table: str,
        *,
        schema_at: str | None,
        name: str | None,
        limit_bytes: int,
        missing: bool = False,
    ) -> TypedTable:
        """The table's schema: remembered under the stream's *name*, else the one at *schema_at* or at the start.

        The log is searched for it in plans of *limit_bytes*.

        Raises:
            ConfigError: *table* is no ``database.table``, or a data column is named like a system column.
            UnknownTable: the log holds no such table up to its present end.
        """
        database, dot, plain = table.partition(".")
        if not dot or not database or not plain:
            raise ConfigError("not a table name", problems=(f'expected DATABASE.TABLE @ $.table (got "{table}")',))
        remembered = None if name is None else tracker.store.stream(name)
        if remembered is not None:
            return cls(codec.load(Snapshot, remembered), missing)
        snapshot = tracker.snapshot_of(TableName(database, plain), schema_at, limit_bytes=limit_bytes)
        if snapshot is None:
            raise UnknownTable(
                "no such table in the log",
                where=table,
                next_step="check the name, and that source.tables captures it",
            )
        system = {field.name for field in (*TYPED_COLUMNS, *(_MISSING_FIELDS if missing else ()))}
        taken = system & {column.name.lower() for column in snapshot.columns}
        if taken:
            problems = tuple(f"a data column has the name of a system column @ {table}.{column}" for column in taken)
            raise ConfigError("typed rows of this table have two columns of one name", problems=problems)
        if name is not None:
            tracker.store.remember_stream(name, codec.dump(Snapshot, snapshot))
        return cls(snapshot, missing)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows: :data:`TYPED_COLUMNS`, then the table's columns by name."""
        data = [pa.field(column.name, arrow_type(column.type)) for column in self.snapshot.columns]
        return pa.schema([*TYPED_COLUMNS, *(_MISSING_FIELDS if self.missing else ()), *data])

    def wanted(self, tables: Sequence[PlannedTable]) -> tuple[PlannedTable, ...]:
        """This table's part of a plan.

        Raises:
            TableStopped: an edit in the plan cannot be projected to the stream's schema.
        """
        mine = tuple(t for t in tables if t.table_id == self.snapshot.table_id and t.behind is None)
        for table in mine:
            if table.quarantine is not None:
                raise TableStopped(table.quarantine.reason, where=str(self.snapshot.name))
            for version in table.versions:
                self._check(version)
        return mine

    def rows(self, chunk: Chunk, tables: Sequence[PlannedTable]) -> pa.RecordBatch:
        """The chunk's rows as :attr:`schema`.

        Raises:
            PlanOutdated: *tables* lack its version.
            TableStopped: rows have absent columns, and nothing in the schema tells which.
        """
        if ABSENT in chunk.rows.schema.names and not self.missing:
            raise TableStopped(
                "row images that lack columns",
                where=f"{self.snapshot.name}, behind {chunk.first_position}",
                expected=f"{WHOLE_IMAGES}, or columns that name what is absent",
                next_step='option("absent", "true") adds them',
            )
        written = version_in(tables, chunk.table_id, chunk.version).snapshot
        if written is None:
            raise UnknownTable("rows of a table that is gone", where=f"{self.snapshot.name}, version {chunk.version}")
        projected = project(chunk.rows, written, self.snapshot)
        count = projected.num_rows
        arrays = [
            projected.column("op").cast(pa.int32()),
            projected.column("event_time"),
            pa.repeat(pa.scalar(chunk.version, pa.int64()), count),
            positions(chunk),
            projected.column("ordinal"),
            *self._missing(projected),
            *(projected.column(physical_name(column.id)) for column in self.snapshot.columns),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _missing(self, rows: pa.RecordBatch) -> list[pa.Array]:
        names = [column.name for column in self.snapshot.columns]
        return [
            name_lists(rows.column(f.name), names) if f.name in rows.schema.names else pa.nulls(rows.num_rows, f.type)
            for f in (_MISSING_FIELDS if self.missing else ())
        ]

    def _check(self, version: PlannedVersion) -> None:
        lost = next((edit for edit in version.edits if isinstance(edit, ResumeTable) and edit.loses_rows), None)
        if lost is not None:
            raise self._stop(version, f"what changed behind {lost.unknown_since} is not known")
        gone = next((edit for edit in version.edits if isinstance(edit, (DropTable, TruncateTable))), None)
        if gone is not None:
            raise self._stop(version, f"rows went without row events ({gone.kind})")
        if version.snapshot is None:
            return
        for column in version.snapshot.columns:
            wanted = self.snapshot.column_by_id(column.id)
            if wanted is not None and not is_compatible(column.type, wanted.type):
                raise self._stop(version, f"column {column.name} is {column.type}, the stream's {wanted.type}")

    def _stop(self, version: PlannedVersion, why: str) -> TableStopped:
        return TableStopped(
            "an edit cannot be projected to the schema of this stream",
            where=f"{self.snapshot.name} at {version.place or 'the start'}",
            expected="edits that keep every value readable under the stream's schema",
            found=f"{version.statement or 'a version before the stream began'}: {why}",
            next_step='start a new stream, with another "name", behind this position',
        )
