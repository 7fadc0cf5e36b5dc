"""Statements that come later than rows behind them. Partitions share no order, brokers answer when they can, and a plan has so much room."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from connectors.readers.base import SchemaMet, Statement
from connectors.readers.kafka.messages.source_places import SourcePlace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from historian.names import TableName
    from historian.plans.source_marks import SourceMark, SourceMarks

__all__ = ["with_passed"]

_SECOND_US = 1_000_000


def with_passed(
    found: Iterable[tuple[int, SchemaMet | Statement]], marks: SourceMarks
) -> list[tuple[int, SchemaMet | Statement]]:
    """*found* with the partitions that passed each statement, of which a former plan has rows from behind it; else with the tables.

    Args:
        found: what a scan has met, each with its moment.
        marks: how far partitions had come by the scan's start.
    """
    return [(moment_us, _noted(item, marks) if isinstance(item, Statement) else item) for moment_us, item in found]


def _noted(statement: Statement, marks: SourceMarks) -> Statement:
    told, own, time_us = statement.source or statement.among, statement.place.file, statement.context.time_us
    others = {name: mark for name, mark in marks.items() if name != own}
    if statement.apart:
        return statement
    if not told:
        tables = [each for mark in others.values() for each in mark.tables]
        behind = frozenset(each.table for each in tables if each.time_us > time_us)
        in_moment: dict[TableName, bool] = {}
        for each in tables:
            if each.time_us == time_us:
                in_moment[each.table] = each.tells_all and in_moment.get(each.table, True)
        return replace(statement, passed_tables=behind, met_in_moment=in_moment)
    place = SourcePlace.parsed(told)
    passed = (name for name, mark in others.items() if mark.passes and _is_passed(place, time_us, mark))
    return replace(statement, passed_by=frozenset(passed))


def _is_passed(place: SourcePlace, time_us: int, mark: SourceMark) -> bool:
    """Whether a partition has rows from behind a statement; by microseconds, else by numbers, else where its second does not exclude it.

    *time_us* is the statement's own. Behind a server whose clock was ahead its moment is later, and rows behind it are not.
    """
    server, number = place.transaction
    of_server = next((each.highest for each in mark.passes if each.server == server), None)
    if not place.by_second and mark.time_us % _SECOND_US:
        stands_before = mark.server == server and (mark.file, mark.offset) < (int(place.digits), place.offset)
        is_before = stands_before and of_server is not None and of_server < number
        return mark.time_us > time_us and not is_before  # else the server's clock was set back
    if of_server is not None:
        return of_server > number
    return mark.time_us // _SECOND_US >= time_us // _SECOND_US
