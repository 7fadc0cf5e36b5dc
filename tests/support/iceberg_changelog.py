"""One changelog in Apache Iceberg: a plan is one transaction of its table, a part of the plan one snapshot in it.

What the table holds stands in a table property, set in the transaction that adds the rows. Columns are followed by their ids:
Iceberg gives field ids of its own, so the property maps ours to them. No column is ever lost.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io.pyarrow import PyArrowFileIO, pyarrow_to_schema, write_file
from pyiceberg.table import DataScan, WriteTask
from pyiceberg.types import DecimalType, DoubleType, FloatType, IcebergType, IntegerType, LongType

from historian import codec
from historian.changelog.chunks import Chunk
from historian.changelog.operations import SYSTEM_COLUMNS, Op, physical_name
from historian.errors import ChainBroken, SinkError, TableStopped
from historian.plans.plans import Plan
from historian.schema.snapshots import Column, Snapshot
from historian.values.arrow_types import arrow_type
from sinks.contract.parts import Part
from sinks.rows.shapes import NetRows, changelog_rows, in_schema, refuse_system_names
from sinks.rows.variant import is_variant

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["MADE_WITH", "NAMESPACE", "Changelog", "TableStatus", "Work", "standing_of", "write_chunks"]

NAMESPACE = "lake"
MADE_WITH = {"commit.retry.num-retries": "0"}
"""Properties of every table: pyiceberg's own retry would put rows behind another writer's, who may have written the same."""

_STANDING = "historian.standing"
"""Table property; it outlives snapshots, which expire, and rewrites of files by others, which make new ones."""

_UTC_US = pa.timestamp("us", tz="UTC")
_SYSTEM_TYPES = (pa.int64(), pa.int32(), _UTC_US, _UTC_US, pa.int64())
_PROMOTED = {(IntegerType(), LongType()), (FloatType(), DoubleType())}

At = tuple[int, int]
"""(table id, segment)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """What a table holds.

    Attributes:
        plan: the last one; 0: none. ``identity``: of that plan.
        next_offset: of the next row.
        live_from: offset of the first row behind the last TRUNCATE or DROP; rows before it amount to nothing.
        fields: column id to Iceberg's field id, of every column that the table ever had.
        versions: schema version to what the rows from ``live_from`` on were written under.
        stops: table id to why it stopped in that plan.
    """

    connector: str
    plan: int = 0
    identity: str = ""
    next_offset: int = 0
    live_from: int = 0
    fields: Mapping[int, int] = field(default_factory=dict)
    versions: Mapping[int, Snapshot] = field(default_factory=dict)
    stops: Mapping[int, str] = field(default_factory=dict)


def standing_of(properties: Mapping[str, str]) -> TableStatus | None:
    """What a table with those *properties* holds; None where it is not a sink's."""
    return codec.load(TableStatus, properties[_STANDING]) if _STANDING in properties else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What an executor is told of one part.

    Attributes:
        metadata: of the table, as the transaction has it.
        fields: column id to field id.
        written: version to the snapshot that its rows were written under.
        offsets: chunk sequence to the offset of its first row.
        name: of the file; the same when the part is written again.
    """

    metadata: TableMetadata
    fields: Mapping[int, int]
    written: Mapping[int, Snapshot]
    offsets: Mapping[int, int]
    system_time_us: int
    name: uuid.UUID

    def rows(self, chunk: Chunk) -> pa.RecordBatch:
        """The rows of *chunk* as the table has them, by physical names."""
        written, schema = self.written[chunk.version], _physical(self.metadata.schema(), self.fields)
        first, time_us = self.offsets[chunk.sequence], self.system_time_us
        return changelog_rows(
            chunk, written=written, carried=written, schema=schema, first_offset=first, system_time_us=time_us
        )


def write_chunks(works: Mapping[At, Work]) -> Callable[[Iterable[Chunk]], Iterator[tuple[At, list[DataFile]]]]:
    """A task for :meth:`sinks.contract.chunks.Chunks.map` that writes the rows of *works* and gives the files of each part."""

    def write(chunks: Iterable[Chunk]) -> Iterator[tuple[At, list[DataFile]]]:
        for at, group in groupby(chunks, lambda chunk: (chunk.table_id, chunk.segment)):
            if at in works:
                work = works[at]
                yield at, _write_file(work.metadata, work.name, 1, [work.rows(chunk) for chunk in group])

    return write


class Changelog:
    """What one plan does to one table, which is made where there is none.

    Raises:
        SinkError: the table is not the connector's.
        ChainBroken: it holds another plan under the plan's number, or a later one.
    """

    def __init__(self, catalog: Catalog, name: str, plan: Plan, identity: str) -> None:
        self._plan = plan
        self._where = f"{NAMESPACE}.{name}"
        self._name = uuid.uuid5(uuid.NAMESPACE_OID, f"{identity} {name}")
        self._files: list[DataFile] = []
        self._changed = False
        try:
            table = catalog.load_table((NAMESPACE, name))
        except NoSuchTableError:
            held = TableStatus(connector=plan.connector)
            system = _schema(zip(SYSTEM_COLUMNS, _SYSTEM_TYPES, strict=True), nullable=False)
            make = catalog.create_table_transaction
            self._transaction: Transaction = make((NAMESPACE, name), system, properties=MADE_WITH)
        else:
            held = _checked(standing_of(table.properties), plan, identity, self._where)
            self._transaction = table.transaction()
        self.holds = held.plan == plan.number
        self.table_status = held if self.holds else replace(held, plan=plan.number, identity=identity, stops={})

    def prepare(self, part: Part) -> Work:
        """Writes what the part's statement takes back, stages its columns, and gives its rows their offsets.

        Raises:
            TableStopped, ValueUnrepresentable: the table cannot take the part; nothing of it is staged.
        """
        self._refuse(part)
        name = uuid.uuid5(self._name, str(part.index))
        if part.clears is not None and part.base is not None:
            rows = self._taken_back(part.base, part.base_version, part.clears.event_time_us)
            self._files = _write_file(self._metadata, name, 0, rows)
            behind = self.table_status.next_offset + sum(batch.num_rows for batch in rows)
            self.table_status = replace(self.table_status, next_offset=behind, live_from=behind, versions={})
        for snapshot in part.written.values():
            self._evolve(snapshot)
        first, sequences = self.table_status.next_offset, sorted(part.chunks)
        offsets = accumulate((part.chunks[sequence] for sequence in sequences[:-1]), initial=first)
        versions = {**self.table_status.versions, **part.written}
        self.table_status = replace(self.table_status, next_offset=first + part.rows, versions=versions)
        return Work(
            metadata=self._metadata,
            fields=self.table_status.fields,
            written=part.written,
            offsets=dict(zip(sequences, offsets, strict=False)),
            system_time_us=self._plan.system_time_us,
            name=name,
        )

    def append(self, part: Part, files: Sequence[DataFile]) -> None:
        """Stages the part's snapshot, with *files* of its rows. One without rows is made too: it is what refuses other writers.

        Raises:
            SinkError: rows are missing.
        """
        written = sum(file.record_count for file in files)
        if written != part.rows:
            raise SinkError("a plan's files lack rows", where=self._where, expected=part.rows, found=written)
        told = {"plan": self._plan.number, "identity": self.table_status.identity, "connector": self._plan.connector}
        summary = {f"historian.{word}": str(value) for word, value in told.items()}
        with self._transaction.update_snapshot(snapshot_properties=summary).fast_append() as append:
            for file in (*self._files, *files):
                append.append_data_file(file)
        self._files, self._changed = [], True

    def stop(self, table_id: int, reason: str) -> None:
        """Notes that a table stops in the plan: who finds the plan held does not look at its parts again."""
        self.table_status = replace(self.table_status, stops={**self.table_status.stops, table_id: reason})

    def commit(self) -> None:
        """Commits what is staged, if anything is. Where it fails it may have been done all the same; the table tells."""
        if self._changed:
            self._transaction.set_properties({_STANDING: codec.dump_short(TableStatus, self.table_status)})
            self._transaction.commit_transaction()

    @property
    def _metadata(self) -> TableMetadata:
        return self._transaction.table_metadata

    def _refuse(self, part: Part) -> None:
        """Raises :class:`TableStopped` where the part has what this sink, or Iceberg, does not take."""
        if part.partial:
            raise TableStopped("rows have absent columns, which this sink does not write", where=part.location.name)
        held = self.table_status.fields.items()
        types = {column_id: self._metadata.schema().find_type(field_id) for column_id, field_id in held}
        for snapshot in part.written.values():
            refuse_system_names(snapshot)
            for column in snapshot.columns:
                wanted = _iceberg_type(column)
                before = types.get(column.id, wanted)
                if not _promotes(before, wanted):
                    raise TableStopped(
                        "a column's new type is no promotion that Iceberg knows",
                        where=f"{snapshot.name}.{column.name}",
                        expected=f"a type that {before} is promoted to",
                        found=wanted,
                    )
                types[column.id] = wanted

    def _evolve(self, snapshot: Snapshot) -> None:
        """Stages the columns of *snapshot*: first names and types of those held, then new ones, then the order."""
        schema, fields = self._metadata.schema(), self.table_status.fields
        held = {column_id: schema.find_field(field_id).name for column_id, field_id in fields.items()}
        names = _names(snapshot, held)
        with self._transaction.update_schema() as update:
            for column_id, name in held.items():
                update.rename_column(name, names[column_id])
            for column in (column for column in snapshot.columns if column.id in held):
                update.update_column((held[column.id],), _iceberg_type(column))
        with self._transaction.update_schema() as update:
            for column in (column for column in snapshot.columns if column.id not in held):
                update.add_column((column.name,), _iceberg_type(column))
        with self._transaction.update_schema() as update:
            for before, name in pairwise((SYSTEM_COLUMNS[-1], *names.values())):
                update.move_after((name,), (before,))
        schema = self._metadata.schema()
        fields = {column_id: schema.find_field(name).field_id for column_id, name in names.items()}
        self.table_status = replace(self.table_status, fields=fields)

    def _taken_back(self, base: Snapshot, version: int, event_time_us: int) -> list[pa.RecordBatch]:
        """A -R for every row that is there, with the columns of *base*."""
        schema = _physical(self._metadata.schema(), self.table_status.fields)
        net = self._net(base, schema)
        if net is None or not net.num_rows:
            return []
        first, count = self.table_status.next_offset, net.num_rows
        values = (int(Op.RETRACT), self._plan.system_time_us, event_time_us, version)
        system = (
            pa.repeat(pa.scalar(value, kind), count) for value, kind in zip(values, _SYSTEM_TYPES[1:], strict=True)
        )
        offsets = pa.array(range(first, first + count), pa.int64())
        columns = dict(zip(SYSTEM_COLUMNS, (offsets, *system), strict=True))
        return [in_schema({**columns, **{n: net.column(n).combine_chunks() for n in net.column_names}}, schema, count)]

    def _net(self, base: Snapshot, schema: pa.Schema) -> pa.Table | None:
        """The rows that the changelog amounts to with what is staged, under *base*, by physical name; None: it has none."""
        live = f"offset >= {self.table_status.live_from}"
        rows = DataScan(table_metadata=self._metadata, io=PyArrowFileIO(), row_filter=live).to_arrow()
        rows = rows.sort_by("offset").rename_columns(schema.names)
        written = sorted(self.table_status.versions.items())
        # Where the key was another one, rows are told apart by all that they hold.
        key = base.primary_key if all(s.primary_key == base.primary_key for _, s in written) else ()
        net = NetRows(replace(base, primary_key=key))
        for version, snapshot in written:
            mine = rows.filter(pc.equal(rows.column("schema_version"), version))
            mine = mine.select(["op", *(physical_name(column.id) for column in snapshot.columns)])
            for batch in mine.combine_chunks().to_batches():
                net.add(_chunk(snapshot, version, batch), snapshot)
        return net.finish().whole if rows.num_rows else None


def _checked(table_status: TableStatus | None, plan: Plan, identity: str, where: str) -> TableStatus:
    if table_status is None or table_status.connector != plan.connector:
        found = None if table_status is None else table_status.connector
        raise SinkError("a table that is not the connector's", where=where, expected=plan.connector, found=found)
    if table_status.plan > plan.number or (table_status.plan == plan.number and table_status.identity != identity):
        raise ChainBroken("another plan is held", where=where, expected=plan.number, found=table_status.plan)
    return table_status


def _names(snapshot: Snapshot, held: Mapping[int, str]) -> dict[int, str]:
    """Column id to name: columns of *snapshot* in order, under theirs; those that are gone have their id behind one that is taken."""
    names = {column.id: column.name for column in snapshot.columns}
    taken = {name.lower() for name in (*SYSTEM_COLUMNS, *names.values())}
    for column_id, name in held.items():
        if column_id not in names:
            names[column_id] = name
            while names[column_id].lower() in taken:
                names[column_id] += f"__{physical_name(column_id)}"
            taken.add(names[column_id].lower())
    return names


def _schema(columns: Iterable[tuple[str, pa.DataType]], *, nullable: bool) -> Schema:
    fields = (
        pa.field(name, kind, nullable, {"PARQUET:field_id": str(at)}) for at, (name, kind) in enumerate(columns, 1)
    )
    return pyarrow_to_schema(pa.schema(fields))


def _iceberg_type(column: Column) -> IcebergType:
    if is_variant(column.type):
        raise TableStopped("VARIANT needs a later format of Iceberg than is written here", where=column.name)
    return _schema([("", arrow_type(column.type))], nullable=True).find_type(1)


def _promotes(held: IcebergType, wanted: IcebergType) -> bool:
    if isinstance(held, DecimalType) and isinstance(wanted, DecimalType):
        # pyiceberg 0.12 itself takes another scale too, which the format forbids.
        return held.scale == wanted.scale and held.precision <= wanted.precision
    return held == wanted or (held, wanted) in _PROMOTED


def _physical(schema: Schema, fields: Mapping[int, int]) -> pa.Schema:
    """The Arrow schema of rows, data columns by physical name."""
    names = {field_id: physical_name(column_id) for column_id, field_id in fields.items()}
    arrow = schema.as_arrow()
    return pa.schema([arrow.field(at).with_name(names.get(f.field_id, f.name)) for at, f in enumerate(schema.fields)])


def _write_file(metadata: TableMetadata, name: uuid.UUID, number: int, batches: list[pa.RecordBatch]) -> list[DataFile]:
    """Writes *batches*, whose columns are the table's, as one file, which replaces that of an earlier try; none: no file."""
    schema = metadata.schema()
    named = [pa.RecordBatch.from_arrays(batch.columns, schema=schema.as_arrow()) for batch in batches]
    task = WriteTask(write_uuid=name, task_id=number, schema=schema, record_batches=named)
    return list(write_file(PyArrowFileIO(), metadata, iter([task]))) if named else []


def _chunk(snapshot: Snapshot, version: int, rows: pa.RecordBatch) -> Chunk:
    return Chunk(
        table_id=snapshot.table_id,
        version=version,
        segment=0,
        sequence=version,
        file="",
        first_position="",
        last_position="",
        sources=(),
        rows=rows,
    )
