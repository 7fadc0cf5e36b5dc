"""What each row must be like next to the one before it of the same key: whether the row is there, and what it holds.

Rows come sorted by key and offset, so that neighbours tell all; a stream of them needs one row of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.operations import Op
from historian.changelog.row_images import Mask, differing, where
from historian.changelog.validation.findings import Finding, Profile, Rule
from historian.changelog.validation.sequence import operations, sign

__all__ = ["check_bag", "check_keys", "same_as_before"]

_TEXT_LENGTH = 60
_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]
_ADDS = (int(Op.APPEND), int(Op.CORRECT_TO))
_TAKES = (int(Op.RETRACT), int(Op.CORRECT_FROM))


def same_as_before(rows: pa.Table, columns: Sequence[str]) -> Mask:
    """Which rows have the values of *columns* of the row before them; the first one has not."""
    same: Mask = np.zeros(rows.num_rows, dtype=bool)
    if rows.num_rows > 1:
        masks = differing(rows.slice(0, rows.num_rows - 1), rows.slice(1), columns)
        same[1:] = ~np.any(list(masks.values()), axis=0)
    return same


def check_keys(
    rows: pa.Table,
    same: Mask,
    data: Sequence[str],
    profile: Profile,
    *,
    complete: bool,
    known: int = 0,
    ends: bool = True,
) -> Iterator[Finding]:
    """What is wrong along the life of each key.

    Args:
        rows: by key, then by offset; a row without offset was there before.
        same: which rows have the key of the row before them.
        data: names of the data columns.
        profile: that they are held to.
        complete: whether a key that has no row yet is known not to be there.
        known: how many rows at the front were judged before and are there only to be neighbours.
        ends: whether the last row is the last one of its key.
    """
    ops = operations(rows)
    offsets = rows.column("offset")
    before = np.full(rows.num_rows, -2)
    before[1:] = np.where(same[1:], ops[:-1], before[1:])
    there, gone = np.isin(before, _ADDS), (before == Op.RETRACT) | ((before == -2) & complete)
    fresh = np.arange(rows.num_rows) >= known
    for at in where(fresh & (ops == Op.APPEND) & there):
        found = f"+A of one that came with {_place(offsets[at - 1].as_py())}"
        yield _finding(Rule.PRESENCE, offsets, at, "a key that is not there", found)
    taken = fresh & np.isin(ops, _TAKES)
    for at in where(taken & gone):
        found = "none" if before[at] == -2 else f"one taken back at offset {offsets[at - 1].as_py()}"
        yield _finding(Rule.PRESENCE, offsets, at, "a row to take back", found)
    yield from _pairs(rows, ops, same, fresh, ends=ends)
    yield from _images(rows, np.flatnonzero(taken & there), data, profile)


def check_bag(rows: pa.Table, same: Mask, counts: int = 0, known: int = 0) -> tuple[list[Finding], int]:
    """What is wrong with rows without a key, sorted by all data columns and then by offset: one taken back that is not there.

    Args:
        rows: see above; a row without offset was there before.
        same: which rows equal the row before them.
        counts: how often the first row's equals are there with the rows at the front.
        known: how many rows at the front were judged before.

    Returns:
        The findings, and how often the last row's equals are there behind it.
    """
    if rows.num_rows == 0:
        return [], counts
    signs = np.select([np.isin(operations(rows), _ADDS), np.isin(operations(rows), _TAKES)], [1, -1], 0)
    if known:
        signs[:known] = 0
        signs[0] = counts
    starts = np.flatnonzero(~same)
    totals = np.cumsum(signs)
    running = totals - np.repeat(totals[starts] - signs[starts], np.diff(np.append(starts, len(signs))))
    offsets = rows.column("offset")
    findings: list[Finding] = []
    for first, end in _short(running, starts):
        # Each new low is a row too few; what comes behind it is counted from there.
        lows = np.minimum(np.minimum.accumulate(running[first:end]), 0)
        short = [first + at for at in where(np.diff(lows, prepend=0) < 0)]
        findings += [_finding(Rule.PRESENCE, offsets, at, "a row to take back", "none") for at in short if at >= known]
    return findings, int(running[-1] - min(0, running[starts[-1] :].min()))


def _short(running: _Numbers, starts: _Numbers) -> Iterator[tuple[int, int]]:
    """The stretches of equal rows in which one is missing."""
    ends = np.append(starts[1:], len(running))
    for at in where(np.minimum.reduceat(running, starts) < 0):
        yield int(starts[at]), int(ends[at])


def _pairs(rows: pa.Table, ops: _Numbers, same: Mask, fresh: Mask, *, ends: bool) -> Iterator[Finding]:
    offsets = rows.column("offset")
    numbers = offsets.fill_null(-1).to_numpy()
    follows = np.zeros(len(ops), dtype=bool)
    follows[1:] = same[1:] & (numbers[1:] == numbers[:-1] + 1)
    paired = np.zeros(len(ops), dtype=bool)
    paired[1:] = follows[1:] & (ops[1:] == Op.CORRECT_TO) & (ops[:-1] == Op.CORRECT_FROM)
    for at in where(fresh & (ops == Op.CORRECT_TO) & ~paired):
        found = _neighbour(ops, numbers, at - 1) if same[at] else "nothing"
        yield _finding(Rule.PAIR, offsets, at, "-C of its key directly before it", found)
    leads = np.append(paired[1:], not ends)
    # The last row is judged when it is known what comes behind it, and then even where it was known before.
    for at in where((ops == Op.CORRECT_FROM) & ~leads):
        found = _neighbour(ops, numbers, at + 1) if at + 1 < len(ops) and same[at + 1] else "nothing"
        yield _finding(Rule.PAIR, offsets, at, "+C of its key directly behind it", found)


def _neighbour(ops: _Numbers, offsets: _Numbers, at: int) -> str:
    return f"{sign(int(ops[at]))} at {_place(int(offsets[at]))}"


def _images(
    rows: pa.Table, taken: np.ndarray[tuple[int], np.dtype[np.intp]], data: Sequence[str], profile: Profile
) -> Iterator[Finding]:
    """Rows *taken* back that are not what the row before them is."""
    columns = [*data, "event_time"] if profile is Profile.ODF else list(data)
    former, image = rows.take(pa.array(taken - 1)), rows.take(pa.array(taken))
    masks = differing(former, image, columns)
    if profile is Profile.BINLOG:
        # Under another schema a column may have come or gone, and then one side knows nothing of it.
        other = np.asarray(
            pc.not_equal(former.column("schema_version"), image.column("schema_version")).fill_null(False)
        )
        for name in columns:
            unknown = np.asarray(former.column(name).is_null()) | np.asarray(image.column(name).is_null())
            masks[name] &= ~(other & unknown)
    if not masks:
        return
    for at in where(np.any(list(masks.values()), axis=0)):
        names = [name for name in columns if masks[name][at]]
        offset = image.column("offset")
        yield _finding(Rule.IMAGE, offset, at, _text(former, at, names), _text(image, at, names))


def _text(rows: pa.Table, at: int, names: Sequence[str]) -> str:
    values = {name: repr(rows.column(name)[at].as_py()) for name in names}
    return ", ".join(f"{n}={v if len(v) <= _TEXT_LENGTH else v[:_TEXT_LENGTH] + '…'}" for n, v in values.items())


def _place(offset: int | None) -> str:
    return "the rows before" if offset is None or offset < 0 else f"offset {offset}"


def _finding(rule: Rule, offsets: pa.ChunkedArray, at: int, expected: str, found: str) -> Finding:
    return Finding(rule=rule, offset=offsets[at].as_py(), expected=expected, found=found)
