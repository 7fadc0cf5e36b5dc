"""How each column is asked for, what the server then says of it, and how its values become those of a row image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from connectors.readers.base import MappedColumn
from connectors.readers.binlog.columns.charsets import text_finish
from connectors.readers.binlog.columns.fixed import FIXED_TEXTS
from connectors.readers.binlog.events.crosscheck import logged_type
from connectors.readers.binlog.events.table_maps import ColumnCode
from connectors.readers.binlog.kernels.results import layout as at
from connectors.readers.binlog.kernels.values import layout as values
from connectors.readers.binlog.rows.program import Step, Style, program
from historian.names import quoted
from historian.schema.snapshots import Column, ColumnType, Snapshot

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Encoding",
    "decoding_steps",
    "encoding_words",
    "encodings",
    "most_fixed_bytes",
    "select_statement",
    "wire_columns",
]

_C = ColumnCode
_TEXT_PREFIX_BYTES = 4
_NUMBERED = frozenset(("enum", "set"))


def select_statement(snapshot: Snapshot, where: str) -> str:
    """The SELECT of all columns in order, of rows that fulfil *where*; "": of all."""
    columns = ", ".join(_selected(column) for column in snapshot.columns)
    table = snapshot.name.quoted
    # Behind a line's end, a comment in the predicate does not reach.
    condition = f" WHERE ({where}\n)" if where else ""
    return f"SELECT {columns} FROM {table}{condition}"  # noqa: S608 - names are quoted, and the predicate is the caller's


def _selected(column: Column) -> str:
    name = quoted(column.name)
    # A label does not say which it is of those that are the same to a reader; MariaDB casts short ones to an INT.
    return f"CAST({name} AS UNSIGNED) | 0" if column.type.name in _NUMBERED else name


def wire_columns(snapshot: Snapshot, flavor: str) -> tuple[MappedColumn, ...]:
    """The columns of a TABLE_MAP that describes the row images that are made."""
    return tuple(_wire(column, flavor) for column in snapshot.columns)


def _wire(column: Column, flavor: str) -> MappedColumn:
    kind = column.type.name
    if kind == "json" or kind in FIXED_TEXTS:
        # The server gives them as text.
        code, metadata = _C.BLOB, _TEXT_PREFIX_BYTES
    else:
        code, metadata = logged_type(column.type, flavor) or (_C.BLOB, _TEXT_PREFIX_BYTES)
    return MappedColumn(type=code, metadata=metadata, nullable=column.nullable)


def decoding_steps(snapshot: Snapshot, wire: tuple[MappedColumn, ...]) -> tuple[Step, ...]:
    """What decodes the row images.

    Raises:
        ValueUnrepresentable: a column type or character set that is not read yet.
    """
    steps = program(snapshot, wire, style=Style())
    return tuple(
        Step(kind=values.TEXT, size=step.size, width=0, arrow=step.arrow, finish=text_finish("ascii"))
        if column.type.name in FIXED_TEXTS
        else step
        for column, step in zip(snapshot.columns, steps, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a column's values become those of a row image; see :mod:`connectors.readers.binlog.kernels.results.layout`."""

    kind: int
    size: int
    meta: int = 0


_Make = Callable[[ColumnType, Step, MappedColumn], Encoding]


def _fixed(kind: int, size: int) -> _Make:
    return lambda _type, _step, _wire: Encoding(kind, size)


def _dated(kind: int) -> _Make:
    return lambda _type, step, wire: Encoding(kind, step.size, (wire.metadata + 1) // 2)


_ENCODINGS: dict[str, _Make] = {
    "tinyint": _fixed(at.COPY_1, 1),
    "smallint": _fixed(at.COPY_2, 2),
    "mediumint": _fixed(at.CUT_4, 3),
    "int": _fixed(at.COPY_4, 4),
    "bigint": _fixed(at.COPY_8, 8),
    "float": _fixed(at.COPY_4, 4),
    "double": _fixed(at.COPY_8, 8),
    "year": _fixed(at.YEAR, 1),
    "date": _fixed(at.DATE, 3),
    "datetime": _dated(at.DATETIME),
    "timestamp": _dated(at.TIMESTAMP),
    "time": _dated(at.TIME),
    "bit": lambda _type, step, _wire: Encoding(at.BYTES, step.size),
    **dict.fromkeys(_NUMBERED, lambda _type, step, _wire: Encoding(at.CUT_8, step.size)),
    "decimal": lambda _type, step, wire: Encoding(
        at.DECIMAL, step.size, (wire.metadata >> 8) - (wire.metadata & 0xFF) | (wire.metadata & 0xFF) << 8
    ),
}


def encodings(snapshot: Snapshot, steps: tuple[Step, ...], wire: tuple[MappedColumn, ...]) -> tuple[Encoding, ...]:
    """The encodings of *snapshot*'s columns, in order."""
    return tuple(
        _ENCODINGS.get(column.type.name, _varying)(column.type, step, mapped)
        for column, step, mapped in zip(snapshot.columns, steps, wire, strict=True)
    )


def _varying(_type: ColumnType, step: Step, _wire: MappedColumn) -> Encoding:
    return Encoding(at.VARYING, step.size)


def encoding_words(found: tuple[Encoding, ...]) -> NDArray[np.int64]:
    """The encodings as the kernel reads them."""
    return np.array([(each.kind, each.size, each.meta) for each in found], np.int64).reshape(-1, at.COLUMN_WORDS)


def most_fixed_bytes(found: tuple[Encoding, ...]) -> int:
    """What an image may take besides the bytes of its packet: NULL bits, values of fixed size, length prefixes."""
    return (len(found) + 7) // 8 + sum(each.size for each in found)
