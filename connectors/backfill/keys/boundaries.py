"""Where chunks of a table end: keys, each some rows behind the one before, found without a scan of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from connectors.backfill.keys.predicates import from_first, up_to_first, where
from connectors.backfill.keys.probes import ends, estimated, found_key, step
from connectors.backfill.keys.scales import Scale, scale_between
from connectors.backfill.keys.split_key import SplitKey
from connectors.readers.binlog.transport.connection import answered
from historian.plans.key_ranges import Key, KeyRange
from historian.schema.snapshots import INTEGER_TYPES

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor

__all__ = ["FEW_ROWS", "boundaries"]

_DENSE = 2
"""Numbers for each row at most where chunks are ranges of numbers: a chunk has at most this many times the rows asked for."""

FEW_ROWS = 20_000
"""Below, going over the rows' entries in the index takes about as long as a few estimates."""

_NO_SUCH_INDEX = 1176
_STATISTICS = """
    SELECT column_name, sub_part, collation, index_type FROM information_schema.statistics
    WHERE table_schema = %s AND table_name = %s AND index_name = %s ORDER BY seq_in_index
"""


def boundaries(
    connection: Connection[Any], key: SplitKey, after: Key | None, *, rows: int, count: int
) -> list[Key | None]:
    """The next up to *count* upper bounds of chunks behind *after*, each about *rows* rows further; None, the last, where the table ends.

    Of a single integer column whose numbers are mostly in use: from the least and the greatest one, and estimated rows, without a
    look at the rows. Else each bound is a key of the table: of few rows found by going over their entries in the index, of more by the
    engine's estimates. Where the index does not serve the rest of the table is one chunk. Such an index is over
    prefixes, has columns that run in different directions, is a hash, invisible, or gone.

    Args:
        connection: in a session of :func:`connectors.backfill.keys.literals.prepare_session`.
        after: where the last chunk ended; None: the table's beginning.
        rows, count: at least 1.

    Raises:
        ConnectionLost: the connection broke.
        SourceError: the server refuses a statement, as where the table has another name or other columns meanwhile.
    """
    with answered(str(key.table)), connection.cursor() as cursor:
        if not _serves(cursor, key):
            return [None]
        if len(key.columns) == 1 and key.columns[0].type.name in INTEGER_TYPES:
            found = _by_number(cursor, key, after, rows, count)
            if found is not None:
                return found
        if rows >= FEW_ROWS:
            return _by_estimates(cursor, key, after, rows, count)
        return _by_steps(cursor, key, after, rows, count)


def _serves(cursor: Cursor, key: SplitKey) -> bool:
    """Whether the index is there as the key says: snapshots know neither directions nor prefixes of primary keys."""
    import pymysql

    # Refused where the table or a column has another name meanwhile.
    cursor.execute(f"SELECT {key.order()} FROM {key.name} WHERE 0")  # noqa: S608 - names are quoted
    cursor.execute(_STATISTICS, (key.table.database, key.table.table, key.index))
    parts = cursor.fetchall()[: len(key.columns)]
    names = [None if name is None else str(name).lower() for name, _, _, _ in parts]
    if names != [column.name.lower() for column in key.columns] or any(prefix for _, prefix, _, _ in parts):
        return False
    if len({direction for _, _, direction, _ in parts}) > 1 or any(kind == "HASH" for _, _, _, kind in parts):
        return False
    try:
        cursor.execute(f"SELECT 1 FROM {key.source} WHERE 0")  # noqa: S608 - names are quoted
    except pymysql.err.OperationalError as error:
        if error.args[0] != _NO_SUCH_INDEX:
            raise
        return False
    return True


def _by_number(cursor: Cursor, key: SplitKey, after: Key | None, rows: int, count: int) -> list[Key | None] | None:
    """Bounds in steps of equal numbers; None where too few of them are in use."""
    least, greatest = ends(cursor, key, None)
    if least is None or greatest is None:
        return [None]
    estimate = estimated(cursor, key.source)
    span = greatest - least + 1
    if span > _DENSE * estimate:
        return None
    at = least - 1
    if after is not None:
        at = int(after[0])
        rest, _ = ends(cursor, key, at)
        if rest is None:
            return [None]
        # Numbers that nobody uses any more are not gone through in steps.
        at = max(at, rest - 1)
    step = max(rows, min(rows * span // estimate, rows * _DENSE), 1)
    found: list[Key | None] = [(number,) for number in range(at + step, greatest, step)[:count]]
    return found if len(found) == count else [*found, None]


def _by_steps(cursor: Cursor, key: SplitKey, after: Key | None, rows: int, count: int) -> list[Key | None]:
    found: list[Key | None] = []
    while len(found) < count:
        after = step(cursor, key, after, rows)
        found.append(after)
        if after is None:
            break
    return found


_TRIES = 24
_LEAST, _MOST = 0.7, 1.5
"""How far an estimate may be from the rows that were asked for."""


def _by_estimates(cursor: Cursor, key: SplitKey, after: Key | None, rows: int, count: int) -> list[Key | None]:
    """The next bounds, each a key of the table; by steps where values of the first column do not lead to them."""
    last = found_key(cursor, key, "1", last=True)
    found: list[Key | None] = []
    width: int | None = None
    while len(found) < count:
        rest = where(key, KeyRange(after=after))
        start = found_key(cursor, key, rest)
        if start is None or last is None:
            return [*found, None]
        scale = scale_between(key.columns[0].type, start[0], last[0])
        number = None
        if scale is not None and estimated(cursor, key.source, rest) > rows * _MOST:
            number = _number(cursor, key, scale, rest, rows, width)
        bound = None
        if scale is not None and number is not None:
            bound = found_key(cursor, key, f"{rest} AND {from_first(key, scale.value(number))}")
            width = number - scale.low
        # That the table ends soon is not taken from an estimate: statistics may be from before it was filled.
        after = step(cursor, key, after, rows) if bound is None else bound
        found.append(after)
        if after is None:
            break
    return found


def _number(cursor: Cursor, key: SplitKey, scale: Scale, rest: str, rows: int, width: int | None) -> int | None:
    """A number up to whose value there are about as many rows of *rest*; None where none was found."""
    few, many = scale.low, scale.high
    at = few + (width or (many - few) // 2)
    for _ in range(_TRIES):
        if not few < at < many:
            at = (few + many) // 2
        if not few < at < many:
            return None
        held = estimated(cursor, key.source, f"{rest} AND {up_to_first(key, scale.value(at))}")
        if rows * _LEAST <= held <= rows * _MOST:
            return at
        few, many = (at, many) if held < rows else (few, at)
        # Estimates of small ranges are the best: from there, in proportion; from large ones, half the way.
        at = scale.low + (at - scale.low) * rows // max(held, 1) if held < rows * 8 else (few + many) // 2
    return None
