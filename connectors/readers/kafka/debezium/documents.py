"""Changes of documents: the envelope of MongoDB's connector, whose rows are a key and the document as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from connectors.readers.kafka.debezium.names import table_name
from connectors.readers.kafka.debezium.times import time_us
from connectors.readers.kafka.messages.events import Event, Field, RowSchema
from historian.errors import UnsupportedEvent
from historian.schema.snapshots import Column, ColumnType

__all__ = ["document_change"]

_TEXT = ColumnType(name="longtext", charset="utf8mb4", collation="utf8mb4_bin")
_FIELDS = tuple(
    Field(column=Column(id=0, name=name, type=kind, nullable=name != "_id"), type="string", name="", parameters={})
    for name, kind in (("_id", _TEXT), ("document", ColumnType(name="json")))
)
_SCHEMA = RowSchema(fields=_FIELDS, key=("_id",))


def document_change(
    payload: Mapping[str, Any],
    where: str,
    unlike: Callable[[str, str], UnsupportedEvent],
    key: Callable[[], Mapping[str, Any] | None],
) -> Event:
    """The event of an envelope, as :func:`connectors.readers.kafka.debezium.changes.changed` has it. Its row is ``_id`` and ``document``.

    Raises:
        UnsupportedEvent: it is no envelope, or an update without the whole document.
    """
    fields = key()
    name = None if fields is None else fields.get("id")
    before, after = payload.get("before"), payload.get("after")
    if not isinstance(name, str) or not isinstance(before, str | None) or not isinstance(after, str | None):
        raise unlike(where, "a document that is no text, or a key without `id`")
    op = payload["op"]
    if after is None and op != "d":
        raise UnsupportedEvent(
            "an update that says what changed, and not the document",
            where=where,
            expected="the document in `after`",
            found="`updateDescription`",
            next_step="set at the connector: capture.mode=change_streams_update_full",
        )
    former = None if before is None else {"_id": name, "document": before}
    return Event(
        table=table_name(payload["source"]),
        schema=_SCHEMA,
        op=op,
        before={"_id": name} if op == "d" and former is None else former,
        after=None if op == "d" else {"_id": name, "document": after},
        event_time_us=time_us(payload["source"], where, unlike),
        keyed=op == "d" and former is None,
    )
