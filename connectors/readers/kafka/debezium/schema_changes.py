"""Debezium's topic of schema changes: statements of the source's log, which the topics of rows do not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from connectors.readers.kafka.debezium.times import time_us as source_time_us
from connectors.readers.kafka.messages.events import SqlEvent
from connectors.readers.kafka.messages.parsing import parsed
from connectors.readers.kafka.messages.source_places import SourcePlace
from historian.errors import SourceError, UnsupportedEvent

__all__ = ["Payload", "SchemaChanges", "creates_table", "json_payload", "registered_json_payload"]

_CREATE = re.compile(r"\s*CREATE\s+TABLE\s+(?!IF\s)", re.IGNORECASE)
_CREATE_IF = re.compile(r"\s*CREATE\s+TABLE\s", re.IGNORECASE)
_SECOND_US = 1_000_000
_ID_BYTES = 5

Payload = Callable[[bytes, str], Any]
"""Gives the payload of a message, whose place is named in errors. Raises :class:`ValueError` where it has none."""


def creates_table(sql: str) -> bool:
    """Whether a statement makes a table, which none of the rows before it are of."""
    return _CREATE_IF.match(sql) is not None


def json_payload(value: bytes, where: str) -> Any:  # noqa: ARG001 as the others
    """That of JSON, with its schema inline or without."""
    message = parsed(value, exact=False)
    return message["payload"] if isinstance(message, dict) and "payload" in message else message


def registered_json_payload(value: bytes, where: str) -> Any:
    """That of JSON whose schema a registry has."""
    return json_payload(value[_ID_BYTES:], where)


class SchemaChanges:
    """Reads that topic.

    A snapshot writes what stands in the database as statements that make it anew, though all of it is there. Of these the tables count
    that are not known yet.

    Args:
        payload: of messages.
    """

    def __init__(self, payload: Payload) -> None:
        self._payload = payload

    def events(
        self,
        key: bytes | None,  # noqa: ARG002 as other decoders
        value: bytes | None,
        where: str,
        time_us: int = 0,  # noqa: ARG002 messages tell when the source executed the statement
    ) -> tuple[SqlEvent, ...]:
        """The statement of a message; none where it has none, or tells of a snapshot what is known.

        Args:
            where: names the message in errors.

        Raises:
            UnsupportedEvent: it is no change of a schema.
            SourceError: its time does not tell where it stands among rows.
        """
        if value is None:
            return ()
        try:
            found = self._payload(value, where)
        except (ValueError, RecursionError) as error:
            raise _unlike(where, f"broken JSON: {error}") from None
        source = found.get("source") if isinstance(found, dict) else None
        if not isinstance(source, dict) or "ddl" not in found:
            raise _unlike(where, "no `source`, or no `ddl`")
        sql, database = found["ddl"], found.get("databaseName")
        if not isinstance(sql, str) or not sql.strip():
            return ()
        is_of_snapshot = _is_of_snapshot(source)
        if is_of_snapshot:
            begin = _CREATE.match(sql)
            if begin is None:
                return ()
            sql = f"CREATE TABLE IF NOT EXISTS {sql[begin.end() :]}"
        at_us = source_time_us(source, where, _unlike)
        place = SourcePlace.of(source)
        if place is None and at_us % _SECOND_US == 0 and not is_of_snapshot:
            raise SourceError(
                "statements are placed by their time, and this server tells seconds alone: rows of the same second may be on either side",
                where=where,
                expected="file and pos in `source`; or microseconds, as MySQL 8 with GTIDs tells them",
                found=sql[:80],
                next_step="leave source.schema_topic out, in another connector",
            )
        told = "" if place is None else str(place._replace(by_second=at_us % _SECOND_US == 0))
        # A snapshot's statements all have its place. What is there by then was made at some time before.
        source_at, snapshot_at = ("", told) if is_of_snapshot else (told, "")
        default = database if isinstance(database, str) else ""
        return (
            SqlEvent(sql=sql, database=default, event_time_us=at_us, source=source_at, snapshot_source=snapshot_at),
        )


def _is_of_snapshot(source: Mapping[str, Any]) -> bool:
    return source.get("snapshot") not in (None, False, "false")


def _unlike(where: str, found: str) -> UnsupportedEvent:
    return UnsupportedEvent(
        "a message is no change of a schema as Debezium tells it",
        where=where,
        expected="an object with source, databaseName and ddl",
        found=found,
        next_step="correct source.schema_topic: it is the connector's topic.prefix, with include.schema.changes=true",
    )
