"""What a store writes in a transaction: each step does nothing where the same is there, and refuses anything else."""

from __future__ import annotations

import uuid

from sqlalchemy import Connection, delete, func, insert, inspect, select, update

from historian import codec
from historian.errors import StoreError
from historian.plans import Place, Plan, PlannedTable, Quarantine
from historian.positions import LogPosition
from historian.prefix import covers
from historian.schema import TableName
from historian.store.contents import pack, references
from historian.store.tables import SCHEMA_FORMAT, facts, gaps, metadata, plans, quarantines, snapshots, timeline
from historian.timeline import Gap, TimelineEntry

__all__ = [
    "append_plan",
    "fact",
    "forget_plans",
    "prepare",
    "record_entry",
    "record_gap",
    "record_quarantine",
    "record_resolved",
    "set_fact",
]


def prepare(connection: Connection, where: str) -> None:
    """Makes the tables of a new store. Raises :class:`StoreError` where the store has another format."""
    if not inspect(connection).has_table(facts.name):
        metadata.create_all(connection)
        set_fact(connection, "schema_format", str(SCHEMA_FORMAT))
        set_fact(connection, "generation", str(uuid.uuid4()))
    found = fact(connection, "schema_format")
    if found != str(SCHEMA_FORMAT):
        raise StoreError(
            "the store was made by another release",
            where=where,
            expected=f"format {SCHEMA_FORMAT}",
            found=f"format {found}",
            next_step="open it with the release that made it",
        )


def fact(connection: Connection, name: str) -> str | None:
    """The single value *name*, or None."""
    return connection.execute(select(facts.c.body).where(facts.c.name == name)).scalar()


def set_fact(connection: Connection, name: str, body: str) -> None:
    """Sets the single value *name*."""
    if connection.execute(update(facts).where(facts.c.name == name).values(body=body)).rowcount == 0:
        connection.execute(insert(facts).values(name=name, body=body))


def record_entry(connection: Connection, entry: TimelineEntry) -> None:
    """Appends *entry*, unless it or its place is recorded."""
    body = codec.dump(TimelineEntry, entry)
    held = connection.execute(select(timeline.c.body).where(timeline.c.number == entry.number)).scalar()
    if held == body:
        return
    place = None if entry.place is None else _place_key(entry.place, entry.server)
    if place is not None:
        recorded = connection.execute(select(timeline.c.number).where(timeline.c.place == place)).scalar()
        if recorded is not None and recorded != entry.number:
            return
    if held is not None:
        raise StoreError(
            "a timeline entry is there already, with other content",
            where=f"entry {entry.number}",
            expected=held,
            found=body,
            next_step="another run recorded it; start again from what the store holds",
        )
    following = (connection.execute(select(func.max(timeline.c.number))).scalar() or 0) + 1
    if entry.number != following:
        raise StoreError("the timeline has a hole", where="the next entry", expected=following, found=entry.number)
    connection.execute(insert(timeline).values(number=entry.number, place=place, body=body))


def record_gap(connection: Connection, gap: Gap) -> None:
    """Appends *gap*, unless it is recorded."""
    body = codec.dump(Gap, gap)
    held = connection.execute(select(gaps.c.body)).scalars().all()
    if body not in held:
        connection.execute(insert(gaps).values(number=len(held) + 1, body=body))


def record_resolved(connection: Connection, position: LogPosition) -> None:
    """Moves the resolved position on to *position*, unless it stands there or beyond."""
    body = fact(connection, "resolved")
    held = None if body is None else codec.load(LogPosition, body)
    if held is None or covers(position, held):
        set_fact(connection, "resolved", codec.dump(LogPosition, position))
    elif not covers(held, position):
        raise StoreError("two readings of the log diverge", where="resolved position", expected=held, found=position)


def append_plan(connection: Connection, plan: Plan, *, restoring: bool = False) -> None:
    """Stores *plan* and which tables stop in it, unless it is there.

    When *restoring*, plans without tables are missing: no sink got them.
    """
    body, parts = pack(plan)
    held = connection.execute(select(plans.c.body).where(plans.c.number == plan.number)).scalar()
    if held == body:
        return
    if held is not None:
        raise StoreError(
            "a plan of that number is there already, with other content",
            where=f"plan {plan.number}",
            expected=held,
            found=body,
            next_step="another run made it; start again from what the store holds",
        )
    newest = connection.execute(select(func.max(plans.c.number))).scalar()
    following = 1 if newest is None else newest + 1
    if plan.number != following and not (restoring and plan.number > following):
        raise StoreError("the plans have a hole", where="the next plan", expected=following, found=plan.number)
    present = set(connection.execute(select(snapshots.c.digest).where(snapshots.c.digest.in_(parts))).scalars())
    for digest in parts.keys() - present:
        connection.execute(insert(snapshots).values(digest=digest, body=parts[digest]))
    connection.execute(insert(plans).values(number=plan.number, body=body))
    for table in plan.tables:
        if table.quarantine is not None:
            record_quarantine(connection, table.table_id, _last_name(table), table.quarantine)


def record_quarantine(connection: Connection, table_id: int, name: TableName, quarantine: Quarantine) -> None:
    """Notes that a table stopped; the first reason stays, whatever the table was called then."""
    key = {"table_id": table_id, "database_name": name.database, "table_name": name.table}
    same = {"table_id": table_id} if table_id else key
    held = select(quarantines.c.body).where(*(quarantines.c[column] == value for column, value in same.items()))
    if connection.execute(held).first() is None:
        connection.execute(insert(quarantines).values(**key, body=codec.dump(Quarantine, quarantine)))


def forget_plans(connection: Connection, before: int) -> int:
    """Deletes plans below *before* but never the newest one, and snapshots that none needs; says how many plans."""
    newest = connection.execute(select(func.max(plans.c.number))).scalar() or 0
    gone = connection.execute(delete(plans).where(plans.c.number < min(before, newest))).rowcount
    needed: set[str] = set()
    for body in connection.execute(select(plans.c.body)).scalars():
        needed |= references(body)
    for digest in set(connection.execute(select(snapshots.c.digest)).scalars()) - needed:
        connection.execute(delete(snapshots).where(snapshots.c.digest == digest))
    return gone


def _last_name(table: PlannedTable) -> TableName:
    names = [version.snapshot.name for version in table.versions if version.snapshot is not None]
    return names[-1] if names else TableName("", "")


def _place_key(place: Place, server: str) -> str:
    """What makes a statement the same when it is read again, on whatever server if it has a GTID."""
    return f"{place.gtid}/{place.ordinal}" if place.gtid else f"{server}/{place.file}:{place.offset}"
