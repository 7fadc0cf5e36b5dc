"""The changelog's words: operations, system columns, and the columns that carry them inside a chunk.

The stream is Open Data Fabric's: ``offset, op, system_time, event_time``, here with ``schema_version``, then the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import pyarrow as pa

__all__ = [
    "CHUNK_COLUMNS",
    "POSITION_COLUMNS",
    "RESERVED_COLUMNS",
    "SYSTEM_COLUMNS",
    "Op",
    "column_id",
    "data_columns",
    "physical_name",
    "position_column",
]


class Op(IntEnum):
    """What a changelog row does to the table. The codes are ODF's; Flink's RowKind numbers differ."""

    APPEND = 0
    RETRACT = 1
    CORRECT_FROM = 2
    CORRECT_TO = 3

    @property
    def sign(self) -> str:
        """The short form: +A, -R, -C, +C."""
        return ("+A", "-R", "-C", "+C")[self]


SYSTEM_COLUMNS = ("offset", "op", "system_time", "event_time", "schema_version")
"""Columns of a changelog table before its data, in order."""

POSITION_COLUMNS = {"position": "_position", "ordinal": "_ordinal", "transaction": "_transaction"}
"""Columns behind :data:`SYSTEM_COLUMNS` that a changelog has when asked, by the word that asks for each.

``_position`` is the place of the row's transaction in the source's log: its GTID, or ``file:offset`` of its first event.
``_ordinal`` counts the transaction's events, the GTID event being 0; ``_transaction`` is its GTID, NULL where it has none.
"""

RESERVED_COLUMNS = (*SYSTEM_COLUMNS, *POSITION_COLUMNS.values())
"""Names that no data column of a changelog may have, whichever of these columns it has: readers tell them by their names."""

CHUNK_COLUMNS = (
    pa.field("op", pa.uint8(), nullable=False),
    pa.field("event_time", pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field("source", pa.int16(), nullable=False),
    pa.field("sequence", pa.int64(), nullable=False),
    pa.field("ordinal", pa.int32(), nullable=False),
)
"""Columns of a chunk's record batch before its data columns.

``source`` indexes ``Chunk.sources``, the texts in front of a transaction's number (MySQL: ``uuid`` or ``uuid:tag``;
MariaDB: ``domain-server``); ``sequence`` is that number. A transaction without GTID has -1 as ``source``, and as
``sequence`` the offset of its first event in ``Chunk.file``. ``ordinal`` counts a transaction's events, the GTID event
being 0.
"""


def data_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The data columns among a changelog's *names*, in order: all but :data:`SYSTEM_COLUMNS` and :data:`POSITION_COLUMNS`.

    Rows without ``offset`` are typed rows of the source, whose ``position`` and ``ordinal`` are no data.
    """
    every = tuple(names)
    more = POSITION_COLUMNS.values() if "offset" in every else ("position", "ordinal")
    system = {*SYSTEM_COLUMNS, *more}
    return tuple(name for name in every if name not in system)


def position_column(names: Iterable[str]) -> str | None:
    """The column among a changelog's or typed rows' *names* that has the position of each row's transaction."""
    every = tuple(names)
    name = POSITION_COLUMNS["position"] if "offset" in every else "position"
    return name if name in every else None


def physical_name(column_id: int) -> str:
    """The name of a data column in chunks and in files: stable under renames, never reused."""
    return f"h{column_id}"


def column_id(name: str) -> int:
    """The column id in a :func:`physical_name`."""
    return int(name.removeprefix("h"))
