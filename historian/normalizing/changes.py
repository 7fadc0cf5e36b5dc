"""Rows of a plan made whole by the last row of each key, a table at a time, columns at a time.

Three kinds of rows come in. A +A or +C says what its key's row is from here on, whatever stands before it; columns that are absent in it are as they
were. A -R says that the row is gone, and may have the key's columns alone. A -C says nothing that is not known better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.chunks import Chunk
from historian.changelog.missing_columns import ABSENT, MOVED, marked
from historian.changelog.operations import CHUNK_COLUMNS, Op, physical_name
from historian.encoding import decode_rows, encode_rows, read_rows, row_schema
from historian.errors import HistorianError, TableStopped
from historian.normalizing.counts import NormalCounts
from historian.normalizing.keys import KeyHashes, key_form, keys_of, layout_of
from historian.normalizing.states import KeyedState
from historian.plans.plans import PlannedTable
from historian.plans.segments import retracts
from historian.schema.snapshots import Column, Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["normalized"]

_DROPPED, _ADDED, _CHANGED, _GONE = 0, 1, 2, 3
_ROWS_OF = np.array([0, 1, 2, 1], np.int64)
"""How many rows each of these is."""
_SYSTEM = len(CHUNK_COLUMNS)


def normalized(
    table: PlannedTable, chunks: Iterable[Chunk], state: KeyedState
) -> tuple[tuple[Chunk, ...], NormalCounts]:
    """The rows of a table in a plan, each with the whole row that it takes back. What *state* holds goes on with them.

    The same chunks and the same state give the same rows.

    Args:
        chunks: of the table.

    Returns:
        Chunks under the numbers that they had; those without a row are left out.

    Raises:
        TableStopped: the table has no key, or keys that are not different any more.
        ValueUnrepresentable: a row that is held does not fit the table's schema.
        HistorianError: two keys have the same hash of 128 bits.
    """
    found, counts = list[Chunk](), NormalCounts()
    ordered = sorted(chunks, key=lambda chunk: chunk.sequence)
    for segment in sorted({version.segment for version in table.versions}):
        versions = [version for version in table.versions if version.segment == segment]
        if any(retracts(edit) for version in versions for edit in version.edits):
            state.clear()
        mine = [chunk for chunk in ordered if chunk.segment == segment and chunk.rows.num_rows]
        snapshots = {version.version: version.snapshot for version in versions if version.snapshot is not None}
        if mine:
            part = _Segment(snapshots, mine, state)
            found += part.chunks()
            counts += part.counts()
    return tuple(sorted(found, key=lambda chunk: chunk.sequence)), counts


class _Segment:
    """Rows of one segment: their keys do not change how they are made, and all can be read under each schema."""

    def __init__(self, snapshots: dict[int, Snapshot], chunks: Sequence[Chunk], state: KeyedState) -> None:
        latest = snapshots[max(snapshots)]
        if not latest.primary_key:
            raise TableStopped(
                "normalisation finds rows by their key, and the table has none",
                where=str(latest.name),
                next_step="have the producer write a key, or leave it out of source.normalize; then start another connector",
            )
        self._latest, self._form = latest, key_form(latest)
        self._state = state
        self._snapshots = [snapshots[chunk.version] for chunk in chunks]
        self._chunks = [replace(chunk, rows=_without_former(chunk.rows)) for chunk in chunks]
        self._bounds = np.cumsum([0, *(chunk.rows.num_rows for chunk in self._chunks)])
        self._ops = np.concatenate([_ops(chunk.rows) for chunk in self._chunks])
        layouts = {layout_of(snapshot) for snapshot in self._snapshots}
        self._layout = layouts.pop() if len(layouts) == 1 else "several"
        if state.key not in ("", self._form):
            self._make_keys_anew()
        self._kinds = np.full(len(self._ops), _DROPPED, np.uint8)
        self._was_there = np.zeros(len(self._ops), np.bool_)

    def chunks(self) -> list[Chunk]:
        """The rows; what the state holds has gone on with them."""
        pairs = zip(self._chunks, self._snapshots, strict=True)
        keys = KeyHashes.joined([keys_of(chunk.rows, written, self._latest) for chunk, written in pairs])
        is_gone = self._ops == Op.RETRACT
        order = np.lexsort((keys.low, keys.high))
        ordered = keys.take(order)
        follows = np.zeros(len(order), np.bool_)
        follows[1:] = (ordered.high[1:] == ordered.high[:-1]) & (ordered.low[1:] == ordered.low[:-1])
        held = self._state.find(ordered.take(~follows))
        former = np.full(len(order), -1, np.int64)
        former[order[1:]] = np.where(follows[1:] & ~is_gone[order[:-1]], order[:-1], -1)
        first = order[~follows]
        has_row = np.asarray(held.is_valid())
        former[first[has_row]] = len(order) + np.flatnonzero(has_row)
        self._was_there = former >= 0
        self._fill(former, held)
        cells = self._cells()
        same_layout = self._state.layout in ("", self._layout) and self._layout != "several"
        both = pa.concat_arrays([cells, held])
        found = [
            made
            for number in range(len(self._chunks))
            if (made := self._whole(number, former, both, cells, same_layout=same_layout)) is not None
        ]
        groups = np.flatnonzero(~follows)
        is_news = np.add.reduceat(self._kinds[order] != _DROPPED, groups) > 0
        last = np.append(groups[1:], len(order))[is_news] - 1
        rows = cells.take(pa.array(order[last]))
        rows = pc.if_else(pa.array(is_gone[order[last]]), pa.scalar(None, rows.type), rows)
        self._state.put(ordered.take(last), rows, key=self._form, layout=self._layout)
        return found

    def _cells(self) -> pa.Array:
        pairs = zip(self._chunks, self._snapshots, strict=True)
        return pa.concat_arrays([_encoded(chunk.rows, snapshot) for chunk, snapshot in pairs])

    def _fill(self, former: NDArray[np.int64], held: pa.Array) -> None:
        """Puts in the place of values that rows do not tell those that their keys' rows had last; *former*: of each row, the one before."""
        lacks_some = any(ABSENT in chunk.rows.schema.names for chunk in self._chunks)
        moved = [_moved(chunk.rows) for chunk in self._chunks] if lacks_some else []
        self._chunks = [replace(chunk, rows=_without(chunk.rows, MOVED)) for chunk in self._chunks]
        if not lacks_some:
            return
        former = self._with_moved(former, [text for texts in moved for text in texts])
        both = pa.concat_arrays([self._cells(), held])
        bits = [
            marked(chunk.rows, ABSENT, len(s.columns)) for chunk, s in zip(self._chunks, self._snapshots, strict=True)
        ]
        for column in {column.id: column for snapshot in self._snapshots for column in snapshot.columns}.values():
            places = [_place(snapshot, column.id) for snapshot in self._snapshots]
            lacks = np.concatenate(
                [np.zeros(len(b), np.bool_) if at is None else b[:, at] for b, at in zip(bits, places, strict=True)]
            )
            if not lacks.any():
                continue
            # Of each row the one that has the value: itself, or what the row before has it of. The last place stands for none.
            told = np.append(np.where(lacks, former, np.arange(len(lacks))), [*range(len(lacks), len(both)), -1])
            for _ in range(len(told).bit_length()):  # each turn goes twice as far
                further = told[told]
                if (told == further).all():
                    break
                told = further
            self._fill_column(column, places, lacks, told, both)
        self._chunks = [replace(chunk, rows=_without(chunk.rows, ABSENT)) for chunk in self._chunks]

    def _with_moved(self, former: NDArray[np.int64], moved: Sequence[str | None]) -> NDArray[np.int64]:
        """*former* with the row that had the former key, of rows that have a new one."""
        taken = dict[str, set[int]]()
        for number in np.flatnonzero((self._ops == Op.RETRACT) & (former >= 0)).tolist():
            if (text := moved[number]) is not None:
                taken.setdefault(text, set()).add(int(former[number]))
        found: NDArray[np.int64] = former.copy()
        for number in np.flatnonzero((self._ops == Op.APPEND) & (former < 0)).tolist():
            rows = taken.get(moved[number] or "", set())
            if len(rows) == 1:  # of several nobody knows which
                found[number] = next(iter(rows))
        return found

    def _fill_column(
        self,
        column: Column,
        places: Sequence[int | None],
        lacks: NDArray[np.bool_],
        told: NDArray[np.int64],
        both: pa.Array,
    ) -> None:
        for number, (chunk, snapshot) in enumerate(zip(self._chunks, self._snapshots, strict=True)):
            begin, end = int(self._bounds[number]), int(self._bounds[number + 1])
            mine = np.flatnonzero(lacks[begin:end])
            at = places[number]
            if at is None or not len(mine):
                continue
            wanted = told[begin:end][mine]
            where = f"{snapshot.name}.{column.name} at {chunk.first_position} to {chunk.last_position}"
            if (wanted < 0).any():
                raise _untold(where)
            was = _told_values(both.take(pa.array(wanted)), snapshot, column, where)
            order = np.arange(end - begin)
            order[mine] = end - begin + np.arange(len(mine))
            held = chunk.rows.column(_SYSTEM + at)
            filled = pa.concat_arrays([held, was.cast(held.type)]).take(pa.array(order))
            rows = chunk.rows.set_column(_SYSTEM + at, chunk.rows.schema.field(_SYSTEM + at), filled)
            self._chunks[number] = replace(chunk, rows=rows)

    def counts(self) -> NormalCounts:
        """What was met."""
        is_gone, is_dropped = self._ops == Op.RETRACT, self._kinds == _DROPPED
        return NormalCounts(
            unchanged=int(np.count_nonzero(is_dropped & ~is_gone)),
            seen_inserts=int(np.count_nonzero((self._ops == Op.APPEND) & (self._kinds == _CHANGED))),
            unseen_updates=int(np.count_nonzero((self._ops == Op.CORRECT_TO) & (self._kinds == _ADDED))),
            unseen_deletes=int(np.count_nonzero(is_gone & is_dropped)),
        )

    def _make_keys_anew(self) -> None:
        """Brings what is held under the keys that the table has now."""
        rows, layout = self._state.rows(), self._state.layout
        read = read_rows(rows, self._latest)
        keys = keys_of(read, self._latest, self._latest)
        order = np.lexsort((keys.low, keys.high))
        keys = keys.take(order)
        same = (keys.high[1:] == keys.high[:-1]) & (keys.low[1:] == keys.low[:-1])
        if same.any():
            raise TableStopped(
                "rows have the same key since the table's key changed",
                where=str(self._latest.name),
                found=read.slice(int(order[np.flatnonzero(same)[0]]), 1).to_pylist()[0],
                next_step="start another connector behind the change",
            )
        self._state.clear()
        self._state.put(keys, rows.take(pa.array(order)), key=self._form, layout=layout)

    def _whole(
        self, number: int, former: NDArray[np.int64], both: pa.Array, cells: pa.Array, *, same_layout: bool
    ) -> Chunk | None:
        """A chunk with the rows that its own take back; None where nothing is left."""
        chunk, snapshot = self._chunks[number], self._snapshots[number]
        begin, end = int(self._bounds[number]), int(self._bounds[number + 1])
        places = former[begin:end]
        with_former = np.flatnonzero(places >= 0)
        is_gone = self._ops[begin:end] == Op.RETRACT
        taken = both.take(pa.array(places[with_former]))
        was = read_rows(taken, snapshot)
        self._check_keys(chunk.rows, was, with_former, snapshot)
        mine = cells.slice(begin, end - begin).take(pa.array(with_former))
        is_same = np.zeros(end - begin, np.bool_)
        is_same[with_former] = np.asarray(pc.equal(taken, mine))
        if not same_layout:
            # Rows that were encoded with other columns may be the same all the same.
            is_same[with_former] |= np.asarray(pc.equal(_encoded(was, snapshot), mine))
        kinds = np.where(places >= 0, _CHANGED, _ADDED)
        kinds[is_gone] = np.where(places[is_gone] >= 0, _GONE, _DROPPED)
        kinds[is_same & ~is_gone] = _DROPPED
        self._kinds[begin:end] = kinds
        sizes = _ROWS_OF[kinds]
        if not sizes.any():
            return None
        return replace(chunk, rows=_interleaved(chunk.rows, was, kinds, sizes, with_former))

    def _check_keys(
        self, rows: pa.RecordBatch, was: pa.RecordBatch, places: NDArray[np.intp], snapshot: Snapshot
    ) -> None:
        chosen = pa.array(places)
        for number in snapshot.primary_key:
            name = physical_name(number)
            mine = rows.column(name).take(chosen)
            if not mine.equals(was.column(name)):
                raise HistorianError(
                    "two keys of a table have the same hash of 128 bits",
                    where=f"{snapshot.name}.{name}",
                    next_step="leave the table out of source.normalize",
                )


def _place(snapshot: Snapshot, column_id: int) -> int | None:
    return next((at for at, column in enumerate(snapshot.columns) if column.id == column_id), None)


def _untold(where: str) -> TableStopped:
    return TableStopped(
        "a change does not tell a value that did not change, and its key has no row that has it",
        where=where,
        next_step="have the producer send whole rows (PostgreSQL: REPLICA IDENTITY FULL), or begin with a snapshot of the table",
    )


def _told_values(rows: pa.Array, snapshot: Snapshot, column: Column, where: str) -> pa.Array:
    """What encoded *rows* have in *column*.

    Raises:
        TableStopped: one has a NULL, for a log leaves out what is long. Or it was written before there was the column, whose first value
            may be another: a source whose statements are not known tells of a renamed column as of a new one.
    """

    def lacking(_: int) -> pa.Scalar:
        raise _untold(where)

    found = decode_rows(rows, row_schema(snapshot, [column.id]), lacking).column(physical_name(column.id))
    if found.null_count:
        raise _untold(where)
    return found


def _moved(rows: pa.RecordBatch) -> Sequence[str | None]:
    found: list[str | None] = rows.column(MOVED).to_pylist() if MOVED in rows.schema.names else [None] * rows.num_rows
    return found


def _without(rows: pa.RecordBatch, name: str) -> pa.RecordBatch:
    return rows.drop_columns([name]) if name in rows.schema.names else rows


def _ops(rows: pa.RecordBatch) -> NDArray[np.uint8]:
    found: NDArray[np.uint8] = rows.column("op").to_numpy()
    return found


def _without_former(rows: pa.RecordBatch) -> pa.RecordBatch:
    """*rows* without -C. What it says is known, and -R before the +A of another key stays."""
    ops = _ops(rows)
    return rows.filter(pa.array(ops != Op.CORRECT_FROM)) if (ops == Op.CORRECT_FROM).any() else rows


def _encoded(rows: pa.RecordBatch, snapshot: Snapshot) -> pa.Array:
    schema = row_schema(snapshot)
    return encode_rows(pa.RecordBatch.from_arrays([rows.column(name) for name in schema.names], schema=schema))


def _interleaved(
    rows: pa.RecordBatch,
    was: pa.RecordBatch,
    kinds: NDArray[np.int64],
    sizes: NDArray[np.int64],
    with_former: NDArray[np.intp],
) -> pa.RecordBatch:
    """*rows* of *kinds* with the rows that they take back, *was*, of those at *with_former*: -C before +C, and in the place of -R."""
    count = len(kinds)
    whose = np.repeat(np.arange(count), sizes)
    begins = np.cumsum(sizes) - sizes
    is_former = np.zeros(len(whose), np.bool_)
    is_former[begins[(kinds == _CHANGED) | (kinds == _GONE)]] = True
    number = np.full(count, -1, np.int64)
    number[with_former] = np.arange(len(with_former))
    ops = np.array([Op.APPEND, Op.APPEND, Op.CORRECT_TO, Op.RETRACT], np.uint8)[kinds][whose]
    ops[is_former & (kinds[whose] == _CHANGED)] = Op.CORRECT_FROM
    mine, place = pa.array(whose), pa.array(np.where(is_former, count + number[whose], whose))
    arrays = [pa.array(ops), *(rows.column(at).take(mine) for at in range(1, _SYSTEM))]
    for at, field in enumerate(rows.schema):
        if at >= _SYSTEM:
            arrays.append(pa.concat_arrays([rows.column(at), was.column(field.name).cast(field.type)]).take(place))
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)
