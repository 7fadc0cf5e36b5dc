"""What each row must be like by itself, and next to the one before it by offset."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from historian.changelog.missing_columns import missing_lists
from historian.changelog.operations import Op
from historian.changelog.row_images import where
from historian.changelog.validation.findings import Finding, Profile, Rule

__all__ = ["NO_OPERATION", "check_offsets", "check_values", "operations", "sign"]

NO_OPERATION = -1
"""Stands for a code that is none."""

_CODES = ", ".join(f"{int(op)} {op.sign}" for op in Op)

_Numbers = np.ndarray[tuple[int], np.dtype[np.int64]]


def operations(rows: pa.Table) -> _Numbers:
    """The column ``op``, with :data:`NO_OPERATION` in place of NULL and of codes that are none."""
    codes: _Numbers = pc.fill_null(rows.column("op").cast(pa.int64()), NO_OPERATION).to_numpy()
    return np.where((codes >= 0) & (codes < len(Op)), codes, NO_OPERATION)


def sign(code: int) -> str:
    """The short form of a code."""
    return "no operation" if code == NO_OPERATION else Op(code).sign


def check_values(rows: pa.Table, key: tuple[str, ...], profile: Profile) -> Iterator[Finding]:
    """What is wrong with single rows: codes, NULLs in system columns and keys, times that are too fine."""
    offsets = rows.column("offset")
    for at in where(operations(rows) == NO_OPERATION):
        found = str(rows.column("op")[at].as_py()).replace("None", "NULL")
        yield Finding(rule=Rule.OPERATION, offset=offsets[at].as_py(), expected=_CODES, found=found)
    for name in profile.system_columns:
        if name != "op":
            yield from _nulls(rows, name, Rule.SYSTEM)
        if profile is Profile.ODF and pa.types.is_timestamp(rows.schema.field(name).type):
            yield from _finer(rows, name)
    for name in key:
        yield from _nulls(rows, name, Rule.KEY)
    for name in missing_lists(rows.schema):
        for at in where(np.asarray(rows.column(name).is_valid())):
            found = f"{name}: {', '.join(rows.column(name)[at].as_py())}"
            yield Finding(rule=Rule.IMAGE, offset=offsets[at].as_py(), expected="every column of the row", found=found)


def check_offsets(
    offsets: _Numbers,
    ops: _Numbers,
    *,
    known: int = 0,
    first: int | None = None,
    pairs: bool = False,
    ends: bool = True,
) -> Iterator[Finding]:
    """What is wrong between neighbours.

    Args:
        offsets: of rows in order.
        ops: their operations.
        known: how many rows at the front are there only to be neighbours.
        first: what the first offset must be; None: what it likes.
        pairs: whether -C and +C must pair here, since no key says so better.
        ends: whether nothing comes behind the last row; else it is judged when that is there.
    """
    follows = np.zeros(len(offsets), dtype=bool)
    follows[1:] = offsets[1:] == offsets[:-1] + 1
    for at in range(known, min(len(offsets), 1)):
        if first is not None and offsets[at] != first:
            yield Finding(rule=Rule.OFFSET, offset=int(offsets[at]), expected=f"{first} first", found=str(offsets[at]))
    for at in where(~follows):
        if at >= max(known, 1):
            yield _gap(int(offsets[at - 1]), int(offsets[at]))
    if not pairs:
        return
    corrected = np.zeros(len(offsets), dtype=bool)
    corrected[1:] = follows[1:] & (ops[1:] == Op.CORRECT_TO) & (ops[:-1] == Op.CORRECT_FROM)
    for at in where((ops == Op.CORRECT_TO) & ~corrected):
        if at >= known:
            found = sign(int(ops[at - 1])) if follows[at] else "nothing"
            yield Finding(rule=Rule.PAIR, offset=int(offsets[at]), expected="-C directly before it", found=found)
    is_paired = np.append(corrected[1:], not ends)
    for at in where((ops == Op.CORRECT_FROM) & ~is_paired):
        found = sign(int(ops[at + 1])) if at + 1 < len(ops) and follows[at + 1] else "nothing"
        yield Finding(rule=Rule.PAIR, offset=int(offsets[at]), expected="+C directly behind it", found=found)


def _gap(before: int, offset: int) -> Finding:
    if before == offset:
        return Finding(rule=Rule.OFFSET, offset=offset, expected="each offset once", found=f"{offset} again")
    if before > offset:
        return Finding(rule=Rule.OFFSET, offset=offset, expected="ascending offsets", found=f"{offset} behind {before}")
    return Finding(rule=Rule.OFFSET, offset=offset, expected=f"{offset - 1} directly before it", found="nothing")


def _nulls(rows: pa.Table, name: str, rule: Rule) -> Iterator[Finding]:
    for at in where(np.asarray(rows.column(name).is_null())):
        offset = rows.column("offset")[at].as_py()
        yield Finding(rule=rule, offset=offset, expected=f"a value in {name}", found="NULL")


def _finer(rows: pa.Table, name: str) -> Iterator[Finding]:
    times = rows.column(name)
    if times.type.unit in ("s", "ms"):
        return
    whole = pc.floor_temporal(times, unit="millisecond")
    for at in where(np.asarray(pc.fill_null(pc.not_equal(times, whole), fill_value=False))):
        offset = rows.column("offset")[at].as_py()
        found = str(times[at].as_py())
        yield Finding(rule=Rule.SYSTEM, offset=offset, expected=f"{name} in milliseconds", found=found)
