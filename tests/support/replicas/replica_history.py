"""A history in a lake compared with its changelog, which stands for the source: it was compared with the writers' notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from historian.changelog.operations import Op

__all__ = ["Interval", "LoggedRow", "assert_history", "begun_by"]

_NO_COLUMN = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRow:
    """A row of a changelog: where it stands, its values by column id as the lake holds them, and its key's."""

    offset: int
    op: Op
    time: datetime
    version: int
    by_id: Mapping[int, Any]
    key: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A row of a history, with a value for each column that the history has."""

    from_offset: int
    to_offset: int | None
    valid_from: datetime
    valid_to: datetime | None
    by_id: Mapping[int, Any]


def assert_history(
    log: Sequence[LoggedRow], history: Sequence[Interval], where: str, known_since: Mapping[int, int]
) -> None:
    """Each row that begins in the changelog is in the history once, and ends where the changelog ends it.

    At its beginning it reads what the log says, and at its end what the log then says it read: the image before the
    change, which the server wrote, with the defaults of columns that were added meanwhile.

    Args:
        known_since: the versions that brought columns of which earlier rows have NULL, whatever the server then read.
    """
    begun = {interval.from_offset: interval for interval in history}
    assert len(begun) == len(history), f"{where}: two rows begin at one offset"
    opened: dict[tuple[Any, ...], LoggedRow] = {}
    for row in log:
        if row.op in (Op.APPEND, Op.CORRECT_TO):
            interval = begun[row.offset]
            opened[row.key] = first = row
            assert interval.valid_from == row.time, f"{where}: {interval}, {row}"
        else:
            first = opened.pop(row.key)
            interval = begun.pop(first.offset)
            assert (interval.to_offset, interval.valid_to) == (row.offset, row.time), f"{where}: {interval}, {row}"
        read = {i: interval.by_id.get(i, _NO_COLUMN) for i in row.by_id}
        known = {i: value if known_since.get(i, 0) <= first.version else None for i, value in row.by_id.items()}
        differing = {i: (value, read[i]) for i, value in known.items() if value != read[i]}
        assert not differing, f"{where}: {row.op.sign} at {row.offset}, the log and the history: {differing}"
    assert set(begun) == {row.offset for row in opened.values()}, (
        f"{where}: rows are open in the history or in the log only"
    )
    assert all((row.to_offset, row.valid_to) == (None, None) for row in begun.values()), where


def begun_by(history: Sequence[Interval], offset: int) -> set[int]:
    """Where the rows begin that were there when the changelog ended with *offset*."""
    rows = (row for row in history if row.from_offset <= offset)
    return {row.from_offset for row in rows if row.to_offset is None or row.to_offset > offset}
