"""Changes of schemas and watermarks that stand among the rows of a topic, as TiCDC writes them in Debezium's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connectors.readers.kafka.debezium.times import time_us
from connectors.readers.kafka.messages.events import SqlEvent, Watermark
from connectors.readers.kafka.messages.timestamps import time_us as committed_us
from historian.errors import UnsupportedEvent

__all__ = ["statement_of", "watermark_of"]


def statement_of(
    payload: Mapping[str, Any], where: str, unlike: Callable[[str, str], UnsupportedEvent]
) -> SqlEvent | None:
    """The statement of a message's payload; None where it is none.

    Raises:
        UnsupportedEvent: its time is none.
    """
    sql, source = payload.get("ddl"), payload.get("source")
    if not isinstance(sql, str) or not sql or not isinstance(source, dict) or "op" in payload:
        return None
    return SqlEvent(
        sql=sql,
        database=str(payload.get("databaseName") or source.get("db") or ""),
        event_time_us=time_us(source, where, unlike),
    )


def watermark_of(
    payload: Mapping[str, Any], where: str, unlike: Callable[[str, str], UnsupportedEvent]
) -> Watermark | None:
    """The watermark of a message's payload; None where it is none.

    Raises:
        UnsupportedEvent: its time is none.
    """
    source = payload.get("source")
    if payload.get("op") != "m" or not isinstance(source, dict) or "commit_ts" not in source:
        return None
    try:
        return Watermark(time_us=committed_us(source["commit_ts"]))
    except ValueError as error:
        raise unlike(where, f"`commit_ts`: {error}") from None
