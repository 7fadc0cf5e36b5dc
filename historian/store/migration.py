"""The store's layout: made anew, or led from an older release's to this one's in numbered steps.

A step from format N makes its tables under new names, fills them in one transaction with the fact that the store is of
format N + 1, and drops the old tables last. A store that is opened again after a failure in between is of format N
still, or has only tables left over that nobody reads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, delete, inspect, select

from historian import codec
from historian.errors import StoreError
from historian.store.facts import fact, set_fact
from historian.store.tables import SCHEMA_FORMAT, body_type, edits, entries, facts, metadata, name_type, progress
from historian.store.timelines import TimelineWriter
from historian.timeline import TimelineEntry

__all__ = ["prepare"]


def prepare(connection: Connection, where: str) -> None:
    """Makes the tables of a new store, and those of this release in an older one.

    Raises:
        StoreError: the store has a newer format.
    """
    if not inspect(connection).has_table(facts.name):
        metadata.create_all(connection)
        set_fact(connection, "schema_format", str(SCHEMA_FORMAT))
        set_fact(connection, "generation", str(uuid.uuid4()))
    found = int(fact(connection, "schema_format") or 0)
    if not 1 <= found <= SCHEMA_FORMAT:
        raise StoreError(
            "the store was made by a newer release",
            where=where,
            expected=f"format {SCHEMA_FORMAT} or older",
            found=f"format {found}",
            next_step="open it with the release that made it, or a later one",
        )
    for number in range(found, SCHEMA_FORMAT):
        _STEPS[number](connection)


def _whole_entries(connection: Connection) -> None:
    """From 1: a timeline entry was one JSON text, its edits and their schemas included."""
    old = MetaData()
    timeline = Table(
        "historian_timeline",
        old,
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("place", name_type, unique=True, nullable=True),
        Column("body", body_type, nullable=False),
    )
    metadata.create_all(connection, tables=[entries, edits, progress])
    for table in (entries, edits):
        connection.execute(delete(table))
    writer = TimelineWriter(connection)
    for body in connection.execute(select(timeline.c.body).order_by(timeline.c.number)).scalars().all():
        writer.put(codec.load(TimelineEntry, body))
    writer.flush()
    set_fact(connection, "schema_format", "2")
    old.drop_all(connection)


_STEPS: dict[int, Callable[[Connection], None]] = {1: _whole_entries}
"""What leads from the format of that number to the next."""
