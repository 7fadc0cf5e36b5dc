"""Bounds of chunks by the engine's estimates: a few looks into the index for each, however many rows lie between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.backfill.keys.predicates import from_first, up_to_first, where
from connectors.backfill.keys.probes import estimated, found_key, step
from connectors.backfill.keys.scales import Scale, scale_between
from connectors.backfill.keys.split_key import SplitKey
from historian.plans.key_ranges import Key, KeyRange

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

__all__ = ["by_estimates"]

_TRIES = 24
_LEAST, _MOST = 0.7, 1.5
"""How far an estimate may be from the rows that were asked for."""


def by_estimates(cursor: Cursor, key: SplitKey, after: Key | None, rows: int, count: int) -> list[Key | None]:
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
