"""The envelope of Debezium's change events, however it was written: which table, what was done, with what rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connectors.readers.kafka.messages.events import Event, RowSchema
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["LAST_US", "changed", "is_change"]

LAST_US = 2**62
"""No time of a source is further from 1970, in either direction."""


def is_change(payload: Mapping[str, Any]) -> bool:
    """Whether it is an envelope."""
    return isinstance(payload.get("source"), dict) and isinstance(payload.get("op"), str)


def changed(
    payload: Mapping[str, Any],
    schema: Callable[[], RowSchema],
    where: str,
    unlike: Callable[[str, str], UnsupportedEvent],
) -> Event | None:
    """The event of an envelope; None for a message of the source's log, which changes no row.

    Args:
        schema: gives that of its rows.
        where: names the message in errors.
        unlike: makes the error of a message that is no envelope, of *where* and what was found.

    Raises:
        UnsupportedEvent: it is no envelope, or of a kind that is not read yet.
    """
    if not is_change(payload):
        raise unlike(where, "no change event: `op` or `source` is missing")
    source, op = payload["source"], payload["op"]
    if op == "m":
        return None
    if op not in ("c", "r", "u", "d"):
        raise UnsupportedEvent(
            "an operation that is not read yet",
            where=where,
            found=op,
            expected="c, r, u or d",
            next_step="have the connector leave it out: skipped.operations=t is its default",
        )
    before, after = payload.get("before"), payload.get("after")
    if not isinstance(before, dict | None) or not isinstance(after, dict | None):
        raise unlike(where, "`before` or `after` is no row")
    exact = source.get("ts_us")
    time, unit_us = (exact, 1) if exact is not None else (source.get("ts_ms") or 0, 1000)
    if not isinstance(time, int) or abs(time * unit_us) > LAST_US:
        raise unlike(where, "a time of the source that is none")
    return Event(
        table=TableName(str(source.get("db") or ""), str(source.get("table") or "")),
        schema=schema(),
        op=op,
        before=before,
        after=after,
        event_time_us=time * unit_us,
    )
