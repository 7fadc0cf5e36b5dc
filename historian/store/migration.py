"""The store's layout: made anew, or led from an older release's to this one's in numbered steps.

A step from format N makes its tables under new names, fills them in one transaction with the fact that the store is of
format N + 1. It drops the old tables last. A store that is opened again after a failure in between is of format N
still, or has only tables left over that nobody reads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import BigInteger, Column, Connection, MetaData, Table, delete, func, inspect, select, update

from historian import codec
from historian.errors import StoreError
from historian.history.timeline import TimelineEntry
from historian.store.contents import pack, references, squeezed, unpack
from historian.store.copies import copy_progress, note_open
from historian.store.facts import fact, set_fact
from historian.store.recording import forget_snapshots
from historian.store.tables import (
    SCHEMA_FORMAT,
    body_type,
    copied_rows,
    copies,
    edits,
    edits_of_kind,
    entries,
    facts,
    metadata,
    name_type,
    open_copies,
    passages,
    plans,
    progress,
)
from historian.store.timelines import TimelineWriter, held_snapshots, put_snapshots

__all__ = ["is_prepared", "prepare"]

_LOCK_S = 60


def is_prepared(connection: Connection) -> bool:
    """Whether the store is of this release's layout: then it need not be locked for :func:`prepare`."""
    return inspect(connection).has_table(facts.name) and fact(connection, "schema_format") == str(SCHEMA_FORMAT)


def prepare(connection: Connection, where: str) -> None:
    """Makes the tables of a new store, and those of this release in an older one.

    Raises:
        StoreError: the store has a newer format.
    """
    with _alone(connection):
        _prepare(connection, where)


def _prepare(connection: Connection, where: str) -> None:
    made = fact(connection, "schema_format") if inspect(connection).has_table(facts.name) else None
    if made is None:  # where DDL commits, some tables may be there of an opener that was killed
        metadata.create_all(connection)
        if fact(connection, "generation") is None:
            set_fact(connection, "generation", str(uuid.uuid4()))
        set_fact(connection, "schema_format", str(SCHEMA_FORMAT))
    found = SCHEMA_FORMAT if made is None else int(made)
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


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """Keeps others from making tables meanwhile where a transaction does not, since DDL commits it."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        yield
        return
    name = f"historian {connection.engine.url.database}"[:64]
    if connection.execute(select(func.get_lock(name, _LOCK_S))).scalar() != 1:
        raise StoreError(
            "another process has been making the store's tables for a long time",
            where=name,
            next_step="try again later",
        )
    try:
        yield
    finally:
        connection.execute(select(func.release_lock(name)))


def _whole_entries(connection: Connection) -> None:
    """From 1: a timeline entry was one JSON text, its edits and their schemas included; no text was squeezed."""
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
    for number, body in connection.execute(select(plans)).all():
        plan = unpack(body, held_snapshots(connection, references(body)))
        packed, texts = pack(plan)
        put_snapshots(connection, texts)
        connection.execute(update(plans).where(plans.c.number == number).values(body=squeezed(packed)))
    forget_snapshots(connection)
    set_fact(connection, "schema_format", "2")
    old.drop_all(connection)


def _copies(connection: Connection) -> None:
    """From 2: no rows were copied from the source."""
    metadata.create_all(connection, tables=[copies, copied_rows])
    set_fact(connection, "schema_format", "3")


def _passages(connection: Connection) -> None:
    """From 3: no log was of topics."""
    metadata.create_all(connection, tables=[passages])
    set_fact(connection, "schema_format", "4")


def _open_copies(connection: Connection) -> None:
    """From 4: which copies are not done stood in their texts alone, and edits of one kind were found among all."""
    metadata.create_all(connection, tables=[open_copies])
    connection.execute(delete(open_copies))
    note_open(connection, [table_id for table_id, each in copy_progress(connection).items() if not each.is_done])
    edits_of_kind.create(connection, checkfirst=True)
    set_fact(connection, "schema_format", "5")


_STEPS: dict[int, Callable[[Connection], None]] = {1: _whole_entries, 2: _copies, 3: _passages, 4: _open_copies}
"""What leads from the format of that number to the next."""
