"""Rows of chunks in the shape of a target: a changelog's as written, a mirror's as the net change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.chunks import Chunk, positions, transactions
from historian.changelog.folding import BAG_COUNT, fold_bag, net_changes, rows_by_key, summed_bags
from historian.changelog.missing_columns import MISSING_COLUMNS, name_lists
from historian.changelog.operations import POSITION_COLUMNS, RESERVED_COLUMNS, Op, physical_name
from historian.changelog.partial_folding import PartialNet, partial_net
from historian.changelog.projection import project
from historian.errors import TableStopped
from historian.schema.snapshots import Snapshot
from sinks.rows.variant import fitted

__all__ = ["NetRows", "changelog_rows", "in_schema", "refuse_system_names", "two_rows"]

_UTC_US = pa.timestamp("us", tz="UTC")


def changelog_rows(
    chunk: Chunk,
    *,
    written: Snapshot,
    carried: Snapshot,
    schema: pa.Schema,
    first_offset: int,
    system_time_us: int,
) -> pa.RecordBatch:
    """*chunk* as changelog rows: each holds the columns of the version it was written under, all others are NULL.

    So what the changelog says of a row depends on the log alone, never on where a batch ended. Absent columns are NULL
    and named in the columns of :data:`historian.changelog.missing_columns.MISSING_COLUMNS`, by the names that they had in *written*.

    Args:
        chunk: with columns of *written*.
        written: the snapshot in force for its rows.
        carried: the columns of *written* that the changelog has, with the types that they have there.
        schema: of the changelog's files.
        first_offset: of the chunk's first row; the others follow without a gap.
        system_time_us: of every row.
    """
    rows = project(chunk.rows, written, carried)
    count = rows.num_rows
    system = {
        "offset": pc.add(_counting(count), first_offset),
        "op": rows.column("op").cast(pa.int32()),
        "system_time": _constant(system_time_us, count).cast(_UTC_US),
        "event_time": rows.column("event_time"),
        "schema_version": _constant(chunk.version, count),
    }
    for word, name in POSITION_COLUMNS.items():
        if name in schema.names:
            system[name] = _POSITION_VALUES[word](chunk)
    for name in MISSING_COLUMNS:
        if name in rows.schema.names:
            system[name] = name_lists(rows.column(name), [column.name for column in carried.columns])
    data = {physical_name(c.id): rows.column(physical_name(c.id)) for c in carried.columns}
    return in_schema({**system, **data}, schema, count)


@lru_cache(maxsize=4)
def _counting(count: int) -> pa.Array:
    return pa.array(np.arange(count))


@lru_cache(maxsize=8)
def _constant(value: int, count: int) -> pa.Array:
    """Most chunks of a plan have as many rows, and memory that is new costs more than what is put into it."""
    return pa.repeat(pa.scalar(value, pa.int64()), count)


_POSITION_VALUES: dict[str, Callable[[Chunk], pa.Array]] = {
    "position": positions,
    "ordinal": lambda chunk: chunk.rows.column("ordinal"),
    "transaction": transactions,
}


def in_schema(columns: dict[str, pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    """A batch of *schema* from *columns* by name; those that are missing are NULL.

    Raises:
        ValueUnrepresentable: see :func:`sinks.rows.variant.fitted`.
    """
    arrays = [fitted(columns.get(f.name, pa.nulls(count)), f.type, f.name) for f in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def refuse_system_names(
    snapshot: Snapshot, names: Sequence[str] = RESERVED_COLUMNS, whose: str = "the changelog"
) -> None:
    """Raises :class:`TableStopped` where a column is named like one of a target's own *names*."""
    lower = {name.lower() for name in names}
    clash = [column.name for column in snapshot.columns if column.name.lower() in lower]
    if clash:
        raise TableStopped(
            f"a data column is named like a column of {whose}",
            where=str(snapshot.name),
            expected=f"no column named {', '.join(names)}",
            found=clash,
            next_step=f"rename the column, or leave the table out of {whose}",
        )


class NetRows:
    """Folds the chunks of one part to the last image of each key, seen under *target*.

    Without a key it folds to how many more or less of each distinct row there are; a row stands as often as that.

    *partial*: whether rows have absent columns. What takes those from where then needs all rows at once.
    *soft*: whether rows that go are put too, each row with ``_deleted`` and ``_deleted_at``; then none is partial.
    *moves*: whether a -C may have another key than its +C, since the log does not know the key; then two rows that have it
    at once are an error.
    """

    def __init__(self, target: Snapshot, *, partial: bool = False, soft: bool = False, moves: bool = False) -> None:
        self._target = target
        self._partial = partial
        self._soft = soft
        self._moves = moves
        self._columns = [physical_name(column.id) for column in target.columns]
        self._key = [physical_name(column_id) for column_id in target.primary_key]
        self._folded: list[tuple[int, pa.RecordBatch]] = []
        self._bags: list[pa.Table] = []
        self.fresh = np.zeros(0, bool)
        """For each row to put whether its key began with a +A; known of configured keys alone."""

    def add(
        self, chunk: Chunk, written: Snapshot, blank: Collection[str] = (), *, wanted: pa.BooleanArray | None = None
    ) -> None:
        """Adds the *wanted* rows of a chunk, in any order of chunks; columns *blank* of the target are NULL in them."""
        rows = project(chunk.rows if wanted is None else chunk.rows.filter(wanted), written, self._target)
        for name in blank:
            at = rows.schema.get_field_index(name)
            if at >= 0:
                kind = rows.schema.field(at)
                rows = rows.set_column(at, kind, pa.nulls(rows.num_rows, kind.type))
        if not self._key:
            self._bags.append(fold_bag(rows, self._columns))
            return
        if self._moves:
            rows = _split(rows)
        self._folded.append((chunk.sequence, rows if self._partial or self._moves else net_changes(rows, self._key)))

    def finish(self) -> PartialNet:
        """The rows to put, and the rows whose keys are to go; each key once."""
        if not self._key:
            return _repeated(summed_bags(pa.concat_tables(self._bags)))
        self._folded.sort(key=lambda folded: folded[0])
        batches = [batch for _, batch in self._folded]
        if self._partial:
            return partial_net(_aligned(batches), self._key, self._columns)
        merged = pa.Table.from_batches(batches)
        last = net_changes(merged, self._key) if len(self._folded) > 1 or self._moves else merged
        gone = pc.equal(last.column("op"), pa.scalar(int(Op.RETRACT), last.column("op").type))
        data = last.select(self._columns)
        none = data.slice(0, 0)
        if self._moves and not self._soft:
            self.fresh = _fresh(merged, self._key)[~np.asarray(gone)]
        if self._soft:
            times = last.column("event_time")
            data = data.append_column("_deleted", gone)
            data = data.append_column("_deleted_at", pc.if_else(gone, times, pa.scalar(None, times.type)))
            return PartialNet(whole=data, partial=none, unseen=none, gone=none)
        return PartialNet(whole=data.filter(pc.invert(gone)), partial=none, unseen=none, gone=data.filter(gone))


def _split(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Each update as a -R and a +A."""
    ops = rows.column("op").to_numpy()
    plain = np.where(ops == Op.CORRECT_FROM, Op.RETRACT, np.where(ops == Op.CORRECT_TO, Op.APPEND, ops))
    at = rows.schema.get_field_index("op")
    return rows.set_column(at, rows.schema.field(at), pa.array(plain.astype(ops.dtype)))


def _fresh(rows: pa.Table, key: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each key, in the order of its last row, whether it began with a +A.

    Raises:
        TableStopped: a key is given to a row while another one has it.
    """
    order, first = (np.asarray(values) for values in rows_by_key(rows, key))
    appends = (rows.column("op").to_numpy() == Op.APPEND)[order]
    twice = np.flatnonzero(appends[1:] & appends[:-1] & ~first[1:])
    if len(twice):
        raise two_rows(rows.take([order[twice[0] + 1]]).select(list(key)).to_pylist()[0])
    lasts = order[np.append(first[1:], True)]
    begins: np.ndarray[tuple[int], np.dtype[np.bool_]] = appends[first][np.argsort(lasts)]
    return begins


def two_rows(key: Mapping[str, object]) -> TableStopped:
    """The error for two rows that have one configured key at once; *key*: its values."""
    return TableStopped(
        "two rows have one key",
        found=", ".join(map(str, key.values())),
        expected="a configured key that tells the rows of the table apart at any time",
        next_step="name another key, or keyless: rows, then `historian heal`",
    )


def _repeated(bag: pa.Table) -> PartialNet:
    counts = bag.column(BAG_COUNT).to_numpy()
    rows = bag.drop_columns(BAG_COUNT)
    more, fewer = (rows.take(pa.array(np.arange(len(n)).repeat(n))) for n in (counts.clip(min=0), -counts.clip(max=0)))
    none = rows.slice(0, 0)
    return PartialNet(whole=more, partial=none, unseen=none, gone=fewer)


def _aligned(batches: list[pa.RecordBatch]) -> pa.Table:
    """One table of batches of which some have bitmaps of absent columns."""
    tables = []
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for name in MISSING_COLUMNS:
            if name not in table.schema.names:
                table = table.append_column(name, pa.nulls(batch.num_rows, pa.binary()))
        order = [name for name in table.schema.names if name not in MISSING_COLUMNS]
        tables.append(table.select([*order, *MISSING_COLUMNS]))
    return pa.concat_tables(tables)
