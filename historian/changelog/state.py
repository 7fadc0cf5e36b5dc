"""A changelog projected to the state that it leads to: the last row of each key, or each row as often as it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.folding import BAG_COUNT, fold_bag, net_changes
from historian.changelog.missing_columns import missing_lists
from historian.changelog.operations import Op, data_columns, position_column
from historian.errors import HistorianError, PositionError
from historian.history.prefix import holds
from historian.positions import FilePosition, LogPosition
from historian.positions.places import Place

__all__ = ["AddedColumn", "project_changelog", "state_columns", "up_to", "without_positions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedColumn:
    """What rows from before a column was added read in it.

    Attributes:
        since: the schema version that brought the column.
        initial: its value in rows of earlier versions, as a Python value of its type; for Spark also as a literal column.
    """

    since: int
    initial: Any


def project_changelog(
    rows: pa.Table,
    key: Sequence[str] = (),
    *,
    until: int | LogPosition | None = None,
    added: Mapping[str, AddedColumn] | None = None,
) -> pa.Table:
    """The state that a changelog leads to: ``event_time``, where it has one, and the data columns, one row a key.

    Folding parts first gives the same, but no part may end between -C and +C.

    Args:
        rows: the changelog in order.
        key: names of the key's columns; without them whole rows are counted, and have no ``event_time``.
        until: the offset of the last row that counts, or a position, see :func:`up_to`; None: all count.
        added: by name the columns that earlier rows do not have.

    Raises:
        HistorianError: the rows end between -C and +C, or lack columns (:mod:`historian.changelog.missing_columns`); without a key, more equal rows are taken back than were added.
    """
    rows = rows if until is None else up_to(rows, until)
    lists = missing_lists(rows.schema)
    for name in lists:
        if rows.column(name).null_count < rows.num_rows:
            raise HistorianError(
                "rows lack columns, which only the rows before tell",
                where=name,
                expected="rows of full row images",
                found=str(rows.column(name).drop_null()[0].as_py()),
            )
    rows = rows.drop_columns(list(lists))
    for name, column in (added or {}).items():
        at, kind = rows.schema.get_field_index(name), rows.schema.field(name).type
        before = pc.less(rows.column("schema_version"), column.since)
        rows = rows.set_column(at, name, pc.if_else(before, pa.scalar(column.initial, kind), rows.column(name)))
    if key:
        last = net_changes(rows, key)
        live = last.filter(pc.not_equal(last.column("op"), pa.scalar(int(Op.RETRACT), last.column("op").type)))
        return live.select(list(state_columns(rows.schema.names)))
    data = data_columns(rows.schema.names)
    bag = fold_bag(rows, data)
    counts = bag.column(BAG_COUNT).to_numpy()
    if (counts < 0).any():
        raise HistorianError(
            "a changelog takes back more rows than it added",
            found=f"{int(counts.min())} of {bag.select(list(data)).slice(int(counts.argmin()), 1).to_pylist()[0]}",
            next_step="project a changelog that begins with its table, or give the key",
        )
    return bag.select(list(data)).take(pa.array(np.repeat(np.arange(len(counts)), counts)))


def state_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a state among a changelog's *names*: the event time and the data."""
    wanted = {"event_time", *data_columns(names)}
    return tuple(name for name in names if name in wanted)


def up_to(rows: pa.Table, until: int | LogPosition) -> pa.Table:
    """The rows of a changelog up to an offset, it included, or up to a position of the source's log.

    For a position the rows have a column of :func:`historian.changelog.operations.position_column`, as typed rows of the source do.

    Raises:
        HistorianError: a position is given, and rows have none.
        PositionUnknown: a transaction without GTID and a position without a file, or the other way round.
    """
    if isinstance(until, int):
        return rows.filter(pc.less_equal(rows.column("offset"), until))
    name = position_column(rows.schema.names)
    if name is None:
        raise without_positions(rows.schema.names)
    if rows.column(name).null_count:
        raise HistorianError(
            "rows without positions cannot be cut at one",
            expected="a position in every row",
            found=f"NULL in {rows.column(name).null_count} of {rows.num_rows} rows",
            next_step="give an offset",
        )
    encoded = pa.chunked_array(rows.column(name), pa.string()).combine_chunks().dictionary_encode()
    held = pa.array([holds(until, _place(text), "") for text in encoded.dictionary.to_pylist()], pa.bool_())
    return rows.filter(held.take(encoded.indices))


def without_positions(names: Sequence[str]) -> HistorianError:
    """The error for rows of columns *names* that are to be cut at a position and do not tell theirs."""
    return HistorianError(
        "rows without positions cannot be cut at one",
        expected="a changelog with changelog_columns: [position], or typed rows of the source",
        found=", ".join(names),
        next_step="give an offset, or read typed rows of the source, which have positions",
    )


def _place(position: str) -> Place:
    """The place that a row's position text names: a GTID, or file and offset."""
    try:
        at = FilePosition.parse(position)
        at.number  # noqa: B018 raises where the name has none, as that of a GTID
    except PositionError:
        return Place(gtid=position, file="", offset=0, ordinal=0)
    return Place(gtid="", file=at.file, offset=at.offset, ordinal=0)
