"""Versions by offset: a message's row has the version to which its own partition passed last, whatever others did by then."""

from __future__ import annotations

from collections.abc import Mapping

from historian.errors import PositionAhead, PositionError, PositionExpired, UnknownTable
from historian.history.history import History
from historian.history.versions import Version
from historian.names import TableName
from historian.plans.plans import Passage
from historian.positions import LogPosition

__all__ = ["Passages", "version_at"]

Passages = Mapping[tuple[str, int], tuple[Passage, ...]]
"""By partition, as ``topic:partition``, and table id: its passages, ascending by offset."""


def version_at(history: History, passages: Passages, table: TableName, message: LogPosition) -> Version:
    """The version of *table* under which the row of one message is written.

    Args:
        passages: as far as *history* goes.
        message: ``topic:partition:offset`` of it.

    Raises:
        PositionError: not one message is named.
        PositionAhead: the message has not been read; retry later.
        PositionExpired: before the first row of that table in its partition.
        UnknownTable: no partition has rows of that table.
    """
    named = message.offsets.next
    if len(named) != 1:
        raise PositionError(
            "not the place of one message", where=str(message), expected="TOPIC:PARTITION:OFFSET, without others"
        )
    topic, number, offset = named[0]
    where = f"{table} at {message}"
    read = history.resolved.offsets.offset(topic, number)
    if read is None or read <= offset:
        raise PositionAhead("the log has not been read up to there", where=where, found=f"{read or 0} offsets read")
    ids = {version.table_id for version in history.versions(table)}
    if not ids:
        raise UnknownTable("no such table in the history", where=str(table))
    part = f"{topic}:{number}"
    found = (each for i in ids for each in passages.get((part, i), ()) if each.is_read)
    held = sorted(found, key=lambda passage: passage.offset)
    before = [passage for passage in held if passage.offset <= offset]
    if not before:
        first = f"{part}:{held[0].offset}" if held else "a partition with rows of the table"
        raise PositionExpired("the partition has no row of the table up to there", where=where, expected=first)
    last = before[-1]
    return next(each for each in history.versions_of(last.table_id) if each.number == last.version)
