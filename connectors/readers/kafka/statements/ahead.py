"""The order of statements and of schemas that rows tell, and statements that are later than rows which are not read yet."""

from __future__ import annotations

import itertools
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from connectors.readers.base import SchemaMet, Statement
from connectors.readers.kafka.debezium.schema_changes import creates_table
from connectors.readers.kafka.messages.partitions import partition_of
from historian.errors import SourceError
from historian.names import TableName

if TYPE_CHECKING:
    from connectors.readers.kafka.messages.partitions import Partition

__all__ = ["TableColumns", "first_ahead", "first_untold", "in_order", "told_by"]

_DROPS = re.compile(r"\s*DROP\b", re.IGNORECASE)

TableColumns = tuple[TableName, tuple[str, ...]]
"""A table, and the names of its columns."""


def first_ahead(statements: Iterable[Statement], read_us: Mapping[Partition, int]) -> int | None:
    """The moment of the first of *statements* that is later than rows which are not read yet; None: there is none.

    Args:
        read_us: of each partition with such rows the moment up to which it was read; 0 where it was not.

    Raises:
        SourceError: there is one, and it has no place in the source's log that says which rows are before it.
    """
    if not read_us:
        return None
    least_us = min(read_us.values())
    ahead = [
        each
        for each in statements
        if (each.apart or each.source) and each.event_time_us > least_us and not creates_table(each.sql)
    ]
    for each in ahead:
        if each.apart:
            raise SourceError(
                "a statement is later than rows that a plan has no room for",
                where=f"{each.place.gtid}: {each.sql[:80]}",
                expected="all rows from before it in the same plan",
                found=f"rows in {', '.join(f'{topic}:{number}' for topic, number in sorted(read_us)[:5])} that are not read yet",
                next_step="raise run.max_batch_bytes beyond what waits in the topics, until they are read",
            )
    return min((each.event_time_us for each in ahead), default=None)


def told_by(met: SchemaMet) -> TableColumns:
    """What a row tells of its table that a statement may have made."""
    return met.table, tuple(column.name for column in met.columns)


def first_untold(
    found: Sequence[tuple[int, SchemaMet | Statement]],
    read_us: Mapping[Partition, int],
    is_told: Callable[[TableColumns], bool],
) -> int | None:
    """The moment of the first schema *found* that is later than rows which are not read yet, where its statement may be among these.

    Args:
        found: with their moments.
        read_us: as of :func:`first_ahead`.
        is_told: whether rows of earlier plans, or statements, have told this.
    """
    # Of the partitions but one the least is one of these two.
    lowest = sorted((us, at) for at, us in read_us.items())[:2]

    def may_follow(time_us: int, own: Partition) -> bool:
        """Whether others may bring what is of *time_us*, or from before it. In its own partition a statement stands before its rows."""
        return any(us <= time_us for us, at in lowest if at != own)

    met = [
        (time_us, told_by(item), may_follow(time_us, partition_of(item.place)))
        for time_us, item in found
        if not isinstance(item, Statement)
    ]
    known = {each for _, each, waits in met if not waits}
    waiting = sorted((time_us, each) for time_us, each, waits in met if waits and each not in known)
    return next((time_us for time_us, each in waiting if not is_told(each)), None)


def in_order(
    found: Iterable[tuple[int, SchemaMet | Statement]], schema_topic: str, *, in_each: bool = False
) -> Iterator[SchemaMet | Statement]:
    """*found* by times of the source that never go back within a partition: a row that is sent again has an old one, and stands where it is.

    Servers tell whole seconds: of one moment a statement goes before what rows of other partitions tell, and a DROP behind it. One that
    several partitions have stands behind what each of them has before it.

    Args:
        in_each: each partition has each statement, so that rows are from before those of their moment that are not met there.
    """
    by_offset = sorted(
        found,
        key=lambda each: (
            each[1].place.file.rpartition(":")[0] != schema_topic,
            each[1].place.file,
            each[1].place.offset,
        ),
    )
    latest_us: dict[str, int] = {}
    placed: list[tuple[int, SchemaMet | Statement]] = []
    for time_us, item in by_offset:
        at_us = latest_us[item.place.file] = max(time_us, latest_us.get(item.place.file, time_us))
        placed.append((at_us, item))
    last_stated, dropped = dict[tuple[str, int], int](), set[tuple[str, int]]()
    for number, (at_us, item) in enumerate(placed):
        if isinstance(item, Statement) and not _DROPS.match(item.sql):
            last_stated[item.place.file, at_us] = number

    def rank(number: int) -> tuple[int, int]:
        at_us, item = placed[number]
        at = (item.place.file, at_us)
        if number <= last_stated.get(at, -1):
            return at_us, 0
        if isinstance(item, Statement):
            dropped.add(at)
        return at_us, 2 if at in dropped else 1

    ranks = [(at_us, 0) if in_each else rank(number) for number, (at_us, _) in enumerate(placed)]
    ranked = sorted(range(len(placed)), key=ranks.__getitem__)
    for _, of_rank in itertools.groupby(ranked, key=ranks.__getitem__):
        yield from _merged([placed[number][1] for number in of_rank], rows_first=in_each)


def _merged(items: list[SchemaMet | Statement], *, rows_first: bool) -> Iterator[SchemaMet | Statement]:
    """*items* of one moment, which stand by partition: a statement comes from all partitions that have it at once."""
    stated = {(item.sql, item.place.file) for item in items if isinstance(item, Statement)}
    if not stated or (not rows_first and len({sql for sql, _ in stated}) == len(stated)):
        yield from items
        return
    queues = [deque(queue) for _, queue in itertools.groupby(items, key=lambda item: item.place.file)]
    while queues:
        heads = [queue[0] for queue in queues]
        wanted = Counter(sql for queue in queues for sql in {_sql(item) for item in queue})
        met = Counter(_sql(item) for item in heads)
        rows = [item for item in heads if not _sql(item)]
        ready = [item for item in heads if _sql(item) and met[_sql(item)] == wanted[_sql(item)]]
        first = next(iter([*rows, *ready] if rows_first else [*ready, *rows]), heads[0])
        for queue in queues:
            if queue[0] is first or (_sql(first) and _sql(queue[0]) == _sql(first)):
                yield queue.popleft()
        queues = [queue for queue in queues if queue]


def _sql(item: SchemaMet | Statement) -> str:
    return item.sql if isinstance(item, Statement) else ""
