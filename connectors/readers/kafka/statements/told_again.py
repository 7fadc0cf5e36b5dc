"""Which rows of a partition are from behind another schema of their table, which other partitions have told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from connectors.readers.base import SchemaMet
from connectors.readers.kafka.statements.ahead import told_by

if TYPE_CHECKING:
    from connectors.readers.kafka.statements.row_times import RowTimes
    from historian.names import TableName

__all__ = ["changed_in", "first_behind", "transaction_at"]


def changed_in(met: Iterable[SchemaMet]) -> dict[TableName, list[SchemaMet]]:
    """By table those of *met* that tell other columns than before, in the order of time."""
    found: dict[TableName, list[SchemaMet]] = {}
    last: dict[TableName, tuple[str, ...]] = {}
    for each in sorted(met, key=lambda each: each.event_time_us):
        table, columns = told_by(each)
        if last.setdefault(table, columns) != columns:
            found.setdefault(table, []).append(each)
            last[table] = columns
    return found


def first_behind(
    changed: Iterable[SchemaMet], times: RowTimes, numbers: Mapping[int, RowTimes]
) -> set[tuple[int, int]]:
    """Of a partition's rows of a table the offset and the time of the first one that is from behind each of *changed*.

    By the source's log where both tell their place in it, else by time.

    Args:
        times: of the rows.
        numbers: of their transactions, by server.
    """
    found: set[tuple[int, int]] = set()
    for each in changed:
        if each.transaction is None or not numbers:
            if first := times.first_at(each.event_time_us + 1):
                found.add(first)
        elif each.transaction[0] in numbers:
            server, number = each.transaction
            if beyond := numbers[server].first_beyond(number):
                found.add((beyond[0], times.latest_at(beyond[0])[1]))
    return found


def transaction_at(offset: int, numbers: Mapping[int, RowTimes]) -> tuple[int, int] | None:
    """The last transaction that rows up to *offset* tell, of *numbers* by server; None: they tell none.

    A row that tells none, of a snapshot, is from behind that one at least.
    """
    last = ((*times.latest_at(offset), server) for server, times in numbers.items() if times.begins_by(offset))
    found = max(last, default=None)
    return None if found is None else (found[2], found[1])
