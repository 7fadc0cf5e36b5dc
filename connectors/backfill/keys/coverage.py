"""Which rows of a log lie in a range of keys, in the server's own order.

Numbers, times and bytes are compared here, as servers order them. Text of any collation, and MariaDB's UUID, INET4 and INET6, whose
order is its own affair, are compared by a server: :data:`Ask` evaluates literals, and reads no table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from connectors.backfill.keys.comparison import compared
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.split_key import SplitKey
from connectors.readers.binlog.transport.connection import ServerAddress, answered
from historian.changelog.operations import physical_name
from historian.changelog.row_images import Mask
from historian.errors import ValueUnrepresentable
from historian.plans.key_order import Signs
from historian.plans.key_ranges import Key, KeyRange

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pymysql.connections import Connection

__all__ = ["Ask", "KeyQuestions", "asking", "covered", "within"]

Ask = Callable[[str], Sequence[Sequence[Any]]]
"""Gives the rows of a SELECT, from a session of :func:`connectors.backfill.keys.literals.prepare_session` on the table's server."""


def asking(connection: Connection[Any]) -> Ask:
    """Questions over *connection*. Raises ConnectionLost and SourceError."""

    def ask(question: str) -> Sequence[Sequence[Any]]:
        with answered("a comparison of keys"), connection.cursor() as cursor:
            cursor.execute(question)
            return tuple(cursor.fetchall())

    return ask


def covered(rows: pa.RecordBatch, key: SplitKey, upto: Key | None, ask: Ask) -> Mask:
    """For each row whether its key is *upto* or lies before it; None: the whole table is covered.

    Args:
        rows: in the columns of the snapshot that *key* is of, in any form that type options give them.

    Raises:
        ValueUnrepresentable: a row's key is NULL. Its value is none that the column's form can hold, or the log leaves it out
            (``binlog_row_image=MINIMAL``, and another key than the primary one).
    """
    if upto is None:
        return np.ones(rows.num_rows, dtype=bool)
    return _signs(rows, key, upto, ask, np.arange(rows.num_rows)) <= 0


def within(rows: pa.RecordBatch, key: SplitKey, keys: KeyRange, ask: Ask) -> Mask:
    """For each row whether its key lies in that range; as :func:`covered`."""
    inside = covered(rows, key, keys.upto, ask)
    if keys.after is not None:
        at = np.flatnonzero(inside)
        inside[at] = _signs(rows, key, keys.after, ask, at) > 0
    return inside


def _signs(rows: pa.RecordBatch, key: SplitKey, bound: Key, ask: Ask, at: NDArray[np.int64]) -> Signs:
    """-1, 0 or 1 for each row of those *at* that place: its key lies before *bound*, is it, or lies behind it."""
    signs = np.zeros(len(at), dtype=np.int8)
    undecided = np.arange(len(at))
    for column, value in zip(key.columns, bound, strict=True):
        if not len(undecided):
            break
        values = rows.column(physical_name(column.id))
        if len(undecided) < rows.num_rows:
            values = values.take(pa.array(at[undecided]))
        if values.null_count:
            raise ValueUnrepresentable(
                "a key's value that is not known, or that its column's form cannot hold, so that its place in the order is not known",
                where=f"{key.table}.{column.name}",
                found=str(column.type),
                next_step="choose a form that holds it (docs/reference/types.md), or log whole rows (binlog_row_image=FULL)",
            )
        signs[undecided] = compared(values, column.type, value, ask)
        undecided = undecided[signs[undecided] == 0]
    return signs


class KeyQuestions:
    """An :data:`~connectors.backfill.keys.coverage.Ask`, for one thread. Most keys are compared without a question."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._connection: Connection[Any] | None = None

    def __call__(self, question: str) -> Sequence[Sequence[Any]]:
        """Its rows."""
        if self._connection is None:
            self._connection = self._address.connect()
            prepare_session(self._connection)
        return asking(self._connection)(question)

    def close(self) -> None:
        """Closes the connection, if there is one."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None
