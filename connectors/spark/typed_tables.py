"""One table as ordinary columns: rows of every schema version projected by column id to one schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from connectors.spark.pushdown import Predicate, kept
from connectors.spark.rescue import RESCUED, Rescued
from connectors.spark.typed_schemas import ALL_VERSIONS, FittingRules, TypedColumn, TypedSchema, Versions
from historian.changelog.chunks import Chunk, positions
from historian.changelog.missing_columns import (
    ABSENT,
    MISSING_COLUMNS,
    NAMES_TYPE,
    WHOLE_IMAGES,
    marked,
    name_lists,
    pack,
)
from historian.changelog.operations import physical_name
from historian.changelog.projection import are_comparable, carried
from historian.errors import ConfigError, TableStopped, UnknownTable, ValueUnrepresentable
from historian.plans.plans import PlannedTable, PlannedVersion, version_in
from historian.schema.snapshots import Column, Snapshot
from historian.values.arrow_types import arrow_type

__all__ = ["TYPED_COLUMNS", "TypedTable"]

TYPED_COLUMNS = (
    pa.field("op", pa.int32(), nullable=False),
    pa.field("event_time", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("schema_version", pa.int64(), nullable=False),
    pa.field("position", pa.string(), nullable=False),
    pa.field("ordinal", pa.int32(), nullable=False),
)
"""Columns of a typed row before its data."""

_SYSTEM = frozenset(field.name for field in TYPED_COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedTable:
    """A table and the schema that its rows are projected to.

    Attributes:
        schema_of: the data columns.
        missing: whether rows have columns that name their absent ones (:mod:`historian.changelog.missing_columns`), behind
            :data:`TYPED_COLUMNS`.
        rules: which edits the rows are carried over; where they rescue, :data:`~connectors.spark.rescue.RESCUED` stands last.
        only: names of the columns that rows have, in their order; None: all.
    """

    schema_of: TypedSchema
    missing: bool = False
    rules: FittingRules = field(default_factory=FittingRules)
    only: tuple[str, ...] | None = None

    def check_names(self) -> None:
        """Raises :class:`ConfigError` where a data column is named like a system column, or :attr:`only` names none there is."""
        snapshot = self.schema_of.snapshot
        names = [column.name.lower() for column in self.schema_of.columns]
        taken = {f.name for f in self._fields()[: -len(names)]} | ({RESCUED.name} if self.rules.rescues else set())
        wanted = None if self.only is None else {name.lower() for name in self.only}
        problems = [
            f"a data column has the name of a system column @ {snapshot.name}.{name}"
            for name in names
            if name in taken and (wanted is None or name in wanted)
        ]
        if wanted is not None:
            known = {*taken, *names}
            problems += [
                f"no such column of {snapshot.name} @ $.columns (got {name!r})"
                for name in self.only or ()
                if name.lower() not in known
            ]
        if problems:
            raise ConfigError("rows of this table cannot have these columns", problems=tuple(problems))

    @property
    def table_id(self) -> int:
        """Of the table in the history."""
        return self.schema_of.snapshot.table_id

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the rows: :data:`TYPED_COLUMNS`, then the table's columns by name; of them those that are wanted."""
        fields = [*self._fields(), *([RESCUED] if self.rules.rescues else [])]
        if self.only is None:
            return pa.schema(fields)
        by_name = {each.name.lower(): each for each in fields}
        return pa.schema([by_name[name.lower()] for name in self.only])

    def _fields(self) -> list[pa.Field]:
        lists = [pa.field(name, NAMES_TYPE) for name in (MISSING_COLUMNS if self.missing else ())]
        data = [pa.field(each.name, arrow_type(each.column.type)) for each in self.schema_of.columns]
        return [*TYPED_COLUMNS, *lists, *data]

    def planned(self, tables: Sequence[PlannedTable]) -> tuple[PlannedTable, ...]:
        """This table's part of a plan."""
        return tuple(each for each in tables if each.table_id == self.table_id and each.behind is None)

    def wanted(self, tables: Sequence[PlannedTable], versions: Versions = ALL_VERSIONS) -> tuple[PlannedTable, ...]:
        """This table's part of a plan, of which rows of *versions* are wanted.

        Raises:
            TableStopped: an edit in the plan cannot be projected to the schema.
        """
        mine = self.planned(tables)
        for table in mine:
            for version in table.versions:
                if versions.hold(version.version):
                    why = self.rules.misfit(self.schema_of, version.version, version)
                    if why is not None:
                        raise self.stop(version, why)
            if table.quarantine is not None and versions.end is None:
                raise TableStopped(table.quarantine.reason, where=str(self.schema_of.snapshot.name))
        return mine

    def stop(self, version: PlannedVersion, why: str, *, next_step: str = "") -> TableStopped:
        """The error of an edit that rows cannot be carried over, in one sentence."""
        is_before = version.version <= self.schema_of.version
        statement = version.statement or "a version before the first statement"
        helps = replace(self.rules, rescues=True).misfit(self.schema_of, version.version, version) is None
        rescue = ', or say option("on_schema_change", "rescue")' if helps else ""
        return TableStopped(
            "rows cannot be carried to the schema of this read" if is_before else "the schema changed",
            where=f"{self.schema_of.snapshot.name} at {version.place or 'the start'}",
            found=f"{' '.join(statement.split())}: {why}",
            next_step=next_step or f'read the two sides one by one (options "from" and "to"){rescue}',
        )

    def rows(
        self, chunk: Chunk, tables: Sequence[PlannedTable], predicates: Sequence[Predicate] = ()
    ) -> pa.RecordBatch:
        """The chunk's rows as :attr:`schema`; those that surely do not fulfil all *predicates* may be left out.

        Raises:
            PlanOutdated: *tables* lack its version.
            TableStopped: rows have absent columns, and nothing in the schema tells which.
            ValueUnrepresentable: a value does not fit its column.
        """
        if ABSENT in chunk.rows.schema.names and not self.missing:
            raise TableStopped(
                "row images that lack columns",
                where=f"{self.schema_of.snapshot.name}, behind {chunk.first_position}",
                expected=f"{WHOLE_IMAGES}, or columns that name what is absent",
                next_step='option("absent", "true") adds them',
            )
        written = version_in(tables, chunk.table_id, chunk.version).snapshot
        if written is None:
            raise UnknownTable(
                "rows of a table that is gone", where=f"{self.schema_of.snapshot.name}, version {chunk.version}"
            )
        rows = _Rows(self, chunk, written)
        rows.keep([each for each in predicates if each.column in _SYSTEM])
        rows.keep([each for each in predicates if each.column not in _SYSTEM and each.column in rows.names])
        return pa.RecordBatch.from_arrays([rows.column(f.name) for f in self.schema], schema=self.schema)


class _Rows:
    """Rows of one chunk, of which each column is made when it is asked for."""

    def __init__(self, typed: TypedTable, chunk: Chunk, written: Snapshot) -> None:
        self._typed = typed
        self._chunk = chunk
        self._rows = chunk.rows
        self._places: pa.Array | None = None
        self._written = written
        self._columns = {each.name: each for each in typed.schema_of.columns}
        self._rescued: Rescued | None = None
        self.names = frozenset(self._columns)

    def keep(self, predicates: Sequence[Predicate]) -> None:
        """Leaves out rows that do not fulfil all *predicates*."""
        if not predicates or not self._rows.num_rows:
            return
        mask = kept(predicates, {each.column: self._probed(each.column) for each in predicates})
        if mask is not None:
            self._places = None if self._places is None else self._places.filter(mask)
            self._rows = self._rows.filter(mask)

    def _probed(self, name: str) -> pa.Array | None:
        """A column for a look at it; None where it has values that do not fit."""
        try:
            return self.column(name)
        except ValueUnrepresentable:
            return None
        finally:
            self._rescued = None

    def column(self, name: str) -> pa.Array:
        """The column *name* of :attr:`TypedTable.schema`."""
        if name in self._columns:
            return self._data(self._columns[name])
        match name:
            case "op":
                return self._rows.column("op").cast(pa.int32())
            case "schema_version":
                return pa.repeat(pa.scalar(self._chunk.version, pa.int64()), self._rows.num_rows)
            case "position":
                return self._positions()
            case "rescued":
                return self._rescue()
            case _ if name in MISSING_COLUMNS:
                return self._missing(name)
        return self._rows.column(name)

    def _positions(self) -> pa.Array:
        if self._places is None:
            self._places = positions(replace(self._chunk, rows=self._rows))
        return self._places

    def _data(self, target: TypedColumn) -> pa.Array:
        column, count = target.column, self._rows.num_rows
        kind = arrow_type(column.type)
        held = self._written.column_by_id(column.id)
        if held is None and (self._chunk.version > target.upto or not column.initial_known):
            # It was dropped by then, or only the server knows what it gave to rows from before.
            return pa.nulls(count, kind)
        if held is None or not self._typed.rules.rescues:
            return self._carried(self._rows, column)
        if not are_comparable(held.type, column.type):
            return pa.nulls(count, kind)

        def carry(values: pa.Array) -> pa.Array:
            return self._carried(pa.RecordBatch.from_arrays([values], names=[physical_name(column.id)]), column)

        values = self._rows.column(physical_name(column.id))
        return Rescued(count).fitting(held.name, values, carry, kind)

    def _carried(self, rows: pa.RecordBatch, column: Column) -> pa.Array:
        where = f"{self._typed.schema_of.snapshot.name}.{column.name}"
        try:
            return carried(rows, self._written, column, where=where)
        except ValueUnrepresentable as error:
            error.next_step = (
                'say option("on_schema_change", "rescue"), or "schema_at" a place before the column changed'
            )
            raise

    def _rescue(self) -> pa.Array:
        """What none of the rows' columns holds. The columns that were not asked for hold their values all the same."""
        rescued = Rescued(self._rows.num_rows)
        wanted = {each.column.id: each.column for each in self._columns.values()}
        for held in self._written.columns:
            column, values = wanted.get(held.id), self._rows.column(physical_name(held.id))
            if column is None or not are_comparable(held.type, column.type):
                rescued.whole(held.name, values)
                continue

            def carry(some: pa.Array, column: Column = column) -> pa.Array:
                return self._carried(pa.RecordBatch.from_arrays([some], names=[physical_name(column.id)]), column)

            rescued.fitting(held.name, values, carry, arrow_type(column.type))
        return rescued.column

    def _missing(self, name: str) -> pa.Array:
        if name not in self._rows.schema.names:
            return pa.nulls(self._rows.num_rows, NAMES_TYPE)
        places = {column.id: at for at, column in enumerate(self._written.columns)}
        held = [(places[c.column.id], c.name) for c in self._columns.values() if c.column.id in places]
        bits = marked(self._rows, name, len(self._written.columns))[:, [at for at, _ in held]]
        return name_lists(pack(bits), [name for _, name in held])
