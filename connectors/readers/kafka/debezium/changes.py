"""The envelope of Debezium's change events, however it was written: which table, what was done, with what rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from connectors.readers.kafka.debezium.documents import document_change
from connectors.readers.kafka.debezium.names import former_name, is_of_mysql, table_name
from connectors.readers.kafka.debezium.placeholders import Placeholders, placeholders_of
from connectors.readers.kafka.debezium.replaced_nulls import is_marked
from connectors.readers.kafka.debezium.times import time_us
from connectors.readers.kafka.messages.events import Event, RowSchema, SqlEvent
from connectors.readers.kafka.messages.modes import DEFAULT_MODES, DebeziumModes
from historian.errors import UnsupportedEvent
from historian.names import TableName

__all__ = ["changed", "is_change", "place_of", "settled", "truncated", "with_known"]

_PLACES = ("file", "pos", "lsn", "scn", "commit_lsn", "change_lsn")
_PLAIN = re.compile(r"[\w:.-]+", re.ASCII)


def is_change(payload: Mapping[str, Any]) -> bool:
    """Whether it is an envelope."""
    return isinstance(payload.get("source"), dict) and isinstance(payload.get("op"), str)


def changed(
    payload: Mapping[str, Any],
    schema: Callable[[], RowSchema],
    where: str,
    unlike: Callable[[str, str], UnsupportedEvent],
    key: Callable[[], Mapping[str, Any] | None] = lambda: None,
    modes: DebeziumModes = DEFAULT_MODES,
) -> Event | SqlEvent | None:
    """The event of an envelope, a statement for a TRUNCATE; None for a message of the source's log, which changes no row.

    Args:
        schema: gives that of its rows.
        where: names the message in errors.
        unlike: makes the error of a message that is no envelope, of *where* and what was found.
        key: gives the fields of the message's key, where it has any.
        modes: of the connector.

    Raises:
        UnsupportedEvent: it is no envelope, or of a kind that is not read yet.
    """
    if not is_change(payload):
        raise unlike(where, "no change event: `op` or `source` is missing")
    source, op = payload["source"], payload["op"]
    if op == "m":
        return None
    if op == "t":
        if not table_name(source).table:
            raise unlike(where, "a TRUNCATE of no table")
        return truncated(table_name(source), time_us(source, where, unlike), place_of(source))
    if op not in ("c", "r", "u", "d"):
        raise UnsupportedEvent(
            "an operation that is not read yet",
            where=where,
            found=op,
            expected="c, r, u, d or t",
            next_step="have the connector leave it out by skipped.operations",
        )
    if source.get("collection") is not None:
        return document_change(payload, where, unlike, key)
    before, after = payload.get("before"), payload.get("after")
    if not isinstance(before, dict | None) or not isinstance(after, dict | None):
        raise unlike(where, "`before` or `after` is no row")
    at_us = time_us(source, where, unlike)
    event = Event(
        table=table_name(source), schema=schema(), op=op, before=before, after=after, event_time_us=at_us, source=source
    )
    may_lack_nulls = is_marked(source) and not modes.accepts_defaults
    return replace(settled(event, source, key, modes), may_lack_nulls=may_lack_nulls)


def settled(
    event: Event, source: Mapping[str, Any], key: Callable[[], Mapping[str, Any] | None], modes: DebeziumModes
) -> Event:
    """*event* as far as its ``source`` has its rows: by the key alone, or without values that did not change; and what its table was called.

    Arguments are those of :func:`changed`.
    """
    event = replace(event, former_name=former_name(source))
    before, after, stands_in = event.before, event.after, placeholders_of(modes.unavailable)
    if is_of_mysql(source):
        fields = key() if event.op == "d" and before is None else None
        return replace(event, before=dict(fields), keyed=True) if fields else event
    # What its log does not hold a connector of PostgreSQL fills with defaults and zeros, which nothing tells from values. It logs
    # an index's columns alone where the table's identity is one. A table without a key logs whole rows, or nothing.
    is_filled = source.get("connector") == "postgresql" and not modes.full_identity
    lacks = before is not None and bool(stands_in.lacking(before))
    fields = key() if (event.op == "d" and before is None) or lacks or (before is not None and is_filled) else None
    is_partial = lacks or (is_filled and bool(fields))
    if event.op == "d":
        event = replace(event, moved=_moved(source))
        if fields and (before is None or is_partial):
            return replace(event, before=dict(fields), keyed=True)
        return replace(event, before=None if is_partial else before)
    if after is None:
        return event
    whole, unknown = with_known(None if is_filled and fields else before, after, stands_in)
    # A former row without a value that the source has is not whole.
    moved = _moved(source) if unknown and event.op == "c" else ""
    return replace(event, before=None if unknown or is_partial else before, after=whole, unknown=unknown, moved=moved)


def _moved(source: Mapping[str, Any]) -> str:
    """What the two events of an update that changes the key have in common: they are made of one record of PostgreSQL's log."""
    lsn, transaction = source.get("lsn"), source.get("txId")
    return f"{lsn}/{transaction}" if isinstance(lsn, int) and isinstance(transaction, int) else ""


def truncated(table: TableName, event_time_us: int, place: str = "") -> SqlEvent:
    """The statement that a message of a TRUNCATE stands for; *place*: in the source's log, by which two of the same time are two."""
    name = ".".join(f"`{part.replace('`', '``')}`" for part in (table.database, table.table) if part)
    comment = f" /* {place} */" if place else ""
    return SqlEvent(sql=f"TRUNCATE TABLE {name}{comment}", database=table.database, event_time_us=event_time_us)


def place_of(source: Mapping[str, Any], names: Iterable[str] = _PLACES) -> str:
    """Where a change stands in the source's log: the GTID, else what stands under *names*; "" where none of them is told.

    Those of Debezium are a file and offset, or a number.
    """
    found = [source.get("gtid")] if source.get("gtid") else [source.get(name) for name in names]
    text = ":".join(str(each) for each in found if isinstance(each, str | int))
    return text if _PLAIN.fullmatch(text) else ""


def with_known(
    before: Mapping[str, Any] | None, after: dict[str, Any], stands_in: Placeholders
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """*after* with values that did not change from *before*, and the names of those that the message does not have."""
    lacking = stands_in.lacking(after)
    if not lacking:
        return after, ()
    held = dict.fromkeys(lacking) if before is None else {name: before.get(name) for name in lacking}
    # A value that a log leaves out since it is long is no NULL: such a former row has the key alone.
    unknown = tuple(name for name, value in held.items() if value is None or name in stands_in.lacking(held))
    return {**after, **held, **dict.fromkeys(unknown)}, unknown
