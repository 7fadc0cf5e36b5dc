"""Events that lack a part of the rows that they tell of: what has no state of rows cannot read them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from connectors.readers.kafka.messages.events import Event
from historian.errors import UnsupportedEvent
from historian.schema.snapshots import Snapshot

__all__ = ["check_whole", "decompressed", "is_lone", "is_plain_change", "is_whole", "lacks_values", "only_key_sent"]


def check_whole(event: Event, place: str, columns: Iterable[str], *, normalized: bool = False) -> None:
    """Refuses an event that lacks a part of its rows.

    Args:
        place: of its message, as ``TOPIC:PARTITION:OFFSET``.
        columns: of the table: one that has no others than its key's is told whole by the key.
        normalized: what can be had from the state of rows is no reason any more, and the error does not advise it.

    Raises:
        UnsupportedEvent: it lacks one.
    """
    lacking = _lacking(event)
    if event.keyed and event.before is not None and all(name in event.before for name in columns):
        return
    if lacking:
        raise UnsupportedEvent(
            "an event without the whole row that it takes back",
            where=f"{event.table} at {place}",
            expected="whole rows before and after, as binlog_row_image=FULL gives them; PostgreSQL: REPLICA IDENTITY FULL, and source.debezium.replica_identity: full",
            found=f"op {event.op} with {lacking}",
            next_step=f"{'' if normalized else 'set source.normalize: true, or '}have the producer send it and write its topics anew",
        )


def decompressed(event: Event, table: Snapshot) -> Event:
    """An update that may leave out what did not change as one that lacks these values, and the former row.

    Others are as they are, and so is one that changes its key, or lacks it, or lacks a value that the former row has: a NULL that was omitted.
    """
    if event.op != "u":
        return event
    before, after = event.before or {}, event.after or {}
    columns = [column.name for column in table.columns]
    key = [column.name for column in table.columns if column.id in table.primary_key]
    if any(name not in after or (name in before and before[name] != after[name]) for name in key):
        return event
    if before.keys() - after.keys():
        return event
    lacking = tuple(name for name in columns if name not in after)
    if not lacking and all(name in before for name in columns):
        return event
    return replace(event, before=None, after={**after, **dict.fromkeys(lacking)}, unknown=lacking)


def is_whole(event: Event) -> bool:
    """Whether an event lacks nothing of its rows."""
    return not _lacking(event)


def is_plain_change(event: object) -> bool:
    """Whether something is an event that compiled code may understand: it is whole, or lacks the former row alone."""
    return isinstance(event, Event) and (is_whole(event) or is_lone(event))


def is_lone(event: Event) -> bool:
    """Whether an event is an update that lacks the former row, and nothing else."""
    return event.op == "u" and event.before is None and event.after is not None and not event.unknown


def lacks_values(event: Event) -> bool:
    """Whether an event lacks values that did not change, and the former row: an update, or what is left of one that changed the key.

    Debezium writes that as a delete of the old key and an insert of the new one.
    """
    return event.op in "cu" and event.before is None and event.after is not None and bool(event.unknown)


def _lacking(event: Event) -> str:
    if event.op in "cru" and event.after is None:
        return "after null"
    if event.unknown:
        return f"no value of {', '.join(event.unknown)}"
    if event.op in "ud" and event.before is None:
        return "before null"
    return "the key alone before" if event.keyed else ""


def only_key_sent(where: str, found: str, next_step: str) -> UnsupportedEvent:
    """The error of a row that a producer cut down to its key, since it was too large."""
    return UnsupportedEvent(
        "a row of which only the key is sent", where=where, expected="whole rows", found=found, next_step=next_step
    )
