"""The order of statements and of schemas that rows tell, and statements that are later than rows which are not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from connectors.readers.kafka.debezium.schema_changes import creates_table
from historian.errors import SourceError

if TYPE_CHECKING:
    from connectors.readers.base import SchemaMet, Statement
    from connectors.readers.kafka.messages.partitions import Partition

__all__ = ["first_ahead", "in_order"]


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


def in_order(found: Iterable[tuple[int, SchemaMet | Statement]], schema_topic: str) -> Iterator[SchemaMet | Statement]:
    """*found* by times of the source that never go back within a partition: a row that is sent again has an old one, and stands where it is."""
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
    return (item for _, item in sorted(placed, key=lambda each: each[0]))
