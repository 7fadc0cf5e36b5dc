"""A changelog's rows in the forms of other systems, and back. Pure functions on Arrow, columns kept as they are.

Rows have a column ``op`` (:class:`~historian.changelog.operations.Op`), system columns, and data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.folding import key_numbers, rows_by_key
from historian.changelog.operations import POSITION_COLUMNS, Op, data_columns
from historian.errors import HistorianError

__all__ = [
    "from_append_stream",
    "from_retract_stream",
    "from_row_kinds",
    "from_single_events",
    "from_upsert_stream",
    "to_append_stream",
    "to_odf",
    "to_retract_stream",
    "to_row_kinds",
    "to_single_events",
    "to_upsert_stream",
]

ROW_KIND = "row_kind"
"""Column of Flink's RowKind as its short string; never its number, which means something else than ours.

The strings are those of ``org.apache.flink.types.RowKind``."""

EVENT = "event"
BEFORE = "before"
AFTER = "after"

_ROW_KINDS = ("+I", "-D", "-U", "+U")
_EVENTS = {"create": Op.APPEND, "delete": Op.RETRACT, "update": Op.CORRECT_TO}


def to_retract_stream(rows: pa.Table) -> pa.Table:
    """Every change as -R and +A: -C becomes -R, +C becomes +A."""
    return _with_op(rows, _mapped(rows, (Op.APPEND, Op.RETRACT, Op.RETRACT, Op.APPEND)))


def from_retract_stream(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """A retract stream with each -R that a +A of the same key follows directly as -C and +C.

    A row deleted and inserted again with nothing in between comes back as a correction.
    """
    ops = _ops(rows)
    ids = key_numbers(rows, key)
    pair = (ops[:-1] == Op.RETRACT) & (ops[1:] == Op.APPEND) & (ids[:-1] == ids[1:])
    corrected = ops.copy()
    corrected[:-1][pair] = Op.CORRECT_FROM
    corrected[1:][pair] = Op.CORRECT_TO
    return _with_op(rows, corrected)


def to_upsert_stream(rows: pa.Table) -> pa.Table:
    """Only the last word on each change: -C goes, +C becomes +A; -R deletes its key."""
    kept = rows.filter(pa.array(_ops(rows) != Op.CORRECT_FROM))
    return _with_op(kept, _mapped(kept, (Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.APPEND)))


def from_upsert_stream(
    rows: pa.Table, key: Sequence[str], former: pa.Table | None = None, *, first_offset: int = 0
) -> pa.Table:
    """The changelog of upserts (+A) and deletes (-R, of which only the key counts), before images filled in.

    A delete of a key that is not there says nothing and goes. Where there is a column ``offset``, it is given anew.

    Args:
        rows: the upsert stream in order.
        key: names of the key's columns.
        former: the rows of the data columns that were there before, each key once; None: there were none.
        first_offset: of the changelog's first row.
    """
    data = data_columns(rows.column_names)
    former = rows.slice(0, 0) if former is None else former
    held = former.num_rows
    every = pa.concat_tables([former.select(list(data)), rows.select(list(data))])
    order, first = rows_by_key(every, key)
    previous = _previous(order, first)[held:]
    deletes = _ops(rows) == Op.RETRACT
    # What stood before is gone where it was deleted, or never was.
    was_deleted = np.concatenate([np.zeros(held, dtype=bool), deletes])
    there = (previous >= 0) & ~was_deleted[previous]
    ops = np.where(deletes, Op.RETRACT, np.where(there, Op.CORRECT_TO, Op.APPEND))
    updates, kept = there & ~deletes, there | ~deletes

    at = np.arange(rows.num_rows)
    image = np.where(deletes & there, previous, at + held)
    # Row i of the result comes from input row source[i]; a correction's -C stands directly before its +C.
    source = np.repeat(at[kept], np.where(updates[kept], 2, 1))
    starts = np.cumsum(np.where(updates[kept], 2, 1)) - np.where(updates[kept], 2, 1)
    out_ops, out_image = ops[source], image[source]
    from_rows = starts[updates[kept]]
    out_ops[from_rows] = Op.CORRECT_FROM
    out_image[from_rows] = previous[updates]
    changes = _with_data(_with_op(rows.take(pa.array(source)), out_ops), every.take(pa.array(out_image)), data)
    return _numbered(changes, first_offset)


def to_single_events(rows: pa.Table) -> pa.Table:
    """One row an event: ``event`` (create, update, delete), the system columns, and the data as ``before`` and ``after``.

    Raises:
        HistorianError: a -C without its +C directly behind it, or the other way round.
    """
    ops, data = _ops(rows), data_columns(rows.column_names)
    _check_pairs(ops)
    ends = np.flatnonzero(ops != Op.CORRECT_FROM)
    images = _structs(rows, data)
    last = ops[ends]
    before = pa.array(np.where(last == Op.CORRECT_TO, ends - 1, ends), mask=last == Op.APPEND)
    after = pa.array(ends, mask=last == Op.RETRACT)
    names = {int(op): name for name, op in _EVENTS.items()}
    events = pa.array([names[op] for op in range(len(Op)) if op in names])
    index = np.select([last == Op.APPEND, last == Op.RETRACT], [0, 1], 2)
    system = [name for name in rows.column_names if name not in data and name != "op"]
    columns = [events.take(pa.array(index)), *(rows.column(name).take(pa.array(ends)) for name in system)]
    columns += [images.take(before), images.take(after)]
    return pa.table(columns, names=[EVENT, *system, BEFORE, AFTER])


def from_single_events(events: pa.Table) -> pa.Table:
    """The changelog that :func:`to_single_events` came from, with ``op`` first.

    The rows of an update share their system columns, but that -C has the ``offset`` before its +C's.
    """
    ops_of = {name: int(op) for name, op in _EVENTS.items()}
    found = pc.index_in(events.column(EVENT), value_set=pa.array(list(ops_of)))
    if found.null_count:
        raise HistorianError("not an event", expected=sorted(ops_of), found=events.column(EVENT).unique().to_pylist())
    ops = np.array(list(ops_of.values()))[found.to_numpy()]
    counts = np.where(ops == Op.CORRECT_TO, 2, 1)
    source = np.repeat(np.arange(events.num_rows), counts)
    out = ops[source]
    is_from = np.zeros(len(source), dtype=bool)
    is_from[(np.cumsum(counts) - counts)[ops == Op.CORRECT_TO]] = True
    out[is_from] = Op.CORRECT_FROM
    both = pa.concat_arrays([_one_chunk(events.column(BEFORE)), _one_chunk(events.column(AFTER))])
    uses_before = is_from | (out == Op.RETRACT)
    images = both.take(pa.array(np.where(uses_before, source, source + events.num_rows)))
    system = [name for name in events.column_names if name not in {EVENT, BEFORE, AFTER}]
    columns = [pa.array(out.astype(np.uint8)), *(events.column(name).take(pa.array(source)) for name in system)]
    if "offset" in system:
        at = 1 + system.index("offset")
        columns[at] = pc.subtract(columns[at], pa.array(is_from.astype(np.int64)))
    return pa.table([*columns, *images.flatten()], names=["op", *system, *(field.name for field in images.type)])


def to_append_stream(rows: pa.Table) -> pa.Table:
    """The rows of a changelog that only ever appends, without ``op``.

    Raises:
        HistorianError: there is a row other than +A, which appending cannot say.
    """
    others = sorted({Op(code).sign for code in np.unique(_ops(rows))} - {Op.APPEND.sign})
    if others:
        raise HistorianError(
            "a changelog that takes rows back is no append stream",
            expected=Op.APPEND.sign,
            found=", ".join(others),
            next_step="single events or row kinds say every change in rows that are only ever appended",
        )
    return rows.drop_columns(["op"])


def from_append_stream(rows: pa.Table) -> pa.Table:
    """The changelog of rows that are only ever appended: ``op`` +A, behind ``offset`` where there is one."""
    if "op" in rows.column_names:
        raise HistorianError(
            "rows of an append stream have no column op",
            found=", ".join(rows.column_names),
            next_step="leave op out, or read the rows as a changelog",
        )
    ops = pa.repeat(pa.scalar(int(Op.APPEND), pa.uint8()), rows.num_rows)
    return rows.add_column(int(rows.column_names[:1] == ["offset"]), "op", ops)


def to_odf(rows: pa.Table, key: Sequence[str], former: pa.Table | None = None) -> pa.Table:
    """A changelog of the binlog profile in the strict one of Open Data Fabric.

    Without ``schema_version``; times cut to milliseconds; -R and -C with the event time of the row they take back.

    Args:
        rows: a changelog that begins with its table, or behind *former*.
        key: names of the key's columns.
        former: the rows before, each key once, with ``event_time``.

    Raises:
        HistorianError: a row is taken back whose event time is not known.
    """
    ms = pa.timestamp("ms", tz="UTC")
    for name in ("system_time", "event_time"):
        whole = pc.floor_temporal(rows.column(name), unit="millisecond").cast(ms)
        rows = rows.set_column(rows.column_names.index(name), name, whole)
    held = 0 if former is None else former.num_rows
    keys, times = rows.select(list(key)), rows.column("event_time")
    if former is not None:
        keys = pa.concat_tables([former.select(list(key)), keys])
        before = pc.floor_temporal(former.column("event_time"), unit="millisecond").cast(ms)
        times = pa.chunked_array([*before.chunks, *times.chunks], ms)
    order, first = rows_by_key(keys, key)
    previous = _previous(order, first)[held:]
    takes = np.isin(_ops(rows), (Op.RETRACT, Op.CORRECT_FROM))
    if (takes & (previous < 0)).any():
        raise HistorianError(
            "a row is taken back that did not come before",
            where=f"row {int(np.flatnonzero(takes & (previous < 0))[0])}",
            expected="a changelog that begins with its table, or the rows before it",
        )
    source = np.where(takes, previous, np.arange(held, keys.num_rows))
    event_time = times.take(pa.array(source))
    rows = rows.set_column(rows.column_names.index("event_time"), "event_time", event_time)
    own = {"schema_version", *POSITION_COLUMNS.values()}
    return rows.drop_columns([name for name in rows.column_names if name in own])


def to_row_kinds(rows: pa.Table) -> pa.Table:
    """The same rows with Flink's ``row_kind`` (+I, -D, -U, +U) in place of ``op``."""
    kinds = pa.array(_ROW_KINDS).take(pa.array(_ops(rows)))
    at = rows.column_names.index("op")
    return rows.set_column(at, ROW_KIND, kinds)


def from_row_kinds(rows: pa.Table) -> pa.Table:
    """The rows that :func:`to_row_kinds` came from. Raises :class:`HistorianError` on another kind."""
    ops = pc.index_in(rows.column(ROW_KIND), value_set=pa.array(_ROW_KINDS))
    if ops.null_count:
        found = rows.column(ROW_KIND).unique().to_pylist()
        raise HistorianError("not a row kind of Flink", expected=_ROW_KINDS, found=found)
    return rows.set_column(rows.column_names.index(ROW_KIND), "op", ops.cast(pa.uint8()))


def _numbered(rows: pa.Table, first_offset: int) -> pa.Table:
    """*rows* with ascending offsets, where they have offsets."""
    if "offset" not in rows.column_names:
        return rows
    at = rows.column_names.index("offset")
    offsets = pa.array(np.arange(first_offset, first_offset + rows.num_rows))
    return rows.set_column(at, rows.schema.field(at), offsets.cast(rows.schema.field(at).type))


def _previous(order: pa.Array, first: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each row the one before it of the same key, or -1; *order* and *first* as ``rows_by_key`` gives them."""
    numbers = order.to_numpy()
    previous = np.full(len(numbers), -1, dtype=np.int64)
    previous[numbers[1:]] = np.where(first.to_numpy(zero_copy_only=False)[1:], -1, numbers[:-1])
    return previous


def _ops(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    ops: np.ndarray[tuple[int], np.dtype[np.int64]] = rows.column("op").to_numpy().astype(np.int64)
    return ops


def _mapped(rows: pa.Table, to: Sequence[Op]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([int(op) for op in to])[_ops(rows)]


def _with_op(rows: pa.Table, ops: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    at = rows.column_names.index("op")
    kind = rows.schema.field(at)
    return rows.set_column(at, kind, pa.array(ops).cast(kind.type))


def _with_data(rows: pa.Table, images: pa.Table, data: Sequence[str]) -> pa.Table:
    for name in data:
        at = rows.column_names.index(name)
        rows = rows.set_column(at, rows.schema.field(at), images.column(name))
    return rows


def _check_pairs(ops: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
    before, after = ops == Op.CORRECT_FROM, ops == Op.CORRECT_TO
    if before[-1:].any() or after[:1].any() or (before[:-1] != after[1:]).any():
        raise HistorianError("a changelog's -C and +C do not pair", expected="+C directly behind its -C")


def _structs(rows: pa.Table, data: Sequence[str]) -> pa.Array:
    columns = [_one_chunk(rows.column(name)) for name in data]
    return pa.StructArray.from_arrays(columns, fields=[rows.schema.field(name) for name in data])


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
