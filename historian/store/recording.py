"""What a store writes in a transaction: each step does nothing where the same is there, and refuses anything else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, delete, func, insert, select

from historian import codec
from historian.errors import HistoryMoved, StoreError
from historian.history.prefix import covers
from historian.history.timeline import Gap, TimelineEntry
from historian.names import TableName
from historian.plans.plans import Plan, PlannedTable, Quarantine
from historian.plans.source_marks import SourceMarks
from historian.plans.type_options import planned_type_options
from historian.positions import LogPosition
from historian.store.contents import loosened, pack, references, squeezed, unpack
from historian.store.copies import begin_repair_anew, record_copies
from historian.store.copy_orders import carry_out
from historian.store.facts import fact, set_fact
from historian.store.message_counts import record_counts
from historian.store.passages import record_passages
from historian.store.source_marks import record_marks
from historian.store.tables import NEXT_STEP, edits, gaps, plans, quarantines, snapshots
from historian.store.timelines import append_entries, held_snapshots, last_number, put_snapshots

__all__ = [
    "append_plan",
    "forget_plans",
    "forget_quarantine",
    "forget_snapshots",
    "known_type_options",
    "record_entries",
    "record_gap",
    "record_quarantine",
    "record_resolved",
]


def record_entries(
    connection: Connection, new: Sequence[TimelineEntry], resolved: LogPosition, after: int | None, where: str
) -> None:
    """Appends entries and moves the resolved position on; *after* as of :meth:`.Store.record`, *where* names the store."""
    held = last_number(connection)
    if after is not None and held != after:
        raise HistoryMoved(
            "another run recorded into the history",
            where=where,
            expected=f"version {after} as the last one",
            found=held,
            next_step="let one run at a time track a source; start again from what the store holds",
        )
    append_entries(connection, new)
    record_resolved(connection, resolved)


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
        raise StoreError(
            "two readings of the log diverge",
            where="resolved position",
            expected=held,
            found=position,
            next_step=NEXT_STEP,
        )


def append_plan(
    connection: Connection,
    plan: Plan,
    copied: Iterable[bytes] = (),
    *,
    marks: SourceMarks | None = None,
    restoring: bool = False,
) -> None:
    """Stores *plan* with the rows that it copies and which tables stop in it, unless it is there.

    When *restoring*, plans without tables are missing: no sink got them.
    """
    body, parts = pack(plan)
    held = connection.execute(select(plans.c.body).where(plans.c.number == plan.number)).scalar()
    if held is not None:
        if loosened(held) == body or _unpacked(connection, loosened(held)) == plan:
            return
        raise StoreError(
            "a plan of that number is there already, with other content",
            where=f"plan {plan.number}",
            expected=loosened(held),
            found=body,
            next_step="another run made it; start again from what the store holds",
        )
    newest = connection.execute(select(func.max(plans.c.number))).scalar()
    following = 1 if newest is None else newest + 1
    if plan.number != following and not (restoring and plan.number > following):
        raise StoreError(
            "the plans have a hole", where="the next plan", expected=following, found=plan.number, next_step=NEXT_STEP
        )
    put_snapshots(connection, parts)
    _record_type_options(connection, planned_type_options(plan))
    connection.execute(insert(plans).values(number=plan.number, body=squeezed(body)))
    record_passages(connection, plan)
    record_marks(connection, marks or {})
    record_counts(connection, plan)
    record_copies(connection, plan, copied)
    for table in plan.tables:
        carry_out(connection, table)
        if restoring:  # what is in a plan was not stopped then, whatever an earlier plan says
            forget_quarantine(connection, table.table_id, _last_name(table))
        if table.quarantine is not None:
            record_quarantine(connection, table.table_id, _last_name(table), table.quarantine)


def _unpacked(connection: Connection, body: str) -> Plan:
    """The plan, whose text lacks what an older release did not know of."""
    return unpack(body, held_snapshots(connection, references(body)))


def _record_type_options(connection: Connection, found: Mapping[str, str]) -> None:
    """Adds what :func:`historian.plans.type_options.planned_type_options` gives of a plan to what is known of the plans before it."""
    held = known_type_options(connection)
    if not held.items() >= found.items():
        set_fact(connection, "forms", json.dumps({**held, **found}, separators=(",", ":")))


def known_type_options(connection: Connection) -> dict[str, str]:
    """The forms of all plans that were ever stored."""
    held: dict[str, str] = json.loads(fact(connection, "forms") or "{}")
    return held


def record_quarantine(connection: Connection, table_id: int, name: TableName, quarantine: Quarantine) -> None:
    """Notes that a table stopped; the first reason stays, whatever the table was called then."""
    begin_repair_anew(connection, table_id)
    key = {"table_id": table_id, "database_name": name.database, "table_name": name.table}
    same = {"table_id": table_id} if table_id else key
    held = select(quarantines.c.body).where(*(quarantines.c[column] == value for column, value in same.items()))
    if connection.execute(held).first() is None:
        connection.execute(insert(quarantines).values(**key, body=codec.dump(Quarantine, quarantine)))


def forget_quarantine(connection: Connection, table_id: int, name: TableName) -> None:
    """Forgets that a table stopped; one without id goes by its name."""
    healed = delete(quarantines).where(quarantines.c.table_id == table_id)
    if not table_id:
        healed = healed.where(quarantines.c.database_name == name.database, quarantines.c.table_name == name.table)
    connection.execute(healed)


def forget_plans(connection: Connection, before: int) -> int:
    """Deletes plans below *before* but never the newest one, and snapshots that none needs; says how many plans."""
    newest = connection.execute(select(func.max(plans.c.number))).scalar() or 0
    gone = connection.execute(delete(plans).where(plans.c.number < min(before, newest))).rowcount
    forget_snapshots(connection)
    return gone


def forget_snapshots(connection: Connection) -> None:
    """Deletes full schemas that neither a plan nor an edit needs."""
    needed = set(connection.execute(select(edits.c.snapshot).where(edits.c.snapshot.is_not(None))).scalars())
    for body in connection.execute(select(plans.c.body)).scalars():
        needed |= references(loosened(body))
    for digest in set(connection.execute(select(snapshots.c.digest)).scalars()) - needed:
        connection.execute(delete(snapshots).where(snapshots.c.digest == digest))


def _last_name(table: PlannedTable) -> TableName:
    names = [version.snapshot.name for version in table.versions if version.snapshot is not None]
    return names[-1] if names else TableName("", "")
