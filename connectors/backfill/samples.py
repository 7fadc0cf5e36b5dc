"""Random parts of a table: ranges of its key, chosen without a scan of the table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from connectors.backfill.keys.boundaries import FEW_ROWS, boundaries
from connectors.backfill.keys.literals import prepare_session
from connectors.backfill.keys.probes import estimated
from connectors.backfill.keys.split_key import SplitKey
from connectors.readers.binlog.transport.connection import answered
from historian.plans.key_ranges import Key, KeyRange

if TYPE_CHECKING:
    from pymysql.connections import Connection

    from connectors.readers.binlog.transport.connection import ServerAddress

__all__ = ["Sample", "random_ranges"]

_PARTS = 1000
"""Into so many parts at most a table is cut, of which some are chosen."""
_SMALL_PARTS = 20
"""And so many one has whose keys are gone over sooner than estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some of a table's keys: ``ranges`` in order, apart from each other, of a table of about ``table_rows`` rows."""

    ranges: tuple[KeyRange, ...]
    table_rows: int


def random_ranges(address: ServerAddress, key: SplitKey, percent: float, choice: random.Random) -> Sample:
    """Ranges with about *percent* of a table's rows, others each time.

    The table is cut into parts of about equal size by :func:`~connectors.backfill.keys.boundaries.boundaries`. Some are chosen, and a piece of one
    more, so that they are as many rows as is wanted.

    Args:
        percent: above 0 and up to 100.

    Raises:
        ConnectionLost, SourceError: the server cannot be asked.
    """
    with closing(address.connect()) as connection:
        prepare_session(connection)
        with answered(str(key.table)), connection.cursor() as cursor:
            table_rows = estimated(cursor, key.source)
        rows = max(1, table_rows // _SMALL_PARTS if table_rows < FEW_ROWS else max(FEW_ROWS, table_rows // _PARTS))
        bounds: Sequence[Key | None] = boundaries(connection, key, None, rows=rows, count=2 * _PARTS)
        # The last part may hold few rows, or none: it is one with that before it.
        bounds = [*bounds[:-2], None]
        parts = [KeyRange(after=after, upto=upto) for after, upto in pairwise((None, *bounds))]
        whole, rest = divmod(len(parts) * percent / 100, 1)
        chosen = choice.sample(range(len(parts)), min(len(parts), int(whole) + 1))
        ranges = {number: parts[number] for number in chosen[: int(whole)]}
        part_rows = max(1, table_rows // len(parts))  # estimates have cut larger or smaller ones than was asked for
        for number in chosen[int(whole) :]:
            if not ranges or round(rest * part_rows):
                ranges[number] = _piece(
                    connection, key, parts[number], part_rows, max(1, round(rest * part_rows)), choice
                )
    return Sample(ranges=_joined([keys for _, keys in sorted(ranges.items())]), table_rows=table_rows)


def _piece(
    connection: Connection[Any], key: SplitKey, part: KeyRange, rows: int, wanted: int, choice: random.Random
) -> KeyRange:
    """About *wanted* of the about *rows* rows of *part*, somewhere in it."""
    for offset in (choice.randrange(max(1, rows - wanted + 1)), 0):
        after = part.after if not offset else boundaries(connection, key, part.after, rows=offset, count=1)[0]
        if after is None and offset:
            continue
        (upto,) = boundaries(connection, key, after, rows=wanted, count=1)
        if upto is not None:
            return KeyRange(after=after, upto=upto)
    return part  # Statistics promised more rows than there are.


def _joined(ranges: Sequence[KeyRange]) -> tuple[KeyRange, ...]:
    """The same keys: ranges that follow each other directly are one."""
    found: list[KeyRange] = []
    for keys in ranges:
        if found and found[-1].upto is not None and found[-1].upto == keys.after:
            keys = KeyRange(after=found.pop().after, upto=keys.upto)  # noqa: PLW2901 the longer one
        found.append(keys)
    return tuple(found)
